"""A repair needs a provider and nothing else, is fenced like every write, and outranks what it replaces."""

import pytest
from core_values import BOTH_FAMILIES, NAME, ONE, OWNER, TWO, generations, live, row
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.fence import Foreign, Generation, Hold
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING
from fencepost.core.repair import repair
from fencepost.core.zone import Live, exact


@given(generations, generations, st.integers(0, 10**10))
def test_a_repair_is_above_marker_row_and_time(stood: Generation, known: Generation, now_s: int) -> None:
    """The time keeps two holds apart when what was known of the first has been lost in between."""
    at = live(ONE, stood.number, stood.epoch)
    newest = row(ONE, known.number, known.epoch)
    for seen in (newest, None):
        change = repair(at, seen, TWO, owner=OWNER, store="ffff", now=now_s * SECOND)
        hold = change.marker.hold
        assert hold is not None
        assert hold.id == change.marker.generation.epoch >= now_s
        assert change.marker.generation > stood
        assert seen is None or change.marker.generation > known
        assert change.marker.generation.number == stood.number
        assert (change.marker.store, change.content, change.marker.content) == ("0001", TWO, TWO)
        assert exact(at, change)
        assert not exact(structs.replace(at, a=("203.0.113.9",)), change)


def test_a_repair_of_nothing_signs_with_the_digits_given() -> None:
    """No marker stands: number 0 or the row's, and the caller's store."""
    change = repair(Live(NAME), None, ONE, owner=OWNER, store="ffff", now=9 * SECOND, until_s=99)
    assert change.marker.generation == Generation(9, 0)
    assert (change.marker.store, change.marker.hold) == ("ffff", Hold("repair", 9, 99))
    assert repair(Live(NAME), row(number=7), ONE, owner=OWNER, store="ffff", now=0).marker.generation == Generation(
        1, 7
    )


def test_a_family_that_is_not_spoken_of_keeps_its_addresses() -> None:
    """A repair in haste names the A records; the AAAA records stay."""
    change = repair(live(BOTH_FAMILIES), None, TWO, owner=OWNER, store="ffff", now=0)
    assert (change.content.a, change.content.aaaa, change.families) == (TWO.a, BOTH_FAMILIES.aaaa, "46")
    assert not change.empties()


def test_what_is_another_owners_or_would_be_empty_is_refused() -> None:
    """Break-glass isn't above the fence, nor above never_empty."""
    for at in (live(owner="eu-2"), Live(NAME, Foreign("eu-2")), Live(NAME, Foreign(""))):
        with pytest.raises(ValueError, match="another owner"):
            repair(at, None, ONE, owner=OWNER, store="ffff", now=0)
    with pytest.raises(ValueError, match="at least one address"):
        repair(Live(NAME), None, NOTHING, owner=OWNER, store="ffff", now=0)
