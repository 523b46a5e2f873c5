"""A simulated manager's hands on the store: the calls that its book makes, each taking effect when, or if, the walk
says so."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from fencepost.core.capacity.fleet_store import Claim, Versioned
from fencepost.core.capacity.host_table import HostTable
from fencepost.core.capacity.lease_book import LeaseBook, Place
from fencepost.core.capacity.lease_calls import Event, Prove, ReadHosts, ReadShard, Write, WriteShard
from fencepost.core.capacity.rows import ShardRow
from fencepost.ports.fleet import Written
from fencepost.simulator.fleet.walk import Process, Walk


class Hands:
    """Carries out what is asked of the store, and tells ``inbox`` what became of it."""

    def __init__(self, walk: Walk, process: Process, book: LeaseBook, arrived: Callable[[], None]) -> None:
        self.walk, self.process, self.book = walk, process, book
        self.arrived = arrived
        self.inbox: deque[Event] = deque()
        self.writing = self.proving = False

    @property
    def table(self) -> HostTable:
        """The hosts' rows."""
        return self.book.table

    def claim(self) -> Claim:
        """Under whose name leases are written now."""
        return self.book.claim()

    def tell(self, *events: Event | None) -> None:
        """Put something into the inbox."""
        for event in events:
            if event is not None:
                self.inbox.append(event)
                self.arrived()

    def perform(self, effect: ReadShard | WriteShard | ReadHosts | Write | Prove) -> None:
        """Begin one call."""
        match effect:
            case Write():
                self.book.queue(effect)
                self.write_some()
            case Prove():
                self.book.queue(effect)
                self.prove_some()
            case ReadShard():
                self.read_shard()
            case WriteShard():
                self.write_shard(effect.row)
            case ReadHosts():
                self.read_hosts(effect)

    def look(self, places: Iterable[Place]) -> Sequence[Versioned | None]:
        """Some rows as they are."""
        return [self.walk.rows.table.get(place) for place in places]

    # The shard's row

    def read_shard(self) -> None:
        """As it is."""
        rows, place = self.walk.rows, str(self.book.shard)
        self.walk.call(
            self.process,
            lambda: (rows.life, rows.table.get(("shard", place))),
            lambda found: self.tell(self.book.shard_read(*found)),
            lambda: self.tell(*self.book.failed()),
        )

    def write_shard(self, row: ShardRow) -> None:
        """Over the one last read."""
        call = self.book.shard_writing(row)
        self.walk.call(
            self.process,
            lambda: self.walk.judge.commit(self.book.owner, call.claim, call.groups),
            lambda written: self.tell(self.book.shard_wrote(call, written)),
            lambda: self.tell(*self.book.failed(call)),
            writes=True,
        )

    # The hosts' rows

    def read_hosts(self, effect: ReadHosts) -> None:
        """Those that changed, and those that were asked for."""
        book, rows = self.book, self.walk.rows
        call, since = book.reading(effect), 0 if effect.anew else book.since

        def work() -> tuple[str, int, Sequence[Versioned], Sequence[Versioned | None]]:
            again = self.look(book.places(call.again)) if call.turn == book.turn else ()
            return rows.life, rows.snapshot, rows.changed("host", book.shard, since), again

        def done(page: tuple[str, int, Sequence[Versioned], Sequence[Versioned | None]]) -> None:
            life, snapshot, changed, again = page
            book.take(call, changed)
            self.tell(book.read(call, life, snapshot, again))

        self.walk.call(self.process, work, done, lambda: self.tell(*book.failed(call)))

    def write_some(self) -> None:
        """What waits to be written, if nothing is being written. The look at what had changed is part of the call."""
        if self.writing:
            return
        book = self.book
        call = book.writing(self.walk.draw)
        if call is None:
            return
        self.writing = True

        def work() -> tuple[Written | None, Sequence[Versioned | None]]:
            written = self.walk.judge.commit(book.owner, call.claim, call.groups)
            other = [] if written is None else zip(call.groups, written.applied, strict=True)
            return written, self.look(group[0].place for group, ok in other if not ok)

        def done(outcome: tuple[Written | None, Sequence[Versioned | None]]) -> None:
            self.writing = False
            written, looked = outcome
            book.took(call, written)
            self.tell(*book.wrote(call, written is not None, looked))
            self.write_some()

        def failed() -> None:
            self.writing = False
            self.tell(*book.failed(call))
            self.write_some()

        if not call.groups:
            done((Written(0, ()), ()))
        else:
            self.walk.call(self.process, work, done, failed, writes=True)

    def prove_some(self) -> None:
        """What waits to be proven, if nothing is."""
        if self.proving:
            return
        book, rows = self.book, self.walk.rows
        call = book.proving()
        if call is None:
            return
        self.proving = True

        def work() -> tuple[str, ShardRow | None, Sequence[Versioned | None]]:
            return rows.life, rows.shard(book.shard), self.look(call.places)

        def done(proof: tuple[str, ShardRow | None, Sequence[Versioned | None]]) -> None:
            self.proving = False
            self.tell(book.proved(call, *proof))
            self.prove_some()

        def failed() -> None:
            self.proving = False
            self.tell(*book.failed(call))
            self.prove_some()

        self.walk.call(self.process, work, done, failed)
