"""How long a test waits for what must come: the bound on a machine of its own, longer where others want the cores."""

import os
import time


def patient(seconds: float) -> float:
    """The same share of a busy machine takes so many times longer: by the load average for each core, at least once."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Patience:
    """A wait that begins now. Its bound grows where others come to want the cores meanwhile: a load average is late."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began = time.monotonic()
        self.longest = 0.0

    def left(self) -> float:
        """How many seconds are left; less than none once it is over."""
        self.longest = max(self.longest, patient(self.seconds))
        return self.began + self.longest - time.monotonic()

    def over(self) -> bool:
        """Whether it was waited long enough for what must come."""
        return self.left() < 0
