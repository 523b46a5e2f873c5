"""A fleet under the very :class:`~fencepost.core.admission.Admission` that ships, event by event in virtual time.

The manager looks again when a call is done, when a renewal is due and when ``next_at`` says so; at the earliest
``pace`` after its last look. With a pace of 0 no slot is ever idle for want of a look.
"""

import numpy as np
from numpy.typing import NDArray

from fencepost.core.admission import Admission, AdmissionSettings, first_renewal, next_renewal
from fencepost.core.admission.columns import Ids, Mask, Times
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.world.fleet_load import Load, Outcome, Service

NOBODY = np.zeros(0, np.bool_)


def settings_for(load: Load, limit: float = 1.0, service: float = 1.0) -> AdmissionSettings:
    """What a calibration of this service gives; ``limit`` and ``service`` are how far it is off (1: right)."""
    return AdmissionSettings(
        limit=max(1, round(load.slots * limit)),
        service=int(load.mean * service),
        service_p99=int(load.quantile(0.01) * service),
        service_p999=min(int(load.quantile(0.001) * service), load.patience),
        attempt=load.patience,
        period=load.period,
    )


class Fleet:
    """Hosts, manager and service at one instant."""

    def __init__(self, load: Load, settings: AdmissionSettings, seed: int) -> None:
        """Nobody holds anything, nobody asks."""
        self.load, self.seed, self.now = load, seed, 0
        self.admission, self.service = Admission(settings, load.hosts), Service(load)
        self.calls = np.zeros(load.hosts, np.int64)
        self.tokens = np.zeros(load.hosts, np.int64)
        self.ends = np.full(load.hosts, -1, np.int64)
        self.answered = np.zeros(load.hosts, np.bool_)
        self.drawn: list[NDArray[np.int64]] = []
        self.outcome = Outcome(load, held=[], renewed=[0])

    def run(self, until: Instant, pace: Duration = 0, stop_when_drained: bool = False) -> None:
        """Go on until then, or until every host was answered once."""
        while self.now < until:
            self._dispatch()
            times = [until]
            for at in (self.service.next_at(), self.admission.next_at(self.now)):
                times += [] if at is None else [at]
            self._pass_to(min(until, max(min(times), self.now + pace)))
            self._settle()
            if stop_when_drained and self.outcome.drained:
                break
        self.outcome.ended = self.now

    def _dispatch(self) -> None:
        ids, _ = self.admission.take(self.now)
        if len(ids):
            self.calls[ids] += 1
            self.outcome.sends += len(ids)
            self.service.begin(ids.tolist(), self._work(ids, self.calls[ids].tolist()), self.now)

    def _work(self, ids: Ids, calls: list[int]) -> list[int]:
        """How long these calls take at full speed; all hosts' so-manieth calls are drawn at once."""
        for call in range(len(self.drawn), max(calls)):
            numbers = np.full(self.load.hosts, call)
            self.drawn.append(self.load.work(self.seed, np.arange(self.load.hosts), numbers))
        return [int(self.drawn[call - 1][each]) for each, call in zip(ids.tolist(), calls, strict=True)]

    def _pass_to(self, now: Instant) -> None:
        while len(self.outcome.held) * SECOND <= now:
            self.outcome.held.append(int(np.count_nonzero(self.ends > len(self.outcome.held) * SECOND)))
            self.outcome.renewed.append(0)
        self.now = now

    def _settle(self) -> None:
        finished = self.service.until(self.now)
        if finished:
            ids = np.array(finished)
            failed = self.load.fails(self.seed, ids, self.calls[ids]) if self.load.failing else NOBODY
            if failed.any():
                self.admission.failed(ids[failed], self.now)
                ids = ids[~failed]
            self._grant(ids)
        overdue = self.admission.overdue(self.now)
        if len(overdue):
            self.admission.failed(overdue, self.now)

    def due(self, ids: Ids, held: Mask) -> Times:
        """When those answered just now are to be renewed; ``held`` held a lease before."""
        period = self.load.period
        if not held.any():
            return first_renewal(ids, self.tokens[ids], self.now, period)
        later = next_renewal(self.admission.due(ids), self.now, period)
        return later if held.all() else np.where(held, later, first_renewal(ids, self.tokens[ids], self.now, period))

    def _grant(self, ids: Ids) -> None:
        self.admission.answered(ids, self.now)
        held = self.ends[ids] > self.now
        self.tokens[ids] += ~held
        self.outcome.renewed[-1] += int(np.count_nonzero(held))
        due = self.due(ids, held)
        self.ends[ids] = self.now + self.load.lease
        self.admission.renew(ids, due, self.ends[ids])
        if self.outcome.first_done < self.load.hosts:
            self.answered[ids] = True
            self.outcome.first_done = int(np.count_nonzero(self.answered))
            if self.outcome.first_done == self.load.hosts:
                self.outcome.drained, self.outcome.sends_to_drain = self.now, self.outcome.sends


def collapse(load: Load, settings: AdmissionSettings, seed: int, after: Duration = 0, pace: Duration = 0) -> Outcome:
    """Every host asks at once, at instant 0; from one period after the last is answered on, ``after`` more."""
    fleet = Fleet(load, settings, seed)
    fleet.admission.acquire(np.arange(load.hosts), 0)
    fleet.run(int(20 * load.ideal * SECOND), stop_when_drained=True)
    if after:
        start = fleet.now + load.period
        fleet.run(start + after, pace)
    return fleet.outcome


def shock(load: Load, settings: AdmissionSettings, seed: int, lost: list[int], most: Duration) -> Outcome:
    """All hosts hold leases and renew them, evenly spread; at instant 0 some lose theirs and ask at once.

    Ends a lease after it has recovered, or after ``most``.
    """
    fleet = Fleet(load, settings, seed)
    hosts = np.arange(load.hosts)
    due = hosts * load.period // load.hosts
    fleet.ends[:] = due + load.lease - load.period
    fleet.admission.renew(hosts, due, fleet.ends)
    fleet.admission.drop(lost)
    fleet.ends[lost] = -1
    fleet.admission.acquire(lost, 0)
    step = max(SECOND, load.lease // 10)
    while fleet.now < most and fleet.outcome.recovered() is None:
        fleet.run(fleet.now + step)
    return fleet.outcome
