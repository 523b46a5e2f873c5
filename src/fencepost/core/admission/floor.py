"""What renewals leave to those who lost their lease: a tenth of all dispatches, while every renewal has time for it.

Renewals go first, since whoever renews would lose a lease that the others have lost already. Where the brake has
lowered the limit on a busy machine they may be all that it lets through, period after period: each is late, none too
late, and whoever lost its lease never has a turn. So a tenth goes to the line, but only while each renewal that is
ready would be answered a whole period before its lease ends, after all those that are more urgent. A host is checked
once a period: who still has that long may even miss an answer. A service that can't ask every host once in two periods
has nothing to leave: whom it let in would cost others their leases.

Nothing is saved up: a share that couldn't be given isn't given later.
"""

from collections.abc import Iterable

import msgspec

from fencepost.core.instant import SECOND, Instant


class Floor(msgspec.Struct):
    """What the line has earned of the next slot; changes in place."""

    share: float
    owed: float = 0.0

    def copy(self) -> "Floor":
        """The same, apart."""
        return msgspec.structs.replace(self)

    def kept(self, room: int, line: int, loads: Iterable[tuple[Instant, int]], after: Instant, rate: float) -> int:
        """Of so many slots, how many renewals leave to so many in line; none, unless all renewals have time.

        ``loads`` are how many renewals are ready that end by about each time, ``after`` when a period from now is over,
        ``rate`` is calls a second.
        """
        found = list(loads) if line else []
        if not found or any((at - after) * rate <= count * SECOND for at, count in found):
            self.owed = 0.0
            return 0
        self.owed += self.share * room
        kept = min(int(self.owed + 1e-9), line)
        self.owed = min(self.owed - kept, 1.0)
        return kept
