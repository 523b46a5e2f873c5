"""Workers with a knee, and the line of calls before them: the lease manager's own machine, whoever decides for it.

Up to ``knee`` calls go at full speed. A pool larger than that takes more at once, and each of them gets slower by more
than its share: in all ever less is done (contention). Calls wait in order of arrival. A line doesn't know who still
waits at its other end: what was given up is worked on like everything else.

Who gave up can't be answered any more, so of calls older than callers' patience only the number is kept, not whose
they were; they take as long as others.
"""

from collections import deque
from itertools import islice

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.scenario import Tick

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

RENEW, ESTABLISH = 0, 1
NEXT = 8
"""So many seconds' calls are looked at for how many begin now."""


class WorkerValues(Struct, frozen=True, gc=False):
    """``knee`` and ``pool`` in workers, costs in worker-seconds, ``patience_s`` of callers; ``contention`` a number."""

    knee: float
    pool: float
    contention: float
    renew_cost: float
    establish_cost: float
    patience_s: int


class Batch:
    """Calls that came in the same second; ``wanting`` of them want a lease anew."""

    __slots__ = ("at", "establish", "ids", "wanting")

    def __init__(self, at: Tick, ids: Ids, establish: Mask) -> None:
        """In their order."""
        self.at, self.ids, self.establish = at, ids, establish
        self.wanting = int(np.count_nonzero(establish))

    def keep(self, which: Mask | slice) -> None:
        """Only those stay in line."""
        self.ids, self.establish = self.ids[which], self.establish[which]
        self.wanting = int(np.count_nonzero(self.establish))


class Workers:
    """The line and the pool at one second. ``spent`` is worker-seconds so far, ``useful`` those that somebody still
    waited for: whoever takes the answers counts them."""

    __slots__ = ("_busy", "_done", "_ends", "_line", "_old", "_quick", "spent", "useful", "values")

    def __init__(self, values: WorkerValues) -> None:
        """Idle."""
        self.values = values
        self._line: deque[Batch] = deque()
        self._old = [0.0, 0.0]
        self._busy = 0.0
        self._quick = 0.0
        self._ends: dict[Tick, float] = {}
        self._done: dict[Tick, list[tuple[Ids, Tick, float]]] = {}
        self.spent = self.useful = 0.0

    @property
    def waiting(self) -> float:
        """How many calls are in the line, those that nobody waits for included."""
        return sum(self._old) + sum(len(batch.ids) for batch in self._line)

    @property
    def busy(self) -> float:
        """How many workers have a call."""
        return self._busy

    def speed(self) -> float:
        """How fast a call goes that begins now, beside all that can begin with it; 1 is full speed."""
        wanting = sum([batch.wanting for batch in islice(self._line, NEXT)])
        busy = min(self.values.pool, self._busy + self._old[ESTABLISH] + wanting)
        over = busy / self.values.knee
        return 1.0 if over <= 1 else 1 / over / (1 + self.values.contention * (over - 1))

    def call(self, now: Tick, ids: Ids, establish: Mask) -> None:
        """These calls join the line's end."""
        if len(ids):
            self._line.append(Batch(now, ids, establish))

    def finished(self, now: Tick) -> list[tuple[Ids, Tick, float]]:
        """Whose calls were done in this second, when those calls came, and what each cost."""
        return self._done.pop(now, [])

    def work(self, now: Tick) -> None:
        """One second of work."""
        self._busy -= self._ends.pop(now, 0.0)
        self._busy = max(0.0, self._busy)
        speed = self.speed()
        room = max(0.0, self.values.pool - self._busy - self._quick)
        self._quick = 0.0
        room -= self._work_on_old(now, room, speed)
        while room > 1e-9 and self._line:
            batch = self._line[0]
            held = np.where(batch.establish, *self._seconds(speed)[::-1])
            taken = int(np.searchsorted(np.cumsum(held), room, side="right"))
            if not taken:
                break
            room -= float(held[:taken].sum())
            self._begin(now, batch.ids[:taken], batch.establish[:taken], batch.at, speed)
            if taken == len(batch.ids):
                self._line.popleft()
            else:
                batch.keep(slice(taken, None))

    def next_at(self, now: Tick) -> Tick | None:
        """When a call is done or the next may begin, if none comes before; None if there are none."""
        if self._line or any(self._old):
            return now + 1
        return min((*self._done, *self._ends), default=None)

    def at_once(self, renewals: int) -> bool:
        """So many renewals are done within this second, if one takes so little and the second has room for them.

        A call that takes a tenth of a second leaves its slot to the next nine in a second.
        """
        seconds = renewals * self.values.renew_cost
        if self.values.renew_cost >= 1 or self._quick + seconds + self._busy > self.values.pool:
            return False
        self._quick += seconds
        self.spent += seconds
        self.useful += seconds
        return True

    def forget_age(self, now: Tick) -> None:
        """Of calls older than callers' patience only the number stays."""
        while self._line and self._line[0].at < now - self.values.patience_s:
            batch = self._line.popleft()
            self._old[RENEW] += len(batch.ids) - batch.wanting
            self._old[ESTABLISH] += batch.wanting

    def drop(self, hosts: int, part: int, parts: int) -> Ids:
        """Restart one of so many managers: its part of the line is gone. Gives who waited in it."""
        self._old = [count * (1 - 1 / (parts - part)) for count in self._old]
        gone = []
        for batch in self._line:
            stays = batch.ids * parts // hosts != part
            gone.append(batch.ids[~stays])
            batch.keep(stays)
        self._line = deque(batch for batch in self._line if len(batch.ids))
        return np.concatenate(gone) if gone else np.zeros(0, np.int64)

    def _seconds(self, speed: float) -> tuple[float, float]:
        """How much of a worker's second each kind of call takes in the second in which it begins."""
        return min(1.0, self.values.renew_cost / speed), min(1.0, self.values.establish_cost / speed)

    def _begin(self, now: Tick, ids: Ids, establish: Mask, came: Tick, speed: float) -> None:
        costs = (self.values.renew_cost, self.values.establish_cost)
        for kind, chosen in ((RENEW, ids[~establish]), (ESTABLISH, ids[establish])):
            if len(chosen):
                at = self._occupy(now, len(chosen), costs[kind], speed)
                self._done.setdefault(at, []).append((chosen, came, costs[kind]))

    def _occupy(self, now: Tick, calls: float, cost: float, speed: float) -> Tick:
        """So many calls of a kind begin; when they are done."""
        self.spent += calls * cost
        lasts = max(1, round(cost / speed))
        if cost / speed >= 1:
            self._busy += calls
            self._ends[now + lasts] = self._ends.get(now + lasts, 0.0) + calls
        return now + lasts

    def _work_on_old(self, now: Tick, room: float, speed: float) -> float:
        """Calls that nobody waits for any more come first, being the oldest. Gives the worker-seconds they took."""
        if not any(self._old):
            return 0.0
        renewal_s, anew_s = self._seconds(speed)
        wanted = self._old[RENEW] * renewal_s + self._old[ESTABLISH] * anew_s
        if wanted <= 0:
            return 0.0
        share = min(1.0, room / wanted)
        for kind, cost in ((RENEW, self.values.renew_cost), (ESTABLISH, self.values.establish_cost)):
            self._occupy(now, self._old[kind] * share, cost, speed)
        self._old = [count * (1 - share) for count in self._old]
        return wanted * share
