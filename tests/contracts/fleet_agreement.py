"""Any run of commits ends the same on a store as on the reference."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.rows import KINDS, FleetRow, HostRow, InstanceRow, Kind, NetworkRow, ShardRow
from fencepost.core.instant import Duration
from fencepost.ports import Refused
from fencepost.ports.fleet import FleetStorePort
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

KEYS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("host", ("a", "b", "c")),
    ("instance", ("a", "web-1")),
    ("network", ("a",)),
    ("shard", ("1", "2")),
)
PLACES = tuple((kind, key) for kind, keys in KEYS for key in keys)
Operation: TypeAlias = tuple[Any, ...]

_change = st.tuples(
    st.sampled_from(PLACES),
    st.integers(0, 9),
    st.sampled_from(("as it stands", "as it stands", "as it stands", "none", "older", "newer")),
    st.sampled_from(("write", "write", "write", "delete")),
)
_claim = st.one_of(
    st.none(),
    st.tuples(st.sampled_from((1, 2)), st.sampled_from("xy"), st.integers(1, 2), st.sampled_from((True, True, False))),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), _claim, st.lists(st.lists(_change, max_size=3), max_size=4)),
        st.tuples(st.just("commit"), st.none(), st.lists(st.lists(_change, min_size=1, max_size=1), max_size=4)),
        st.tuples(st.just("own"), st.sampled_from((1, 2)), st.sampled_from("xy"), st.integers(1, 2)),
        st.tuples(
            st.just("rows"),
            st.sampled_from(("host", "instance", "network")),
            st.sampled_from((None, None, 1, 2)),
            st.integers(0, 9),
        ),
        st.tuples(st.just("prove"), st.sampled_from((1, 2)), st.lists(st.sampled_from(PLACES), max_size=4)),
    ),
    min_size=5,
    max_size=30,
)


def row_at(place: tuple[Kind, str], number: int) -> FleetRow:
    """A row of a place, one of ten."""
    kind, key = place
    match kind:
        case "host":
            return HostRow(key, "a", "", number=number)
        case "instance":
            return InstanceRow(key, attempt=number)
        case "network":
            return NetworkRow(key, "a", number, "", 0, "")
        case _:
            return ShardRow(int(key), 2, "xy"[number % 2], 1 + number // 5)


async def does(store: FleetStorePort, operation: Operation) -> object:
    """Do one operation; its outcome, by which the two are compared."""
    kind, *rest = operation
    page = await store.rows("shard")
    if kind == "own":
        shard, owner, epoch = rest
        seen = {found.row.key: found.revision for found in page.rows}.get(str(shard), 0)
        return await store.commit(None, [(Change(ShardRow(shard, 2, owner, epoch), seen),)])
    if kind == "rows":
        of_kind, shard, back = rest
        since = 0 if back == 9 else max(0, page.snapshot - back)
        found = await store.rows(of_kind, shard, since)
        return found.life, found.snapshot, [tuple(each) for each in found.rows]
    if kind == "prove":
        shard, places = rest
        proof = await store.prove(shard, places)
        return proof.life, proof.shard, list(proof.rows)
    claim, drawn = rest
    stand = {place: found for place, found in zip(PLACES, (await store.prove(1, PLACES)).rows, strict=True) if found}
    groups: list[Group] = []
    for group in drawn:
        changes = []
        for place, number, seen, what in group:
            revision = stand[place].revision if place in stand else 0
            at = {"none": 0, "older": max(0, revision - 1), "newer": revision + 1}.get(seen, revision)
            changes.append(Change(row_at(place, number), at) if what == "write" else Change(None, at, place))
        groups.append(tuple(changes))
    under = None
    if claim is not None:
        shard, owner, epoch, of_this_life = claim
        under = Claim(shard, owner, epoch, page.life if of_this_life else "another")
    try:
        return await store.commit(under, groups)
    except Refused as refused:
        return refused.what


async def agree(store: FleetStorePort, run: Sequence[Operation]) -> None:
    """The store and a new reference do the same."""

    async def never(most: Duration) -> None:
        raise AssertionError

    reference = ReferenceFleet(ReferenceRows((await store.rows("host")).life), never)
    for operation in run:
        assert await does(store, operation) == await does(reference, operation), operation
    for kind in KINDS:
        for since in (0, 1, 3):
            ours, theirs = await store.rows(kind, None, since), await reference.rows(kind, None, since)
            assert (ours.life, ours.snapshot, list(ours.rows)) == (theirs.life, theirs.snapshot, list(theirs.rows))


def agrees(opened: Callable[[], FleetStorePort], run: list[Operation]) -> None:
    """:func:`agree`, on a store of its own, closed at the end."""

    async def go() -> None:
        store = opened()
        try:
            await agree(store, run)
        finally:
            await store.close()

    asyncio.run(go())
