"""Whether a person's order can be carried out at all, judged before it is stored and again before it is planned.

The command line builds its orders from what stands; the API takes them as JSON from whoever holds the token, and an
order stays in the store until a planner spends it. One bad number in one order must not stop plans for every endpoint:
an expiry of 10^30 s doesn't fit a marker's number, an address that isn't one can't be packed into it, and a release
"up to epoch 10^18" would end every hold that will ever be placed.

Judged here is the order by itself. Whether its name is an endpoint, and whether the epoch it releases has been reached,
takes what stands to know; whoever reads that asks.
"""

import ipaddress
import re

from fencepost.core.fence import SERVICE
from fencepost.core.instant import DAY, SECOND
from fencepost.core.record_set import Content, again, is_canonical
from fencepost.core.store import Order

UNTIL_MOST_S = 2**33
"""Below this a hold may end: the year 2242, and it fits the marker's number."""

HOLD_MOST = 2**62
"""Below this an epoch may lie that a release names: it fits a store's 64 bits with room to count on."""

TTL_MOST_S = DAY // SECOND
MESSAGE_MOST = 65_535
"""Bytes of one UPDATE (RFC 1035, 4.2.2): old and new records and markers stand in it together."""

TEXT_MOST = 500
"""Characters of a reason, of a name, of an id."""

_UNSEEMLY = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves the cursor, ends a line or turns text around: it could forge a line of history on somebody's terminal."""

_DIGEST = re.compile("-|[0-9a-f]{16}")


def faults(order: Order) -> tuple[str, ...]:
    """What is wrong with an order, each in a few words; () if it can be carried out.

    An adoption that names no records ("" or "-") is no fault: it ends a contest about an endpoint that has a marker.
    """
    found = [fault for name in ("id", "by", "reason") for fault in text_faults(name, getattr(order, name))]
    if order.kind == "rollback":
        found += content_faults(order.content)
    elif not order.content.empty or order.content.weights or order.content.ttl or order.content.srv is not None:
        found.append(f"content: a {order.kind} has none")
    if order.kind in ("rollback", "withdraw"):
        if not 0 <= order.until_s < UNTIL_MOST_S:
            found.append(f"until_s: {shown(order.until_s)} is not from 0 to {UNTIL_MOST_S - 1} (seconds since 1970)")
    elif order.until_s:
        found.append(f"until_s: a {order.kind} has no end")
    if order.kind == "release":
        if not 0 < order.hold < HOLD_MOST:
            found.append(f"hold: {shown(order.hold)} is no epoch that a hold can have")
    elif order.hold:
        found.append(f"hold: only a release names one, not a {order.kind}")
    if order.adopt and (order.kind != "adopt" or not _DIGEST.fullmatch(order.adopt)):
        found.append("adopt: the digest of the records seen is 16 hex digits, or -; only an adoption names it")
    return tuple(found)


def content_faults(value: Content) -> list[str]:
    """What is wrong with the addresses, weights and TTL that a hold is to publish."""
    found = []
    if value.empty:
        found.append("content: a rollback needs the older plan's addresses")
    if (size := change_bytes(value)) > MESSAGE_MOST:
        return [
            *found,
            f"content: a change of {len(value.addresses)} addresses takes {size} bytes, over {MESSAGE_MOST}",
        ]
    if not 1 <= value.ttl <= TTL_MOST_S:
        found.append(f"content.ttl: {shown(value.ttl)} is not from 1 to {TTL_MOST_S} (seconds)")
    for version, field, texts in ((4, "a", value.a), (6, "aaaa", value.aaaa)):
        found += [f"content.{field}: {fault}" for text in texts if (fault := address_fault(text, version))]
    if value.srv is not None and not re.fullmatch(SERVICE, value.srv.service):
        found.append(f'content.srv.service: {shown(value.srv.service)} is none, like "_http._tcp"')
    if value.srv is not None and len(value.srv.ports) not in (1, len(value.addresses)):
        found.append(f"content.srv.ports: {len(value.srv.ports)} for {len(value.addresses)} addresses")
    elif value.weights and len(value.weights) != len(value.addresses):
        found.append(f"content.weights: {len(value.weights)} for {len(value.addresses)} addresses")
    elif not found:
        try:
            ordered = is_canonical(value)
        except ValueError as error:
            return [f"content.{'srv' if str(error).startswith('port') else 'weights'}: {error}"]
        if not ordered:
            order = "content: addresses stand in numeric order, each once; equal weights are left out"
            found.append(f"{order}, of equal ports all but one")
    return found


def canonical(value: Content) -> Content:
    """A content in the one order contents have, if that changes nothing of what it says; else as it is, faults and all.

    Repeats are merged where no weights are given; with weights, or ports, they contradict each other.
    """
    try:
        versions = [ipaddress.ip_address(text).version for text in value.addresses]
        made = again(value)
    except ValueError:
        return value
    if versions != [4] * len(value.a) + [6] * len(value.aaaa):
        return value
    tells = value.weights or (value.srv is not None and len(value.srv.ports) > 1)
    return value if tells and len(made.addresses) != len(value.addresses) else made


def change_bytes(value: Content) -> int:
    """The least that an UPDATE takes which replaces so many addresses by as many: 12 bytes and the address a record.

    The old and the new marker's packed content is in it: 5 or 17 bytes an address, in base64. A service takes a SRV
    record an address (18 bytes, the label and the domain, uncompressed) and the host's own (its label and the address).
    """
    v4, v6 = len(value.a), len(value.aaaa)
    beside = 0 if value.srv is None else 64 * v4 + 128 * v6
    return 2 * (16 * v4 + 28 * v6 + 4 * -(-(5 * v4 + 17 * v6) // 3)) + beside


def address_fault(text: str, version: int) -> str:
    """Why no caller can be sent to an address; "" if one can."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f"{shown(text)} is no address"
    if address.version != version:
        return f"{text} is an IPv{address.version} address"
    if address.is_unspecified or (version == 4 and text.startswith("0.")):
        return f"{text} is no place to send callers to"
    if address.is_multicast or (version == 4 and address.is_reserved):
        return f"{text} is multicast, broadcast or reserved"
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return f"{text} has a zone index, which means something on one machine only"
    return "" if str(address) == text else f"{text} is written {address}"


def text_faults(name: str, text: str) -> list[str]:
    """What is wrong with a text that people will read on their terminals."""
    if len(text) > TEXT_MOST:
        return [f"{name}: {len(text)} characters; at most {TEXT_MOST}"]
    return [f"{name}: has a control character ({found[0]!a})"] if (found := _UNSEEMLY.search(text)) else []


def plain(text: str) -> str:
    """A text as it may stand in a line on a terminal: what was stored by others, each control character a space."""
    return " ".join(_UNSEEMLY.sub(" ", text).split())


def seemly(text: str) -> str:
    """A text as it may be stored: as :func:`plain`, cut to its most."""
    return plain(text)[:TEXT_MOST]


def shown(value: object) -> str:
    """A value that was refused, short enough to be said."""
    text = f"{value!a}" if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
