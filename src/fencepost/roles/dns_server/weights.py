"""Which addresses go into one answer when an endpoint's weights differ.

A client that gets several addresses uses one of them, mostly the first. So an address is put into an answer with
probability weight ÷ largest weight, at most eight at a time, their order shuffled. The largest weight is always in:
no answer is empty. The weights ride in the marker beside the endpoint, so that they change with its addresses, in the
same transaction. The numbers drawn are arguments: the choice itself is pure.
"""

import ipaddress
from collections.abc import Sequence

from fencepost.core.dns_numbers import TXT, A, Malformed, split_strings
from fencepost.core.fence import Marker

from .contents import Contents, RecordSet, find

ADDRESSES_MAX = 8
"""Addresses in one weighted answer."""

_MARKER = b"\x0a_fencepost"
_WILDCARD = b"\x09_wildcard"


def choose(weights: Sequence[int], chances: Sequence[float], ranks: Sequence[float]) -> list[int]:
    """Positions of the addresses in one answer, in the order to be sent.

    ``chances`` and ``ranks`` hold a number from [0, 1) for each weight: the first decides whether it is in, the second
    where it stands; past eight the last ones are left out. Weights are 0 or more, at least one more.
    """
    largest = max(weights)
    chosen = [index for index, weight in enumerate(weights) if chances[index] * largest < weight]
    chosen.sort(key=ranks.__getitem__)
    return chosen[:ADDRESSES_MAX]


def weights_of(contents: Contents, owner: bytes, found: RecordSet) -> tuple[int, ...]:
    """The weight of each of a name's addresses, in the records' order; () if equal, unknown or out of step."""
    strings = find(contents.node(marker_of(owner)), TXT)
    if strings is None or len(strings.rdatas) != 1:
        return ()
    try:
        parsed = Marker.parse(split_strings(strings.rdatas[0]))
    except Malformed:
        return ()
    if parsed is None or parsed.content is None or not parsed.content.weights:
        return ()
    value = parsed.content
    addresses, weights = (
        (value.a, value.weights[: len(value.a)]) if found.rtype == A else (value.aaaa, value.weights[len(value.a) :])
    )
    by_data = {ipaddress.ip_address(text).packed: weight for text, weight in zip(addresses, weights, strict=True)}
    if by_data.keys() != set(found.rdatas) or len(set(weights)) < 2:
        return ()
    return tuple(by_data[rdata] for rdata in found.rdatas)


def marker_of(owner: bytes) -> bytes:
    """The name of an endpoint's marker; that of ``*.x`` is ``_fencepost._wildcard.x``."""
    if owner.startswith(b"\x01*"):
        return _MARKER + _WILDCARD + owner[2:]
    return _MARKER + owner


def endpoint_of(marker: bytes) -> bytes | None:
    """The endpoint a marker's name belongs to, or None for other names."""
    if not marker.startswith(_MARKER):
        return None
    owner = marker[len(_MARKER) :]
    return b"\x01*" + owner[len(_WILDCARD) :] if owner.startswith(_WILDCARD) else owner
