"""How the fleet's API says no: a status and a kind each, in words that never stand for one another.

"Insufficient capacity" is for whoever can add hosts, "request limit exceeded" for whoever can come back later, and
"unavailable" for nobody: it says that nothing is known. In October 2025 customers saw the first two side by side, and
what helped against one did nothing against the other.
"""

from fencepost.core.instant import SECOND, Duration
from fencepost.ports import Misconfigured, PortError, Refused, Unavailable


class Insufficient(Unavailable):
    """There is no room for what was asked; asking again doesn't help until there is."""


class LimitExceeded(Unavailable):
    """There may be room, and too much waits already; ``after`` says when to come back."""

    def __init__(self, what: str, after: Duration, *, where: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.after_s = max(1, -(-after // SECOND))


class Conflict(Refused):
    """The idempotency key stands for another request."""


class Taken(Refused):
    """Another agent has that host's name, and is alive; ``after`` says when it may be free, if nobody answers there."""

    def __init__(self, what: str, after: Duration, *, where: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.after_s = max(1, -(-after // SECOND))


class Unknown(Refused):
    """There is nothing of that name."""


KINDS: dict[type[PortError], tuple[int, str]] = {
    Insufficient: (503, "insufficient capacity"),
    LimitExceeded: (429, "request limit exceeded"),
    Unavailable: (503, "unavailable"),
    Conflict: (409, "refused"),
    Taken: (409, "refused"),
    Unknown: (404, "refused"),
    Refused: (422, "refused"),
    Misconfigured: (500, "misconfigured"),
}
"""Status and kind of each; the first that fits an error's class, or one it is made of."""


def status_of(error: PortError) -> tuple[int, str]:
    """An error's status and kind."""
    return next((KINDS[base] for base in type(error).__mro__ if base in KINDS), (503, "unavailable"))
