"""The janitor: deletes rows that nothing can need any more.

Clean-up is a write, and in October 2025 it was the write that emptied the endpoint: it judged by age alone. Here a row
may go only if the store holds a newer row of the same endpoint *and* a marker of ours at least as new stands in DNS, so
what is live, newest or pinned is never deleted, whatever its age. The delete is conditional on the row's nonce: after a
wiped store the same generation may come again, and the new row isn't the one that was judged. Beyond that, enough
generations and days are kept for a rollback. Readers of DNS never need a row: addresses stand in the endpoint itself.
"""

from msgspec import Struct

from fencepost.core.effects import DeleteRow, Effect, ReadDns, ReadSpent, Wake
from fencepost.core.events import Deleted, DnsRead, Event, Failed, Failure, Spent, SpentRead, Woke
from fencepost.core.instant import DAY, MINUTE, Duration, Instant


class JanitorSettings(Struct, frozen=True, gc=False):
    """What is kept for rollback: at least so many generations of each endpoint *and* so long."""

    keep_generations: int = 50
    keep_for: Duration = 7 * DAY
    idle: Duration = MINUTE


class Janitor(Struct, gc=False):
    """The rows judged in this pass and not deleted yet."""

    settings: JanitorSettings
    spent: tuple[DeleteRow, ...] = ()

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """One step; ``now`` is nanoseconds since 1970, compared only with the store's own times of making."""
        match event:
            case Woke():
                return (ReadDns(),)
            case DnsRead():
                return (ReadSpent(),)
            case SpentRead(rows=rows):
                self.spent = tuple(
                    DeleteRow(spent.row.name, spent.row.generation, spent.row.nonce)
                    for spent in rows
                    if may_go(spent, self.settings, now)
                )
                return (self.next(),)
            case Deleted():
                return (self.next(),)
            case Failed(failure=failure):
                self.spent = ()
                return (Wake(self.settings.idle if failure is Failure.MISCONFIGURED else self.settings.idle // 4),)
            case _:
                raise TypeError(f"a janitor is never told {type(event).__name__}")

    def next(self) -> Effect:
        """The next deletion of the pass, or sleep."""
        if not self.spent:
            return Wake(self.settings.idle)
        first, self.spent = self.spent[0], self.spent[1:]
        return first


def may_go(spent: Spent, settings: JanitorSettings, now: Instant) -> bool:
    """Whether an old row is needed neither by DNS nor for a rollback."""
    row = spent.row
    if not superseded(spent):
        return False
    return spent.place >= settings.keep_generations and now - row.made_at >= settings.keep_for


def superseded(spent: Spent) -> bool:
    """Whether a newer row is in the store and a marker of ours, at least as new as that one, in DNS.

    DNS is read before the rows, so the marker was at least this new when the rows were listed; it never falls below.
    """
    return spent.row.generation < spent.newest and spent.live is not None and spent.live >= spent.newest
