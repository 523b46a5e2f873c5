"""What an endpoint answers: its addresses, their weights and TTL, and its SRV service if it has one, as one value.

A :class:`Content` is canonical: two contents that mean the same are equal, encode to the same bytes and have the same
digest, whatever order the addresses were listed in. The digest is what ties a marker to the records beside it
(:mod:`fencepost.core.fence`), so nothing here may depend on order, case or spelling.
"""

import base64
import binascii
import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256

from msgspec import Struct

WEIGHT_MAX = 255
"""A weight is one byte in the marker and in Route 53's weighted sets."""

PORT_MAX = 65_535


class Srv(Struct, frozen=True, gc=False):
    """The service that an endpoint's addresses are also offered under, by SRV records (RFC 2782).

    ``service`` is its two labels, ``_http._tcp``. ``ports`` has one number for each of ``a + aaaa``, or a single one
    when all are equal.
    """

    service: str
    ports: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.service}:{','.join(map(str, self.ports))}"


class Content(Struct, frozen=True, gc=False):
    """The addresses of one endpoint.

    ``a`` and ``aaaa`` are canonical text addresses in numeric order, without repeats. ``weights`` has one number from 1
    to 255 for each of ``a + aaaa``, or is empty when all are equal. ``ttl`` is in seconds. ``srv`` is there only if the
    endpoint asks for SRV records. Build one with :func:`content`, which puts all that in order.
    """

    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    ttl: int = 30
    srv: Srv | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, A before AAAA: the order of ``weights``."""
        return self.a + self.aaaa

    @property
    def empty(self) -> bool:
        """Whether no address is left: only a withdrawal may look like this."""
        return not self.a and not self.aaaa


NOTHING = Content(ttl=0)
"""The content of a withdrawn endpoint."""


def content(
    weights: Mapping[str, int] | Iterable[str],
    ttl: int,
    service: str = "",
    ports: Mapping[str, int] | int = 0,
) -> Content:
    """The canonical content of addresses (with weights, if a mapping), TTL in seconds.

    ``service`` asks for SRV records, ``_http._tcp``, and ``ports`` says the port of all, or of each address.
    Raises ``ValueError`` naming an address that isn't one, a weight outside 1 to 255, a port outside 1 to 65535.
    """
    weight_of = dict(weights) if isinstance(weights, Mapping) else dict.fromkeys(weights, 1)
    parsed: dict[ipaddress.IPv4Address | ipaddress.IPv6Address, int] = {}
    port_of: dict[ipaddress.IPv4Address | ipaddress.IPv6Address, int] = {}
    for text, weight in weight_of.items():
        if not 1 <= weight <= WEIGHT_MAX:
            raise ValueError(f"weight {weight} of {text} is not from 1 to {WEIGHT_MAX}")
        address = ipaddress.ip_address(text)
        parsed[address] = weight
        if service:
            port_of[address] = port = ports if isinstance(ports, int) else ports[text]
            if not 1 <= port <= PORT_MAX:
                raise ValueError(f"port {port} of {text} is not from 1 to {PORT_MAX}")
    four = sorted(address for address in parsed if isinstance(address, ipaddress.IPv4Address))
    six = sorted(address for address in parsed if isinstance(address, ipaddress.IPv6Address))
    weighed = tuple(parsed[address] for address in four) + tuple(parsed[address] for address in six)
    told = tuple(port_of[address] for address in four) + tuple(port_of[address] for address in six) if service else ()
    return Content(
        a=tuple(map(str, four)),
        aaaa=tuple(map(str, six)),
        weights=weighed if len(set(weighed)) > 1 else (),
        ttl=ttl,
        srv=Srv(service, told if len(set(told)) > 1 else told[:1]) if told else None,
    )


def ports_of(value: Content) -> dict[str, int]:
    """The port of each address of a content that has a service; {} for one that has none.

    Raises ``ValueError`` if ports and addresses differ in number.
    """
    if value.srv is None:
        return {}
    ports = value.srv.ports * len(value.addresses) if len(value.srv.ports) == 1 else value.srv.ports
    return dict(zip(value.addresses, ports, strict=True))


def again(value: Content) -> Content:
    """What :func:`content` makes of a content's own parts. Raises ``ValueError`` as it does."""
    weights = value.weights or (1,) * len(value.addresses)
    named = dict(zip(value.addresses, weights, strict=True))
    return content(named, value.ttl, value.srv.service if value.srv is not None else "", ports_of(value))


@lru_cache(maxsize=1024)
def is_canonical(value: Content) -> bool:
    """Whether :func:`content` would make it: remembered, since most endpoints of a pool answer the same.

    Raises ``ValueError`` as :func:`content` does.
    """
    return again(value) == value


def record_digest(a: tuple[str, ...], aaaa: tuple[str, ...]) -> str:
    """Names an exact set of addresses, 16 hex digits. No weights, no TTL: an unmarked set shows neither safely."""
    return sha256(f"{','.join(a)}|{','.join(aaaa)}".encode()).hexdigest()[:16]


def pack(value: Content) -> bytes:
    """The content as base64: 5 bytes an IPv4 address, 17 an IPv6 one (the address and a byte of weight).

    Ports that differ take two bytes more each; a single one, and the service, stand elsewhere in the marker.
    """
    weights = value.weights or (1,) * len(value.addresses)
    ports = value.srv.ports if value.srv is not None and len(value.srv.ports) > 1 else ()
    ends = [port.to_bytes(2, "big") for port in ports] if ports else [b""] * len(weights)
    raw = b"".join(
        ipaddress.ip_address(address).packed + bytes((weight,)) + end
        for address, weight, end in zip(value.addresses, weights, ends, strict=True)
    )
    return base64.b64encode(raw)


def unpack(text: bytes, *, v4: int, ttl: int, service: str = "", port: int = 0) -> Content:
    """The content that :func:`pack` made, its first ``v4`` addresses IPv4; ``ValueError`` if it isn't one.

    With a ``service`` and no ``port`` for all, each address has its own.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    end = 2 if service and not port else 0
    four, six = 5 + end, 17 + end
    cut = v4 * four
    if len(raw) < cut or (len(raw) - cut) % six:
        raise ValueError("packed content has the wrong length")
    places = [(at, 4) for at in range(0, cut, four)] + [(at, 16) for at in range(cut, len(raw), six)]
    weights: dict[str, int] = {}
    ports: dict[str, int] = {}
    for at, size in places:
        address = str(ipaddress.ip_address(raw[at : at + size]))
        weights[address] = raw[at + size]
        ports[address] = int.from_bytes(raw[at + size + 1 : at + size + 1 + end], "big") if end else port
    value = content(weights, ttl, service, ports)
    if pack(value) != text or (service != "" and value.srv is None):
        raise ValueError("packed content is not in canonical order")
    return value
