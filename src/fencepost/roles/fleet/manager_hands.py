"""The lease manager's hands on the store: what it asks to be read, written and proven, many hosts a call.

Each kind of call has one task and a queue, so that a mass re-establishment is written a thousand hosts a transaction
and not one. What comes back is put into an inbox, for the manager to be told of in its turn. When the shard is lost, or
taken anew, everything under way is let go of: its answers count for nothing.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.fleet_store import Change, Claim, Group, Versioned
from fencepost.core.capacity.lease_calls import (
    Away,
    Event,
    Facts,
    HostsRead,
    Op,
    Prove,
    Proven,
    ReadHosts,
    ReadShard,
    ShardChanged,
    ShardRead,
    ShardWritten,
    Write,
    WriteShard,
    Wrote,
)
from fencepost.core.capacity.rows import HostRow, Kind, ShardRow
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.host_table import HostTable
from fencepost.roles.loop import Condition

log = logging.getLogger(__name__)

A_CALL = 1000
"""So many hosts a transaction."""
AT_ONCE = 10_000
"""So many rows are unpacked before other tasks get their turn."""
Item = tuple[Op, int, int, int, int]
"""A write about one host: what, whom, and the mark, incarnation and boot it may need."""


class ManagerHands:
    """Carries out what is asked of the store, and tells ``inbox`` what became of it.

    ``owner``, ``life`` and ``epoch`` make the claim, as the decider last had them.
    """

    def __init__(self, store: FleetStorePort, shard: int, owner: str, condition: Condition) -> None:
        self.store = store
        self.shard = shard
        self.owner = owner
        self.condition = condition
        self.table = HostTable()
        self.inbox: deque[Event] = deque()
        self.arrived = asyncio.Event()
        self.life = ""
        self.epoch = 0
        self._revision = 0
        self._stood: tuple[ShardRow | None, str] = (None, "")
        self._since = 0
        self._turn = 0
        self._writes: deque[Item] = deque()
        self._proofs: deque[int] = deque()
        self._wanted = {name: asyncio.Event() for name in ("write", "prove")}
        self._reading = asyncio.Lock()
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def since(self) -> int:
        """The snapshot up to which the table has what others wrote; 0 before the first whole reading."""
        return self._since

    def tell(self, event: Event, turn: int | None = None) -> None:
        """Put something into the inbox; nothing that a forgotten turn asked for."""
        if turn is None or turn == self._turn:
            self.inbox.append(event)
            self.arrived.set()

    def claim(self) -> Claim:
        """Under whose name leases are written now."""
        return Claim(self.shard, self.owner, self.epoch, self.life)

    def forget(self) -> None:
        """All that was known and under way counts for nothing."""
        self._turn += 1
        self.table = HostTable()
        self._since = 0
        self._writes.clear()
        self._proofs.clear()

    async def run(self) -> None:
        """Serve the queues until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._serve("write", self._write_some))
            group.create_task(self._serve("prove", self._prove_some))

    async def _serve(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        wanted = self._wanted[name]
        queue = self._writes if name == "write" else self._proofs
        while True:
            await wanted.wait()
            wanted.clear()
            while queue:
                await work()

    def perform(self, effect: ReadShard | WriteShard | ReadHosts | Write | Prove) -> None:
        """Begin one call."""
        match effect:
            case Write():
                columns = (effect.ids, effect.left, effect.incarnation, effect.boot)
                for id_, left, incarnation, boot in zip(*(each.tolist() for each in columns), strict=True):
                    self._writes.append((effect.op, id_, left, incarnation, boot))
                self._wanted["write"].set()
            case Prove():
                self._proofs.extend(effect.ids.tolist())
                self._wanted["prove"].set()
            case ReadShard():
                self._begin(self._read_shard())
            case WriteShard():
                self._begin(self._write_shard(effect.row))
            case ReadHosts():
                self._begin(self._read_hosts(effect))

    def _begin(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _failed(self, call: str, error: PortError, op: Op, ids: Sequence[int], turn: int) -> None:
        if self.condition.failed(call, error):
            log.warning("%s: %s", call, error.in_full)
        self.tell(Away(op, np.array(ids, np.int64)), None if op is Op.NONE else turn)

    # The shard's row.

    async def _read_shard(self) -> None:
        place: tuple[Kind, str] = ("shard", str(self.shard))
        try:
            proof = await self.store.prove(self.shard, [place])
        except PortError as error:
            self._failed("reading the shard", error, Op.NONE, (), self._turn)
            return
        self.condition.succeeded("reading the shard")
        found = proof.rows[0]
        self._revision = found.revision if found is not None else 0
        self._stood = proof.shard, proof.life
        self.tell(ShardRead(proof.life, proof.shard))

    async def _write_shard(self, row: ShardRow) -> None:
        # Revisions of a store put back come again: only under its life is the row the one that was read.
        before, life = self._stood
        claim = Claim(self.shard, before.owner, before.epoch, life) if before is not None else None
        try:
            written = await self.store.commit(claim, [(Change(row, self._revision),)])
        except PortError as error:
            self._failed("writing the shard", error, Op.NONE, (), self._turn)
            return
        self.condition.succeeded("writing the shard")
        if written is None or not written.applied[0]:
            self.tell(ShardChanged())
            return
        self._revision = written.snapshot
        self._stood = row, life
        self.tell(ShardWritten(row))

    async def release(self) -> None:
        """Write the shard's row without an owner, if it is as we wrote it. Raises a ``PortError``."""
        proof = await self.store.prove(self.shard, [("shard", str(self.shard))])
        found, row = proof.rows[0], proof.shard
        if found is not None and row is not None and (row.owner, row.epoch) == (self.owner, self.epoch):
            await self.store.commit(None, [(Change(structs.replace(row, owner=""), found.revision),)])

    # The hosts' rows.

    async def _read_hosts(self, effect: ReadHosts) -> None:
        turn = self._turn
        try:
            async with self._reading:  # what one puts into the table would be no news to another
                found = await self._changed(effect, turn)
        except PortError as error:
            self._failed("reading hosts", error, Op.NONE, (), turn)
            return
        self.condition.succeeded("reading hosts")
        if found is not None:
            self.tell(found, turn)

    async def _changed(self, effect: ReadHosts, turn: int) -> HostsRead | None:
        """What the rows say now, of those that changed; None if meanwhile nobody wants to know."""
        page = await self.store.rows("host", self.shard, 0 if effect.anew else self._since)
        again = await self._look(effect.again) if effect.again and turn == self._turn else ()
        table, parts, asked = self.table, list[Facts](), frozenset(effect.again)
        for at in range(0, len(page.rows), AT_ONCE):
            if turn != self._turn:
                return None
            some = [each for each in page.rows[at : at + AT_ONCE] if effect.anew or not self._known(each)]
            if asked:  # each host once: two writes about one would be one too many
                some = [each for each in some if table.numbers.get(each.row.key) not in asked]
            if some:
                parts.append(table.take(some, self.life))
            if len(page.rows) > AT_ONCE:
                await asyncio.sleep(0)
        if turn != self._turn:
            return None
        for found in again:
            if found is not None:
                table.put(found)
        if page.life == self.life:
            self._since = page.snapshot
        parts.append(table.facts(effect.again, self.life))
        facts = parts[0] if len(parts) == 1 else Facts(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        return HostsRead(page.life, len(table), facts)

    def _known(self, versioned: Versioned) -> bool:
        number = self.table.numbers.get(versioned.row.key)
        return number is not None and self.table.revisions[number] >= versioned.revision

    async def _look(self, numbers: Iterable[int]) -> Sequence[Versioned | None]:
        places: list[tuple[Kind, str]] = [("host", self.table.names[number]) for number in numbers]
        return (await self.store.prove(self.shard, places)).rows

    # Writes under the claim.

    def _composed(self, item: Item) -> HostRow | None:
        op, number, left, incarnation, boot = item
        return lease_rows.composed(
            op,
            self.table.row(number),
            self.life,
            nonce=secrets.randbits(63) if op is Op.GRANT else 0,
            left=left,
            incarnation=incarnation,
            boot=boot,
            theirs=self.table.told.get(number),
        )

    async def _write_some(self) -> None:
        turn = self._turn
        items = [self._writes.popleft() for _ in range(min(A_CALL, len(self._writes)))]
        groups: list[Group] = []
        rows: list[tuple[int, HostRow]] = []
        for item in items:
            row = self._composed(item)
            if row is not None:
                rows.append((item[1], row))
                groups.append((Change(row, self.table.revisions[item[1]]),))
        by_op: dict[Op, list[int]] = {}
        for op, number, *_ in items:
            by_op.setdefault(op, []).append(number)
        stands = True
        try:
            if groups:
                written = await self.store.commit(self.claim(), groups)
                stands = written is not None
                if written is not None and turn == self._turn:
                    await self._took(rows, written.snapshot, written.applied)
        except PortError as error:
            for op, numbers in by_op.items():
                self._failed("writing leases", error, op, numbers, turn)
            return
        self.condition.succeeded("writing leases")
        if turn == self._turn:
            for op, numbers in by_op.items():
                self.tell(Wrote(op, stands, self.table.facts(numbers, self.life)), turn)

    async def _took(self, rows: Sequence[tuple[int, HostRow]], snapshot: int, applied: Sequence[bool]) -> None:
        """Keep what was written; read again what had changed meanwhile."""
        for (_, row), ok in zip(rows, applied, strict=True):
            if ok:
                self.table.put(Versioned(row, snapshot))
        other = [number for (number, _), ok in zip(rows, applied, strict=True) if not ok]
        if other:
            for found in await self._look(other):
                if found is not None:
                    self.table.put(found)

    # Proofs.

    async def _prove_some(self) -> None:
        turn = self._turn
        numbers = [self._proofs.popleft() for _ in range(min(A_CALL, len(self._proofs)))]
        places: list[tuple[Kind, str]] = [("host", self.table.names[number]) for number in numbers]
        try:
            proof = await self.store.prove(self.shard, places)
        except PortError as error:
            self._failed("proving leases", error, Op.PROVE, numbers, turn)
            return
        self.condition.succeeded("proving leases")
        if turn != self._turn:
            return
        for found in proof.rows:
            if found is not None:
                self.table.put(found)
        gone = proof.shard if all(found is not None for found in proof.rows) else None
        self.tell(Proven(proof.life, gone, self.table.facts(numbers, self.life)), turn)
