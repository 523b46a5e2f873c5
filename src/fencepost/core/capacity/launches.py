"""Launches: whether one is let in, what it is called, and what of it is still to be written.

A launch is asked for under an idempotency key. Whoever lost the reply asks again with the same key and gets the same
instances, since the launch's own row is written with the first of them; the same key for something else is refused. Of
many instances a store takes only so many in one transaction: the rest follow, and whoever asks again has them finished.

Three ways of saying no, in three sets of words, since each asks for something else: *insufficient capacity* (there is
no room: add hosts, or terminate), *request limit exceeded* (there is room, and more waits than drains: come back when
we say), *unavailable* (nothing is known: try again).
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from msgspec import structs

from fencepost.core.capacity.drain import admitted
from fencepost.core.capacity.rows import DrainRow, InstanceRow, LaunchRow
from fencepost.core.instant import MINUTE, SECOND, Duration, Instant
from fencepost.core.jitter import jitter
from fencepost.core.launch_admission import LaunchAdmission, LaunchSettings

MOST = 1000
"""So many instances one launch may ask for."""
AT_ONCE = 90
"""So many rows are written together: DynamoDB takes a hundred actions in a transaction, some the store's own."""
FINISHED_WITHIN: Duration = 10 * MINUTE
"""Only so long after a launch are missing instances written: later they may have ended and been cleared away."""
BOUND = 10_000
"""With so many waiting nothing more is let in."""
RATE_FIRST, RATE_LEAST = 100.0, 1.0
"""Instances placed a second: what is taken for it before it was seen, and the least it is taken for."""
NAME_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""What the end of a name is made of: nothing that is taken for something else when read aloud."""


def digest_of(pool: str, count: int) -> str:
    """What stands for a request: under one key there is only one."""
    return blake2b(f"{pool}\0{count}".encode(), digest_size=16).hexdigest()


def name_of(pool: str, drawn: int) -> str:
    """An instance's name: its pool, and eight letters of what was drawn (64 bits).

    Never a count: a store that was wiped would begin at 1 again, and web-1 still runs on a host that hasn't told yet.
    """
    letters = []
    for _ in range(8):
        drawn, at = divmod(drawn, len(NAME_LETTERS))
        letters.append(NAME_LETTERS[at])
    return f"{pool}-{''.join(letters)}"


def unwritten(launch: LaunchRow, known: Mapping[str, object], now: Instant) -> tuple[str, ...]:
    """The instances of a launch that have no row yet and are to get one. ``now`` is nanoseconds since 1970."""
    if now - launch.asked_at > FINISHED_WITHIN:
        return ()
    return tuple(name for name in launch.instances if name not in known)


def instances_of(like: InstanceRow, names: Iterable[str]) -> tuple[InstanceRow, ...]:
    """A row for each name, all like one."""
    return tuple(structs.replace(like, instance=name) for name in names)


class Pace:
    """How many instances are placed a second while some wait; an idle fleet says nothing about its pace."""

    def __init__(self) -> None:
        self.rate = RATE_FIRST
        self._at: Instant | None = None
        self._placed = 0

    def see(self, depth: int, placed: int, now: Instant) -> None:
        """So many wait now, and so many were ever seen to be placed."""
        if self._at is not None and now - self._at >= SECOND:
            if depth and placed > self._placed:
                seen = (placed - self._placed) * SECOND / (now - self._at)
                self.rate = max(RATE_LEAST, (self.rate + seen) / 2)
            self._at = None
        if self._at is None:
            self._at, self._placed = now, placed


class Gate:
    """Lets launches in no faster than the slowest stage behind them drains. Changes in place."""

    def __init__(self, now: Instant) -> None:
        self.admission = LaunchAdmission.of(LaunchSettings(RATE_FIRST, BOUND, MOST), now)

    def wait(self, count: int, depth: int, rate: float, stages: Iterable[DrainRow], now: Instant, who: str) -> Duration:
        """0 if a launch of so many is let in, else how long to stay away.

        ``depth`` wait to be placed at ``rate`` a second; ``stages`` are those behind. Whoever is told to wait gets a
        time of his own: backlog by rate, and up to as much again by a hash of ``who``.
        """
        pace, backlog = rate, depth / rate
        for stage in stages:
            pace = min(pace, admitted(stage, pace))
            backlog = max(backlog, stage.depth / max(RATE_LEAST, stage.rate))
        # A bucket that never fills says so by its wait, not by a division by nothing.
        settings = structs.replace(self.admission.settings, rate=max(pace, RATE_LEAST / BOUND))
        self.admission = structs.replace(self.admission, settings=settings)
        self.admission.admit(0, depth, now)
        if count <= int(self.admission.tokens + 1e-9) and depth + count <= BOUND:
            self.admission.admit(count, depth, now)
            return 0
        lacking = max(0.0, count - self.admission.tokens) / max(RATE_LEAST, pace)
        over = max(0, depth + count - BOUND) / rate
        wait = int(max(backlog, lacking, over, 1.0) * SECOND)
        return wait + jitter(max(wait, SECOND), who, now)
