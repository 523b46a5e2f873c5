"""How far a recovery is, is worked out from several counts of one manager by one clock, and never from a single one.

During a recovery `status` told counts only: not how fast leases came back, nor when it would be done
(docs/operating/recovery.md).
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity.coming_back import MOST, SPAN, ComingBack, Noted, Pace, coming_back, noted, pace_of
from fencepost.core.instant import SECOND

YES = (True, True)


def past(*held: int, of: int = 1000, every: int = 2) -> tuple[Noted, ...]:
    """Counts, two seconds apart unless said otherwise."""
    return tuple((place * every * SECOND, each, of) for place, each in enumerate(held))


def test_a_pace_takes_three_counts() -> None:
    """One says nothing; of two, one may be from before a burst."""
    assert pace_of(()) is None
    assert pace_of(past(100)) is None
    assert pace_of(past(100, 300)) is None
    assert pace_of(past(100, 300, 500)) == Pace(100.0, 4 * SECOND)


def test_a_pace_counts_from_the_fewest_on() -> None:
    """While leases lapse there is no pace; after it the loss isn't counted against what comes back."""
    assert pace_of(past(1000, 600, 200)) is None
    assert pace_of(past(1000, 600, 200, 300, 500)) == Pace(75.0, 4 * SECOND)
    assert pace_of(past(40, 40, 40, 40, every=10)) == Pace(0.0, 30 * SECOND), "it stands still, and that is known"


def test_all_shards_together_are_done_when_the_slowest_is() -> None:
    """Counts and rates add up; the time that is left doesn't."""
    fast, slow = past(0, 200, 400), past(100, 140, 180, of=500)
    found = coming_back((fast, slow), YES)
    assert found == ComingBack(580, 1500, Pace(120.0, 4 * SECOND), 16 * SECOND)
    assert coming_back((fast, past(500, 500, 500, of=500)), YES) == ComingBack(
        900, 1500, Pace(100.0, 4 * SECOND), 6 * SECOND
    )


def test_what_cant_be_told_isnt() -> None:
    """A manager that fell silent, or has just taken over, or gains none: no rate, or no end, and no guess."""
    fast = past(0, 200, 400)
    assert coming_back((fast, fast), (True, False)) == ComingBack(800, 2000, None, None)
    assert coming_back((fast, past(100)), YES) == ComingBack(500, 2000, None, None)
    assert coming_back((fast, past(100, 100, 100)), YES) == ComingBack(500, 2000, Pace(100.0, 4 * SECOND), None)


def test_a_few_hosts_that_are_off_are_no_recovery() -> None:
    """Nor is one that is over; one that began with many goes on to its last host, as long as it is remembered."""
    assert coming_back((past(1000, 1000),), (True,)) is None
    assert coming_back((past(950, 950, 950),), (True,)) is None
    assert coming_back((past(5, 5, 5, of=6),), (True,)) is None, "one is no share (at least two)"
    assert coming_back((past(500, 800, 999),), (True,)) == ComingBack(
        999, 1000, Pace(124.75, 4 * SECOND), int(SECOND / 124.75)
    )
    assert coming_back((past(500, 800, 1000),), (True,)) is None
    assert coming_back(((), ()), YES) is None


@given(st.lists(st.integers(0, 40 * SECOND), max_size=60))
def test_the_past_is_bounded_in_time_and_number(steps: list[int]) -> None:
    """Newest last, strictly rising; a clock that stands or was begun anew costs the old counts, not the order."""
    kept: tuple[Noted, ...] = ()
    at = 0
    for step in steps:
        at += step
        kept = noted(kept, at, 1, 2)
        assert kept[-1] == (at, 1, 2)
        assert len(kept) <= MOST
        assert all(earlier[0] < later[0] for earlier, later in pairwise(kept))
        assert kept[0][0] >= at - SPAN
    assert noted(((50 * SECOND, 1, 2),), SECOND, 1, 2) == ((SECOND, 1, 2),)
