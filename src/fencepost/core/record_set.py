"""What an endpoint answers: its addresses, their weights and TTL, as one value.

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


class Content(Struct, frozen=True, gc=False):
    """The addresses of one endpoint.

    ``a`` and ``aaaa`` are canonical text addresses in numeric order, without repeats. ``weights`` has one number from 1
    to 255 for each of ``a + aaaa``, or is empty when all are equal. ``ttl`` is in seconds.
    Build one with :func:`content`, which puts all that in order.
    """

    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    ttl: int = 30

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


def content(weights: Mapping[str, int] | Iterable[str], ttl: int) -> Content:
    """The canonical content of addresses (with weights, if a mapping), TTL in seconds.

    Raises ``ValueError`` naming an address that isn't one, or a weight outside 1 to 255.
    """
    weight_of = dict(weights) if isinstance(weights, Mapping) else dict.fromkeys(weights, 1)
    parsed: dict[ipaddress.IPv4Address | ipaddress.IPv6Address, int] = {}
    for text, weight in weight_of.items():
        if not 1 <= weight <= WEIGHT_MAX:
            raise ValueError(f"weight {weight} of {text} is not from 1 to {WEIGHT_MAX}")
        parsed[ipaddress.ip_address(text)] = weight
    four = sorted(address for address in parsed if isinstance(address, ipaddress.IPv4Address))
    six = sorted(address for address in parsed if isinstance(address, ipaddress.IPv6Address))
    weighed = tuple(parsed[address] for address in four) + tuple(parsed[address] for address in six)
    return Content(
        a=tuple(map(str, four)),
        aaaa=tuple(map(str, six)),
        weights=weighed if len(set(weighed)) > 1 else (),
        ttl=ttl,
    )


@lru_cache(maxsize=1024)
def is_canonical(value: Content) -> bool:
    """Whether :func:`content` would make it: remembered, since most endpoints of a pool answer the same.

    Raises ``ValueError`` as :func:`content` does.
    """
    weights = value.weights or (1,) * len(value.addresses)
    return content(dict(zip(value.addresses, weights, strict=True)), value.ttl) == value


def record_digest(a: tuple[str, ...], aaaa: tuple[str, ...]) -> str:
    """Names an exact set of addresses, 16 hex digits. No weights, no TTL: an unmarked set shows neither safely."""
    return sha256(f"{','.join(a)}|{','.join(aaaa)}".encode()).hexdigest()[:16]


def pack(value: Content) -> bytes:
    """The content as base64: 5 bytes an IPv4 address, 17 an IPv6 one (the address and a byte of weight)."""
    weights = value.weights or (1,) * len(value.addresses)
    raw = b"".join(
        ipaddress.ip_address(address).packed + bytes((weight,))
        for address, weight in zip(value.addresses, weights, strict=True)
    )
    return base64.b64encode(raw)


def unpack(text: bytes, *, v4: int, ttl: int) -> Content:
    """The content that :func:`pack` made, its first ``v4`` addresses IPv4; ``ValueError`` if it isn't one."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    cut = v4 * 5
    if len(raw) < cut or (len(raw) - cut) % 17:
        raise ValueError("packed content has the wrong length")
    weights = {str(ipaddress.IPv4Address(raw[at : at + 4])): raw[at + 4] for at in range(0, cut, 5)}
    weights |= {str(ipaddress.IPv6Address(raw[at : at + 16])): raw[at + 16] for at in range(cut, len(raw), 17)}
    value = content(weights, ttl)
    if pack(value) != text:
        raise ValueError("packed content is not in canonical order")
    return value
