"""When a walk has no end in sight: parts that keep each other busy, without time passing or without coming to rest.

Deciders that undo or repeat each other's work never come to the end of a walk, or only after hours; no promise that
speaks of states is broken meanwhile. So two rates are watched that are far above what a working region ever reaches,
also in an hour full of upsets: 537 moves in the busiest second and 72 changes in the busiest minute of all scenarios.
"""

from collections import deque

from fencepost.core.instant import MINUTE, SECOND, Instant
from fencepost.simulator.watch import Broken

MOVES_MOST = 20_000
"""Moves within one second of the region's time."""
CHANGES_MOST = 600
"""Changes of DNS or store (plans, writes, rows cleaned up) within one minute."""
TOLD = 4
"""So many of the last are named."""
LONG = 100
"""Letters of one that are told."""


class Pace:
    """Counts, and ends the walk as a broken ``converges`` (whatever is judged: it would not end otherwise)."""

    def __init__(self) -> None:
        self.second = self.minute = -1
        self.moves = self.changes = 0
        self.last: deque[str] = deque(maxlen=TOLD)

    def moved(self, now: Instant) -> None:
        """A move is about to be made. Raises :class:`Broken`."""
        if now // SECOND != self.second:
            self.second, self.moves = now // SECOND, 0
        self.moves += 1
        if self.moves > MOVES_MOST:
            raise self.endless(f"{MOVES_MOST:,} moves in the same second")

    def changed(self, now: Instant, who: str, label: str) -> None:
        """A move changed DNS or store. Raises :class:`Broken`."""
        self.last.append(f"{who} {label if len(label) <= LONG else label[:LONG] + ' ...'}")
        if now // MINUTE != self.minute:
            self.minute, self.changes = now // MINUTE, 0
        self.changes += 1
        if self.changes > CHANGES_MOST:
            raise self.endless(f"{CHANGES_MOST} changes of DNS or store in the same minute")

    def endless(self, what: str) -> Broken:
        """What to raise."""
        last = f"; the last changes were: {'; '.join(self.last)}" if self.last else ""
        return Broken("converges", f"no end in sight: {what}{last}")
