"""The janitor deletes what nothing can need, and forgets a pass that failed."""

import pytest
from core_values import NAME, row
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.effects import DeleteRow, ReadDns, ReadSpent, Wake
from fencepost.core.events import Deleted, DnsRead, Failed, Failure, Published, Spent, SpentRead, Woke
from fencepost.core.fence import Generation
from fencepost.core.instant import DAY, MINUTE, SECOND
from fencepost.core.traffic.janitor import Janitor, JanitorSettings, may_go

KEEP = JanitorSettings()
NEWEST = Generation(0, 99)
generations = st.builds(Generation, st.integers(0, 2), st.integers(0, 4))


def old(number: int, place: int, age: int = 8 * DAY, live: Generation | None = NEWEST) -> Spent:
    """A row of that number, that many places from the newest (99), made so long before day 100."""
    made = structs.replace(row(number=number), made_at=100 * DAY - age)
    return Spent(made, place, NEWEST, live)


@given(generations, st.none() | generations, st.integers(0, 100), st.integers(0, 14))
def test_nothing_that_is_needed_goes(newest: Generation, live: Generation | None, place: int, days: int) -> None:
    """cleanup_spares_live: a newer row in the store, a marker at least as new in DNS, 50 generations and 7 days."""
    mine = structs.replace(row(number=1, epoch=1), made_at=(100 - days) * DAY)
    spent = Spent(mine, place, newest, live)
    goes = mine.generation < newest and live is not None and live >= newest and place >= 50 and days >= 7
    assert may_go(spent, KEEP, 100 * DAY) == goes


def test_a_pass_reads_dns_before_the_rows_and_deletes_one_by_one() -> None:
    """The marker was at least this new when the rows were listed."""
    janitor = Janitor(KEEP)
    assert janitor.on(Woke(), 0) == (ReadDns(),)
    assert janitor.on(DnsRead(), 0) == (ReadSpent(),)
    listed = SpentRead((old(1, 98), old(2, 97), old(60, 39), old(3, 96, age=6 * DAY)))
    first = DeleteRow(NAME, Generation(0, 1), "0001-1")
    assert janitor.on(listed, 100 * DAY) == (first,)
    assert janitor.on(Deleted(), 100 * DAY) == (DeleteRow(NAME, Generation(0, 2), "0001-2"),)
    assert janitor.on(Deleted(), 100 * DAY) == (Wake(MINUTE),)


@pytest.mark.parametrize("live", [None, Generation(0, 98)], ids=["no marker of ours", "the newest is not live yet"])
def test_nothing_goes_while_the_newest_is_not_live(live: Generation | None) -> None:
    """October 2025, step 4: clean-up by age deleted what was live."""
    janitor = Janitor(KEEP)
    assert janitor.on(SpentRead((old(1, 98, live=live),)), 100 * DAY) == (Wake(MINUTE),)


def test_a_failure_ends_the_pass() -> None:
    """What was judged then is judged anew: the store may be another by now."""
    janitor = Janitor(KEEP)
    janitor.on(SpentRead((old(1, 98), old(2, 97))), 100 * DAY)
    assert janitor.on(Failed("DeleteRow", Failure.UNAVAILABLE), 100 * DAY) == (Wake(15 * SECOND),)
    assert janitor == Janitor(KEEP)
    assert janitor.on(Failed("ReadSpent", Failure.MISCONFIGURED), 100 * DAY) == (Wake(MINUTE),)
    with pytest.raises(TypeError, match="Published"):
        janitor.on(Published(), 0)
