"""A service that is slow and gets slower the more wait for it: what an agent behind a loaded machine is like.

So many are served at once, the others wait in turn; each takes an exponential time (its standard deviation is its
mean). Each full set of servers' worth of those who wait makes the next ones take ``CONTENTION`` longer, so that past
its knee the service does not just queue but does less: what is given up by whoever asked is served all the same.
"""

import heapq
import random

CONTENTION = 0.1


class Crowded:
    """When each of a line of questions is done. ``mean_s`` is the time of one, ``servers`` how many at once."""

    def __init__(self, mean_s: float, servers: int, seed: int = 0) -> None:
        self.mean_s = mean_s
        self.free = [0.0] * servers
        self.waiting: list[float] = []
        self._chance = random.Random(seed)  # noqa: S311  the model's own

    def done_at(self, now_s: float) -> float:
        """When a question that comes now is answered, on the same clock."""
        while self.waiting and self.waiting[0] <= now_s:
            heapq.heappop(self.waiting)
        crowd = len(self.waiting) / len(self.free)
        start = max(now_s, self.free[0])
        done = start + self._chance.expovariate(1.0) * self.mean_s * (1 + CONTENTION * crowd)
        heapq.heapreplace(self.free, done)
        if start > now_s:
            heapq.heappush(self.waiting, start)
        return done
