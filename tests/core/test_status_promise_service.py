"""The observer's judgement of SRV records: they are stated by the marker, as the addresses are."""

from msgspec import structs
from test_status_promise_watch import NAME, START, enacted

from fencepost.core.instant import SECOND
from fencepost.core.record_set import Content, Srv, content
from fencepost.core.service import Service, service_of
from fencepost.core.zone import Live
from fencepost.roles.status.promise_watch import PromiseWatch, Seen, Watched

HTTP = "_http._tcp"


def serving(*addresses: str) -> Content:
    """A content with a service."""
    return structs.replace(content(addresses, 5), srv=Srv(HTTP, (80,)))


def service(value: Content) -> Service:
    """What its marker states."""
    found = service_of(NAME, value)
    assert found is not None
    return found


OLD, NEW = serving("192.0.2.1", "192.0.2.2"), serving("192.0.2.2", "192.0.2.3")


class Looking:
    """A watch that is shown one look a second."""

    def __init__(self) -> None:
        self.watch = PromiseWatch("demo")
        self.now = START

    def look(self, live: Live, stands: Service | None) -> bool:
        """Addresses and marker as given, and these SRV records."""
        self.now += SECOND
        seen = Seen(live.marker, live.a, live.aaaa, live.ttl, live.marker, stands)
        return self.watch.observe(Watched(NAME, "4"), seen, self.now)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """never_empty and never_torn as checked, torn unsure, altered."""
        watch = self.watch
        return watch.checked["never_empty"], watch.checked["never_torn"], watch.unsure["never_torn"], watch.altered


def test_as_stated_each_counts_twice() -> None:
    """Once for addresses, once for the service; where nobody asked, or the marker names none, once."""
    looking = Looking()
    assert not looking.look(enacted(1, OLD), service(OLD))
    assert looking.counts == (2, 2, 0, 0)
    assert not looking.look(enacted(1, OLD), None)
    assert looking.counts == (3, 3, 0, 0)
    plain = content(("192.0.2.1",), 5)
    assert not looking.look(enacted(2, plain), Service(HTTP))
    assert looking.counts == (4, 4, 0, 0)


def test_an_emptied_service_counts_as_time_without_an_answer() -> None:
    """Another writer took the records away: our own writers never do, so no promise is broken."""
    looking = Looking()
    looking.look(enacted(1, OLD), service(OLD))
    for _ in range(3):
        assert looking.look(enacted(1, OLD), Service(HTTP))
    assert not looking.look(enacted(1, OLD), service(OLD))
    assert looking.watch.emptied_ns(NAME, looking.now) == 3 * SECOND
    assert looking.watch.violations == []
    assert not any(looking.watch.broken.values())


def test_altered_ones_are_told_once_each() -> None:
    """Another weight, another target, another TTL; and again under the next marker."""
    looking = Looking()
    looking.look(enacted(1, OLD), service(OLD))
    for number, other in enumerate(
        (
            structs.replace(service(OLD), records=service(OLD).records[:1]),
            structs.replace(service(OLD), ttl=6),
            service(serving("192.0.2.9")),
        ),
        1,
    ):
        for _ in range(2):
            assert looking.look(enacted(1, OLD), other)
        assert looking.counts[2:] == (0, number)
    assert looking.look(enacted(2, NEW), service(serving("192.0.2.9")))
    assert looking.counts[2:] == (0, 4)


def test_an_earlier_set_beside_a_newer_marker_can_not_be_told() -> None:
    """A torn write, or somebody who put the older set back: the witness isn't asked about SRV records."""
    looking = Looking()
    looking.look(enacted(1, OLD), service(OLD))
    for _ in range(2):
        assert looking.look(enacted(2, NEW), service(OLD))
    assert looking.counts[2:] == (1, 0)
    assert not looking.look(enacted(2, NEW), service(NEW))
    assert looking.look(enacted(2, NEW), service(OLD)), "after the new one was seen it is an alteration"
    assert looking.counts[2:] == (1, 1)
