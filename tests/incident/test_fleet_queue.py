"""The fleet as it was: a line that forgets nothing, and callers who do all that is recommended."""

import pytest

from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.incident.fleet_queue import collapse, shock
from fencepost.world.fleet_load import Load

SMALL = Load(hosts=4_000, slots=16, mean=250 * MILLISECOND)
"""At best 62.5 s for all, as with 100,000 hosts."""


@pytest.mark.parametrize("backs_off", [False, True])
def test_a_sixth_is_answered_and_then_nobody_ever(backs_off: bool) -> None:
    """October 2025, step 2: what ten seconds of patience allow, then all work is for callers who have given up."""
    outcome = collapse(SMALL, 1, backs_off, 600 * SECOND)
    assert outcome.first_done / 4_000 == pytest.approx(0.16, abs=0.02)
    assert outcome.held[12] == outcome.held[300] == outcome.first_done
    assert outcome.held[-1] == 0
    assert outcome.sends > 10 * 4_000


def test_the_same_fleet_stays_up_or_stays_down() -> None:
    """Hysteresis: at one and the same load a small loss is made good, and a large one never is."""
    load = Load(hosts=2_000, slots=16, mean=500 * MILLISECOND, period=125 * SECOND)
    small = shock(load, 1, list(range(100)), True, 20 * load.lease)
    large = shock(load, 1, list(range(1_200)), True, 20 * load.lease)
    assert small.recovered() is not None
    assert large.recovered() is None
    assert large.held[-1] == 0
    assert large.ended < 20 * load.lease
