"""How long a test waits for what must come: the bound on a machine of its own, longer where others want the cores."""

import os


def patient(seconds: float) -> float:
    """The same share of a busy machine takes so many times longer: by the load average for each core, at least once."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
