"""The walk of a fleet: virtual time, one heap of moves, clocks that run apart, calls to the store, messages.

A move is (time, sequence, what to do, with what); equal times are told apart by the sequence. A process that stands
still gets what arrived for it when it goes on, and nothing that was meant for the process before a crash.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.simulator.chance import Latencies, stream
from fencepost.simulator.fleet.judge import Judge
from fencepost.simulator.watch import Broken, Watch
from fencepost.world.reference_fleet import ReferenceRows

EPOCH: Instant = 1_700_000_000 * SECOND
"""When every walk begins, on a clock that none of the deciders reads."""
STORE_WAITS: Duration = 2 * SECOND
"""So long a call to the store may take before it is given up."""
MOVES_MOST = 40_000
"""Moves within one second of the fleet's time: more is a fleet that keeps itself busy."""
MILLION = 1_000_000
T = TypeVar("T")


class Process:
    """What is killed, stopped, cut off, and has a clock of its own that may run up to one per cent off.

    ``life`` rises with each crash. ``mishap`` is what happens to its next write.
    """

    def __init__(self, name: str, ppm: int = 0) -> None:
        self.name = name
        self.ppm = ppm
        self.life = 0
        self.alive = True
        self.stopped_until: Instant = 0
        self.well_since: Instant = EPOCH
        self.no_store_until: Instant = 0
        self.mishap: tuple[str, Duration] = ("", 0)
        self._at: Instant = EPOCH
        self._shows: Instant = SECOND

    def clock(self, now: Instant) -> Instant:
        """What its own clock shows: nanoseconds since its machine started."""
        return self._shows + (now - self._at) * (MILLION + self.ppm) // MILLION

    def when(self, shown: Instant) -> Instant:
        """When its clock will show that, or the first moment after."""
        return self._at + -((self._shows - shown) * MILLION // (MILLION + self.ppm))

    def rebooted(self, now: Instant) -> None:
        """Its machine starts anew, and with it the clock."""
        self._at, self._shows = now, SECOND

    def skewed(self, now: Instant, ppm: int) -> None:
        """From now on the clock runs at another rate. It never jumps."""
        self._at, self._shows, self.ppm = now, self.clock(now), ppm


class Outcome(Generic[T]):
    """A call's answer, on its way back."""

    def __init__(self, done: Callable[[T], None], value: T) -> None:
        self.done, self.value = done, value

    def arrive(self) -> None:
        """It is here."""
        self.done(self.value)


class Walk:
    """Time, the heap, and what all share. ``loss`` is (lost, repeated, late) in thousandths while it lasts."""

    def __init__(self, seed: int, judge: Judge, promises: tuple[str, ...], mean: Duration = 0) -> None:
        self.now: Instant = EPOCH
        self.heap: list[tuple[Instant, int, Callable[[Any], object], Any]] = []
        self.sequence = 0
        self.latency = Latencies(seed, mean)
        self.chance = stream(seed, "messages")
        self.draws = stream(seed, "draws")
        self.watch = Watch(EPOCH)
        self.watch.judged = promises
        self.watch.checked.clear()
        self.watch.checked.update(dict.fromkeys(promises, 0))
        self.judge = judge
        self.rows = ReferenceRows("life-1")
        self.lives = 1
        self.store_away_until: Instant = 0
        self.network_bad_until: Instant = 0
        self.network_bad_since: Instant = 0
        self.loss = (0, 0, 0)
        self.changed: list[Callable[[], None]] = []
        self.seen_snapshot: tuple[str, int] = ("", 0)
        self.second = self.moves = 0
        judge.begin(self)

    @property
    def since(self) -> Instant:
        """Time since the walk began."""
        return self.now - EPOCH

    def draw(self) -> int:
        """63 bits that nobody else has drawn."""
        return self.draws.getrandbits(63)

    def push(self, at: Instant, act: Callable[[Any], object], what: Any = None) -> None:
        """A move to come."""
        self.sequence += 1
        heappush(self.heap, (max(at, self.now), self.sequence, act, what))

    def run(self, until: Instant) -> None:
        """Take every move up to a time. Raises :class:`~fencepost.simulator.watch.Broken`."""
        heap = self.heap
        while heap and heap[0][0] <= until:
            self.now, _, act, what = heappop(heap)
            self.watch.moves += 1
            if self.now // SECOND != self.second:
                self.second, self.moves = self.now // SECOND, 0
            self.moves += 1
            if self.moves > MOVES_MOST:
                raise Broken("backlog_bounded", f"no end in sight: {MOVES_MOST:,} moves in the same second")
            act(what)
        self.now = until

    # Processes

    def to(self, process: Process, at: Instant, act: Callable[[], None]) -> None:
        """Something reaches a process at a time, if it is still the same then; later if it stands still."""
        self.push(at, self._reach, (process, process.life, act))

    def _reach(self, what: tuple[Process, int, Callable[[], None]]) -> None:
        process, life, act = what
        if process.life != life or not process.alive:
            return
        if self.now < process.stopped_until:
            self.push(process.stopped_until, self._reach, what)
            return
        act()

    # The store

    def no_store(self, process: Process) -> bool:
        """Whether the store can't be reached from there."""
        return self.now < max(self.store_away_until, process.no_store_until)

    def call(
        self, process: Process, effect: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None],
        *, writes: bool = False,
    ) -> None:  # fmt: skip
        """One call: it takes effect in one step, later, or not; the answer comes, or doesn't."""

        def arrive(_: None) -> None:
            mishap, lasts = process.mishap if writes else ("", 0)
            if mishap:
                process.mishap = ("", 0)
                self.watch.saw(mishap)
            gone = self.no_store(process) or mishap == "write-lost"
            if mishap == "write-late":
                self.push(self.now + lasts, lambda _: effect())
                gone = True
            if not gone:
                value = effect()
                self.noticed()
                if mishap != "answer-lost":
                    self.to(process, self.now + self.latency.call(), Outcome(done, value).arrive)
                    return
            self.to(process, self.now + STORE_WAITS, failed)

        self.push(self.now + self.latency.call(), arrive)

    def noticed(self) -> None:
        """Rows changed: whoever waits for that is woken soon."""
        if (self.rows.life, self.rows.snapshot) != self.seen_snapshot:
            self.seen_snapshot = (self.rows.life, self.rows.snapshot)
            for woken in self.changed:
                woken()

    # Messages

    def message(self, deliver: Callable[[], None], process: Process, *, cut: Callable[[], bool]) -> None:
        """One message on its way: lost, late, repeated or overtaken, as the network is now; lost where it is cut."""
        lost, twice, late = self.loss if self.now < self.network_bad_until else (0, 0, 0)
        copies = 1 + (self.chance.randrange(1000) < twice) if twice else 1
        for _ in range(copies):
            if lost and self.chance.randrange(1000) < lost:
                continue
            delay = self.latency.call()
            if late and self.chance.randrange(1000) < late:
                delay += self.chance.randrange(1, 45 * SECOND)
            self.to(process, self.now + delay, lambda: None if cut() else deliver())

    def tell(self, who: str, what: str, outcome: object = "") -> None:
        """A move, for whoever listens."""
        self.watch.tell(self.now, who, what, outcome)


PAUSE: Duration = 20 * MILLISECOND
"""What arrives within this time is decided about at once."""
