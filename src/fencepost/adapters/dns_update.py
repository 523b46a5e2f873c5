"""Dynamic updates as bytes (RFC 2136): one batch, one message, all of it or nothing.

For each change the prerequisites require exactly what its writer saw, by value (section 2.4.2) or by absence (section
2.4.3): the marker, the A set, the AAAA set. The server compares whole sets, ignoring order and TTL. Where no address
was seen, absence of a CNAME is required too: BIND answers NOERROR to adding an address beside one and adds nothing.
Where an address was seen none can stand.

The changes replace whole sets: delete the set, add the new records. A set that stays as it is isn't sent; the marker
always is. An update of 200 endpoints takes a general library 28 to 73 ms; put together from bytes it takes 1 to 2.

SRV records and their hosts (:mod:`fencepost.core.service`) are replaced likewise, in the same message. Of them nothing
is required, save at a service's name that the marker seen doesn't name: there must stand what was seen, and no CNAME.

An update that would be larger than a message is refused here, with the numbers, before anything is sent.
"""

from functools import lru_cache
from socket import AF_INET, AF_INET6, AddressFamily, inet_pton
from typing import TypeAlias

from fencepost.adapters.dns_mirror import srv_data
from fencepost.adapters.dns_signature import SIGNATURE_BYTES_MAX
from fencepost.adapters.dns_wire import header, name_to_wire
from fencepost.core.dns_numbers import HEADER_BYTES, MESSAGE_MAX, UPDATE, join_strings
from fencepost.core.fence import Foreign, Marker
from fencepost.core.names import MARKER_LABEL, WILDCARD_LABEL
from fencepost.core.service import claimed, hosts_of, names_service, service_of
from fencepost.core.zone import Batch, Change, Live
from fencepost.ports import Refused

MARKER_TTL_S = 60
"""How long resolvers may keep a marker. We read the domain itself, so nothing depends on it."""

_APEX = b"\xc0\x0c"  # a pointer to offset 12: the zone section names the domain there
_POINTED_MAX = 0x4000  # a pointer holds 14 bits
_MARKER_HEAD = bytes((len(MARKER_LABEL),)) + MARKER_LABEL.encode()
_WILDCARD_HEAD = bytes((len(WILDCARD_LABEL),)) + WILDCARD_LABEL.encode()
_STAR = b"\x01*"
_A, _AAAA, _TXT, _CNAME, _SRV = b"\x00\x01", b"\x00\x1c", b"\x00\x10", b"\x00\x05", b"\x00\x21"
_STANDS = b"\x00\x01\x00\x00\x00\x00"  # class IN, TTL 0: exists, with this value
_ABSENT = b"\x00\xfe\x00\x00\x00\x00\x00\x00"  # class NONE, TTL 0, no data: doesn't exist
_DELETE = b"\x00\xff\x00\x00\x00\x00\x00\x00"  # class ANY, TTL 0, no data: delete the set
_A_STANDS = _A + _STANDS + b"\x00\x04"
_AAAA_STANDS = _AAAA + _STANDS + b"\x00\x10"
_MARKER_ADDED = _TXT + b"\x00\x01" + MARKER_TTL_S.to_bytes(4, "big")


def pack_update(message_id: int, domain: str, batch: Batch) -> bytes:
    """The message, unsigned. Raises :class:`~fencepost.ports.Refused` if it would be larger than a message may be."""
    zone = name_to_wire(domain) + b"\x00\x06\x00\x01"
    at, cut = HEADER_BYTES + len(zone), len(domain) + 1
    parts, owners = [zone], []
    required = 0
    for change in batch:
        owner = _owners(change.name[:-cut], at)
        owners.append(owner)
        piece, count = _requirements(change.seen, owner)
        if change.content.srv is not None:
            more, also = _service_required(change, owner)
            piece, count = piece + more, count + also
        parts.append(piece)
        at += len(piece)
        required += count
    changed = 0
    for change, owner in zip(batch, owners, strict=True):
        piece, count = _replacements(change, owner)
        if change.content.srv is not None or claimed(change.seen.marker) is not None:
            beside = _beside(change, owner)
            piece, count = piece + b"".join(beside), count + len(beside)
        parts.append(piece)
        at += len(piece)
        changed += count
    if at + SIGNATURE_BYTES_MAX > MESSAGE_MAX:
        raise _too_big(domain, batch, at + SIGNATURE_BYTES_MAX)
    return header(message_id, UPDATE, (1, required, changed, 0)) + b"".join(parts)


def pack_removal(message_id: int, domain: str, seen: Live) -> bytes:
    """The message, unsigned, that deletes one endpoint's marker and addresses if they stand exactly as seen."""
    zone = name_to_wire(domain) + b"\x00\x06\x00\x01"
    owner = _owners(seen.name[: -len(domain) - 1], HEADER_BYTES + len(zone))
    required, count = _requirements(seen, owner)
    _, marker, own = owner
    gone = [marker + _TXT + _DELETE, own + _A + _DELETE, own + _AAAA + _DELETE]
    old = claimed(seen.marker)
    if old is not None and old.srv is not None:
        gone.append(_labels(old.srv.service) + own + _SRV + _DELETE)
        gone += [_labels(host.label) + own + rtype + _DELETE for host in hosts_of(old) for rtype in (_A, _AAAA)]
    return header(message_id, UPDATE, (1, count, len(gone), 0)) + zone + required + b"".join(gone)


def _too_big(domain: str, batch: Batch, size: int) -> Refused:
    if len(batch) > 1:
        return Refused(
            f"an update of {len(batch)} endpoints takes {size:,} bytes; a DNS message holds {MESSAGE_MAX:,}",
            where=f"UPDATE of {domain}",
            hint="split the batch",
            unchanged=True,
        )
    change = batch[0]
    old, new = len(change.seen.a) + len(change.seen.aaaa), len(change.content.a) + len(change.content.aaaa)
    return Refused(
        f"{change.name} is too big for one update: {old} addresses now and {new} then, with both markers, take "
        f"{size:,} bytes; a DNS message holds {MESSAGE_MAX:,}",
        where=f"UPDATE of {domain}: {change.name}",
        hint="spread its addresses over more endpoints",
        unchanged=True,
    )


_Owners: TypeAlias = tuple[bytes, bytes, bytes]
"""How an endpoint's names are written: its marker's the first time, its marker's afterwards, its own."""


def _owners(labels: str, at: int) -> _Owners:
    """The names of the endpoint ``labels`` + domain, whose marker's name is first written at offset ``at``.

    The endpoint's own name is the end of its marker's, so both are pointed at, while pointers reach so far.
    """
    head = b"".join([bytes((len(label),)) + label.encode() for label in labels.split(".")]) if labels else b""
    own = head + _APEX
    if head[:2] == _STAR:
        marker = _MARKER_HEAD + _WILDCARD_HEAD + own[2:]
    else:
        marker = _MARKER_HEAD + own
        if at + len(_MARKER_HEAD) < _POINTED_MAX:
            return marker, (0xC000 | at).to_bytes(2, "big"), (0xC000 | at + len(_MARKER_HEAD)).to_bytes(2, "big")
    return marker, (0xC000 | at).to_bytes(2, "big") if at < _POINTED_MAX else marker, own


def _requirements(seen: Live, owners: _Owners) -> tuple[bytes, int]:
    """The prerequisites of one change, and how many. The marker's come first: there its name is written."""
    marker, again, own = owners
    if seen.marker is None:
        parts = [marker + _TXT + _ABSENT]
    else:
        parts = []
        for data in _marker_data(seen.marker):
            parts.append(marker + _TXT + _STANDS + len(data).to_bytes(2, "big") + data)
            marker = again
    if seen.a:
        start = own + _A_STANDS
        parts += [start + inet_pton(AF_INET, text) for text in seen.a]
    else:
        parts.append(own + _A + _ABSENT)
    if seen.aaaa:
        start = own + _AAAA_STANDS
        parts += [start + inet_pton(AF_INET6, text) for text in seen.aaaa]
    else:
        parts.append(own + _AAAA + _ABSENT)
    if not seen.a and not seen.aaaa:
        parts.append(own + _CNAME + _ABSENT)
    return b"".join(parts), len(parts)


def _replacements(change: Change, owners: _Owners) -> tuple[bytes, int]:
    """The deletions and additions of one change, and how many."""
    seen, value, (_, marker, own) = change.seen, change.content, owners
    data = join_strings(change.marker.encode())
    parts = [marker + _MARKER_ADDED + len(data).to_bytes(2, "big") + data]
    if seen.marker is not None:
        parts.insert(0, marker + _TXT + _DELETE)
    for rtype, family, size, old, new in (
        (_A, AF_INET, b"\x00\x04", seen.a, value.a),
        (_AAAA, AF_INET6, b"\x00\x10", seen.aaaa, value.aaaa),
    ):
        if old == new and (seen.ttl == value.ttl or not new):
            continue
        if old:
            parts.append(own + rtype + _DELETE)
        if new:
            parts += [
                own + each for each in _added(rtype + b"\x00\x01" + value.ttl.to_bytes(4, "big"), size, family, new)
            ]
    return b"".join(parts), len(parts)


@lru_cache(256)
def _added(head: bytes, size: bytes, family: AddressFamily, addresses: tuple[str, ...]) -> tuple[bytes, ...]:
    """Address records after their owner. Kept, since the endpoints of a pool have the same."""
    return tuple(head + size + inet_pton(family, text) for text in addresses)


def _service_required(change: Change, owners: _Owners) -> tuple[bytes, int]:
    """The prerequisites at a service's name that no marker names yet, and how many."""
    srv = change.content.srv
    if srv is None or names_service(change.seen.marker, srv):
        return b"", 0
    own = _labels(srv.service) + owners[2]
    records = change.seen.service(srv.service).records
    if not records:
        return own + _SRV + _ABSENT + own + _CNAME + _ABSENT, 2
    stand = [own + _SRV + _STANDS + _sized(srv_data(record)) for record in records]
    return b"".join(stand), len(stand)


def _beside(change: Change, owners: _Owners) -> list[bytes]:
    """The deletions and additions at a service's name and at its hosts.

    Where a CNAME is known to stand nothing is sent: BIND and Knot would leave it out, PowerDNS refuses the whole.
    """
    seen, value, own = change.seen, change.content, owners[2]
    old, wanted = claimed(seen.marker), service_of(change.name, change.content)
    ttl = value.ttl.to_bytes(4, "big")
    parts: list[bytes] = []
    if old is not None and old.srv is not None and (wanted is None or old.srv.service != wanted.label):
        parts.append(_labels(old.srv.service) + own + _SRV + _DELETE)
    if wanted is not None and (there := seen.service(wanted.label)) != wanted and not there.other:
        name = _labels(wanted.label) + own
        parts.append(name + _SRV + _DELETE)
        parts += [name + _SRV + b"\x00\x01" + ttl + _sized(srv_data(record)) for record in wanted.records]
    stands = {host.label: host for host in seen.hosts}
    kept = {host.label for host in hosts_of(value)}
    for host in hosts_of(old) if old is not None else ():
        if host.label not in kept:
            name = _labels(host.label) + own
            parts += [name + _A + _DELETE, name + _AAAA + _DELETE]
    for host in hosts_of(value):
        if (found := stands.get(host.label)) != host and (found is None or not found.other):
            name = _labels(host.label) + own
            parts += [name + _A + _DELETE, name + _AAAA + _DELETE]
            start = b"\x00\x01" + ttl
            parts += [name + _A + start + b"\x00\x04" + inet_pton(AF_INET, text) for text in host.a]
            parts += [name + _AAAA + start + b"\x00\x10" + inet_pton(AF_INET6, text) for text in host.aaaa]
    return parts


def _labels(text: str) -> bytes:
    return b"".join([bytes((len(label),)) + label.encode() for label in text.split(".")])


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _marker_data(marker: Marker | Foreign) -> list[bytes]:
    if isinstance(marker, Marker):
        return [join_strings(marker.encode())]
    return [join_strings(strings) for strings in marker.raw]
