"""Hosts that push, and a line that forgets nothing: how leases were recovered, and why they weren't.

Each host sends a call and waits ten seconds from then on. The service takes calls in the order they came, 64 at a time,
and doesn't know who still waits. Who has waited too long sends another: at once, or after a back-off with full jitter
(between nothing and a bound that doubles, 100 ms to 20 s). Neither is careless; the second is what is recommended. But
once the line is longer than ten seconds, every call that is worked on has been given up, all work is thrown away, and
each host that gave up makes the line longer. Nothing ends it: it goes on when what began it is over.

Of the line only the last ten seconds are kept as calls: older ones are all given up, so it is enough to count them.
They take as long as others.
"""

from collections import deque
from heapq import heappop, heappush
from random import Random

import numpy as np

from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.world.fleet_load import Load, Outcome

FIRST: Duration = 100 * MILLISECOND
LONGEST: Duration = 20 * SECOND
"""The back-off's bound begins at one and stops doubling at the other (the AWS SDKs' own most, in standard mode)."""
BLOCK = 4096
DONE, WAKE = 0, 1
NOBODY = -1


class Crowd:
    """Hosts, their line and the service at one instant. ``backs_off``: with full jitter, else at once."""

    def __init__(self, load: Load, seed: int, backs_off: bool) -> None:
        """Nobody holds anything, nobody asks."""
        self.load, self.seed, self.backs_off, self.now = load, seed, backs_off, 0
        self.random = Random(f"{seed} crowd")  # noqa: S311  simulated chance, no secret
        self.times: list[int] = []
        self.drawn = 0
        self.given_up = 0
        self.line: deque[tuple[int, int]] = deque()
        self.free = load.slots
        self.events: list[tuple[Instant, int, int, int]] = []
        self.limits: deque[tuple[Instant, int, int]] = deque()
        self.call = [0] * load.hosts
        self.waits = [False] * load.hosts
        self.failures = [0] * load.hosts
        self.ends = np.full(load.hosts, -1, np.int64)
        self.last_useful = 0
        self.answered = bytearray(load.hosts)
        self.outcome = Outcome(load, held=[], renewed=[0])

    def ask(self, host: int) -> None:
        """A host sends a call."""
        self.call[host] += 1
        self.waits[host] = True
        self.outcome.sends += 1
        self.line.append((host, self.call[host]))
        self.limits.append((self.now + self.load.patience, host, self.call[host]))
        self._begin()

    def later(self, host: int, at: Instant) -> None:
        """It will send one then."""
        heappush(self.events, (at, WAKE, host, 0))

    def run(self, until: Instant) -> None:
        """Go on until then."""
        while True:
            at = min(self.events[0][0] if self.events else until, self.limits[0][0] if self.limits else until)
            if at >= until:
                break
            self._pass_to(at)
            if self.limits and self.limits[0][0] == at:
                self._give_up(*self.limits.popleft()[1:])
                continue
            _, kind, host, call = heappop(self.events)
            if kind == WAKE:
                self.ask(host)
            else:
                self._done(host, call)
        self._pass_to(until)
        self.outcome.ended = until

    def _pass_to(self, at: Instant) -> None:
        outcome = self.outcome
        while len(outcome.held) * SECOND <= at:
            outcome.held.append(int(np.count_nonzero(self.ends > len(outcome.held) * SECOND)))
            outcome.renewed.append(0)
        self.now = at

    def _begin(self) -> None:
        while self.free and (self.given_up or self.line):
            self.free -= 1
            if self.given_up:
                self.given_up -= 1
                host, call = NOBODY, 0
            else:
                host, call = self.line.popleft()
            heappush(self.events, (self.now + self._work(), DONE, host, call))

    def _work(self) -> Duration:
        if not self.times:
            self.drawn += 1
            numbers = np.arange(BLOCK)
            self.times = self.load.work(self.seed, numbers, np.full(BLOCK, -self.drawn)).tolist()
        return self.times.pop()

    def _done(self, host: int, call: int) -> None:
        self.free += 1
        if host != NOBODY and self.waits[host] and self.call[host] == call:
            held = self.ends[host] > self.now
            self.outcome.renewed[-1] += bool(held)
            self.waits[host], self.failures[host], self.last_useful = False, 0, self.now
            self.ends[host] = self.now + self.load.lease
            self.later(host, self.now + self.load.period)
            if not self.answered[host]:
                self.answered[host] = 1
                self.outcome.first_done += 1
                self.outcome.drained = self.now if self.outcome.first_done == self.load.hosts else 0
        self._begin()

    def _give_up(self, host: int, call: int) -> None:
        if not self.waits[host] or self.call[host] != call:
            return
        self.waits[host] = False
        if self.line and self.line[0] == (host, call):
            self.line.popleft()
            self.given_up += 1
        self.failures[host] += 1
        if not self.backs_off:
            self.ask(host)
            return
        most = min(LONGEST, FIRST << min(self.failures[host], 20))
        self.later(host, self.now + self.random.randrange(most))


def collapse(load: Load, seed: int, backs_off: bool, lasts: Duration) -> Outcome:
    """Every host asks at once, at instant 0; what came of it in so long."""
    crowd = Crowd(load, seed, backs_off)
    for host in range(load.hosts):
        crowd.ask(host)
    crowd.run(lasts)
    return crowd.outcome


def shock(load: Load, seed: int, lost: list[int], backs_off: bool, most: Duration) -> Outcome:
    """All hosts hold leases and renew them, evenly spread; at instant 0 some lose theirs and ask at once.

    Ends a lease after it has recovered, or when nothing useful was done for a lease, or after ``most``.
    """
    crowd = Crowd(load, seed, backs_off)
    hosts = np.arange(load.hosts)
    due = hosts * load.period // load.hosts
    crowd.ends[:] = due + load.lease - load.period
    crowd.ends[lost] = -1
    gone = bytearray(load.hosts)
    for host in lost:
        gone[host] = 1
        crowd.ask(host)
    for host, at in enumerate(due.tolist()):
        if not gone[host]:
            crowd.later(host, at)
    step = max(SECOND, load.lease // 10)
    while crowd.now < most:
        crowd.run(crowd.now + step)
        if crowd.outcome.recovered() is not None or crowd.now - crowd.last_useful > load.lease:
            break
    return crowd.outcome
