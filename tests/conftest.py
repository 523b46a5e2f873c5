"""What every test shares: hypothesis draws the same examples each time, unless told to look further.

`make soak` sets FENCEPOST_HYPOTHESIS=random: other examples each time, and ten times as many.
"""

import os
import signal
from collections import defaultdict

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("FENCEPOST_HYPOTHESIS", "same"))

# A shell's background jobs ignore Ctrl-C, and so would every program that a test starts and then interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "system/test_kills.py",
    "simulator/test_walks.py",
    "system/test_sample_fleet.py",
    "promises/test_explorer.py",
    "system/test_bad_providers.py",
    "simulator/test_fleet_collapse.py",
    "contracts/test_dns_faults.py",
    "system/test_heals.py",
)
"""Files of a minute or so, those that wait beside those that compute. A file's tests stay with one worker: begun last,
one of these would run alone at the end."""
WAITING = ("contracts", "system")
"""Folders whose tests start servers or a region and mostly wait for them. All others mostly compute."""


SOAK_S = 3600
"""A long run is ended only when it hangs: on a busy machine one of two minutes took more than five."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; then files that wait beside files that compute, so that neither core stands idle."""
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SOAK_S))
    files = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        files["/".join(item.path.parts[-2:])].append(item)
    rest = [name for name in files if name not in LONGEST]
    places = dict.fromkeys(LONGEST, 0.0)
    for kind in (True, False):
        alike = [name for name in rest if (name.split("/")[0] in WAITING) is kind]
        places |= {name: (place + 1) / len(alike) for place, name in enumerate(alike)}
    ordered = [*(name for name in LONGEST if name in files), *sorted(rest, key=places.__getitem__)]
    items[:] = [item for name in ordered for item in files[name]]
