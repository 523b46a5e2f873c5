"""Host leases with production's own lease manager: walked through the whole outage, so that what lapses is found.

Where both guards about leases are on, nothing here says what becomes of a lease: eight managers of the class that
ships (:mod:`~fencepost.core.capacity.lease_manager`) go through the outage, each with its shard of the hosts, its own
way to the store and its part of the workers (:mod:`.production_shard`). A way is lost as the manager's pooled
connection ends, and comes back as its cache lets go: it is that of the shard's first host. Managers reach hosts all
the while, and renew in memory; what needs the store waits for it.

Walked is from the loss until ten minutes after everything is calm. A manager with nothing in line goes in steps of
half a renewal period, the longest its rules allow, and its calibration is told for such a step; with anything in line
it goes by the second. What differs from what ships: calls to the store take no time, a manager that is alone in its
shard beats once a step, and a lease given anew costs what it did in October 2025, all of it inside the call.

Either guard alone is another thing (:mod:`.leases`, :mod:`.production`): the lease clock is a formula there, and
admission asks for hosts whose own ways to the store are lost, as it was.
"""

from itertools import pairwise

import numpy as np
from msgspec import structs

from fencepost.core.capacity.lease_calls import Ids, Some
from fencepost.incident.replay.leases import CALM_S
from fencepost.incident.replay.paths import NEVER, Paths
from fencepost.incident.replay.production_shard import Shard, ShardValues
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.workers import WorkerValues

MANAGERS = 8
"""So many for 100,000 hosts; fewer where each would have less than ``LEAST`` workers at full speed."""
LEAST = 8
"""Workers that make a manager."""


class ProductionLeases:
    """The managers and their walk: ``holding``, ``lost``, ``walked``, ``ideal_s`` as :class:`.lease_walk.LeaseWalk`.

    ``shards`` are empty until something is lost: before that each lease is renewed as a matter of course.
    """

    def __init__(self, length_s: int, paths: Paths, workers: WorkerValues) -> None:
        """All hosts hold a lease of that many seconds; ``workers`` are those of all managers together."""
        self._length_s, self._paths = length_s, paths
        hosts = len(paths.lost_at)
        count = max(1, min(MANAGERS, int(workers.knee // LEAST), hosts))
        self._each = _part(workers, count)
        self.bounds: list[int] = np.linspace(0, hosts, count + 1).astype(int).tolist()
        self.shards: list[Shard] = []
        self.holding, self.lost, self.walked = hosts, 0, 0
        self.ideal_s: float | None = None
        self._calm_from: Tick | None = None
        self._lost: list[Some] = []
        self._spent = self._useful = 0.0

    # The walk

    def lose(self, now: Tick) -> None:
        """Nobody finds the store any more; the managers know it once their connections end."""
        self._paths.lose(now)
        self.begin(now)

    def restore(self, now: Tick) -> None:
        """It is found again, by each manager as its cache lets go."""
        self._paths.restore(now)
        if self.holding < len(self._paths.lost_at):
            self.ideal_s = self._ideal(now)

    def begin(self, now: Tick) -> None:
        """From now on everything is walked, if it isn't yet."""
        self._calm_from = None
        if not self.shards:
            parts = len(self.bounds) - 1
            values = [ShardValues(each + 1, parts, self._length_s, self._each) for each in range(parts)]
            self.shards = [
                Shard(each, high - low) for each, (low, high) in zip(values, pairwise(self.bounds), strict=True)
            ]
            for shard in self.shards:
                shard.begin(now)
            for shard, lost in zip(self.shards, self._lost, strict=False):
                shard.lost |= lost

    def step(self, now: Tick, seconds: int) -> None:
        """The step that ends now."""
        if not self.shards:
            return
        for shard, way in zip(self.shards, self.bounds, strict=False):
            lost_at, back_at = int(self._paths.lost_at[way]), int(self._paths.back_at[way])
            while shard.due <= now:
                at = max(shard.due, now - seconds + 1)
                shard.away = lost_at <= at < back_at
                shard.step(at)
        self.walked += seconds
        self.holding = sum(shard.holding for shard in self.shards)
        self.lost = sum(int(np.count_nonzero(shard.lost)) for shard in self.shards)
        self._stop_when_calm(now)

    def _stop_when_calm(self, now: Tick) -> None:
        """All held, nobody in line, the store there: ten minutes later renewals are a matter of course again."""
        ways = self.bounds[:-1]
        shut = (self._paths.lost_at[ways] < NEVER) & (self._paths.back_at[ways] > now)
        if shut.any() or self.holding < len(self._paths.lost_at) or any(shard.busy for shard in self.shards):
            self._calm_from = None
        elif self._calm_from is None:
            self._calm_from = now
        elif now - self._calm_from >= CALM_S:
            self._lost = [shard.lost for shard in self.shards]
            self._spent += sum(shard.spent for shard in self.shards)
            self._useful += sum(shard.useful for shard in self.shards)
            self.shards = []

    def _ideal(self, now: Tick) -> float:
        """Seconds in which each manager's lost leases could be had again, its workers never idle, none wasted."""
        each = self._each.establish_cost / self._each.knee
        found = [
            max(0, int(self._paths.back_at[way]) - now) + each * (shard.size - shard.holding)
            for shard, way in zip(self.shards, self.bounds, strict=False)
            if shard.holding < shard.size
        ]
        return max(found)

    # What people and the region ask of it

    @property
    def part(self) -> "ProductionLeases":
        """Itself: walk and decider are one."""
        return self

    @property
    def waiting(self) -> float:
        """Hosts in line or being asked."""
        return float(sum(shard.waiting for shard in self.shards))

    @property
    def spent(self) -> float:
        """Worker-seconds so far, those of the walks."""
        return self._spent + sum(shard.spent for shard in self.shards)

    @property
    def useful(self) -> float:
        """Worker-seconds of calls that were answered in time."""
        return self._useful + sum(shard.useful for shard in self.shards)

    def throttle(self, rate: float, burst: float) -> None:
        """Nothing to throttle: no more is in flight than can be done."""

    def restart(self, now: Tick, part: int, parts: int) -> None:
        """One of so many parts of the managers begins anew, under another name, knowing nothing.

        With the process go its connections, which may have outlived the name, and its cache, which may have outlived
        the emptiness.
        """
        self.begin(now)
        paths = self._paths
        for number, (shard, way) in enumerate(zip(self.shards, self.bounds, strict=False)):
            if number * parts // len(self.shards) != part:
                continue
            if paths.restored_at is None and paths.lost_at[way] < NEVER:
                paths.lost_at[way] = min(int(paths.lost_at[way]), now)
            paths.back_at[way] = min(int(paths.back_at[way]), now) if paths.restored_at is not None else NEVER
            shard.restart(now)

    def reborn(self, ids: Ids, now: Tick) -> None:
        """These hosts lose their memory, and with it their leases."""
        self.begin(now)
        for shard, low, high in self._by_shard():
            shard.reborn(ids[(ids >= low) & (ids < high)] - low, now)

    def darken(self, ids: Ids, begins: Tick, ends: Tick) -> None:
        """Nothing that is sent to these hosts between these ticks arrives; from now on everything is walked."""
        self.begin(begins)
        for shard, low, high in self._by_shard():
            shard.darken(ids[(ids >= low) & (ids < high)] - low, begins, ends)

    def _by_shard(self) -> list[tuple[Shard, int, int]]:
        return [(shard, low, high) for shard, (low, high) in zip(self.shards, pairwise(self.bounds), strict=True)]


def _part(workers: WorkerValues, managers: int) -> WorkerValues:
    """Each manager's part of the workers: one at full speed at the least."""
    knee = max(1.0, workers.knee / managers)
    return structs.replace(workers, knee=knee, pool=max(knee, workers.pool / managers))
