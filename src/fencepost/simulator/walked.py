"""What one walk came to."""

from msgspec import Struct

from fencepost.core.instant import Duration, Instant
from fencepost.simulator.schedule import Upset


class Walked(Struct, frozen=True):
    """What one seed's walk came to. ``promise`` is the broken one's name, "" if all held; times in nanoseconds."""

    seed: int
    scenario: str
    promise: str
    words: str
    ended: Instant
    moves: int
    checked: dict[str, int]
    seen: dict[str, int]
    converged_after: Duration
    cpu_s: float
    upsets: tuple[Upset, ...]
