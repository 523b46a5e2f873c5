"""How much one transaction of a DNS provider holds, and how much of it a change takes.

Providers count in different things: RFC 2136 in bytes of a message, Route 53 in resource records and in characters of
their values, old ones and new ones alike. Where a batch is cut is decided by these numbers alone, so the enactor needs
no provider's name. The adapter counts again, exactly, and refuses what doesn't fit.
"""

from msgspec import Struct

from fencepost.core.fence import Foreign, Marker
from fencepost.core.service import HOST_LABEL_MAX, claimed
from fencepost.core.zone import Batch, Change

SERVICE_MAX = len("_") + 15 + len("._sctp") + 2
"""Bytes of a service's two labels (RFC 6335 section 5.1 gives its name 15 characters)."""


class Room(Struct, frozen=True, gc=False):
    """What one transaction holds; 0 is no limit of that kind.

    ``endpoints`` is the most changes, ``octets`` the most bytes of an RFC 2136 message, ``records`` the most resource
    records that are taken away or put, ``characters`` the most characters of their values as text. Two are about a
    single record set: ``per_set`` the most records in one, ``text`` the most characters in one TXT value.
    """

    endpoints: int = 200
    octets: int = 48_000
    records: int = 0
    characters: int = 0
    per_set: int = 0
    text: int = 0

    def holds(self, load: "Load") -> bool:
        """Whether this much fits."""
        return (
            (not self.octets or load.octets <= self.octets)
            and (not self.records or load.records <= self.records)
            and (not self.characters or load.characters <= self.characters)
        )


class Load(Struct, frozen=True, gc=False):
    """How much some changes take, in each of the things that providers count. Upper bounds, all three."""

    octets: int = 0
    records: int = 0
    characters: int = 0

    def __add__(self, other: "Load") -> "Load":
        return Load(self.octets + other.octets, self.records + other.records, self.characters + other.characters)


EVERYTHING = Room(octets=1, records=1, characters=1)
"""A room that counts in all three."""


def load_of(change: Change, room: Room = EVERYTHING) -> Load:
    """What one change takes of what the room is limited in: 0 for the rest, which costs time to reckon.

    All that was seen is required or taken away, all that is new is put.
    """
    octets = wire_size(change) if room.octets else 0
    if not room.records and not room.characters:
        return Load(octets)
    seen, value = change.seen, change.content
    addresses = (*seen.a, *seen.aaaa, *value.a, *value.aaaa)
    old_records, old_characters = _text(seen.marker)
    new_records, new_characters = _text(change.marker)
    return Load(
        octets,
        len(addresses) + old_records + new_records,
        sum(map(len, addresses)) + old_characters + new_characters,
    )


def transactions(batch: Batch, room: Room) -> tuple[Batch, ...]:
    """A batch cut, in its order, into pieces that each fit one transaction; one change that doesn't stands alone."""
    found: list[Batch] = []
    begun, load = 0, Load()
    for at, change in enumerate(batch):
        more = load_of(change, room)
        load += more
        if at > begun and (at - begun >= room.endpoints > 0 or not room.holds(load)):
            found.append(batch[begun:at])
            begun, load = at, more
    return (*found, batch[begun:])


def wire_size(change: Change) -> int:
    """An upper bound of the change's bytes in an RFC 2136 message: nothing compressed."""
    name = len(change.name) + 16
    seen = change.seen
    v4 = len(seen.a) + len(change.content.a)
    v6 = len(seen.aaaa) + len(change.content.aaaa)
    texts = text_size(seen.marker, name) + text_size(change.marker, name)
    if change.content.srv is not None or claimed(seen.marker) is not None:
        texts += service_size(change, name)
    return texts + 8 * (name + 12) + v4 * (name + 14) + v6 * (name + 26)


def service_size(change: Change, name: int) -> int:
    """An upper bound of the bytes that SRV records and hosts take, where a name below takes ``name`` and its label."""
    seen, srv, old = change.seen, change.content.srv, claimed(change.seen.marker)
    required = seen.service(srv.service).records if srv is not None else ()
    each = name + HOST_LABEL_MAX + 12
    pointer = name + SERVICE_MAX + 12 + 6 + each
    hosts = 2 * len(change.content.addresses) + (2 * len(old.addresses) if old is not None else 0)
    put = len(change.content.addresses) * (pointer + each + 16)
    return put + hosts * each + sum(pointer + len(record.target) for record in required) + 4 * (name + SERVICE_MAX + 12)


def text_size(marker: Marker | Foreign | None, name: int) -> int:
    """An upper bound of the bytes of a marker's TXT record, whose own name takes ``name``."""
    if not isinstance(marker, Marker):
        return name + 12
    return name + 12 + sum(len(string) + 1 for string in marker.encode())


def marker_characters(strings: tuple[bytes, ...]) -> int:
    """The characters of one TXT value as text, each string in quotes, one space between two; nothing escaped."""
    return sum(len(string) + 3 for string in strings) - 1


def _text(marker: Marker | Foreign | None) -> tuple[int, int]:
    """How many TXT records stand there, and their characters; an escaped byte is four."""
    if marker is None:
        return 0, 0
    if isinstance(marker, Marker):
        return 1, marker_characters(marker.encode())
    return len(marker.raw), sum(4 * len(string) + 3 for strings in marker.raw for string in strings)
