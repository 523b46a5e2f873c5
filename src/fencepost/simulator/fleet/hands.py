"""A simulated manager's hands on the store: its calls, queues and turns, as the role has them."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.fleet_store import Change, Claim, Group, Versioned
from fencepost.core.capacity.lease_calls import (
    Away,
    Event,
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
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.ports.fleet import Written
from fencepost.simulator.fleet.table import Table
from fencepost.simulator.fleet.walk import Process, Walk

A_CALL = 1000
Item = tuple[Op, int, int, int, int]
Looked = tuple[str, ShardRow | None, Sequence[Versioned | None]]


class Hands:
    """Carries out what is asked of the store, and tells ``inbox`` what became of it."""

    def __init__(self, walk: Walk, process: Process, shard: int, owner: str, arrived: Callable[[], None]) -> None:
        self.walk, self.process = walk, process
        self.shard, self.owner = shard, owner
        self.arrived = arrived
        self.table = Table()
        self.inbox: deque[Event] = deque()
        self.life, self.epoch = "", 0
        self.revision = self.since = self.turn = 0
        self.writes: deque[Item] = deque()
        self.proofs: deque[int] = deque()
        self.stood: tuple[ShardRow | None, str] = (None, "")
        self.writing = self.proving = False

    def tell(self, event: Event, turn: int | None = None) -> None:
        """Put something into the inbox; nothing that a forgotten turn asked for."""
        if turn is None or turn == self.turn:
            self.inbox.append(event)
            self.arrived()

    def claim(self) -> Claim:
        """Under whose name leases are written now."""
        return Claim(self.shard, self.owner, self.epoch, self.life)

    def forget(self) -> None:
        """All that was known and under way counts for nothing."""
        self.turn += 1
        self.table = Table()
        self.since = 0
        self.writes.clear()
        self.proofs.clear()

    def perform(self, effect: ReadShard | WriteShard | ReadHosts | Write | Prove) -> None:
        """Begin one call."""
        match effect:
            case Write():
                columns = (effect.ids, effect.left, effect.incarnation, effect.boot)
                for id_, left, incarnation, boot in zip(*(each.tolist() for each in columns), strict=True):
                    self.writes.append((effect.op, id_, left, incarnation, boot))
                self.write_some()
            case Prove():
                self.proofs.extend(effect.ids.tolist())
                self.prove_some()
            case ReadShard():
                self.read_shard()
            case WriteShard():
                self.write_shard(effect.row)
            case ReadHosts():
                self.read_hosts(effect)

    def failed(self, op: Op, ids: Sequence[int], turn: int) -> None:
        """A call came to nothing that is known."""
        self.tell(Away(op, np.array(ids, np.int64)), None if op is Op.NONE else turn)

    def look(self, numbers: Sequence[int]) -> Looked:
        """One look at the shard's row and some hosts'."""
        rows, names = self.walk.rows, self.table.names
        return rows.life, rows.shard(self.shard), [rows.table.get(("host", names[number])) for number in numbers]

    # The shard's row

    def read_shard(self) -> None:
        """As it is."""
        rows = self.walk.rows

        def done(found: tuple[str, Versioned | None]) -> None:
            life, at = found
            self.revision = at.revision if at is not None else 0
            row = at.row if at is not None else None
            self.stood = row if isinstance(row, ShardRow) else None, life
            self.tell(ShardRead(life, self.stood[0]))

        place = str(self.shard)
        self.walk.call(
            self.process, lambda: (rows.life, rows.table.get(("shard", place))), done,
            lambda: self.failed(Op.NONE, (), self.turn),
        )  # fmt: skip

    def write_shard(self, row: ShardRow) -> None:
        """Over the one last read."""
        groups: list[Group] = [(Change(row, self.revision),)]
        before, life = self.stood
        claim = Claim(self.shard, before.owner, before.epoch, life) if before is not None else None

        def done(written: Written | None) -> None:
            if written is None or not written.applied[0]:
                self.tell(ShardChanged())
                return
            self.revision = written.snapshot
            self.stood = row, life
            self.tell(ShardWritten(row))

        self.walk.call(
            self.process, lambda: self.walk.judge.commit(self.owner, claim, groups), done,
            lambda: self.failed(Op.NONE, (), self.turn), writes=True,
        )  # fmt: skip

    # The hosts' rows

    def read_hosts(self, effect: ReadHosts) -> None:
        """Those that changed, and those that were asked for."""
        turn, since, again = self.turn, 0 if effect.anew else self.since, effect.again

        def work() -> tuple[str, int, Sequence[Versioned], Sequence[Versioned | None]]:
            rows = self.walk.rows
            return (
                rows.life,
                rows.snapshot,
                rows.changed("host", self.shard, since),
                self.look(again)[2] if (turn == self.turn) else (),
            )

        def done(page: tuple[str, int, Sequence[Versioned], Sequence[Versioned | None]]) -> None:
            if turn != self.turn:
                return
            life, snapshot, rows, looked = page
            changed: dict[int, None] = dict.fromkeys(again)
            table = self.table
            for at in rows:
                number = table.numbers.get(at.row.key)
                if number is None or table.at[number].revision < at.revision:
                    changed[table.put(at)] = None
            for found in looked:
                if found is not None:
                    table.put(found)
            if life == self.life:
                self.since = snapshot
            self.tell(HostsRead(life, len(table.names), table.facts(list(changed), self.life)), turn)

        self.walk.call(self.process, work, done, lambda: self.failed(Op.NONE, (), turn))

    def composed(self, item: Item) -> HostRow | None:
        """What a write makes of the row as it is known: the production's own function."""
        op, number, left, incarnation, boot = item
        return lease_rows.composed(
            op,
            self.table.row(number),
            self.life,
            nonce=self.walk.draw() if op is Op.GRANT else 0,
            left=left,
            incarnation=incarnation,
            boot=boot,
            theirs=self.table.told.get(number),
        )

    def write_some(self) -> None:
        """What waits to be written, if nothing is being written."""
        if self.writing or not self.writes:
            return
        self.writing = True
        turn, table, claim = self.turn, self.table, self.claim()
        items = [self.writes.popleft() for _ in range(min(A_CALL, len(self.writes)))]
        rows = [(item[1], row) for item in items if (row := self.composed(item)) is not None]
        groups: list[Group] = [(Change(row, table.at[number].revision),) for number, row in rows]
        by_op: dict[Op, list[int]] = {}
        for op, number, *_ in items:
            by_op.setdefault(op, []).append(number)

        def work() -> tuple[bool, Sequence[Versioned]]:
            written = self.walk.judge.commit(self.owner, claim, groups) if groups else Written(0, ())
            if written is None:
                return False, ()
            other = [table.names[number] for (number, _), ok in zip(rows, written.applied, strict=True) if not ok]
            found = [self.walk.rows.table.get(("host", name)) for name in other]
            new = [Versioned(row, written.snapshot) for (_, row), ok in zip(rows, written.applied, strict=True) if ok]
            return True, [*new, *(at for at in found if at is not None)]

        def done(outcome: tuple[bool, Sequence[Versioned]]) -> None:
            self.writing = False
            stands, new = outcome
            if turn == self.turn:
                for at in new:
                    table.put(at)
                for op, numbers in by_op.items():
                    self.tell(Wrote(op, stands, table.facts(numbers, self.life)), turn)
            self.write_some()

        def failed() -> None:
            self.writing = False
            for op, numbers in by_op.items():
                self.failed(op, numbers, turn)
            self.write_some()

        if not groups:
            done((True, ()))
        else:
            self.walk.call(self.process, work, done, failed, writes=True)

    def prove_some(self) -> None:
        """What waits to be proven, if nothing is."""
        if self.proving or not self.proofs:
            return
        self.proving = True
        turn = self.turn
        numbers = [self.proofs.popleft() for _ in range(min(A_CALL, len(self.proofs)))]
        names = [self.table.names[number] for number in numbers]

        def work() -> Looked:
            rows = self.walk.rows
            return rows.life, rows.shard(self.shard), [rows.table.get(("host", name)) for name in names]

        def done(proof: Looked) -> None:
            self.proving = False
            life, shard, found = proof
            if turn == self.turn:
                for at in found:
                    if at is not None:
                        self.table.put(at)
                row = shard if all(at is not None for at in found) else None
                self.tell(Proven(life, row, self.table.facts(numbers, self.life)), turn)
            self.prove_some()

        def failed() -> None:
            self.proving = False
            self.failed(Op.PROVE, numbers, turn)
            self.prove_some()

        self.walk.call(self.process, work, done, failed)
