"""What a DNS server remembers of one endpoint, for tests: each transaction as a difference (RFC 1995)."""

from msgspec import structs

from fencepost.core.differences import Difference, Records
from fencepost.core.zone import Live
from fencepost.roles.status.promise_watch import PromiseWatch


def difference(before: Live, after: Live, serial: int, step: int = 1) -> Difference:
    """What a server's journal has for a change: a family whose TTL changed went and came whole."""
    old, new = Records.of(before), Records.of(after)
    same = before.ttl == after.ttl
    a, aaaa = (old.a & new.a, old.aaaa & new.aaaa) if same else (frozenset(), frozenset())
    texts = old.texts & new.texts
    gone = structs.replace(old, texts=old.texts - texts, a=old.a - a, aaaa=old.aaaa - aaaa)
    come = structs.replace(new, texts=new.texts - texts, a=new.a - a, aaaa=new.aaaa - aaaa)
    return Difference(serial, serial + step, gone, come)


class Journal:
    """The differences so far; the serial counts them. ``reaches`` is the oldest serial that it can tell about."""

    def __init__(self, name: str) -> None:
        self.live = Live(name)
        self.found: list[Difference] = []
        self.reaches = 0

    @property
    def serial(self) -> int:
        """The newest serial."""
        return len(self.found)

    def add(self, live: Live) -> None:
        """A transaction that left ``live``; nothing, if nothing changed."""
        if live != self.live:
            self.found.append(difference(self.live, live, self.serial))
            self.live = live

    def testify(self, watch: PromiseWatch) -> None:
        """Answer all that is suspected."""
        suspected, watch.suspected = watch.suspected, []
        for each in suspected:
            since = each.base.serial if each.base is not None else -1
            watch.settle(each, self.found[since:] if since >= self.reaches else None)
