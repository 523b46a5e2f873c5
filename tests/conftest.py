"""What every test shares: hypothesis draws the same examples each time, unless told to look further.

`make soak` sets FENCEPOST_HYPOTHESIS=random: other examples each time, and ten times as many.
"""

import os
import signal

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
    "system/test_sample_fleet.py",
    "system/test_bad_providers.py",
    "promises/test_leases.py",
    "simulator/test_walks.py",
    "system/test_fleet.py",
    "system/test_fleet_outage.py",
    "system/test_limits.py",
)
"""Files of a minute and more. A file's tests stay with one worker: begun last, one of these would run alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, all others in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))
