"""The fleet rows' contract, kept by the reference; and the reference does what the reference semantics say."""

import asyncio

import pytest
from fleet_store import FleetStoreContract, Make
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity import fleet_store
from fencepost.core.capacity.fleet_store import Change, Claim, Fleet, Group
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.instant import SECOND, Duration
from fencepost.ports.fleet import Written
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows


async def sleep(most: Duration) -> None:
    """Let time pass."""
    await asyncio.sleep(most / SECOND)


class TestReference(FleetStoreContract):
    """The rows in memory."""

    @pytest.fixture
    def make(self) -> Make:
        """Another view of the same rows each time."""
        rows = ReferenceRows("life-1")
        return lambda: ReferenceFleet(rows, sleep)


_change = st.builds(
    lambda name, number, seen, gone: (
        Change(None, max(1, seen), ("host", name)) if gone else Change(HostRow(name, "a", "", number=number), seen)
    ),
    st.sampled_from("abc"),
    st.integers(0, 9),
    st.integers(0, 6),
    st.booleans(),
)
_group = st.lists(_change, max_size=2, unique_by=lambda change: change.place).map(tuple)
_commit = st.tuples(
    st.one_of(st.none(), st.builds(Claim, st.just(1), st.sampled_from("xy"), st.integers(1, 2), st.just("life-1"))),
    st.lists(_group, max_size=3),
)


@given(st.lists(_commit, max_size=12))
def test_in_place_it_does_what_the_values_do(commits: list[tuple[Claim | None, list[Group]]]) -> None:
    """The reference changes its table in place; :func:`fencepost.core.capacity.fleet_store.commit` makes a new one."""
    rows, fleet = ReferenceRows("life-1"), Fleet("life-1")
    commits.insert(1, (None, [(Change(ShardRow(1, 1, "x", 1), 0),)]))
    for claim, groups in commits:
        places = [change.place for group in groups for change in group]
        if len(set(places)) < len(places):
            continue
        fleet, applied = fleet_store.commit(fleet, claim, groups)
        assert rows.commit(claim, groups) == (None if applied is None else Written(fleet.snapshot, applied))
        assert rows.copy() == fleet
        for since in range(fleet.snapshot + 1):
            changed = [found for place, found in fleet.rows if place[0] == "host" and found.revision > since]
            assert list(rows.changed("host", None, since)) == changed


def test_a_wiped_or_restored_store_has_another_life() -> None:
    """What an older copy holds stands again, and under another life: its leases are unknown."""
    rows = ReferenceRows("life-1")
    claim = Claim(1, "x", 1, "life-1")
    rows.commit(None, [(Change(ShardRow(1, 1, "x", 1), 0),)])
    rows.commit(claim, [(Change(HostRow("a", "a", ""), 0),)])
    copy = rows.copy()
    rows.commit(claim, [(Change(HostRow("b", "a", ""), 0),)])
    rows.wipe("life-2", copy)
    assert rows.commit(claim, [(Change(HostRow("c", "a", ""), 0),)]) is None
    assert [found.row.key for found in rows.changed("host", None, 0)] == ["a"]
    assert [found.row.key for found in rows.changed("host", 1, 1)] == ["a"]
    rows.wipe("life-3")
    assert rows.copy() == Fleet("life-3")
