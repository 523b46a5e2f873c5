"""The mirror of one domain: each endpoint as last read, built from a whole transfer or moved on by what changed.

A name's records become one :class:`~fencepost.core.zone.Live`; nothing else is kept, so that 100,000 endpoints take
some 60 MB. That loses nothing: addresses and markers have exactly one spelling (:meth:`Marker.encode` gives back the
very bytes parsed), so a Live can be taken apart into records again, changed, and put together. The two things a Live
can't say (families with different TTLs, and the data of records that aren't ours) lie in two small tables beside.

Names that we would refuse to publish, and types that we neither write nor stumble over (RRSIG, NSEC, MX, TXT at the
name itself), are passed over. CNAME, and NS below the apex, are kept as ``other``: beside the one no address can stand
(RFC 1034 section 3.6.2), and below the other none is answered.

SRV records at ``_service._proto.<endpoint>`` belong to that endpoint's Live, and so do its hosts
(:mod:`fencepost.core.service`), whose names are names like all others here and may have Lives of their own: whatever
changes at such a name puts the endpoint's Live together anew. An endpoint without any has nothing of this.
"""

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv6Address

from msgspec.structs import replace

from fencepost.core.dns_numbers import AAAA, CNAME, NS, SRV, TXT, A, Malformed, join_strings, split_strings
from fencepost.core.fence import Foreign, Marker
from fencepost.core.names import MARKER_LABEL, NAME_MAX, WILDCARD_LABEL, normalise
from fencepost.core.service import Host, Pointer, Service, claimed, concerned, endpoint_beside, label_of
from fencepost.core.zone import Live

_ADDRESSES = frozenset((A, AAAA))
_TYPE_NAMES = {CNAME: "CNAME", NS: "NS"}
_MARKER = b"\x0a" + MARKER_LABEL.encode()
_WILDCARD = b"\x09" + WILDCARD_LABEL.encode()
_TURNED = (_MARKER, _WILDCARD, b"\x01*")
"""Below the marker's label these stand for something else than alone (or for nothing)."""
_BESIDE = ("_", "a-", "aaaa-")
"""What the names begin with that may belong beside another endpoint: services and their hosts."""
_NOTHING = Live("")
_LABEL = re.compile(rb"[a-z0-9_-]+|\*")
_CACHED_MAX = 4096
_ODD = re.compile(rb"[^a-z0-9_*-]")
_ESCAPE = re.compile(rb"\\([0-9]{3})")


class OutOfStep(Exception):  # noqa: N818  a finding about ourselves
    """An incremental change doesn't fit what the mirror holds: read the whole domain."""


class Parts:
    """One endpoint's records, taken apart: what a Live is made from. TTLs are those of the last record seen."""

    __slots__ = ("a", "aaaa", "other", "srv", "ttl_a", "ttl_aaaa", "ttl_srv", "txt")

    def __init__(self) -> None:
        self.txt: Sequence[bytes] = ()
        self.a: Sequence[bytes] = ()
        self.aaaa: Sequence[bytes] = ()
        self.other: list[tuple[int, bytes]] = []
        self.srv: Sequence[bytes] = ()
        self.ttl_a = 0
        self.ttl_aaaa = 0
        self.ttl_srv = 0

    def add(self, rtype: int, ttl: int, records: Sequence[bytes]) -> None:
        """More records of one type, each once; one that stands already only brings its TTL (RFC 2181 section 5)."""
        if rtype == A:
            self.a, self.ttl_a = self._with(self.a, records) if self.a else records, ttl
        elif rtype == AAAA:
            self.aaaa, self.ttl_aaaa = self._with(self.aaaa, records) if self.aaaa else records, ttl
        elif rtype == SRV:
            self.srv, self.ttl_srv = self._with(self.srv, records), ttl
        elif rtype in _TYPE_NAMES:
            self.other += [(rtype, data) for data in dict.fromkeys(records) if (rtype, data) not in self.other]
        else:
            self.txt = self._with(self.txt, records) if self.txt else records

    def remove(self, rtype: int, records: Sequence[bytes]) -> None:
        """Records of one type less. Raises :class:`OutOfStep` if one wasn't there."""
        try:
            if rtype in _TYPE_NAMES:
                for data in records:
                    self.other.remove((rtype, data))
            elif rtype == A:
                self.a = self._without(self.a, records)
            elif rtype == AAAA:
                self.aaaa = self._without(self.aaaa, records)
            elif rtype == SRV:
                self.srv = self._without(self.srv, records)
            else:
                self.txt = self._without(self.txt, records)
        except ValueError:
            raise OutOfStep from None

    @staticmethod
    def _with(stands: Sequence[bytes], more: Sequence[bytes]) -> Sequence[bytes]:
        return (*stands, *[data for data in more if data not in stands])

    @staticmethod
    def _without(stands: Sequence[bytes], gone: Sequence[bytes]) -> Sequence[bytes]:
        if stands == gone:
            return ()
        left = list(stands)
        for data in gone:
            left.remove(data)
        return left


class Mirror:
    """The endpoints of one domain by name, as of one serial. ``owner`` is ours, for telling whose a stray marker is."""

    def __init__(self, domain: str, owner: str) -> None:
        self.domain = domain
        self.owner = owner
        self.serial = -1
        self.lives: dict[str, Live] = {}
        self.services: dict[str, dict[str, Service]] = {}
        """By endpoint and label: the SRV sets beside endpoints, whether or not one stands there."""
        self._also: dict[str, None] = {}
        self._uneven: dict[str, tuple[int, int]] = {}
        self._others: dict[str, tuple[tuple[int, bytes], ...]] = {}
        self._suffix = b"".join(bytes((len(label),)) + label.encode() for label in domain.split(".")) + b"\0"
        self._words: dict[str, str] = {}
        self._markers: dict[bytes, Marker] = {}
        self._texts: dict[tuple[bytes, ...], tuple[str, ...]] = {}

    def wanted(self, owner: bytes, rtype: int) -> bool:
        """Whether a record is one the mirror looks at. An address at a marker's own name is nobody's."""
        if rtype == TXT:
            return owner.startswith(_MARKER)
        if rtype in _ADDRESSES:
            return not owner.startswith(_MARKER)
        if rtype == SRV:
            second = owner[0] + 2
            return owner[1:2] == owner[second : second + 1] == b"_" and not owner.startswith(_MARKER)
        return rtype in _TYPE_NAMES and (rtype != NS or owner != self._suffix)

    def endpoint(self, owner: bytes) -> str | None:
        """The endpoint that an owner on the wire stands for, by its own name or its marker's; None if there is none."""
        if owner.startswith(_MARKER):
            owner = owner[len(_MARKER) :]
            if owner.startswith(_WILDCARD):
                owner = b"\x01*" + owner[len(_WILDCARD) :]
            elif owner.startswith((b"\x01*", _MARKER)):
                return None
        elif owner.startswith(_WILDCARD):
            return None
        if not owner.endswith(self._suffix):
            return None
        head = owner[: -len(self._suffix)]
        if head and head[0] == len(head) - 1 and _LABEL.fullmatch(head, 1) and len(owner) <= NAME_MAX + 2:
            return f"{head[1:].decode()}.{self.domain}"  # as most names are: one label below the domain, and plain
        labels, at = [], 0
        while at < len(head):
            end = at + 1 + head[at]
            label = head[at + 1 : end]
            if b"." in label or b"\\" in label or not label.isascii():
                return None  # as text it would look like another name
            labels.append(label.decode())
            at = end
        if at != len(head):
            return None  # the suffix matched in the middle of a label
        labels.append(self.domain)
        try:
            return normalise(".".join(labels))
        except ValueError:
            return None

    @staticmethod
    def other_owner(owner: bytes) -> bytes:
        """Of an endpoint's two owners the other one: its marker's for its own, and the other way round.

        b"" where they aren't simply one the end of the other.
        """
        own = owner[len(_MARKER) :] if owner.startswith(_MARKER) else b""
        if (own or owner).startswith(_TURNED):
            return b""
        return own or _MARKER + owner

    def read_before(self, data: bytes) -> bool:
        """Whether a marker of exactly these data has been read, so that nothing can be wrong with them."""
        return data in self._markers

    def take(self, owner: bytes, records: Sequence[tuple[int, int, Sequence[bytes]]]) -> None:
        """Add records (type, TTL, data of each) of one owner to what the mirror holds: a piece of a whole transfer."""
        name = self.endpoint(owner)
        if name is None:
            return
        stands = self.lives.get(name)
        marker_only = len(records) == 1 and records[0][0] == TXT
        if marker_only and stands is not None and stands.marker is None and not stands.other:
            # The common case: the addresses came first, and only the marker is new.
            marker = self._marker(records[0][2])
            if name not in self._uneven and name not in self.services and claimed(marker) is None:
                self.lives[name] = Live(name, marker, stands.a, stands.aaaa, stands.ttl)
                return
        parts = Parts() if stands is None and name[0] != "_" else self.parts(name)
        for rtype, ttl, data in records:
            parts.add(rtype, ttl, data)
        self.put(name, parts)

    def parts(self, name: str) -> Parts:
        """What stands at an endpoint, taken apart."""
        live, parts = self.lives.get(name), Parts()
        if live is None and not self.services and not self._others:
            return parts
        live = live or _NOTHING
        if isinstance(live.marker, Marker):
            parts.txt = (join_strings(live.marker.encode()),)
        elif live.marker is not None:
            parts.txt = tuple([join_strings(strings) for strings in live.marker.raw])
        parts.a = tuple([socket.inet_pton(socket.AF_INET, text) for text in live.a])
        parts.aaaa = tuple([socket.inet_pton(socket.AF_INET6, text) for text in live.aaaa])
        parts.ttl_a, parts.ttl_aaaa = self._uneven.get(name) or (live.ttl, live.ttl)
        parts.other = list(self._others.get(name, ()))
        if self.services and (service := self._service(name)) is not None:
            parts.srv, parts.ttl_srv = [srv_data(each) for each in service.records], service.ttl
        return parts

    def also_changed(self) -> list[str]:
        """Endpoints that changed by what stands beside them, since this was last asked."""
        found, self._also = list(self._also), {}
        return found

    def put(self, name: str, parts: Parts) -> bool:
        """Put an endpoint together from its parts; whether that changed it."""
        before = self.lives.get(name)
        marker = self._marker(parts.txt)
        a, aaaa = self._addresses(parts.a, four=True), self._addresses(parts.aaaa, four=False)
        if (
            not (parts.other or parts.srv or self._uneven or self._others or self.services or (a and aaaa))
            and (a or aaaa)
            and claimed(marker) is None
            and not name.startswith(_BESIDE)
        ):  # the common case: nothing but an endpoint, of one family
            self.lives[name] = live = Live(name, marker, a, aaaa, parts.ttl_a if a else parts.ttl_aaaa)
            return live != before
        other = tuple(sorted({_TYPE_NAMES[rtype] for rtype, _ in parts.other})) if parts.other else ()
        if self._uneven or self._others:
            self._uneven.pop(name, None)
            self._others.pop(name, None)
        if parts.other:
            self._others[name] = tuple(parts.other)
        live = self._with_beside(self._even(name, marker, a, aaaa, parts, other))
        nothing = marker is None and not a and not aaaa and not other and live == Live(name)
        if nothing:
            self.lives.pop(name, None)
        else:
            self.lives[name] = live
        if name.startswith(_BESIDE) and (endpoint := endpoint_beside(name)) is not None:
            self._stands_beside(endpoint, name[: -len(endpoint) - 1], parts, other)
        return not nothing if before is None else live != before

    def _even(
        self,
        name: str,
        marker: Marker | Foreign | None,
        a: tuple[str, ...],
        aaaa: tuple[str, ...],
        parts: Parts,
        other: tuple[str, ...],
    ) -> Live:
        """The Live of these records, for which one of two TTLs may have to be chosen."""
        live = Live(name, marker, a, aaaa, parts.ttl_a if a else parts.ttl_aaaa if aaaa else 0, other)
        if a and aaaa and parts.ttl_a != parts.ttl_aaaa:
            self._uneven[name] = (parts.ttl_a, parts.ttl_aaaa)
            if live.verified():
                # A Live has one TTL: show the one that isn't as published, so that the drift is seen and healed.
                return Live(name, marker, a, aaaa, parts.ttl_aaaa, other)
        return live

    def _service(self, name: str) -> Service | None:
        """The SRV set that stands at a name."""
        endpoint = endpoint_beside(name)
        return self.services.get(endpoint, {}).get(name[: -len(endpoint) - 1]) if endpoint is not None else None

    def _stands_beside(self, endpoint: str, label: str, parts: Parts, other: tuple[str, ...]) -> None:
        """What stands at a name beside an endpoint has changed: so has the endpoint's Live, if it has to do with it."""
        if label.startswith("_"):
            records = tuple(sorted(_pointer(data) for data in parts.srv))
            if records or other:
                self.services.setdefault(endpoint, {})[label] = Service(
                    label, parts.ttl_srv if records else 0, records, other
                )
            elif endpoint in self.services:
                self.services[endpoint].pop(label, None)
                if not self.services[endpoint]:
                    del self.services[endpoint]
        before = self.lives.get(endpoint) or Live(endpoint)
        live = self._with_beside(before)
        if live == before:
            return
        self._also[endpoint] = None
        if live == Live(endpoint):
            del self.lives[endpoint]
        else:
            self.lives[endpoint] = live

    def _with_beside(self, live: Live) -> Live:
        """With what stands beside it."""
        services = self.services.get(live.name)
        if services is None and claimed(live.marker) is None:
            return replace(live, services=(), hosts=()) if live.services or live.hosts else live
        found = tuple(sorted(services.values(), key=label_of)) if services is not None else ()
        hosts = []
        for label in sorted(concerned(live.name, live.marker, found)):
            name = f"{label}.{live.name}"
            stands = self.lives.get(name)
            if stands is not None and (not stands.empty or stands.other):
                ttls = set(self._uneven.get(name, (stands.ttl,)))
                ttl = stands.ttl if len(ttls) == 1 else -1
                hosts.append(Host(label, stands.a, stands.aaaa, ttl, stands.other))
        return replace(live, services=found, hosts=tuple(hosts))

    def _marker(self, records: Sequence[bytes]) -> Marker | Foreign | None:
        if not records:
            return None
        if len(records) == 1:
            found = self._parsed(records[0])
            if found is not None:
                return found
        raw = tuple(sorted(split_strings(record) for record in records))
        owners = [found.owner for strings in raw if (found := Marker.parse(strings)) and found.owner != self.owner]
        return Foreign(owners[0] if owners else "", raw)

    def _parsed(self, record: bytes) -> Marker | None:
        """The marker in a record. Endpoints of one plan and pool share one; of others, at least the words."""
        made = self._markers.get(record)
        if made is not None:
            return made
        found = Marker.parse(split_strings(record))
        if found is None:
            return None
        words = self._words
        if len(words) > _CACHED_MAX:
            words.clear()
        made = Marker(
            words.setdefault(found.owner, found.owner), words.setdefault(found.store, found.store), found.generation,
            found.digest, found.writes, found.hold, found.content,
        )  # fmt: skip
        if len(self._markers) > _CACHED_MAX:
            self._markers.clear()
        self._markers[record] = made
        return made

    def _addresses(self, packed: Sequence[bytes], *, four: bool) -> tuple[str, ...]:
        """Canonical text in numeric order. Endpoints of one pool share one tuple."""
        if not packed:
            return ()
        key = tuple(packed)
        found = self._texts.get(key)
        if found is None:
            ordered = tuple(sorted(packed))
            found = self._texts.get(ordered) or tuple([_text(data, 4 if four else 16) for data in ordered])
            if len(self._texts) < _CACHED_MAX:
                self._texts[key] = self._texts[ordered] = found
        return found


def _pointer(data: bytes) -> Pointer:
    """SRV data whose target is written in full (RFC 2782 has it so, and a transfer's reader makes it so)."""
    number = int.from_bytes
    return Pointer(number(data[:2], "big"), number(data[2:4], "big"), number(data[4:6], "big"), _name(data[6:]))


def srv_data(record: Pointer) -> bytes:
    """What :func:`_pointer` has read, exactly."""
    numbers = b"".join(number.to_bytes(2, "big") for number in record[:3])
    return numbers + _wire(record.target)


def _name(wire: bytes) -> str:
    """A name as text, of which nothing is lost: bytes that no name of ours has are written ``\\DDD``."""
    labels, at = [], 0
    while wire[at]:
        end = at + 1 + wire[at]
        label = wire[at + 1 : end]
        labels.append(_ODD.sub(lambda found: b"\\%03d" % found[0][0], label).decode())
        at = end
    return ".".join(labels)


def _wire(text: str) -> bytes:
    """What :func:`_name` has written, as on the wire."""
    labels = [_ESCAPE.sub(lambda found: bytes((int(found[1]),)), label.encode()) for label in text.split(".") if label]
    return b"".join([bytes((len(label),)) + label for label in labels]) + b"\0"


def _put(records: list[bytes], data: bytes) -> None:
    if data not in records:
        records.append(data)


def _text(data: bytes, size: int) -> str:
    if len(data) != size:
        raise Malformed("an address has the wrong length")
    if size == 4:
        return socket.inet_ntop(socket.AF_INET, data)
    if not any(data[:10]):
        return str(IPv6Address(data))  # the C library writes ::ffff:0:0/96 with dots, Python 3.11 doesn't
    return socket.inet_ntop(socket.AF_INET6, data)
