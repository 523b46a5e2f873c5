"""A service with a knee, and the hosts that want leases from it: what a recovery is tried against.

The service works on all calls at once. Up to ``slots`` each goes at full speed; past that knee all of them slow down,
by (n ÷ slots) to the power of 1.25, so that ever less is done in all. That is exact, not sampled: as calls come and go,
each one's remaining work goes on at the speed of the moment (the clock of the work, not of the wall, is what the heap
is sorted by).

Chance is a hash of (seed, host, which call of its): two runs that differ in their rules alone meet the same calls.
"""

from heapq import heappop, heappush
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from fencepost.core.admission.columns import Ids
from fencepost.core.admission.spread import shares
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant

FAILURES = 1 << 40
"""Added to a call's number for the hash that says whether it fails."""


class Load(msgspec.Struct, frozen=True, gc=False):
    """Who wants what of how strong a service. Durations in nanoseconds.

    ``hosts`` want a lease of three ``period``; ``slots`` calls go at full speed and take ``mean`` with a coefficient of
    variation ``cv`` (0, or from 1 on); ``failing`` of them fail when they are done. ``patience`` is a caller's
    deadline.
    """

    hosts: int = 100_000
    slots: int = 64
    mean: Duration = 40 * MILLISECOND
    cv: float = 1.0
    failing: float = 0.0
    exponent: float = 1.25
    patience: Duration = 10 * SECOND
    period: Duration = 120 * SECOND

    @property
    def lease(self) -> Duration:
        """How long a lease lasts: three periods."""
        return 3 * self.period

    @property
    def capacity(self) -> float:
        """Calls a second at the knee."""
        return self.slots * SECOND / self.mean

    @property
    def ideal(self) -> float:
        """Seconds in which every host could be answered once, nothing wasted."""
        return self.hosts / self.capacity

    def quantile(self, share: float) -> Duration:
        """How long all but ``share`` of the calls take at most, at full speed."""
        low, high = 0.0, 1_000.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > share else (low, middle)
        return int(high * self.mean)

    def _beyond(self, means: float) -> float:
        """The share of calls that take longer than so many means."""
        if self.cv == 0:
            return float(means < 1)
        first = self._first()
        return float(first * np.exp(-2 * first * means) + (1 - first) * np.exp(-2 * (1 - first) * means))

    def _first(self) -> float:
        """Calls are of two kinds, short and long, each exponential; the share of the short ones (balanced means)."""
        return (1 + sqrt((self.cv**2 - 1) / (self.cv**2 + 1))) / 2

    def work(self, seed: int, ids: Ids, calls: Ids) -> NDArray[np.int64]:
        """How long each host's so-manieth call takes at full speed, in whole microseconds."""
        if self.cv == 0:
            return np.full(len(ids), self.mean)
        first = self._first()
        drawn = shares(ids, calls, seed)
        kind = np.where(drawn < first, first, 1 - first)
        # What is left of the number after it chose the kind is even again in [0, 1).
        rest = np.where(drawn < first, drawn / first, (drawn - first) / max(1 - first, 1e-12))
        times: NDArray[np.int64] = (-np.log1p(-rest) / (2 * kind) * self.mean / 1_000).astype(np.int64)
        return times * 1_000 + 1_000

    def fails(self, seed: int, ids: Ids, calls: Ids) -> NDArray[np.bool_]:
        """Which of these calls fail."""
        if not self.failing:
            return np.zeros(len(ids), np.bool_)
        failing: NDArray[np.bool_] = shares(ids, calls + FAILURES, seed) < self.failing
        return failing


class Service:
    """The calls that it works on. Works through them exactly, event by event."""

    __slots__ = ("_calls", "_done", "_exponent", "_now", "_slots", "_speed")

    def __init__(self, load: Load) -> None:
        """Idle at instant 0."""
        self._slots, self._exponent = load.slots, load.exponent
        self._calls: list[tuple[float, int]] = []
        self._done, self._now, self._speed = 0.0, 0, 1.0

    def __len__(self) -> int:
        """How many calls it works on."""
        return len(self._calls)

    def begin(self, ids: list[int], work: list[int], now: Instant) -> None:
        """These calls come in; nothing may be due before ``now``."""
        self._done += (now - self._now) * self._speed
        self._now = now
        for each, amount in zip(ids, work, strict=True):
            heappush(self._calls, (self._done + amount, each))
        self._set_speed()

    def next_at(self) -> Instant | None:
        """When the next call is done; None if there is none."""
        if not self._calls:
            return None
        return self._now + max(0, int((self._calls[0][0] - self._done) / self._speed) + 1)

    def until(self, now: Instant) -> list[int]:
        """Whose calls are done by ``now``, in order."""
        finished = []
        if self._speed == 1.0:  # and it stays so: calls only become fewer
            done = self._done + (now - self._now)
            while self._calls and self._calls[0][0] < done:
                finished.append(heappop(self._calls)[1])
            self._done, self._now = done, now
            return finished
        while self._calls:
            at = self._now + max(0, int((self._calls[0][0] - self._done) / self._speed) + 1)
            if at > now:
                break
            self._done, each = heappop(self._calls)
            self._now = at
            finished.append(each)
            self._set_speed()
        self._done += (now - self._now) * self._speed
        self._now = now
        return finished

    def _set_speed(self) -> None:
        over = len(self._calls) / self._slots
        self._speed = 1.0 if over <= 1 else over**-self._exponent


class Outcome(msgspec.Struct):
    """What came of a run. ``sends_to_drain`` are calls until every host was answered once. ``held`` and ``renewed`` are
    counts a second: hosts with a lease, and renewals answered."""

    load: Load
    first_done: int = 0
    sends: int = 0
    sends_to_drain: int = 0
    drained: Instant = 0
    ended: Instant = 0
    held: list[int] = []
    renewed: list[int] = []

    @property
    def drain_ratio(self) -> float | None:
        """Time until every host was answered once, over the ideal; None if that never was."""
        return self.drained / SECOND / self.load.ideal if self.drained else None

    def recovered(self, share: float = 0.99) -> float | None:
        """Seconds until the share of the hosts held leases and went on doing so to the end; None if they don't.

        The end must be a whole lease later: until then what is held may only be not yet expired.
        """
        enough = np.array(self.held) >= share * self.load.hosts
        if not len(enough) or not enough[-1]:
            return None
        low = (~enough).nonzero()[0]
        since = int(low[-1]) + 1 if len(low) else 0
        return float(since) if len(enough) - since > self.load.lease / SECOND else None

    def renewal_cv(self, seconds: int, width: int = 10) -> float:
        """The coefficient of variation of the renewal rate in the last ``seconds``, in buckets of ``width`` seconds."""
        rates = np.array(self.renewed[-seconds:]).reshape(-1, width).sum(axis=1)
        return float(rates.std() / rates.mean()) if rates.mean() else float("inf")
