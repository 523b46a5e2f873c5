"""DNS messages as bytes: names, record heads and response codes, read without trusting a byte of them.

A domain of 100,000 endpoints comes as 300,000 records or more; a general parser makes several objects of each and takes
half a minute. Here a record is a plain tuple whose data stay where they are, in the message, and a name is bytes: its
labels, lengths included, in lower case (a length is at most 63, below every letter, so ``bytes.lower`` changes letters
only; names compare without case, RFC 4343).

A name may end in a pointer backward (RFC 1035 section 4.1.4). Each name read is remembered by its offset, and servers
point at names they wrote before, so that most owners cost one dictionary look-up.
"""

import re
import struct
from typing import TypeAlias

from fencepost.core.dns_numbers import AAAA, HEADER_BYTES, NAME_BYTES_MAX, RCODES, TTL_MAX, A, Malformed

_HEADER = struct.Struct(">HHHHHH")
_FIXED = struct.Struct(">HHIH")

ADDRESS_HEAD = 12
"""Bytes between two addresses of a set: a pointer for the owner, type, class, TTL, length."""
_ADDRESSES = {
    A: (4, re.compile(rb"(..\x00\x01\x00\x01....\x00\x04)....(?:\1....)*", re.DOTALL)),
    AAAA: (16, re.compile(rb"(..\x00\x1c\x00\x01....\x00\x10).{16}(?:\1.{16})*", re.DOTALL)),
}
"""By type: the size of an address, and as many records as there are with one and the same head."""
_APART: dict[tuple[int, int], struct.Struct] = {}
"""How a run is taken apart, by the size of an address and how many: at most what one message holds."""
_SETS: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
"""Address sets as they came, without doubles: the endpoints of a pool share one."""
_SETS_MAX = 4096

Record: TypeAlias = tuple[bytes, int, int, int, int]
"""Owner (uncompressed, lower case), type, TTL in seconds, and where its data start and end in the message."""


class Head:
    """A message's header: id, flags taken apart, and the four counts."""

    __slots__ = ("authoritative", "counts", "id", "opcode", "rcode", "reply", "truncated")

    def __init__(self, message: bytes) -> None:
        """Raises :class:`Malformed` for less than a header."""
        if len(message) < HEADER_BYTES:
            raise Malformed("shorter than a header")
        flags: int
        self.id: int
        self.id, flags, *counts = _HEADER.unpack_from(message)
        self.counts: tuple[int, ...] = tuple(counts)
        self.reply = bool(flags & 0x8000)
        self.opcode = flags >> 11 & 15
        self.authoritative = bool(flags & 0x0400)
        self.truncated = bool(flags & 0x0200)
        self.rcode = flags & 15


def header(message_id: int, opcode: int, counts: tuple[int, int, int, int]) -> bytes:
    """A request's header."""
    return _HEADER.pack(message_id, opcode << 11, *counts)


def name_to_wire(text: str) -> bytes:
    """A normalised name (:mod:`fencepost.core.names`) on the wire."""
    return b"".join([bytes((len(label),)) + label.encode("ascii") for label in text.split(".")]) + b"\0"


def rcode_name(rcode: int) -> str:
    """What people call a response code."""
    return RCODES[rcode] if rcode < len(RCODES) else f"RCODE{rcode}"


def read_name(message: bytes, at: int, known: dict[int, bytes]) -> tuple[bytes, int]:
    """The name at an offset, uncompressed and in lower case, and the offset after it. Raises :class:`Malformed`.

    ``known`` holds the names already read from this message by offset. Pointers must go strictly backward: no loops.
    """
    start, after, floor = at, 0, at
    parts: list[tuple[int, bytes]] = []
    tail = b"\0"
    try:
        length = message[at]
        end = at + 1 + length
        if 0 < length < 64 and message[end] >= 0xC0:  # as most are: one label, and a pointer to a name read before
            found = known.get((message[end] & 0x3F) << 8 | message[end + 1])
            if found is not None and length + len(found) < NAME_BYTES_MAX:
                known[at] = tail = message[at:end].lower() + found
                return tail, end + 2
        while length := message[at]:
            if length >= 0xC0:
                target = (length & 0x3F) << 8 | message[at + 1]
                after = after or at + 2
                found = known.get(target)
                if found is not None:
                    tail = found
                    break
                if not HEADER_BYTES <= target < floor:
                    raise Malformed("a name points forward")
                at = floor = target
                continue
            if length > 63 or len(parts) > 127:
                raise Malformed("a name is too long or of an unknown kind")
            parts.append((at, message[at : at + length + 1]))
            at += length + 1
    except IndexError:
        raise Malformed("a name is cut short") from None
    after = after or at + 1
    # Remember each suffix too: "_fencepost.api…" written before lets "api…" point into its middle.
    for offset, label in reversed(parts):
        tail = label.lower() + tail
        known[offset] = tail
    if len(tail) > NAME_BYTES_MAX:
        raise Malformed("a name is too long")
    known[start] = tail
    return tail, after


def read_records(
    message: bytes, at: int, count: int, known: dict[int, bytes], *, runs: bool = False
) -> tuple[list[Record], int]:
    """So many records from an offset on, and the offset after them. Raises :class:`Malformed`.

    ``runs``: addresses that follow one another at one owner, with one TTL, may come as one record whose data go on
    through the last of them; :func:`run_data` takes them apart.
    """
    found: list[Record] = []
    size, unpack, append = len(message), _FIXED.unpack_from, found.append
    try:
        while count > 0:
            if message[at] >= 0xC0 and (owner := known.get((message[at] & 0x3F) << 8 | message[at + 1])) is not None:
                at += 2
            else:
                owner, at = read_name(message, at, known)
            rtype, _class, ttl, length = unpack(message, at)
            if ttl > TTL_MAX:
                ttl = 0  # as if it were zero, RFC 2181 section 8
            start = at + 10
            at = end = start + length
            if end > size:
                raise Malformed("a record is cut short")
            count -= 1
            if runs and rtype in _ADDRESSES and count and message[at] >= 0xC0:
                more = _more(message, at, start, known.get((message[at] & 0x3F) << 8 | message[at + 1]), owner, rtype)
                more = min(more, count)
                count -= more
                at = end = end + more * (ADDRESS_HEAD + length)
            append((owner, rtype, ttl, start, end))
    except (IndexError, struct.error):
        raise Malformed("a record is cut short") from None
    return found, at


def _more(message: bytes, at: int, start: int, pointed: bytes | None, owner: bytes, rtype: int) -> int:
    """How many records from an offset on are of the same set as the one before, whose data begin at ``start``."""
    size, pattern = _ADDRESSES[rtype]
    if pointed != owner or message[at + 2 : at + ADDRESS_HEAD] != message[start - 10 : start]:
        return 0
    found = pattern.match(message, at)
    return (found.end() - at) // (ADDRESS_HEAD + size) if found is not None else 0


def run_data(message: bytes, record: Record) -> tuple[bytes, ...]:
    """The addresses of a record that may be a run of several. Raises :class:`Malformed`."""
    _, rtype, _, start, end = record
    size, _pattern = _ADDRESSES[rtype]
    count, odd = divmod(end - start + ADDRESS_HEAD, ADDRESS_HEAD + size)
    if odd or not count or message[start - 2 : start] != size.to_bytes(2, "big"):
        raise Malformed("an address has the wrong length")
    if count == 1:
        return (message[start:end],)
    apart = _APART.get((size, count))
    if apart is None:
        apart = _APART[size, count] = struct.Struct(f"{size}s" + f"{ADDRESS_HEAD}x{size}s" * (count - 1))
    found = apart.unpack_from(message, start)
    known = _SETS.get(found)
    if known is None:
        if len(_SETS) >= _SETS_MAX:
            _SETS.clear()
        known = _SETS[found] = tuple(dict.fromkeys(found))
    return known


def skip_question(message: bytes, count: int, known: dict[int, bytes]) -> int:
    """The offset after the questions. Raises :class:`Malformed`."""
    at = HEADER_BYTES
    for _ in range(count):
        _, at = read_name(message, at, known)
        at += 4
    return at


def soa_serial(message: bytes, record: Record, known: dict[int, bytes]) -> int:
    """The serial in a SOA record (RFC 1035 section 3.3.13). Raises :class:`Malformed`."""
    _, at = read_name(message, record[3], known)
    _, at = read_name(message, at, known)
    if at + 20 != record[4]:
        raise Malformed("a SOA record has the wrong length")
    return int.from_bytes(message[at : at + 4], "big")
