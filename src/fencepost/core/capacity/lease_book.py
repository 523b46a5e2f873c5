"""What a lease manager knows of its hosts' rows, and what it still has to write and prove of them.

The decider speaks of hosts in arrays of numbers; the store has rows by name. The book stands between: it makes calls of
what the decider asks for (a thousand hosts each, so that a mass re-establishment isn't written one host a transaction),
and events of what came of them. Whoever drives it makes the calls, as he likes: a role awaits a store, a simulator
lets them take effect later or not at all.

Each call is begun in a *turn*. When the shard is lost, or taken anew, the turn ends: whatever was under way is let go
of, and what comes of it makes no event any more. It may take effect in the store all the same, where the claim, or the
row's revision, is what keeps it from doing harm.

    queue(effect) -> writing() -> commit -> took() -> look at those that had changed -> wrote() -> Wrote
                     proving() -> prove -> proved() -> Proven
    reading(effect) -> rows, look -> take() ... -> read() -> HostsRead
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.fleet_store import Change, Claim, Group, Versioned
from fencepost.core.capacity.host_table import HostTable
from fencepost.core.capacity.lease_calls import (
    Answered,
    Away,
    Facts,
    HostsRead,
    Ids,
    Op,
    Outdated,
    Prove,
    Proven,
    ReadHosts,
    ShardChanged,
    ShardRead,
    ShardWritten,
    Write,
    Wrote,
)
from fencepost.core.capacity.messages import Answer, FromHost, Newer
from fencepost.core.capacity.rows import HostRow, Kind, ShardRow

A_CALL = 1000
"""So many hosts a transaction."""
Item = tuple[Op, int, int, int, int]
"""A write about one host: what, whom, and the mark, incarnation and boot it may need."""
Place = tuple[Kind, str]
Outcome = tuple[int, Sequence[bool]] | None
"""What became of a commit: its snapshot, and which groups applied; None if the claim doesn't stand."""


class Reading(Struct):
    """Hosts being read: all (``anew``) or those that changed, and ``again`` in any case. ``parts`` are those taken.

    ``waited`` as in what asked for it.
    """

    turn: int
    anew: bool
    again: tuple[int, ...]
    parts: list[Facts]
    waited: bool


class Writing(Struct):
    """One commit about hosts: ``rows`` are those to be written, by number, ``by_op`` all it is about."""

    turn: int
    claim: Claim
    groups: list[Group]
    rows: list[tuple[int, HostRow]]
    by_op: dict[Op, list[int]]


class Proving(Struct):
    """One look at the shard's row and these hosts'."""

    turn: int
    numbers: list[int]
    places: list[Place]


class ShardWriting(Struct):
    """One commit of the shard's row, over the one last read in the store's life of that time."""

    row: ShardRow
    claim: Claim | None
    groups: list[Group]
    life: str


class LeaseBook:
    """The rows, queues and turn of one manager. ``life`` and ``epoch`` make its claim, as the decider last had them.

    ``since`` is the snapshot up to which the table has what others wrote; 0 before the first whole reading.
    """

    def __init__(self, shard: int, owner: str) -> None:
        self.shard, self.owner = shard, owner
        self.table = HostTable()
        self.life, self.epoch = "", 0
        self.since = self.turn = 0
        self.writes: deque[Item] = deque()
        self.proofs: deque[int] = deque()
        self._revision = 0
        self._stood: tuple[ShardRow | None, str] = (None, "")
        self._answers: list[tuple[int, Answer]] = []
        self._refusals: list[Outdated] = []

    def claim(self) -> Claim:
        """Under whose name leases are written now."""
        return Claim(self.shard, self.owner, self.epoch, self.life)

    def forget(self) -> None:
        """All that was known and under way counts for nothing."""
        self.turn += 1
        self.table = HostTable()
        self.since = 0
        self.writes.clear()
        self.proofs.clear()
        self._answers.clear()
        self._refusals.clear()

    def queue(self, effect: Write | Prove) -> None:
        """What is to be written or proven, behind what is already."""
        match effect:
            case Write():
                columns = (effect.ids, effect.left, effect.incarnation, effect.boot)
                for id_, left, incarnation, boot in zip(*(each.tolist() for each in columns), strict=True):
                    self.writes.append((effect.op, id_, left, incarnation, boot))
            case Prove():
                self.proofs.extend(effect.ids.tolist())

    def places(self, numbers: Iterable[int]) -> list[Place]:
        """Kind and key of these hosts' rows."""
        return [("host", self.table.names[number]) for number in numbers]

    def failed(self, call: Reading | Writing | Proving | ShardWriting | None = None) -> tuple[Away, ...]:
        """A call came to nothing that is known; None for a look at the shard's row."""
        match call:
            case Writing() if call.turn == self.turn:
                return tuple(Away(op, np.array(numbers, np.int64)) for op, numbers in call.by_op.items())
            case Proving() if call.turn == self.turn:
                return (Away(Op.PROVE, np.array(call.numbers, np.int64)),)
            case Writing() | Proving():
                return ()
        return (Away(Op.NONE, np.empty(0, np.int64)),)

    # The shard's row

    def shard_read(self, life: str, found: Versioned | None) -> ShardRead:
        """The row as it stands, in the store of this life."""
        self._revision = found.revision if found is not None else 0
        row = found.row if found is not None else None
        self._stood = row if isinstance(row, ShardRow) else None, life
        return ShardRead(life, self._stood[0])

    def shard_writing(self, row: ShardRow) -> ShardWriting:
        """What is to be committed for the row to stand."""
        # Revisions of a store put back come again: only under its life is the row the one that was read.
        before, life = self._stood
        claim = Claim(self.shard, before.owner, before.epoch, life) if before is not None else None
        return ShardWriting(row, claim, [(Change(row, self._revision),)], life)

    def shard_wrote(self, call: ShardWriting, written: Outcome) -> ShardWritten | ShardChanged:
        """What became of it."""
        if written is None or not written[1][0]:
            return ShardChanged()
        self._revision = written[0]
        self._stood = call.row, call.life
        return ShardWritten(call.row)

    # Rows that others wrote

    def reading(self, effect: ReadHosts) -> Reading:
        """Begin to read. The rows are those after ``since``, or all; those of ``again`` are to be looked at too."""
        return Reading(self.turn, effect.anew, effect.again, [], effect.waited)

    def take(self, call: Reading, rows: Sequence[Versioned]) -> bool:
        """Some of the rows read, each host's once; False if nobody wants to know any more."""
        if call.turn != self.turn:
            return False
        table = self.table
        some = rows if call.anew else [each for each in rows if not table.knows(each)]
        if call.again:  # each host once: two writes about one would be one too many
            asked = frozenset(call.again)
            some = [each for each in some if table.numbers.get(each.row.key) not in asked]
        if some:
            call.parts.append(table.take(some, self.life))
        return True

    def read(self, call: Reading, life: str, snapshot: int, again: Sequence[Versioned | None]) -> HostsRead | None:
        """All is read, as of this snapshot, and ``again`` looked at; None if nobody wants to know any more."""
        if call.turn != self.turn:
            return None
        self._put(again)
        if life == self.life:
            self.since = snapshot
        parts = [*call.parts, self.table.facts(call.again, self.life)]
        facts = parts[0] if len(parts) == 1 else Facts(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        return HostsRead(life, len(self.table), facts, call.waited)

    def _put(self, rows: Iterable[Versioned | None]) -> None:
        for found in rows:
            if found is not None:
                self.table.put(found)

    # Writes under the claim

    def writing(self, draw: Callable[[], int]) -> Writing | None:
        """The next commit, if something waits to be written. ``draw`` gives 63 bits that nobody else has drawn."""
        if not self.writes:
            return None
        items = [self.writes.popleft() for _ in range(min(A_CALL, len(self.writes)))]
        call = Writing(self.turn, self.claim(), [], [], {})
        for item in items:
            row = self._composed(item, draw)
            if row is not None:
                call.rows.append((item[1], row))
                call.groups.append((Change(row, self.table.revisions[item[1]]),))
            call.by_op.setdefault(item[0], []).append(item[1])
        return call

    def _composed(self, item: Item, draw: Callable[[], int]) -> HostRow | None:
        op, number, left, incarnation, boot = item
        return lease_rows.composed(
            op,
            self.table.row(number),
            self.life,
            nonce=draw() if op is Op.GRANT else 0,
            left=left,
            incarnation=incarnation,
            boot=boot,
            theirs=self.table.told.get(number),
        )

    def took(self, call: Writing, written: Outcome) -> list[Place]:
        """Keep what was written; the rows that had changed meanwhile, to be looked at before ``wrote``."""
        if written is None or call.turn != self.turn:
            return []
        other = []
        for (number, row), ok in zip(call.rows, written[1], strict=True):
            if ok:
                self.table.put(Versioned(row, written[0]))
            else:
                other.append(number)
        return self.places(other)

    def wrote(self, call: Writing, stands: bool, looked: Sequence[Versioned | None] = ()) -> tuple[Wrote, ...]:
        """The commit is done, and what had changed was looked at. ``stands``: the claim did (nothing to write: so too).

        Nothing if nobody wants to know any more.
        """
        if call.turn != self.turn:
            return ()
        self._put(looked)
        return tuple(Wrote(op, stands, self.table.facts(numbers, self.life)) for op, numbers in call.by_op.items())

    # Proofs

    def proving(self) -> Proving | None:
        """The next look, if something waits to be proven."""
        if not self.proofs:
            return None
        numbers = [self.proofs.popleft() for _ in range(min(A_CALL, len(self.proofs)))]
        return Proving(self.turn, numbers, self.places(numbers))

    def proved(
        self, call: Proving, life: str, shard: ShardRow | None, rows: Sequence[Versioned | None]
    ) -> Proven | None:
        """What was seen, the rows in the order asked; None if nobody wants to know any more."""
        if call.turn != self.turn:
            return None
        self._put(rows)
        row = shard if all(found is not None for found in rows) else None
        return Proven(life, row, self.table.facts(call.numbers, self.life))

    # Hosts' answers, one by one

    def hear(self, answer: FromHost) -> None:
        """A host's answer has come; it is told of with all others at the next ``heard``."""
        table = self.table
        number = table.numbers.get(answer.host)
        if number is None:
            return
        match answer:
            case Answer():
                if answer.set is not None:
                    table.told[number] = answer.set
                if answer.down:
                    table.down[number] = (answer.version, answer.down)
                    table.causes[number] = answer.causes
                elif table.down:
                    table.down.pop(number, None)
                    table.causes.pop(number, None)
                if answer.unable:
                    table.unable[number] = answer
                elif table.unable:
                    table.unable.pop(number, None)
                self._answers.append((number, answer))
            case Newer(token=token):
                self._refusals.append(Outdated(number, token.epoch, token.number, token.nonce))

    def heard(self) -> tuple[Answered | None, Sequence[Outdated]]:
        """All answers and refusals since the last call, as the decider is told of them.

        Of several answers of one host in a row the last one counts.
        """
        refused, self._refusals = self._refusals, []
        if not self._answers:
            return None, refused
        last = dict(self._answers)
        self._answers = []
        return answered(last, self.table), refused


def answered(last: dict[int, Answer], table: HostTable) -> Answered:
    """Answers by number, as arrays."""
    answers, told = list(last.values()), table.told
    ids: Ids = np.array(list(last), np.int64)
    return Answered(
        ids,
        np.array([each.token.epoch for each in answers], np.int64),
        np.array([each.token.number for each in answers], np.int64),
        np.array([each.token.nonce for each in answers], np.uint64),
        np.array([each.boot for each in answers], np.uint64),
        np.array([each.stamp for each in answers], np.int64),
        np.array([each.incarnation for each in answers], np.uint64),
        np.array([each.version for each in answers], np.int64),
        np.array([number in told and told[number].version == each.version for number, each in last.items()]),
    )
