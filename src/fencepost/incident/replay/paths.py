"""The lease manager's way to the store, host by host: how it is lost, and how it comes back.

When a name stops resolving, pooled connections go on working until each of them ends; only then is the name asked for
again, in vain. So access is lost one by one, over as long as connections live. When the name resolves again, each
caller learns it when its own cache lets go.
"""

import numpy as np
from numpy.typing import NDArray

from fencepost.incident.replay.scenario import Tick

NEVER = 1 << 40
"""Later than any scenario lasts."""


class Paths:
    """``lost_at`` and ``back_at``, a tick for each host; ``NEVER`` where the way isn't lost, or isn't back yet."""

    __slots__ = ("_chance", "_life_s", "_return_s", "back_at", "lost_at", "restored_at")

    def __init__(self, hosts: int, life_s: float, return_s: float, chance: np.random.Generator) -> None:
        """All open. ``life_s``: the mean life of a pooled connection; ``return_s``: within that all caches let go."""
        self._life_s, self._return_s, self._chance = life_s, return_s, chance
        self.lost_at: NDArray[np.int64] = np.full(hosts, NEVER)
        self.back_at: NDArray[np.int64] = np.zeros(hosts, np.int64)
        self.restored_at: Tick | None = None

    def lose(self, at: Tick) -> None:
        """From now on nobody can find the store; open connections stay until their end."""
        ends = self._chance.exponential(self._life_s, len(self.lost_at)) if self._life_s else 0.0
        self.lost_at = np.minimum(NEVER, at + ends).astype(np.int64) + np.zeros(len(self.lost_at), np.int64)
        self.back_at[:] = NEVER
        self.restored_at = None

    def restore(self, at: Tick) -> None:
        """From now on it can be found again, by each caller within the time that caches take."""
        kept = self.lost_at >= at
        self.back_at = at + self._chance.uniform(0, self._return_s, len(self.lost_at)).astype(np.int64)
        self.lost_at[kept], self.back_at[kept] = NEVER, 0
        self.restored_at = at

    def open_share(self, at: Tick) -> float:
        """The share of hosts for which the store can be reached."""
        shut = (self.lost_at <= at) & (self.back_at > at)
        return 1.0 - float(np.count_nonzero(shut)) / len(shut)
