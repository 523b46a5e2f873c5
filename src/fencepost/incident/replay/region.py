"""The region in the replay: its parts, and one step of twelve seconds.

In each step leases move (by seconds where they contend), launches are let in, network state is carried, checks are
made, callers connect. Then the quantities of the step are there to be seen.
"""

from bisect import bisect_right
from collections import deque

import msgspec
import numpy as np

from fencepost.core.traffic.limits import SafetySettings
from fencepost.incident.replay.as_it_was import AsItWas
from fencepost.incident.replay.balancers import AsItWasFailover, Balancers, BalancerValues, CheckerValues, Failover
from fencepost.incident.replay.guards import Guard, Guards
from fencepost.incident.replay.launches import Launches, LaunchValues
from fencepost.incident.replay.lease_walk import LeaseWalk
from fencepost.incident.replay.leases import LeasePart, Leases, LeaseValues
from fencepost.incident.replay.network import Network, NetworkValues
from fencepost.incident.replay.operators import LaunchLimit, Probe, Restarts
from fencepost.incident.replay.paths import Paths
from fencepost.incident.replay.production import BoundedFailover, PulledLeases, admitted_launches
from fencepost.incident.replay.production_leases import ProductionLeases
from fencepost.incident.replay.scenario import Scenario, Tick
from fencepost.incident.replay.workers import Workers, WorkerValues

STEP_S = 12
"""The balancers' round of checks; everything but leases moves by it."""
NORMAL_S = 120
"""The network is normal while all that is to be done takes less than that."""
DRAIN_MOST = 2.0
"""Who is owed launches gets them at twice the usual pace at most."""
MEAN_STEPS = 15 * 60 // STEP_S
FULL = 100_000
"""The number of hosts that a scenario's rates are for."""


class Region:
    """All parts at one moment; ``quantities`` are those of the last step."""

    def __init__(self, scenario: Scenario, hosts: int, seed: int, guards: Guards) -> None:
        """Everything is well."""
        self.scenario, self.guards, self.hosts, self.scale = scenario, guards, hosts, hosts / FULL
        chance = np.random.default_rng(seed)
        self.leases = self._leases(chance)
        wished = scenario.section("launches")
        self.launches = Launches(
            LaunchValues(
                wished["demand"] * self.scale,
                wished["most"] * self.scale,
                wished["terminations"],
                int(wished["retry"]),
                int(wished["give_up"]),
            ),
            STEP_S,
        )
        flow = scenario.section("network")
        self.network = Network(
            NetworkValues(flow["drain"] * self.scale, flow["resync"], flow["release"] * self.scale),
            Guard.NETWORK_THROTTLE in guards,
        )
        checkers = msgspec.convert(scenario.section("checkers"), CheckerValues)
        failover: Failover = BoundedFailover(SafetySettings()) if Guard.VELOCITY in guards else AsItWasFailover()
        shape = msgspec.convert(scenario.section("balancers"), BalancerValues, strict=False)
        self.balancers = Balancers(shape, checkers, failover, chance)
        self.limit, self.restarts, self.probe = LaunchLimit(scenario, self.scale), Restarts(), Probe(scenario)
        self.emptied = False
        self._registered = [0.0]
        self._ends = [0]
        self._delivering = True
        self._owed = 0.0
        self._errors: deque[float] = deque(maxlen=MEAN_STEPS)
        self.quantities: dict[str, float] = {}

    def _leases(self, chance: np.random.Generator) -> LeaseWalk | ProductionLeases:
        amount = self.scenario.amount
        paths = Paths(self.hosts, amount("access.pooled_life"), amount("access.caches_return"), chance)
        grace = amount("guards.grace") if Guard.LEASE_CLOCK in self.guards else 0.0
        leases = Leases(LeaseValues(int(amount("leases.length")), int(amount("leases.renewal")), grace), paths, chance)
        workers = Workers(
            WorkerValues(
                amount("workers.knee") * self.scale,
                amount("workers.pool") * self.scale,
                amount("workers.contention"),
                amount("workers.renew_cost"),
                amount("workers.establish_cost"),
                int(amount("workers.patience")),
            )
        )
        self.paths, self.workers = paths, workers
        if {Guard.LEASE_CLOCK, Guard.ADMISSION} <= self.guards:
            return ProductionLeases(leases.values.length_s, paths, workers.values)
        part: LeasePart = (PulledLeases if Guard.ADMISSION in self.guards else AsItWas)(leases, workers)
        return LeaseWalk(leases, part, workers.values)

    def lose(self, now: Tick) -> None:
        """The endpoint is empty, or the store away."""
        self.emptied = True
        self.leases.lose(now)

    def restore(self, now: Tick) -> None:
        """The store can be found again."""
        self.emptied = False
        self.leases.restore(now)

    def step(self, now: Tick) -> None:
        """Everything that happens in the twelve seconds that end now."""
        for part, parts in self.restarts.due(now):
            self.leases.part.restart(now, part, parts)
        self.leases.step(now, STEP_S)
        access = self.paths.open_share(now)
        leased = self.leases.holding / self.hosts
        wide = leased >= self.scenario.amount("limit.leased")
        self._launch(now, access, leased)
        self._carry(now, wide)
        self.balancers.probe_fails = self.probe.fails(now)
        self.balancers.step(now, STEP_S, self._unready(now), self.launches.failing)
        self._see(now, access, leased)

    def _launch(self, now: Tick, access: float, leased: float) -> None:
        wishes = self.launches.wish(now)
        most = min(wishes * access * leased, self.launches.values.most * STEP_S)
        normal = self.network.work_s < NORMAL_S
        limit = self.limit.most(now, leased, normal)
        if limit is not None:
            most = min(most, limit * STEP_S)
        if Guard.NETWORK_THROTTLE in self.guards:
            drain = self.network.values.drain
            bound = drain * self.scenario.amount("guards.network_bound")
            most = min(most, admitted_launches(drain, self.network.ahead, bound) * STEP_S)
        self.launches.answer(now, most)

    def _carry(self, now: Tick, deliverable: bool) -> None:
        ended = self.launches.values.demand * self.launches.values.terminations * STEP_S
        if deliverable:
            if not self._delivering:  # who lost his lease meanwhile needs all of his state anew
                self.network.resync(self.leases.lost)
            ended = min(ended, self.launches.admitted * self.launches.values.terminations)
        else:
            self.network.hold(ended)
            ended = 0.0
        self._delivering = deliverable
        self.network.step(now, STEP_S, self.launches.admitted, ended, deliverable)

    def _unready(self, now: Tick) -> float:
        """Targets that have no network state yet; none where they are registered only once they have it."""
        came = self._registered[-1] + self.launches.admitted * self.scenario.amount("balancers.register") / self.scale
        self._registered.append(came)
        self._ends.append(now)
        if Guard.READINESS in self.guards:
            return 0.0
        done = self.network.served_until()
        return max(0.0, came - self._registered_by(done))

    def _registered_by(self, at: float) -> float:
        """How many targets there were by then; between two steps in proportion."""
        place = bisect_right(self._ends, at)
        if place >= len(self._ends):
            return self._registered[-1]
        begins, before = self._ends[place - 1], self._registered[place - 1]
        pace = (self._registered[place] - before) / (self._ends[place] - begins)
        return pace * (at - begins) + before

    def _see(self, now: Tick, access: float, leased: float) -> None:
        balancers, launches = self.balancers, self.launches
        self._errors.append(balancers.errors)
        met = launches.admitted / (launches.values.demand * STEP_S)
        self._owed = max(0.0, self._owed + STEP_S * (1 - min(met, DRAIN_MOST)))
        broken = self.scenario.amount("leases.broken_always")
        self.quantities = {
            "dns_empty": float(self.emptied),
            "store_access": access,
            "leases_missing": min(1.0, 1 - leased + broken * leased),
            "lease_queue": self.leases.part.waiting,
            "launches_wanted": launches.offered / STEP_S,
            "launches_failing": launches.failing,
            "launches_admitted": launches.admitted / STEP_S,
            "network_work": self.network.work_s,
            "launches_met": met,
            "launches_owed": self._owed,
            "network_age": self.network.age_s(now),
            "targets_unready": balancers.unready,
            "results_late": balancers.late,
            "capacity_out": balancers.out,
            "capacity_missing": balancers.missing,
            "connection_errors": balancers.errors,
            "connection_errors_15m": sum(self._errors) / MEAN_STEPS,
        }
