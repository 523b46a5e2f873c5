"""Every role is killed, in turn and at random, while plans change.

Callers notice nothing, and all end on the newest plan.
"""

import random
import signal
import time
from pathlib import Path

import pytest
from callers import Callers
from grounds import EVERYWHERE
from regions import ROLES, RunningRegion

NAMES = ["api.example.test", "www.example.test"]


def kill_for(region: RunningRegion, seconds: float, kills: int, seed: int) -> None:
    """Kill roles with signal 9, each in turn and then at random, spread over the time, a plan change before each."""
    chance = random.Random(seed)
    roles = [role for role in ROLES if role in region.processes()]
    order = roles + [chance.choice(roles) for _ in range(kills - len(roles))]
    began = time.monotonic()
    for n, role in enumerate(order):
        time.sleep(max(0.0, began + n * seconds / kills - time.monotonic()))
        region.change_ttl(30 + n)
        try:
            region.signal(role, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize(
    ("on", "seconds", "kills"),
    [
        ("embedded+sqlite", 90, 60),
        ("bind+postgresql", 30, 20),
        *(pytest.param(on, 300, 200, marks=[pytest.mark.soak, pytest.mark.timeout(500)]) for on in EVERYWHERE),
    ],
)
def test_killing_every_role_leaves_callers_served_and_ends_on_the_newest_plan(
    tmp_path: Path, on: str, seconds: float, kills: int
) -> None:
    """Promises never_empty, never_backward, never_torn, converges: a crash at any moment loses nothing."""
    with RunningRegion(tmp_path, on=on) as region:
        with Callers(region.dns_port, NAMES) as callers:
            kill_for(region, seconds, kills, seed=20251019)
            region.change_ttl(299)
            region.until(
                lambda: all(region.ttl(name) == 299 for name in NAMES), 10, "the newest plan, 10 s after the last kill"
            )
            region.until(region.converged, 10, "all on the newest plan")
        restarts = sum(process["restarts"] for process in region.processes().values())
        assert restarts >= kills * 0.8, region.processes()
    callers.fine()
