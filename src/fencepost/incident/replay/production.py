"""Production's deciders in the mechanisms of the replay: the classes and formulas that ship, nothing re-told.

Where there is no decider yet (taking a zone of a balancer out), the limits that every removal obeys stand in its place:
the region's removal budget, `max_out`, and never more than one zone of a balancer.
"""

import numpy as np

from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal
from fencepost.core.instant import SECOND
from fencepost.core.launch_admission import launch_rate
from fencepost.core.traffic.limits import PPM, SafetySettings, burst, refill
from fencepost.incident.replay.balancers import Mask
from fencepost.incident.replay.leases import Ids, Leases
from fencepost.incident.replay.paths import NEVER
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.workers import Workers

ROUNDS = 64
"""How often in a second the manager may look for more to do; it ends as soon as there is nothing."""


class PulledLeases:
    """Admission alone (``core.admission``): a set of hosts, pulled at a calibrated number in flight.

    It renews three times in a lease, whatever was usual: jitter may lengthen that, with time left for another try.
    This isn't what ships but a part of it, in the region as it was: hosts' own ways to the store are lost, and a lease
    that nobody renewed ends. Nothing is left to the line while renewals have time (no ``period`` in its settings): that
    would bring leases back five minutes sooner and cost twice the CPU. Where the lease clock is on too, the whole
    manager decides (:mod:`.production_leases`).
    """

    __slots__ = ("_admission", "_back", "_leases", "_service", "_tokens", "_workers")

    def __init__(self, leases: Leases, workers: Workers) -> None:
        """As many in flight as the workers take at full speed: what a calibration on a quiet day finds."""
        values = workers.values
        hosts = len(leases.held)
        settings = AdmissionSettings(
            limit=max(1, round(values.knee)),
            service=int(values.establish_cost * SECOND),
            service_p99=int(values.establish_cost * SECOND),
            service_p999=int(values.establish_cost * SECOND),
            attempt=values.patience_s * SECOND,
        )
        self._leases, self._workers = leases, workers
        self._admission = Admission(settings, hosts)
        self._service = settings.service
        self._back: dict[Tick, Ids] = {}
        self._tokens = np.zeros(hosts, np.int64)

    @property
    def waiting(self) -> float:
        """Hosts in line."""
        return float(self._admission.backlog)

    @property
    def spent(self) -> float:
        """Worker-seconds so far."""
        return self._workers.spent

    @property
    def useful(self) -> float:
        """Worker-seconds of calls that were answered in time."""
        return self._workers.useful

    def begin(self, now: Tick) -> None:
        """Who holds a lease is put down for his renewal; who has none joins the line when his way is back."""
        leases = self._leases
        step = leases.values.renewal_s
        shut = (leases.paths.lost_at < NEVER) & (leases.paths.back_at > now)
        ids = np.nonzero(leases.held & ~shut)[0]
        due = now + (leases.phase[ids] - now) % step
        self._admission.renew(ids, due * SECOND, leases.end[ids] * SECOND)
        order = np.nonzero(shut)[0]
        order = order[np.argsort(leases.paths.back_at[order], kind="stable")]
        ticks, starts = np.unique(leases.paths.back_at[order], return_index=True)
        self._back = dict(zip(ticks.tolist(), np.split(order, starts[1:]), strict=True)) if len(ticks) else {}
        lapsed = np.nonzero(~leases.held & ~shut)[0]
        self._admission.acquire(lapsed, now * SECOND)

    def second(self, now: Tick) -> None:
        """Answers, then calls as long as the manager finds something to do and a worker is free."""
        leases, admission, at = self._leases, self._admission, now * SECOND
        leases.expire(now)
        back = self._back.pop(now, None)
        if back is not None:
            self._rejoin(back, now)
        for ids, came, cost in self._workers.finished(now):
            if now - came <= self._workers.values.patience_s:
                self._workers.useful += len(ids) * cost
            self._answered(ids, now, None)
        for _ in range(ROUNDS):
            ids, acquiring = admission.take(at)
            if not len(ids):
                break
            self._workers.call(now, ids[acquiring], acquiring[acquiring])
            renewing = ids[~acquiring]
            if not len(renewing) or not self._workers.at_once(len(renewing)):
                self._workers.call(now, renewing, np.zeros(len(renewing), np.bool_))
                break
            self._answered(renewing, now, int(self._service / self._workers.speed()))
        overdue = admission.overdue(at)
        if len(overdue):
            admission.failed(overdue, at)
        self._workers.work(now)

    def throttle(self, rate: float, burst: float) -> None:
        """Nothing to throttle: no more is in flight than can be done."""

    def restart(self, now: Tick, part: int, parts: int) -> None:
        """Nothing to lose: there is no line but the set of hosts, which is read anew."""

    def _rejoin(self, ids: Ids, now: Tick) -> None:
        held = self._leases.held[ids]
        kept = ids[held]
        self._admission.renew(kept, np.full(len(kept), now * SECOND), self._leases.end[kept] * SECOND)
        self._admission.acquire(ids[~held], now * SECOND)

    def _answered(self, ids: Ids, now: Tick, took: int | None) -> None:
        """``took``: how long, as if all calls took as long as a new lease; None since they were sent.

        What is slow is told by how much longer a call takes than its kind does on a quiet day.
        """
        leases, at = self._leases, now * SECOND
        period = leases.values.length_s * SECOND // 3
        self._admission.answered(ids, at, took)
        held = leases.held[ids]
        self._tokens[ids] += ~held
        later = next_renewal(self._admission.due(ids), at, period)
        if not held.all():
            later = np.where(held, later, first_renewal(ids, self._tokens[ids], at, period))
        leases.grant(ids, now)
        self._admission.renew(ids, later, leases.end[ids] * SECOND)


class BoundedFailover:
    """The removal budget in capacity, shared by the whole region, in place of a decider for zones.

    At most one zone of a balancer, at most ``max_out`` of everything; what comes back gives nothing back to the budget.
    A region with much that looks dead is suspect, and its budget fills at a tenth of the pace.
    """

    __slots__ = ("_at", "_safety", "_tokens")

    def __init__(self, safety: SafetySettings) -> None:
        """A full budget."""
        self._safety = safety
        self._tokens: int | None = None
        self._at = 0

    def out(self, dead: Mask, out: Mask, sizes: Ids, now: Tick) -> Mask:
        """Which zones are out: those that still look dead, and as many more as may go."""
        count, capacity = int(sizes.size), int(sizes.sum())
        full = burst(count, capacity, self._safety)
        if self._tokens is None:
            self._tokens = full
        suspect = int(sizes[dead & ~out].sum()) * PPM >= self._safety.suspect_ppm * capacity
        gained = refill((now - self._at) * SECOND, count, capacity, suspect, self._safety)
        self._tokens, self._at = min(full, self._tokens + gained), now
        stays: Mask = out & dead
        room = self._safety.max_out_ppm * capacity // PPM - int(sizes[stays].sum())
        alone = dead & (np.cumsum(dead, axis=1) == 1) & ~stays.any(axis=1, keepdims=True)
        for balancer, zone in np.argwhere(alone & ~out).tolist():
            size = int(sizes[balancer, zone])
            if size > self._tokens or size > room:
                continue
            self._tokens -= size
            room -= size
            stays[balancer, zone] = True
        return stays


def admitted_launches(drain: float, depth: float, bound: float) -> float:
    """Launches a second that ``core.launch_admission`` lets in before a queue of that depth."""
    return launch_rate(drain, int(depth), max(1, int(bound)))
