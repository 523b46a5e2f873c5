"""Copying a store into another: plans, configuration, membership, overrides, orders, history, and the fleet's rows.

The plans are published anew, in order, under the numbers that they had, so that the new store knows every generation
that stands in DNS: nothing has to be adopted and no number comes a second time. It keeps an identity of its own. A
copied one would be a lie: two stores would pass for one, and each would take the other's later plans for its own.

It may be done while the region runs, and again: what an earlier copy brought isn't brought twice. Roles that still
write to the old store meanwhile are no danger to DNS, which is fenced by itself; what they note after the copy stays
behind. A store that holds plans of another origin is refused, and nothing is written. Rows carry no name of the store
that they were copied from, so origin is judged by the rows: each has to be one of the first store's, or one that its
janitor can have deleted, which leaves fifty newer ones and none of a week.

Awkward truth: a stale store of the same region passes if all that it holds is older than a week, and the first has
planned fifty times for each of its endpoints since. Nothing of its plans is lost then, but they aren't the first's.

The fleet's rows are brought as they are: hosts with the sets they run and the words people gave them, instances,
network states, launches. The second store has a life of its own, so each lease in it counts as unknown, and nothing is
placed before its host has reported there. Shards come without an owner, at the epoch they had, so that tokens go on
rising.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.capacity.fleet_store import Change, Versioned
from fencepost.core.capacity.rows import KINDS, FleetRow, HostRow, Kind, ShardRow
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.store import Head, Plan, Row
from fencepost.core.traffic.janitor import JanitorSettings
from fencepost.ports import HistoryRow, Refused, StorePort
from fencepost.ports.fleet import FleetStorePort

HISTORY_MOST = 100_000
NOTED_AT_ONCE = 1000
LATE_MOST: Duration = 3600 * SECOND
"""A line that comes after another may be so much older: by a clock that is behind, or noted late."""
FLEET_ROWS_AT_ONCE = 1000
AT_ONCE = 32
"""Endpoints whose rows are read at the same time."""


class Copied(Struct, frozen=True):
    """What a copy brought: ``plans`` published now, with so many ``rows``; ``number`` is the head's now."""

    plans: int
    rows: int
    number: int
    overrides: int
    orders: int
    history: int


async def copy_store(source: StorePort, target: StorePort, tell: Callable[[str], None] = lambda _: None) -> Copied:
    """Bring everything that counts; ``tell`` is given a word of progress now and then.

    Raises ``Refused`` if the target holds plans that the source doesn't know, else what the ports raise.
    """
    theirs, ours = await source.head(), await target.head()
    if theirs.store == ours.store:
        raise Refused("both are one store", hint="name another store in the second file")
    known = await kept_rows(source, tell)
    await refuse_stranger(target, ours, theirs, known)
    plans, rows = await publish_plans(source, target, ours, known, tell)
    await copy_inputs(source, target)
    noted = await copy_history(source, target, tell)
    inputs = await source.inputs()
    return Copied(plans, rows, (await target.head()).number, len(inputs.overrides), len(inputs.orders), noted)


async def kept_rows(store: StorePort, tell: Callable[[str], None]) -> dict[str, tuple[Row, ...]]:
    """Every kept row of every endpoint, newest first."""
    _, newest = await store.newest_rows(None)
    names = sorted(row.name for row in newest)
    found: dict[str, tuple[Row, ...]] = {}
    for at in range(0, len(names), AT_ONCE):
        part = names[at : at + AT_ONCE]
        for name, rows in zip(part, await asyncio.gather(*(store.rows_of(name) for name in part)), strict=True):
            found[name] = tuple(rows)
        tell(f"read {at + len(part):,} of {len(names):,} endpoints")
    return found


async def refuse_stranger(target: StorePort, ours: Head, theirs: Head, known: dict[str, tuple[Row, ...]]) -> None:
    """Raise ``Refused`` for a target whose plans aren't those of the source."""
    _, standing = await target.newest_rows(None)
    hint = "name a store that is empty, or that an earlier copy of this one filled; nothing was written"
    if ours.number > theirs.number:
        what = f"it holds plan {ours.number}, and the one to be copied only plan {theirs.number}"
        raise Refused(what, where="the store to be copied to", hint=hint)
    now = time.time_ns()
    for row in standing:
        kept = known.get(row.name, ())
        same = next((each for each in kept if each.generation == row.generation), None)
        if (same is None and not may_be_deleted(row, kept, now)) or (same is not None and same.digest != row.digest):
            what = f"its {row.name}, gen {row.generation}, isn't one of the store to be copied"
            raise Refused(what, where="the store to be copied to", hint=hint)


def may_be_deleted(row: Row, kept: Collection[Row], now: Instant) -> bool:
    """Whether a row that a store lacks can be one that its janitor deleted, by what it keeps of that endpoint.

    Being older than those kept isn't enough: so is every row of a store from which the region moved on without a copy.
    """
    keeps = JanitorSettings()
    older = all(row.generation < each.generation for each in kept)
    return older and len(kept) >= keeps.keep_generations and now - row.made_at >= keeps.keep_for


async def publish_plans(
    source: StorePort,
    target: StorePort,
    ours: Head,
    known: dict[str, tuple[Row, ...]],
    tell: Callable[[str], None],
) -> tuple[int, int]:
    """Publish what the target doesn't have yet, in order; how many plans and rows."""
    by_number: dict[int, list[Row]] = defaultdict(list)
    for rows in known.values():
        for row in rows:
            if row.generation.number > ours.number:
                by_number[row.generation.number].append(row)
    last = (await source.head()).number
    if last > max(by_number, default=ours.number):
        by_number[last] = []  # so that the next number is above every one that was ever given
    head, count = ours, 0
    for number in sorted(by_number):
        published = await target.publish(Plan(head, number, head.inputs, tuple(by_number[number]), why=("copied",)))
        if published is None:
            hint = "stop every role that uses it, and copy again"
            raise Refused("somebody else publishes there", where="the store to be copied to", hint=hint)
        head, count = published, count + len(by_number[number])
        tell(f"plan {number} of {last}")
    return len(by_number), count


async def copy_inputs(source: StorePort, target: StorePort) -> None:
    """Configuration, membership, overrides and orders, as the source has them now."""
    there, here = await source.inputs(), await target.inputs()
    if there.config:
        await target.put_config(there.config, here.config)
    for pool, (_, body) in there.membership.items():
        if here.membership.get(pool, (0, b""))[1] != body:
            await target.put_membership(pool, here.membership.get(pool, (0, b""))[0], body)
    for name, body in there.overrides.items():
        if here.overrides.get(name) != body:
            await target.put_override(name, body)
    for name in here.overrides.keys() - there.overrides.keys():
        await target.drop_override(name)
    for order in there.orders:
        await target.put_order(order)
    await target.note_enacted(tuple((await source.enacted()).values()))


async def copy_history(source: StorePort, target: StorePort, tell: Callable[[str], None]) -> int:
    """What the target's history lacks; how many lines.

    Lines of one moment may have been cut apart by an earlier copy that was ended, and a role whose clock is behind
    notes lines that are older than the newest: so of the last hour before that it is looked which are there.
    """
    newest = await target.history(most=1)
    since = max(0, newest[-1].at - LATE_MOST) if newest else 0
    there = Counter(map(_line, await target.history(since=since, most=HISTORY_MOST)) if newest else ())
    rows = []
    for row in await source.history(since=since, most=HISTORY_MOST):
        if there[_line(row)]:
            there[_line(row)] -= 1
        else:
            rows.append(row)
    for at in range(0, len(rows), NOTED_AT_ONCE):
        await target.note(rows[at : at + NOTED_AT_ONCE])
        tell(f"history: {at + len(rows[at : at + NOTED_AT_ONCE]):,} of {len(rows):,} lines")
    return len(rows)


def _line(row: HistoryRow) -> tuple[Instant, str, str, str, str]:
    """A line but for its id, which each store gives."""
    return row.at, row.kind, row.on, row.by, row.text


async def copy_fleet(source: FleetStorePort, target: FleetStorePort, tell: Callable[[str], None]) -> int:
    """Make the target's fleet rows those of the source; how many were written or deleted now.

    Raises ``Refused`` if a fleet lives in the target: its rows are newer, and never written over.
    """
    await refuse_living(target)
    done = 0
    for kind in KINDS:
        theirs = {found.row.key: unowned(found.row) for found in (await source.rows(kind)).rows}
        ours = {found.row.key: found for found in (await target.rows(kind)).rows}
        changes = changes_to(kind, theirs, ours)
        for at in range(0, len(changes), FLEET_ROWS_AT_ONCE):
            part = changes[at : at + FLEET_ROWS_AT_ONCE]
            written = await target.commit(None, [(change,) for change in part])
            if written is None or not all(written.applied):
                hint = "stop every role that uses it, and copy again"
                raise Refused("somebody else writes there", where="the store to be copied to", hint=hint)
            done += len(part)
            tell(f"fleet: {at + len(part):,} of {len(changes):,} rows of kind {kind}")
    return done


async def refuse_living(target: FleetStorePort) -> None:
    """Raise ``Refused`` for a store in which a shard has an owner, or a host a lease."""
    shards, hosts = await target.rows("shard"), await target.rows("host")
    owners = [row for row, _ in shards.rows if isinstance(row, ShardRow) and row.owner]
    held = [row for row, _ in hosts.rows if isinstance(row, HostRow) and row.held(hosts.life)]
    if owners or held:
        what = f"shard {owners[0].key} has an owner there" if owners else f"host {held[0].host} has its lease there"
        hint = "a fleet that lives in the second store is newer than the copy; name a new store"
        raise Refused(what, where="the store to be copied to", hint=hint)


def unowned(row: FleetRow) -> FleetRow:
    """A row as it is copied: a shard without its owner."""
    return replace(row, owner="", open="") if isinstance(row, ShardRow) else row


def changes_to(kind: Kind, theirs: dict[str, FleetRow], ours: dict[str, Versioned]) -> list[Change]:
    """What makes rows of one kind those of the source."""
    written = [
        Change(row, ours[key].revision if key in ours else 0)
        for key, row in theirs.items()
        if key not in ours or ours[key].row != row
    ]
    return written + [Change(None, found.revision, (kind, key)) for key, found in ours.items() if key not in theirs]
