"""What the traps need beside the replay's own parts: deciders that are careless in one way each, and only here.

Each takes the place of a part of :class:`.region.Region`; the world around it stays as it is.
"""

import numpy as np

from fencepost.incident.replay.as_it_was import AsItWas
from fencepost.incident.replay.balancers import Mask
from fencepost.incident.replay.guards import Guards
from fencepost.incident.replay.lease_walk import LeaseWalk
from fencepost.incident.replay.leases import Ids, Leases
from fencepost.incident.replay.paths import NEVER
from fencepost.incident.replay.region import Region
from fencepost.incident.replay.scenario import Scenario, Tick
from fencepost.incident.replay.workers import Workers, WorkerValues

ROUNDS_OUT = 1
"""Rounds in which a zone looks dead until it is taken out, where that is counted."""


class BacksOff(AsItWas):
    """Hosts that asked in vain for hours ask again within ``most_s`` of their way's return, at random."""

    __slots__ = ("_most_s",)

    def __init__(self, leases: Leases, workers: Workers, most_s: int) -> None:
        """``most_s`` is where the back-off stopped growing."""
        super().__init__(leases, workers)
        self._most_s = most_s

    def begin(self, now: Tick) -> None:
        """Who lost his way is in his longest pause; all others are in their turn."""
        super().begin(now)
        paths = self._leases.paths
        lost = paths.lost_at < NEVER
        for at, each in self._due.items():
            self._due[at] = [ids[~lost[ids]] for ids in each]
        ids = np.nonzero(lost)[0]
        asks = np.maximum(now, paths.back_at[ids]) + self._leases.chance.integers(0, self._most_s, len(ids))
        order = np.argsort(asks, kind="stable")
        ticks, starts = np.unique(asks[order], return_index=True)
        for at, some in zip(ticks.tolist(), np.split(ids[order], starts[1:]), strict=True):
            self._later(at, some)


class ClockGoesOn(LeaseWalk):
    """Walks by seconds from the store's return, whether a lease was lost by then or not.

    Whoever has his way back has a lease's length from then on, however much of the grace is left.
    """

    __slots__ = ()

    def restore(self, now: Tick) -> None:
        """It is found again."""
        began = self._began
        super().restore(now)
        if began is None or self._walking:
            return
        leases = self._leases
        leases.begin_walk(now, began)
        ids = np.nonzero(leases.held & (leases.paths.lost_at < NEVER))[0]
        leases.end[ids] = leases.paths.back_at[ids] + leases.values.length_s
        leases._file(ids, leases.end[ids])
        self.part.begin(now)
        self._walking = True


class OnTheMinute(AsItWas):
    """Who is refused asks again at the next full ``step_s`` of the clock, as all others that were refused do."""

    __slots__ = ("_step_s",)

    def __init__(self, leases: Leases, workers: Workers, step_s: int) -> None:
        """Fixed times, the same for all."""
        super().__init__(leases, workers)
        self._step_s = step_s

    def _later(self, at: Tick, ids: Ids) -> None:
        if self._rate is None:
            super()._later(at, ids)
            return
        held = self._leases.held[ids]
        super()._later(at, ids[held])
        super()._later(-(-at // self._step_s) * self._step_s, ids[~held])


class Feasible(Workers):
    """A worker takes no call that would be done too late, if a call takes as long as is believed."""

    __slots__ = ("_believed_s",)

    def __init__(self, values: WorkerValues, believed_s: float) -> None:
        """``believed_s``: how long a lease is said to take to establish."""
        super().__init__(values)
        self._believed_s = believed_s

    def work(self, now: Tick) -> None:
        """What can't be done in time is passed over, at no cost; whoever waits for it will ask again."""
        self._old = [0.0, 0.0]
        renewal_s = self._believed_s * self.values.renew_cost / self.values.establish_cost
        for batch in self._line:
            late = now - batch.at + np.where(batch.establish, self._believed_s, renewal_s) > self.values.patience_s
            batch.keep(~late)
            if batch.at + self.values.patience_s - self._believed_s > now:
                break
        while self._line and not len(self._line[0].ids):
            self._line.popleft()
        super().work(now)


class CountingFailover:
    """A zone leaves DNS once it looked dead in so many rounds, counted whether failover is on or not.

    Rounds that look better count one back. ``cleared``: counts begin anew when failover is switched on.
    """

    __slots__ = ("_cleared", "_counts", "on")

    def __init__(self, cleared: bool) -> None:
        """Nothing counted."""
        self._cleared, self.on = cleared, True
        self._counts: Ids | None = None

    def switch(self, on: bool) -> None:
        """People switch it."""
        if on and not self.on and self._cleared:
            self._counts = None
        self.on = on

    def out(self, dead: Mask, *_: object) -> Mask:
        """Never all zones of a balancer."""
        if self._counts is None:
            self._counts = np.zeros(dead.shape, np.int64)
        self._counts = np.where(dead, self._counts + 1, np.maximum(0, self._counts - self.on))
        chosen: Mask = self._counts >= ROUNDS_OUT
        chosen &= ~chosen.all(axis=1, keepdims=True)
        return chosen if self.on else np.zeros_like(chosen)


class CountingRegion(Region):
    """A region whose balancers' zones are taken out by count."""

    def __init__(self, scenario: Scenario, hosts: int, seed: int, guards: Guards, *, cleared: bool) -> None:
        """All in service."""
        super().__init__(scenario, hosts, seed, guards)
        self._counting = CountingFailover(cleared)
        self.balancers._failover = self._counting

    def step(self, now: Tick) -> None:
        """Whether failover is on is for the counter to know: it goes on counting either way."""
        on = self.balancers.failover_on
        if on and not self._counting.on:
            self.balancers._changed = max(1, self.balancers._changed)
        self._counting.switch(on)
        self.balancers.failover_on = True
        super().step(now)
        self.balancers.failover_on = on


class CarelessRegion(Region):
    """A region with another decider for leases, nobody's admission: one of ``back_off_s``, ``fixed_s``, ``believed``.

    ``believed``: how long a call is said to take, to what it does when all of the pool is busy.
    """

    def __init__(
        self, scenario: Scenario, hosts: int, seed: int, guards: Guards, *,
        back_off_s: int = 0, fixed_s: int = 0, believed: float = 0.0,
    ) -> None:  # fmt: skip
        """Everything is well."""
        self._careless = (back_off_s, fixed_s, believed)
        super().__init__(scenario, hosts, seed, guards)

    def _leases(self, chance: np.random.Generator) -> LeaseWalk:
        walk = super()._leases(chance)
        if not isinstance(walk, LeaseWalk):
            raise TypeError("with both guards about leases the managers that ship are there, and aren't careless")
        back_off_s, fixed_s, believed = self._careless
        values, leases, part = self.workers.values, walk._leases, walk.part
        if back_off_s:
            part = BacksOff(leases, self.workers, back_off_s)
        elif fixed_s:
            part = OnTheMinute(leases, self.workers, fixed_s)
        elif believed:
            over = values.pool / values.knee
            full_s = values.establish_cost * max(1.0, over * (1 + values.contention * (over - 1)))
            self.workers = Feasible(values, full_s * believed)
            part = AsItWas(leases, self.workers)
        return (ClockGoesOn if back_off_s else LeaseWalk)(leases, part, values)
