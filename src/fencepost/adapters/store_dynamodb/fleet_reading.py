"""Reading fleet rows: what changed since a snapshot, all of a kind, or a few as of one moment.

*Since a snapshot.* The log names the places; their rows are read, strongly consistent, and each must be at least as new
as the log says. (A transaction that hasn't been answered yet may show in the clock before it shows in a row.) A row
that is newer than the snapshot is followed up, until snapshot and rows are of one state.

*All of a kind.* Its partitions are read, and then the log's last entries again, for the same reason.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import Client, at_once
from fencepost.adapters.store_dynamodb.fleet_clock import CLOCK, LOG_KEPT, ROUNDS_MOST, Changed, Clock, Clocks
from fencepost.adapters.store_dynamodb.fleet_clock import read_clock as clock_of
from fencepost.adapters.store_dynamodb.items import ALL_SHARDS, Item, body, key, number, shard, text
from fencepost.adapters.store_fleet_rows import versioned
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.capacity.shards import shard_of
from fencepost.ports import Unavailable
from fencepost.ports.fleet import Page, Proof
from fencepost.world.reference_fleet import SHARDED

READ_AT_ONCE = 98
"""TransactGetItems takes 100; two are the clock and the shard's row."""
UNDER_WAY_MOST = 32
"""So many transactions may be behind the clock's last number and not show yet, by a wide margin."""
PAUSE_MOST_S = 0.05


def partition(kind: Kind, name: str) -> str:
    """The partition of a row: a kind's rows are spread over four."""
    return f"fleet#{kind}#{shard(name)}"


def place_key(kind: Kind, name: str) -> Item:
    """A row's key."""
    return key(partition(kind, name), name)


def read_row(item: Item, kind: Kind, where: str) -> Versioned:
    """A row out of its item. Raises ``Misconfigured``."""
    try:
        return versioned(kind, text(item, "sk"), number(item, "revision"), body(item))
    except UnreadableError as error:
        raise faults.damaged(where, str(error)) from error
    except ValueError as error:
        raise faults.damaged(where, f"{kind} {item.get('sk')}: {error}") from error


class Reader:
    """The queries, on one table. Each raises the port's errors, and ``TableMissingError``."""

    def __init__(self, client: Client, clocks: Clocks) -> None:
        self._client = client
        self._clocks = clocks

    async def own_row(self, number_: int) -> ShardRow | None:
        """A shard's row."""
        found = await self.fetched("shard", [str(number_)])
        row = found[str(number_)].row if found else None
        assert row is None or isinstance(row, ShardRow)  # its kind says so  # noqa: S101
        return row

    async def fetched(self, kind: Kind, names: Sequence[str]) -> dict[str, Versioned]:
        """Those of these rows that are there, by key."""
        items = await self._client.fetch([place_key(kind, name) for name in names])
        return {found.row.key: found for found in (read_row(item, kind, self._client.where) for item in items)}

    async def everything(self, kind: Kind) -> dict[str, Versioned]:
        """All rows of a kind, by key."""
        parts = await at_once(self._client.query(f"fleet#{kind}#{each}") for each in ALL_SHARDS)
        found = (read_row(item, kind, self._client.where) for part in parts for item in part)
        return {each.row.key: each for each in found}

    async def rows(self, kind: Kind, wanted: int | None, since: int) -> Page:
        """All rows of a kind (of a shard) changed after snapshot ``since``, as of one snapshot."""
        clock = await self._clocks.read()
        if since >= clock.snapshot:
            return Page(clock.life, clock.snapshot, ())
        of = 0
        if wanted is not None and kind in SHARDED:
            own = await self.own_row(wanted)
            if own is None:
                return Page(clock.life, clock.snapshot, ())
            of = own.of
        found: dict[str, Versioned] = {}
        known = since if since > 0 else -1
        for _ in range(ROUNDS_MOST):
            if known < clock.snapshot - LOG_KEPT or known < 0:
                found = await self.everything(kind)
                known = max(0, clock.snapshot - UNDER_WAY_MOST)
            if not await self._follow(found, kind, known, clock):
                known = -1
            elif all(each.revision <= clock.snapshot for each in found.values()):
                kept = sorted(name for name, each in found.items() if each.revision > since)
                own_only = (found[name] for name in kept if not of or shard_of(name, of) == wanted)
                return Page(clock.life, clock.snapshot, tuple(own_only))
            else:
                known = clock.snapshot
            clock = await self._clocks.read()
        raise _too_fast(self._client.where)

    async def _follow(self, found: dict[str, Versioned], kind: Kind, known: int, clock: Clock) -> bool:
        """Bring ``found`` from one snapshot to the clock's; False if the log doesn't reach back so far."""
        entries = await self._clocks.log(known, clock.snapshot)
        if entries is None:
            return False
        last: dict[str, tuple[int, Changed]] = {}
        for at, entry in enumerate(entries, known + 1):
            last |= {place.key: (at, place) for place in entry.places if place.kind == kind}
        for _ in range(ROUNDS_MOST):
            rows = await self.fetched(kind, list(last))
            if all(_shows(rows, *each) for each in last.values()):
                for name in last:
                    found.pop(name, None)
                found.update(rows)
                return True
            await asyncio.sleep(random.uniform(0, PAUSE_MOST_S))  # noqa: S311  nothing secret about it
        raise _too_fast(self._client.where)

    async def prove(self, wanted: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """A shard's row and these, as of one moment: one transaction, or several between which nothing changed."""
        cuts = [places[at : at + READ_AT_ONCE] for at in range(0, len(places), READ_AT_ONCE)] or [places[:0]]
        for _ in range(ROUNDS_MOST):
            parts = [await self._proof(wanted, cut) for cut in cuts]
            clocks = [clock for clock, _, _ in parts]
            if clocks[0] is None or not await self._clocks.stands(clocks[0]):
                await self._clocks.read()
            elif all(clock == clocks[0] for clock in clocks):
                rows = tuple(row for _, _, part in parts for row in part)
                return Proof(clocks[0].life, parts[0][1], rows)
        raise _too_fast(self._client.where)

    async def _proof(
        self, wanted: int, places: Sequence[tuple[Kind, str]]
    ) -> tuple[Clock | None, ShardRow | None, Sequence[Versioned | None]]:
        shard_place: tuple[Kind, str] = ("shard", str(wanted))
        distinct = dict.fromkeys((shard_place, *places))
        keys = [key(*CLOCK), *(place_key(*place) for place in distinct)]
        asked = [{"Get": {"TableName": self._client.table, "Key": each}} for each in keys]
        answer = await self._client.call("transact_get_items", TransactItems=asked)
        items: list[Mapping[str, Item]] = answer["Responses"]
        where = self._client.where
        clock = clock_of(items[0]["Item"], where) if items[0].get("Item") else None
        rows = {
            place: read_row(one["Item"], place[0], where) if one.get("Item") else None
            for place, one in zip(distinct, items[1:], strict=True)
        }
        own = rows[shard_place]
        row = own.row if own is not None else None
        assert row is None or isinstance(row, ShardRow)  # as above  # noqa: S101
        return clock, row, [rows[place] for place in places]


def _shows(rows: Mapping[str, Versioned], at: int, place: Changed) -> bool:
    """Whether what was read shows what a transaction did to a place, or something newer."""
    row = rows.get(place.key)
    return place.gone if row is None else row.revision > at or (row.revision == at and not place.gone)


def _too_fast(where: str) -> Unavailable:
    hint = "too many write at once; it goes on by itself"
    return Unavailable("the fleet's rows change too fast to be read", where=where, hint=hint)
