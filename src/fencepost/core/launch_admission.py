"""How many launches are let in: as many as drain, less as the queue before them deepens.

A queue that is watched by its delay alone is noticed when it is too late: what is let in now waits behind all of it. So
what comes in falls with the queue's *depth*, in a straight line from the drain rate at an empty queue to nothing at the
bound. When to come back, and that it was turned away for lack of pace (a
*request limit*) and not for lack of room (*capacity*), is for the caller to say.
"""

import msgspec

from fencepost.core.instant import SECOND, Instant


class LaunchSettings(msgspec.Struct, frozen=True, gc=False):
    """``rate``: launches a second that the stages behind drain; ``bound``: a depth at which nothing more comes in;
    ``burst``: how many may come at once after a pause. Raises ``ValueError`` for numbers that can't work."""

    rate: float
    bound: int
    burst: int = 1

    def __post_init__(self) -> None:
        """Refuse what can't work."""
        if not self.rate > 0:
            raise ValueError(f"rate is {self.rate}: no launch would ever be let in")
        if self.bound < 1:
            raise ValueError(f"bound is {self.bound}: the queue would be full when empty")
        if not 1 <= self.burst <= self.bound:
            raise ValueError(f"burst is {self.burst}: 1 to the bound, {self.bound}")


def launch_rate(rate: float, depth: int, bound: int) -> float:
    """Launches a second to let in, with ``depth`` of at most ``bound`` in the queue: rate × (1 - depth ÷ bound)."""
    return rate * max(0.0, 1 - max(0, depth) / bound)


class LaunchAdmission(msgspec.Struct):
    """A bucket that fills at the launch rate; changes in place. It starts full."""

    settings: LaunchSettings
    tokens: float
    at: Instant

    @classmethod
    def of(cls, settings: LaunchSettings, now: Instant) -> "LaunchAdmission":
        """From now on."""
        return cls(settings, float(settings.burst), now)

    def copy(self) -> "LaunchAdmission":
        """The same, apart."""
        return msgspec.structs.replace(self)

    def admit(self, wanted: int, depth: int, now: Instant) -> int:
        """How many of the wanted launches come in now; the queue never passes its bound by it."""
        rate = launch_rate(self.settings.rate, depth, self.settings.bound)
        if now > self.at:
            self.tokens = min(self.settings.burst, self.tokens + rate * (now - self.at) / SECOND)
            self.at = now
        room = max(0, self.settings.bound - max(0, depth))
        admitted = min(max(0, wanted), int(self.tokens + 1e-9), room)
        self.tokens -= admitted
        return admitted
