"""How often Route 53 is asked: so many requests a second, for all roles of a region on this host together.

An account has five a second, and others live there too, so a region takes two unless told otherwise. Whoever wants to
ask takes a turn from the shared file; turns are at least one interval apart. A turn isn't booked ahead: who finds none
comes back when the next is due. So a write that comes late isn't behind a queue of page reads, and while a write waits
the rolling scan keeps still. And a write that another role of this host was quicker with is given up while it waits: it
would only be refused, and at two requests a second it waits for longer than it takes.

After "Throttling" the interval doubles, up to sixteenfold, and creeps back by a tenth with each request that is
answered.
"""

import random
from collections.abc import Awaitable, Callable

from fencepost.adapters.dns_route53.host_cache import Shared, now
from fencepost.core.instant import SECOND, Duration, Instant

SLOWEST = 16.0
_CREEP = 0.9
_AHEAD_MOST: Duration = 60 * SECOND
"""A turn further ahead than this was taken by a clock that has been set back since."""


class Pace:
    """Turns to ask. ``requests`` is how many a second."""

    def __init__(self, shared: Shared, requests: float, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._shared = shared
        self._interval = int(SECOND / requests)
        self._sleep = sleep

    async def turn(self, *, urgent: bool, wanted: Callable[[], bool] = lambda: True) -> bool:
        """Wait for a turn. Urgent ones (writes, and looking again after a refusal) go before the rolling scan's.

        False, and none is taken, once it isn't ``wanted`` any more: that is asked each time before one is.
        """
        while wanted():
            left = self.take(now(), urgent=urgent)
            if left <= 0:
                return True
            await self._sleep((left / SECOND) * (1 + random.uniform(0, 0.1)))  # noqa: S311  jitter
        return False

    def take(self, at: Instant, *, urgent: bool) -> Duration:
        """Take a turn if one is free: 0; else how long to wait before trying again."""
        taken = self._shared.run(
            "update pace set next = ? + cast(? * slow as integer), yielding = case when ? then 0 else yielding end"
            " where (next <= ? or next > ?) and (? or yielding <= ?) returning one",
            (at, self._interval, urgent, at, at + _AHEAD_MOST, urgent, at),
        )
        if taken:
            return 0
        if urgent:
            self._shared.run("update pace set yielding = ? + cast(2 * ? * slow as integer)", (at, self._interval))
        return max(1_000_000, self.left(at, urgent=urgent))

    def left(self, at: Instant, *, urgent: bool = False) -> Duration:
        """How long until a turn is free; nothing is taken."""
        ((due, yielding),) = self._shared.run("select next, yielding from pace")
        left: Duration = min(max(due, 0 if urgent else yielding) - at, _AHEAD_MOST)
        return max(0, left)

    def was_throttled(self) -> None:
        """Slow down: somebody uses up the account's requests."""
        self._shared.run("update pace set slow = min(slow * 2, ?)", (SLOWEST,))

    def went_well(self) -> None:
        """Creep back to the full rate."""
        self._shared.run("update pace set slow = max(slow * ?, 1.0) where slow > 1.0", (_CREEP,))

    def period(self) -> Duration:
        """The time from one turn to the next, as it is now."""
        ((slow,),) = self._shared.run("select slow from pace")
        return int(self._interval * slow)
