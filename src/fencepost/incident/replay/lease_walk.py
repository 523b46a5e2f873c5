"""Leases over time: by their closed form while nothing contends, second by second while something does."""

import numpy as np
from numpy.typing import NDArray

from fencepost.incident.replay.leases import CALM_S, LeasePart, Leases
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.workers import WorkerValues


class LeaseWalk:
    """``holding``: how many hosts have a lease; ``lost``: how many have been without one; ``walked``: seconds.

    ``ideal_s``: how soon after the store was found again all that was lost could be had; None if nothing was lost."""

    __slots__ = (
        "_began",
        "_calm_from",
        "_lapses",
        "_leases",
        "_walking",
        "_workers",
        "holding",
        "ideal_s",
        "lost",
        "part",
        "walked",
    )

    def __init__(self, leases: Leases, part: LeasePart, workers: WorkerValues) -> None:
        """All have one."""
        self._leases, self.part, self._workers = leases, part, workers
        self.holding, self.lost, self.walked = leases.holding, 0, 0
        self._began: Tick | None = None
        self._lapses: NDArray[np.int64] | None = None
        self._walking = False
        self._calm_from: Tick | None = None
        self.ideal_s: float | None = None

    def lose(self, now: Tick) -> None:
        """Nobody finds the store any more."""
        self._leases.paths.lose(now)
        self._began = now
        self._lapses = np.sort(self._leases.lapse_times(now))

    def restore(self, now: Tick) -> None:
        """It is found again. If any lease was lost by now, everything is walked from here on."""
        if self._began is None or self._lapses is None:
            return
        self._leases.paths.restore(now)
        gone = int(np.searchsorted(self._lapses, now, side="right"))
        self._lapses = None
        if gone:
            self.ideal_s = self._ideal(now)
            self._leases.begin_walk(now, self._began)
            self.part.begin(now)
            self._walking = True
        self._began = None

    def _ideal(self, now: Tick) -> float:
        """Seconds in which all that is lost could be had again, no work wasted and no worker idle for nothing."""
        paths, workers = self._leases.paths, self._workers
        back = np.sort(paths.back_at[self._leases.lapse_times(self._began or 0) <= now])
        each = workers.establish_cost / workers.knee
        return float((back + each * np.arange(len(back), 0, -1)).max()) - now

    def step(self, now: Tick, seconds: int) -> None:
        """The step that ends now."""
        if self._walking:
            for second in range(now - seconds + 1, now + 1):
                self.part.second(second)
            self.walked += seconds
            self.holding = self._leases.holding
            self.lost = int(np.count_nonzero(self._leases.lost))
            self._stop_when_calm(now)
        elif self._lapses is not None:
            self.lost = int(np.searchsorted(self._lapses, now, side="right"))
            self.holding = len(self._leases.held) - self.lost

    def _stop_when_calm(self, now: Tick) -> None:
        """All held and hardly anyone in line, for ten minutes: from then on renewals are a matter of course."""
        if self.holding < len(self._leases.held) or self.part.waiting > len(self._leases.held) / 20:
            self._calm_from = None
        elif self._calm_from is None:
            self._calm_from = now
        elif now - self._calm_from >= CALM_S:
            self._walking = False
