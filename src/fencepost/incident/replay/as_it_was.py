"""Leases as they were recovered: first come, first served, and whoever waited too long asks once more.

A host's attempt is given up ``patience_s`` after it was put in line, not after it began: the wait eats the time. Giving
up takes nothing out of the line. Past a certain length of the line each call that is worked on was given up before,
each one given up makes the line longer, and the few renewals wait in the same line until their leases end too.
"""

import numpy as np

from fencepost.incident.replay.leases import Ids, Leases
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.workers import Workers


class AsItWas:
    """The lease manager of the time, at one second."""

    __slots__ = (
        "_due",
        "_fails",
        "_leases",
        "_rate",
        "_started",
        "_tokens",
        "_tokens_most",
        "_waits",
        "_workers",
    )

    def __init__(self, leases: Leases, workers: Workers) -> None:
        """Nothing to do."""
        self._leases, self._workers = leases, workers
        self._due: dict[Tick, list[Ids]] = {}
        self._waits: dict[Tick, Ids] = {}
        self._started = np.full(len(leases.held), -1, np.int64)
        self._rate: float | None = None
        self._tokens = self._tokens_most = 0.0

    @property
    def waiting(self) -> float:
        """Calls in line."""
        return self._workers.waiting

    @property
    def spent(self) -> float:
        """Worker-seconds so far."""
        return self._workers.spent

    @property
    def useful(self) -> float:
        """Worker-seconds of calls that were answered in time."""
        return self._workers.useful

    def begin(self, now: Tick) -> None:
        """Everyone's next attempt is a renewal period after his last, in vain or not."""
        step = self._leases.values.renewal_s
        offsets = (self._leases.phase - now) % step
        order = np.argsort(offsets, kind="stable")
        bounds = np.searchsorted(offsets[order], np.arange(step + 1))
        for offset in range(step):
            self._later(now + offset, order[bounds[offset] : bounds[offset + 1]])

    def second(self, now: Tick) -> None:
        """What ends, what is given up, what begins; then a second of work."""
        leases, workers = self._leases, self._workers
        leases.expire(now)
        self._take_answers(now)
        begins = [*self._due.pop(now, ()), self._given_up(now)]
        if self._rate is not None:
            self._tokens = min(self._tokens_most, self._tokens + self._rate)
        self._ask(np.concatenate(begins), now)
        workers.forget_age(now)
        workers.work(now)

    def throttle(self, rate: float, burst: float) -> None:
        """Of those without a lease so many a second come into the line; the others are refused, and try again."""
        self._rate, self._tokens_most = rate, rate * burst
        self._tokens = self._tokens_most

    def restart(self, now: Tick, part: int, parts: int) -> None:
        """Its part of the line is gone; who stood in it asks again at a time of his own within a renewal period."""
        dropped = self._workers.drop(len(self._leases.held), part, parts)
        waited = dropped[self._started[dropped] >= 0]
        self._started[waited] = -1
        after = self._leases.chance.integers(1, self._leases.values.renewal_s + 1, len(waited))
        for offset in np.unique(after).tolist():
            self._later(now + offset, waited[after == offset])

    def _later(self, at: Tick, ids: Ids) -> None:
        if len(ids):
            self._due.setdefault(at, []).append(ids)

    def _take_answers(self, now: Tick) -> None:
        for ids, came, cost in self._workers.finished(now):
            answered = ids[self._started[ids] == came]
            self._workers.useful += len(answered) * cost
            if len(answered):
                self._started[answered] = -1
                self._leases.grant(answered, now)
                self._later(now + self._leases.values.renewal_s, answered)

    def _given_up(self, now: Tick) -> Ids:
        came = now - self._workers.values.patience_s
        ids = self._waits.pop(came, None)
        if ids is None:
            return np.zeros(0, np.int64)
        still: Ids = ids[self._started[ids] == came]
        return still

    def _ask(self, ids: Ids, now: Tick) -> None:
        if not len(ids):
            return
        leases, step = self._leases, self._leases.values.renewal_s
        shut = leases.paths.back_at[ids] > now
        shut &= leases.paths.lost_at[ids] <= now
        self._started[ids[shut]] = -1
        self._later(now + step, ids[shut])
        ids = ids[~shut]
        establish = ~leases.held[ids]
        if self._rate is not None:
            wanting = ids[establish]
            most = int(self._tokens)
            self._tokens -= min(most, len(wanting))
            refused = wanting[most:]
            self._started[refused] = -1
            self._later(now + step, refused)
            ids = np.concatenate((ids[~establish], wanting[:most]))
            establish = ~leases.held[ids]
        if len(ids):
            self._started[ids] = now
            self._waits[now] = ids
            self._workers.call(now, ids, establish)
