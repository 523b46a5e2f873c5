"""How many second tries there may be: a tenth of all dispatches while there is anything else to do, or trouble.

Each first dispatch earns a ninth of one, so that of ten dispatches at most one is a second try. Left alone, only failed
work remains, and a strict tenth of nothing would be nothing: then second tries trickle, at a tenth of what the service
carries, doubled after each window without trouble (:class:`~fencepost.core.admission.brake.Brake` says how far).
"""

import msgspec

from fencepost.core.instant import SECOND, Duration, Instant

SAVED = 10
"""Earned tries are kept up to what so many seconds earn."""
BURST = SECOND // 10
"""Trickled tries are kept up to what this long brings, and at least one."""


class SecondTries(msgspec.Struct):
    """What is earned and trickled so far; changes in place. ``rate`` is calls a second that the service carries."""

    share: float
    earned: float = 0.0
    trickled: float = 1.0
    at: Instant | None = None

    def copy(self) -> "SecondTries":
        """The same, apart."""
        return msgspec.structs.replace(self)

    def first(self, count: int, rate: float) -> None:
        """So many first dispatches."""
        self.earned = min(self.earned + count * self.share / (1 - self.share), max(1.0, SAVED * self.share * rate))

    def pass_to(self, now: Instant, trickle: float, rate: float) -> None:
        """Time has passed; ``trickle`` times the share of the rate comes by itself."""
        if self.at is not None and now > self.at:
            a_second = self.share * trickle * rate
            more = a_second * (now - self.at) / SECOND
            self.trickled = min(self.trickled + more, max(1.0, a_second * BURST / SECOND))
        self.at = now if self.at is None else max(self.at, now)

    def allowed(self, alone: bool) -> int:
        """How many may go now; ``alone``: nothing but failed work is left."""
        return int(self.earned + 1e-9) + (int(self.trickled + 1e-9) if alone else 0)

    def spend(self, count: int) -> None:
        """So many went."""
        earned = min(count, int(self.earned + 1e-9))
        self.earned -= earned
        self.trickled -= count - earned

    def wait(self, trickle: float, rate: float) -> Duration:
        """How long until the next may go alone, at least 1 ns."""
        return max(1, int((1 - self.trickled) / (self.share * trickle * rate) * SECOND) + 1)
