"""Launches: who wants one, who gets one, and who comes back later.

A launch needs the store (to write down what is launched where) and a host with a lease. Who is refused tries again
after a fixed time, until giving up after an hour: so a backlog of wishes builds up that no queue shows.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.scenario import Tick


class LaunchValues(Struct, frozen=True, gc=False):
    """Rates a second of the whole region; times in seconds. ``most`` is what the launch path
    itself takes, ``terminations`` a share of the demand."""

    demand: float
    most: float
    terminations: float
    retry_s: int
    give_up_s: int


class Launches:
    """Wishes by how often they were refused so far. ``offered``, ``admitted`` and ``failing`` are of the last step."""

    __slots__ = ("_asking", "_back", "_step", "admitted", "failing", "offered", "values")

    def __init__(self, values: LaunchValues, step_s: int) -> None:
        """Nobody waits."""
        self.values, self._step = values, step_s
        tries = values.give_up_s // values.retry_s
        self._back: dict[Tick, NDArray[np.float64]] = {}
        self.offered = self.admitted = self.failing = 0.0
        self._asking = np.zeros(tries + 1)

    def wish(self, now: Tick) -> float:
        """How many launches are asked for in this step, those that come back included."""
        tries = np.zeros(len(self._asking))
        for at in [each for each in self._back if each <= now]:
            tries += self._back.pop(at)
        tries[0] += self.values.demand * self._step
        self._asking = tries
        return float(tries.sum())

    def answer(self, now: Tick, admitted: float) -> None:
        """So many of them are let in, evenly; the others come back, or give up."""
        wishes = float(self._asking.sum())
        self.offered, self.admitted = wishes, min(wishes, admitted)
        self.failing = 1 - self.admitted / wishes if wishes else 0.0
        refused = self._asking * self.failing
        if self.failing > 0:
            later = np.zeros(len(refused))
            later[1:] = refused[:-1]
            self._back[now + self.values.retry_s] = later
