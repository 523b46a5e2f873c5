"""Host leases in the replay: who holds one until when, and the stretches in which nothing contends.

While the store is away and nothing comes back, each host's lease has a closed form: its last renewal before its way to
the store was lost, and a lease's length from then on. So hours of outage cost a sort. Seconds are walked only from the
moment that ways come back until ten minutes after everything is calm.
"""

from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.paths import NEVER, Paths
from fencepost.incident.replay.scenario import Tick

Ids = NDArray[np.int64]

CALM_S = 600
"""So long after the last contention nothing is walked any more."""


class LeaseValues(Struct, frozen=True, gc=False):
    """Seconds. ``grace_s`` is how long the store's absence alone lets no lease run out (0: not at all).

    That is the lease clock by itself, told as a formula. What ships has no such number: it renews in memory for as
    long as hosts answer (:mod:`.production_leases`, where both guards about leases are on).
    """

    length_s: int
    renewal_s: int
    grace_s: float


class Leases:
    """A lease's end for each host, and whether it is held. ``lost``: who has been without one so far."""

    __slots__ = ("_ends", "chance", "end", "held", "holding", "lost", "paths", "phase", "values")

    def __init__(self, values: LeaseValues, paths: Paths, chance: np.random.Generator) -> None:
        """All held, renewals evenly spread."""
        self.values, self.paths, self.chance = values, paths, chance
        hosts = len(paths.lost_at)
        self.phase: NDArray[np.int64] = chance.integers(0, values.renewal_s, hosts)
        self.held = np.ones(hosts, np.bool_)
        self.lost = np.zeros(hosts, np.bool_)
        self.holding = hosts
        self.end: NDArray[np.int64] = np.full(hosts, NEVER)
        self._ends: dict[Tick, list[Ids]] = {}

    def lapse_times(self, began: Tick) -> NDArray[np.int64]:
        """When each host's lease ends if its way to the store, lost since ``began``, never comes back."""
        step = self.values.renewal_s
        renewed = self.phase + (np.minimum(self.paths.lost_at, NEVER // 2) - self.phase) // step * step
        ends = renewed + self.values.length_s
        if self.values.grace_s:
            ends = np.maximum(ends, began + int(min(self.values.grace_s, NEVER // 4)))
        return np.where(self.paths.lost_at < NEVER, ends, NEVER)

    def begin_walk(self, now: Tick, began: Tick) -> None:
        """From here on leases are walked second by second; who is past his end has none."""
        lapses = self.lapse_times(began)
        self.held = lapses > now
        self.lost = ~self.held
        self.holding = int(np.count_nonzero(self.held))
        step = self.values.renewal_s
        renewed = self.phase + (now - self.phase) // step * step
        self.end = np.where(
            self.paths.lost_at < NEVER, np.maximum(lapses, self._after(now)), renewed + self.values.length_s
        )
        self._ends = {}
        ids = np.nonzero(self.held)[0]
        self._file(ids, self.end[ids])

    def _after(self, now: Tick) -> NDArray[np.int64]:
        """With a lease clock, who kept a lease through the outage has a renewal's time once his way is back."""
        kept = self.paths.back_at + self.values.renewal_s + self.values.length_s
        return np.where((self.values.grace_s > 0) & self.held, kept, now * 0)

    def grant(self, ids: Ids, now: Tick) -> int:
        """These hold a lease from now on; how many of them held none."""
        new = int(np.count_nonzero(~self.held[ids]))
        self.held[ids] = True
        self.holding += new
        self.end[ids] = now + self.values.length_s
        self._ends.setdefault(now + self.values.length_s, []).append(ids)
        return new

    def expire(self, now: Tick) -> int:
        """Whose lease ends now holds none; how many those are."""
        gone = 0
        for ids in self._ends.pop(now, ()):
            over = ids[self.held[ids] & (self.end[ids] <= now)]
            self.held[over] = False
            self.lost[over] = True
            gone += len(over)
        self.holding -= gone
        return gone

    def _file(self, ids: Ids, ends: NDArray[np.int64]) -> None:
        if not len(ids):
            return
        order = np.argsort(ends, kind="stable")
        ticks, starts = np.unique(ends[order], return_index=True)
        for tick, some in zip(ticks.tolist(), np.split(ids[order], starts[1:]), strict=True):
            self._ends.setdefault(tick, []).append(some)


class LeasePart(Protocol):
    """Whoever decides on leases: as it was, or production's lease manager."""

    @property
    def waiting(self) -> float:
        """How many calls stand in line."""
        ...

    @property
    def spent(self) -> float:
        """Worker-seconds of work so far."""
        ...

    @property
    def useful(self) -> float:
        """Worker-seconds of calls that were answered in time."""
        ...

    def begin(self, now: Tick) -> None:
        """Ways to the store come back from now on: everyone's next attempt is known."""
        ...

    def second(self, now: Tick) -> None:
        """One second."""
        ...

    def throttle(self, rate: float, burst: float) -> None:
        """Let in only so many a second of those who want a lease anew."""
        ...

    def restart(self, now: Tick, part: int, parts: int) -> None:
        """Restart one of so many managers; its line is gone."""
        ...
