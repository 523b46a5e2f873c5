"""How fast what comes in may come, so that the stage behind keeps up: its drain rate, slowed by its depth.

Relief of one stage drowns the next. In October 2025 leases came back at 05:28, launches with them, and then network
states lay in a backlog until 10:36: admission in front of leases alone would only have moved the flood to there,
earlier. So the stage that is slowest says in a row how fast it drains and how much lies in it, and what comes in at the
front is let in at

    rate × (1 − depth ÷ bound)

The depth slows it, not the delay: a queue grows long before anything in it is late. What comes in besides (hosts that
come back and lack all they had) fills the same depth, and launches make room for it.

Awkward truth: the rate is known only from when the stage was busy. Until then it is what its admission is calibrated
to carry, which may be too high; the depth corrects that within one bound.
"""

from msgspec import Struct

from fencepost.core.capacity.rows import DrainRow
from fencepost.core.instant import SECOND, Instant

NETWORK = "network"
"""The stage of network states."""
BOUND_S = 60
"""So many seconds of draining may lie in a stage."""
BOUND_LEAST = 64
"""And at least so much: a small fleet's burst is no backlog."""
WINDOW = SECOND
WEIGHT = 0.3
"""What the newest window counts for in the rate."""


def bound(rate: float) -> int:
    """How much may lie in a stage that drains so much a second."""
    return max(BOUND_LEAST, int(rate * BOUND_S))


def admitted(row: DrainRow | None, otherwise: float) -> float:
    """How much a second may come in for the stage of ``row``; ``otherwise`` if no stage says anything."""
    if row is None:
        return otherwise
    return row.rate * max(0.0, 1 - row.depth / max(1, row.bound))


class Meter(Struct):
    """How much a stage gets done a second, from windows in which it was busy all the time; changes in place.

    A stage that waits for one host that never answers isn't busy: else that host would bring the rate to nothing, and
    everything that waits for the rate.
    """

    rate: float
    since: Instant | None = None
    done: int = 0
    busy: bool = False

    def passed(self, done: int, busy: bool, now: Instant) -> None:
        """So much was done since the last call; ``busy`` says that more could not have been."""
        if self.since is None or not (busy and self.busy):
            self.since, self.done, self.busy = now, 0, busy
            return
        self.done += done
        span = now - self.since
        if span >= WINDOW:
            self.rate += WEIGHT * (self.done * SECOND / span - self.rate)
            self.since, self.done = now, 0
