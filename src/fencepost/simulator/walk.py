"""The walk: virtual time, one heap of moves, and what all parts share.

A move is (time, sequence, what to do, with what). Equal times are told apart by the sequence, so the order is total and
the same each time. Nothing here knows what the parts are: each puts its own next move into the heap.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from msgspec import structs

from fencepost.core.effects import Commit, DeleteRow, Publish
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.promises import Memory
from fencepost.core.store import Head, Tables
from fencepost.core.zone import Batch, Live
from fencepost.simulator.chance import Latencies
from fencepost.simulator.pace import Pace
from fencepost.simulator.timed import Indexed, Timed
from fencepost.simulator.watch import ON_COMMIT, Watch
from fencepost.world import calls
from fencepost.world.model import Move
from fencepost.world.region import life

EPOCH: Instant = 1_700_000_000 * SECOND
"""When every walk begins."""

Operation = tuple[str, Any, Any]
"""What reached DNS or store, its argument, and its outcome: for whoever drives real ones beside the walk."""


class Process:
    """What is killed, stopped and has a clock: one or two parts live in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.skew: Duration = 0
        self.stopped_until: Instant = 0
        self.no_store_until: Instant = 0
        self.no_dns_until: Instant = 0


class Walk:
    """Time, the heap, DNS and store. ``sleepers`` are called when either changed; they put their own early waking."""

    def __init__(self, seed: int, endpoints: tuple[str, ...], mean: Duration = 0) -> None:
        self.now: Instant = EPOCH
        self.heap: list[tuple[Instant, int, Callable[[Any], None], Any]] = []
        self.sequence = 0
        self.latency = Latencies(seed, mean)
        self.watch = Watch(EPOCH)
        self.pace = Pace()
        self.store_away_until: Instant = 0
        self.dns_away_until: Instant = 0
        self.ahead: Duration = 0
        self.sleepers: list[Callable[[], None]] = []
        self.operated: Callable[[Operation], None] | None = None
        self.shared = Timed(
            domain=tuple(Live(name) for name in endpoints),
            stores=(Indexed(Head(life(1)), inputs=1),),
            memory=(Memory(),) * len(endpoints),
            clock=EPOCH,
            latest=EPOCH,
        )

    def no_store(self, process: Process) -> bool:
        """Whether the store is away, or can't be reached from there."""
        return self.now < self.store_away_until or self.now < process.no_store_until

    def no_dns(self, process: Process) -> bool:
        """Whether the provider is away, or can't be reached from there."""
        return self.now < self.dns_away_until or self.now < process.no_dns_until

    def push(self, at: Instant, act: Callable[[Any], None], what: Any = None) -> None:
        """A move to come."""
        self.sequence += 1
        heappush(self.heap, (at, self.sequence, act, what))

    def run(self, until: Instant) -> None:
        """Take every move up to a time. Raises :class:`~fencepost.simulator.watch.Broken`."""
        heap, watch, paced = self.heap, self.watch, self.pace.moved
        moves = 0
        try:
            while heap and heap[0][0] <= until:
                self.now, _, act, what = heappop(heap)
                moves += 1
                paced(self.now)
                act(what)
        finally:
            watch.moves += moves
        self.now = until

    @property
    def since(self) -> Instant:
        """Time since the walk began."""
        return self.now - EPOCH

    def as_of(self, skew: Duration = 0) -> Timed:
        """What is shared, as somebody sees it whose clock is off by so much."""
        return structs.replace(
            self.shared, clock=self.now + skew, latest=self.now + self.ahead, tick=self.now // SECOND, flight=()
        )

    def took(self, who: str, move: Move, late: Duration = 0) -> None:
        """A move of the world's happened: what it left is what all see now. Commits in flight arrive after ``late``."""
        before, after = self.shared, move.shared
        watch = self.watch
        if after.flight:
            for batch in after.flight:
                self.push(self.now + late + self.latency.call(), self.arrive, batch)
            after = structs.replace(after, flight=())
        self.shared = after
        changed = after.domain is not before.domain
        if changed:
            count = sum(now is not then for now, then in zip(after.domain, before.domain, strict=True))
            for promise in ON_COMMIT:
                watch.checked[promise] += count
        if move.event:
            watch.saw(move.event)
        watch.tell(self.now, who, move.label, move)
        watch.judge(move.broken)
        if changed or after.stores is not before.stores:
            self.pace.changed(self.now, who, move.label)
            self.changed()

    def arrive(self, batch: Batch) -> None:
        """A commit that nobody waits for any more reaches the provider."""
        if self.now < self.dns_away_until:
            self.push(self.dns_away_until + self.latency.call(), self.arrive, batch)
            return
        before = self.shared
        shared = structs.replace(self.as_of(), flight=(batch,))
        move = next(calls.arrivals(shared))
        if self.operated is not None:
            self.operated(("Commit", Commit(batch), move.shared.domain is not before.domain))
        self.took("the network", move)

    def changed(self) -> None:
        """Store or DNS changed: whoever sleeps is woken soon."""
        for rouse in self.sleepers:
            rouse()

    def put(self, tables: Tables) -> None:
        """Another state of the store."""
        self.shared = self.shared.with_tables(tables)  # type: ignore[assignment]
        self.changed()


def outcome_of(effect: object, before: Timed, after: Timed) -> Any:
    """What a write came to, as its port would have answered."""
    match effect:
        case Commit():
            return after.domain is not before.domain
        case Publish():
            return after.tables.head if after.tables is not before.tables else None
        case DeleteRow():
            return len(after.tables.rows) < len(before.tables.rows)
    return None
