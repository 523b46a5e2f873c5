"""Judges whether an endpoint can be changed at all: the fence needs the whole change in one transaction.

The worst change replaces every address by another and a marker that carries the content by one that does. What a
provider takes in one transaction is its :class:`~fencepost.core.traffic.room.Room`.
"""

from functools import lru_cache

from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content
from fencepost.core.service import HOST_LABEL_MAX
from fencepost.core.traffic.room import Room, marker_characters
from fencepost.settings.schema import Endpoint, Pool

MESSAGE_MAX = 65_535
"""Bytes of one DNS message over TCP, and so of one UPDATE (RFC 1035, 4.2.2)."""

_V4_MOST, _V6_MOST = len("255.255.255.255"), len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
_LARGEST = 4_000_000_000
_SPREAD = "spread the pool over several endpoints"


def too_big(endpoint: Endpoint, pool: Pool, room: Room) -> str:
    """Say why no transaction holds a change of this endpoint, with the numbers; "" if one does."""
    v6 = sum(target.family == "AAAA" for target in pool.targets)
    v4 = len(pool.targets) - v6
    if room.octets:
        size = update_bytes(endpoint, v4, v6)
        if size <= MESSAGE_MAX:
            return ""
        return (
            f"endpoint {endpoint.name} is too big: changing its {v4 + v6} addresses takes {size} bytes "
            f"(old, new{', SRV records' if endpoint.srv else ''} and marker), one UPDATE holds {MESSAGE_MAX}; {_SPREAD}"
        )
    return _over(endpoint, v4 * ("A" in endpoint.records), v6 * ("AAAA" in endpoint.records), room)


def _over(endpoint: Endpoint, v4: int, v6: int, room: Room) -> str:
    """Why records, characters, a record set or the marker's text are more than the provider takes; "" if none is."""
    text = marker_text(v4, v6)
    for had, most, what in (
        (v4, room.per_set, "addresses in its A record set, the provider holds"),
        (v6, room.per_set, "addresses in its AAAA record set, the provider holds"),
        (2 * (v4 + v6 + 1), room.records, "records to change at most (old, new and markers), one batch holds"),
        (
            2 * (v4 * _V4_MOST + v6 * _V6_MOST + text),
            room.characters,
            "characters to change at most (old, new and markers), one batch holds",
        ),
        (text, room.text, "characters in a marker that carries its addresses, one TXT value holds"),
    ):
        if most and had > most:
            return f"endpoint {endpoint.name} is too big: it has {had} {what} {most}; {_SPREAD}"
    return ""


@lru_cache(maxsize=256)
def marker_text(v4: int, v6: int) -> int:
    """Give the most characters of the text of a marker that carries so many addresses: longest owner and numbers."""
    carried = Content(tuple("0.0.0.0" for _ in range(v4)), tuple("::" for _ in range(v6)), (), 86_400)  # noqa: S104
    hold = Hold("withdraw", _LARGEST, _LARGEST)
    longest = Marker("o" * 32, "beef", Generation(_LARGEST, _LARGEST), "0" * 16, _LARGEST, hold, carried)
    return marker_characters(longest.encode())


def update_bytes(endpoint: Endpoint, v4: int, v6: int) -> int:
    """Give the bytes that replacing every address of an endpoint takes in one RFC 2136 UPDATE, names compressed.

    Each old record stands in it as a prerequisite and each new one as an addition (12 bytes and the address; a
    wildcard's name is not part of its marker's, so it is written out each time), the old and the new marker with packed
    content (5 or 17 bytes an address, in base64), and 1,024 for header, names, TSIG.
    """
    v4, v6 = v4 * ("A" in endpoint.records), v6 * ("AAAA" in endpoint.records)
    name = len(endpoint.name) if endpoint.name.startswith("*") else 0
    records = 2 * ((name + 12 + 4) * v4 + (name + 12 + 16) * v6)
    if endpoint.srv:
        records += service_bytes(endpoint, v4, v6)
    ports = 2 * (v4 + v6) if endpoint.srv else 0
    packed = 4 * -(-(5 * v4 + 17 * v6 + ports) // 3)
    return 1024 + 2 * len(endpoint.name) + records + 2 * (packed + packed // 255 + 256)


def service_bytes(endpoint: Endpoint, v4: int, v6: int) -> int:
    """Give the bytes that replacing all SRV records and hosts of an endpoint takes in one UPDATE.

    A SRV record's target is never compressed (RFC 2782). The old set may have to be required, record by record, and is
    deleted as one; at each old and new host both families are.
    """
    label, target = len(endpoint.srv) + 4, len(endpoint.name) + 2
    four, six = 1 + len("a-255-255-255-255"), 1 + HOST_LABEL_MAX
    pointers = v4 * (label + 16 + four + target) + v6 * (label + 16 + six + target)
    deleted = 4 * (v4 * (four + 12) + v6 * (six + 12)) + 2 * (label + 10)
    return 2 * pointers + deleted + v4 * (four + 12 + 4) + v6 * (six + 12 + 16)
