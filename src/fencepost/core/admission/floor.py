"""What renewals leave to those who lost their lease: a tenth of all dispatches, while every renewal has time for it.

Renewals go first, since whoever renews would lose a lease that the others have lost already. Where the brake has
lowered the limit on a busy machine they may be all that it lets through, period after period: each is late, none too
late, and whoever lost its lease never has a turn. So a tenth goes to the line, but only while each renewal that is
ready would be answered a whole period before its lease ends, after all those that are more urgent. A host is checked
once a period: who still has that long may even miss an answer. A service that can't ask every host once in two periods
has nothing to leave: whom it let in would cost others their leases.

Nothing is saved up: a share that couldn't be given isn't given later.
"""

import msgspec


class Floor(msgspec.Struct):
    """What the line has earned of the next slot; changes in place."""

    share: float
    owed: float = 0.0

    def copy(self) -> "Floor":
        """The same, apart."""
        return msgspec.structs.replace(self)

    def forget(self) -> None:
        """Nobody stands in line, or renewals have no time to spare."""
        self.owed = 0.0

    def kept(self, room: int, most: int) -> int:
        """Of so many slots, how many renewals leave to the line, at most ``most``."""
        self.owed += self.share * room
        kept = min(int(self.owed + 1e-9), most)
        self.owed = min(self.owed - kept, 1.0)
        return kept
