"""The fleet's rows in the table.

A commit is one transaction for up to 95 rows, or several one after the other; no group is cut in two. Each transaction
moves the clock on (:mod:`.fleet_clock`), checks that the shard's row still says what the claim says, and writes rows on
condition that each stands at the revision it was read at. What a transaction is refused for is told action by action:
a group that doesn't fit is left out and the rest sent again. A claim that is lost between two transactions ends the
commit; what was applied before is reported as such.

*Unknown outcome.* The same transaction is sent again: it can be applied once at most, since the clock stands where it
says only once, and the log's entry says by whom the clock was moved.

Awkward truth: all transactions of a fleet meet at the clock, so they follow each other, some tens a second. A fleet of
more than some thousand hosts belongs in PostgreSQL. Tables with strong consistency across Regions take no transactions.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.client import PATIENCE_S, PAUSE_LEAST_S, Client
from fencepost.adapters.store_dynamodb.faults import LostError, TableMissingError, UnmetError
from fencepost.adapters.store_dynamodb.fleet_clock import ROUNDS_MOST, Changed, Clock, Clocks, Entry
from fencepost.adapters.store_dynamodb.fleet_reading import Reader, place_key
from fencepost.adapters.store_dynamodb.items import packed
from fencepost.adapters.store_dynamodb.root import RACE_PAUSE_MOST_S, Roots
from fencepost.adapters.store_dynamodb.table import Table
from fencepost.adapters.store_dynamodb.watch import Watch
from fencepost.adapters.store_fleet_rows import encode
from fencepost.adapters.store_waiting import TaskWaiters
from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.instant import Duration
from fencepost.ports import Refused, Unavailable
from fencepost.ports.fleet import Page, Proof, Written
from fencepost.world.reference_fleet import refuse_unlawful_groups

T = TypeVar("T")
ROWS_AT_ONCE = 95
"""TransactWriteItems takes 100 actions; four are the clock's, the log's two and the claim's."""
BYTES_AT_ONCE = 3 * 1024 * 1024
"""Of 4 MB."""
Action = Mapping[str, Any]


class DynamoDbFleetStore:
    """:class:`fencepost.ports.fleet.FleetStorePort` on DynamoDB. Used from one event loop."""

    def __init__(self, client: Client, *, create: bool) -> None:
        self._client = client
        self._roots = Roots(client, Table(client, create=create))
        self._clocks = Clocks(client, self._roots)
        self._reader = Reader(client, self._clocks)
        self._watch = FleetWatch(self._roots, self._clocks)
        self._waiters = TaskWaiters(self._watch)

    @classmethod
    def open(cls, table: str, aws_region: str, *, create: bool = False) -> Self:
        """The rows in the store in ``table``. Raises nothing, as :meth:`~.store.DynamoDbStore.open`."""
        return cls(Client(table, aws_region), create=create)

    async def _done(self, work: Callable[[], Awaitable[T]]) -> T:
        """A call's outcome; begun anew once if the table was missing, so that whoever may make it does."""
        try:
            return await work()
        except TableMissingError:
            self._roots.table.forget()
        try:
            await self._roots.read()
            return await work()
        except TableMissingError:
            raise faults.missing(self._client.where) from None

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """All rows of a kind (of a shard) changed after snapshot ``since``."""
        return await self._done(lambda: self._reader.rows(kind, shard, since))

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """One consistent look at a shard's row and these rows."""
        return await self._done(lambda: self._reader.prove(shard, places))

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """Groups of changes, each all or nothing, under a claim; None if that doesn't stand.

        Raises ``Refused`` as :func:`~fencepost.world.reference_fleet.refuse_unlawful_groups` does, and for a group or a
        row that is too big.
        """
        refuse_unlawful_groups(groups, self._client.where)
        for group in groups:
            if len(group) > ROWS_AT_ONCE:
                what = f"a group has {len(group)} rows; one DynamoDB transaction takes {ROWS_AT_ONCE}"
                raise Refused(what, where=self._client.where, hint="use the postgresql store")
        return await self._done(lambda: self._commit(claim, groups))

    async def _commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        clock = await self._clocks.read()
        if claim is not None and not claim.stands(await self._reader.own_row(claim.shard), clock.life):
            return None
        sending = Sending(self._client, self._clocks, self._reader, claim, clock)
        waiting, applied = list(range(len(groups))), [False] * len(groups)
        while waiting and sending.claimed:
            at = _cut([groups[each] for each in waiting])
            for each in await sending.apply({each: groups[each] for each in waiting[:at]}):
                applied[each] = True
            waiting = waiting[at:]
        if not sending.claimed and not any(applied):
            return None
        self._watch.noted((sending.clock.life, sending.clock.snapshot))
        return Written(sending.clock.snapshot, tuple(applied))

    async def restamp(self) -> str:
        """Begin a new life: every lease counts as unknown from now on. The new life."""
        return await self._done(self._restamp)

    async def _restamp(self) -> str:
        for _ in range(ROUNDS_MOST):
            life = await self._clocks.begin_new_life(await self._clocks.read())
            if (await self._clocks.read()).life == life:
                return life
        raise _changes_too_fast(self._client.where)

    def wait(self, most: Duration) -> Coroutine[Any, Any, None]:
        """Return when rows may have changed since this task's last call, at the latest after ``most``."""
        return self._waiters.wait(most)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._watch.close()
        await self._client.close()


class FleetWatch(Watch):
    """Wakes those who wait for fleet rows: by a look at the clock each second."""

    def __init__(self, roots: Roots, clocks: Clocks) -> None:
        super().__init__(roots)
        self._clocks = clocks

    async def standing(self) -> tuple[str, int]:
        """What differs after each commit of fleet rows."""
        clock = await self._clocks.read()
        return clock.life, clock.snapshot


class Sending:
    """The transactions of one commit: ``claimed`` is false once the claim is lost, ``clock`` is the newest known."""

    def __init__(self, client: Client, clocks: Clocks, reader: Reader, claim: Claim | None, clock: Clock) -> None:
        self._client = client
        self._clocks = clocks
        self._reader = reader
        self._claim = claim
        self.clock = clock
        self.claimed = True

    async def apply(self, groups: Mapping[int, Group]) -> Sequence[int]:
        """Those of the groups that were applied: all at once, without those that don't fit."""
        left, deadline, pause = dict(groups), time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
        while left and self.claimed:
            failed = await self._sent(left, deadline)
            if failed is None:
                return tuple(left)
            moved, owned, unfit = failed
            for each in unfit:
                del left[each]
            if moved:
                self.clock = await self._clocks.read()
                self.claimed = self._claim is None or self._claim.life == self.clock.life
            if not owned and self._claim is not None:
                own = await self._reader.own_row(self._claim.shard)
                self.claimed = self._claim.stands(own, self.clock.life)
            if moved and left:
                if time.monotonic() >= deadline:
                    raise _changes_too_fast(self._client.where)
                await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
                pause = min(pause * 2, RACE_PAUSE_MOST_S)
        return ()

    async def _sent(self, groups: Mapping[int, Group], deadline: float) -> tuple[bool, bool, set[int]] | None:
        """Send one transaction until it is known what became of it: None if it was applied.

        Else whether the clock had moved, whether the shard's row was as claimed, and which groups don't fit.
        """
        nonce, lost = secrets.token_hex(8), None
        actions, whose, checks = self._actions(groups, nonce)
        while True:
            try:
                await self._client.call("transact_write_items", once=True, TransactItems=actions)
                break
            except LostError as error:
                lost = error.problem
            except UnmetError as unmet:
                if lost is None or not await self._is_ours(nonce):
                    failed = {at for at, wrong in enumerate(unmet.failed) if wrong}
                    return 0 in failed, not failed & checks, {whose[at] for at in failed if at in whose}
                break
            if await self._is_ours(nonce):
                break
            if time.monotonic() >= deadline:
                raise lost
            await asyncio.sleep(random.uniform(0, RACE_PAUSE_MOST_S))  # noqa: S311  nothing secret about it
        self.clock = Clock(self.clock.life, self.clock.origin, self.clock.snapshot + 1)
        return None

    async def _is_ours(self, nonce: str) -> bool:
        entry = await self._clocks.entry(self.clock.snapshot + 1)
        return entry is not None and entry.by == nonce

    def _actions(self, groups: Mapping[int, Group], nonce: str) -> tuple[list[Action], dict[int, int], set[int]]:
        """The transaction; which action is about which group, and which ones check the claim."""
        table, where = self._client.table, self._client.where
        new = Clock(self.clock.life, self.clock.origin, self.clock.snapshot + 1)
        changes = [(each, change) for each, group in groups.items() for change in group]
        places = tuple(Changed(*change.place, change.row is None) for _, change in changes)
        actions = self.clock.moves(table, new, Entry(nonce, places), where)
        whose, checks = {}, set()
        for each, change in changes:
            whose[len(actions)] = each
            claimed = self._claim is not None and change.place == ("shard", str(self._claim.shard))
            if claimed:
                checks.add(len(actions))
            actions.append(write(table, change, new.snapshot, self._claim if claimed else None, where))
        if self._claim is not None and not checks:
            checks.add(len(actions))
            check = {"TableName": table, "Key": place_key("shard", str(self._claim.shard)), **owned(self._claim)}
            actions.append({"ConditionCheck": check})
        return actions, whose, checks


def owned(claim: Claim) -> Action:
    """The condition that a shard's item says what a claim says. (Its life is the clock's to say.)"""
    return {
        "ConditionExpression": "#owner = :owner AND epoch = :epoch",
        "ExpressionAttributeNames": {"#owner": "owner"},
        "ExpressionAttributeValues": {":owner": {"S": claim.owner}, ":epoch": {"N": str(claim.epoch)}},
    }


def write(table: str, change: Change, snapshot: int, claim: Claim | None, where: str) -> Action:
    """A change as an action; of the shard's own row under a claim with the claim's condition, too."""
    kind, name = change.place
    condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
    if change.seen:
        values = {":seen": {"N": str(change.seen)}}
        condition = {"ConditionExpression": "revision = :seen", "ExpressionAttributeValues": values}
        if claim is not None:
            more = owned(claim)
            condition = {
                **more,
                "ConditionExpression": f"revision = :seen AND {more['ConditionExpression']}",
                "ExpressionAttributeValues": {**values, **more["ExpressionAttributeValues"]},
            }
    if change.row is None:
        return {"Delete": {"TableName": table, "Key": place_key(kind, name), **condition}}
    item = {
        **place_key(kind, name),
        "revision": {"N": str(snapshot)},
        "body": packed(encode(change.row), f"{kind} {name}", where),
    }
    if isinstance(change.row, ShardRow):
        item |= {"owner": {"S": change.row.owner}, "epoch": {"N": str(change.row.epoch)}}
    return {"Put": {"TableName": table, "Item": item, **condition}}


def _cut(groups: Sequence[Group]) -> int:
    """How many groups from the front one transaction takes; at least one."""
    rows = size = 0
    for at, group in enumerate(groups):
        rows += len(group)
        size += sum(len(encode(change.row)) + 1024 for change in group)
        if at and (rows > ROWS_AT_ONCE or size > BYTES_AT_ONCE):
            return at
    return len(groups)


def _changes_too_fast(where: str) -> Unavailable:
    hint = "too many write at once; it goes on by itself"
    return Unavailable("the fleet's clock changes too fast", where=where, hint=hint)
