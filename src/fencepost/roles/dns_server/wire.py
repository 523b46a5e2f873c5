"""DNS on the wire: names, records and serials, read out of a message without trusting a byte of it.

Names are handled uncompressed, as length-prefixed labels up to the root (RFC 1035 section 3.1). A length byte is at
most 63, below every letter, so ``bytes.lower()`` of such a name is exactly its lower-case form (RFC 4343), and names
compare, hash and slice as plain bytes. Only names inside a message are compressed; :func:`read_name` undoes that.

A hostile message can be wrong anywhere. Readers here raise :class:`Malformed` and nothing else for what can't be read:
a pointer must go strictly backward and a name may follow 127 of them, so that no loop and no long chain exists.
"""

from msgspec import Struct

from fencepost.core.dns_numbers import (
    AAAA,
    AFSDB,
    CAA,
    CNAME,
    DNAME,
    HEADER_BYTES,
    KX,
    MX,
    NAME_BYTES_MAX,
    NS,
    PTR,
    RP,
    RT,
    SOA,
    SRV,
    TXT,
    A,
    Malformed,
    split_strings,
)

_POINTERS_MAX = 127

# Types whose data hold names: bytes before them, how many names, bytes after. Names there compare without case.
NAMED = {
    NS: (0, 1, 0), CNAME: (0, 1, 0), PTR: (0, 1, 0), MX: (2, 1, 0), SOA: (0, 2, 20), RP: (0, 2, 0), AFSDB: (2, 1, 0),
    RT: (2, 1, 0), SRV: (6, 1, 0), KX: (2, 1, 0), DNAME: (0, 1, 0),
}  # fmt: skip


class RawRecord(Struct, frozen=True, gc=False):
    """One record as it stands in a message: ``owner`` whole and lower case, ``at`` and ``size`` find the data."""

    owner: bytes
    rtype: int
    rclass: int
    ttl: int
    at: int
    size: int


def read_name(message: bytes, at: int, known: dict[int, bytes]) -> tuple[bytes, int]:
    """The uncompressed name at an offset, case kept, and the offset just after it.

    ``known`` remembers names by offset within this one message, since an update repeats the same few hundred times.
    Raises :class:`Malformed`.
    """
    start, after, floor = at, 0, at
    size, jumps = 1, 0
    parts = []
    try:
        while length := message[at]:
            if length < 64:
                size += length + 1
                parts.append(message[at : at + length + 1])
                at += length + 1
                if size > NAME_BYTES_MAX or at >= len(message):
                    raise Malformed("name too long or cut short")
                continue
            target = (length & 0x3F) << 8 | message[at + 1]
            jumps += 1
            if length < 0xC0 or target >= floor or target < HEADER_BYTES or jumps > _POINTERS_MAX:
                raise Malformed("bad compression")
            after = after or at + 2
            tail = known.get(target)
            if tail is not None:
                name = b"".join(parts) + tail
                break
            at = floor = target
        else:
            name = b"".join(parts) + b"\0"
            after = after or at + 1
    except IndexError:
        raise Malformed("name cut short") from None
    if len(name) > NAME_BYTES_MAX:
        raise Malformed("name too long")
    known[start] = name
    return name, after


def skip_name(message: bytes, at: int, *, whole: bool = False) -> int:
    """The offset after a name, without following pointers; ``whole`` if it may have none. Raises :class:`Malformed`."""
    try:
        while length := message[at]:
            if length >= 0xC0:
                if whole or at + 2 > len(message):
                    raise Malformed("pointer out of place or cut short")
                return at + 2
            if length >= 64:
                raise Malformed("unknown label kind")
            at += length + 1
    except IndexError:
        raise Malformed("name cut short") from None
    return at + 1


def skip_record(message: bytes, at: int) -> tuple[int, int, int]:
    """Type of the record at an offset, where its fixed part starts, and where it ends. Raises :class:`Malformed`."""
    fixed = skip_name(message, at)
    data = fixed + 10
    if data > len(message):
        raise Malformed("record cut short")
    end = data + (message[fixed + 8] << 8 | message[fixed + 9])
    if end > len(message):
        raise Malformed("record cut short")
    return message[fixed] << 8 | message[fixed + 1], fixed, end


def read_record(message: bytes, at: int, known: dict[int, bytes]) -> tuple[RawRecord, int]:
    """The record at an offset, and the offset after it. Raises :class:`Malformed`."""
    owner, fixed = read_name(message, at, known)
    data = fixed + 10
    if data > len(message):
        raise Malformed("record cut short")
    size = int.from_bytes(message[fixed + 8 : data], "big")
    if data + size > len(message):
        raise Malformed("record cut short")
    ttl = int.from_bytes(message[fixed + 4 : fixed + 8], "big")
    return (
        RawRecord(
            owner.lower(),
            message[fixed] << 8 | message[fixed + 1],
            message[fixed + 2] << 8 | message[fixed + 3],
            ttl,
            data,
            size,
        ),
        data + size,
    )


def read_data(message: bytes, record: RawRecord, known: dict[int, bytes]) -> bytes:
    """A record's data, names inside it uncompressed, checked for the types we know.

    Raises :class:`Malformed` for data that its type can't have.
    """
    at, size, rtype = record.at, record.size, record.rtype
    if rtype in NAMED:
        return _read_named(message, record, known)
    data = message[at : at + size]
    if (rtype == A and size != 4) or (rtype == AAAA and size != 16):
        raise Malformed("address of the wrong length")
    if rtype == TXT:
        split_strings(data)
    elif rtype == CAA and (size < 3 or data[1] == 0 or data[1] + 2 > size):
        raise Malformed("CAA without a tag")
    return data


def _read_named(message: bytes, record: RawRecord, known: dict[int, bytes]) -> bytes:
    before, names, after = NAMED[record.rtype]
    at, end = record.at + before, record.at + record.size
    parts = [message[record.at : at]]
    for _ in range(names):
        name, at = read_name(message, at, known)
        parts.append(name)
    if at + after != end:
        raise Malformed("data and its length differ")
    parts.append(message[at:end])
    return b"".join(parts)


def same_as(rtype: int, data: bytes) -> bytes:
    """What data compare by: themselves, with names inside them in lower case (RFC 2136 section 1.1.1)."""
    layout = NAMED.get(rtype)
    if layout is None:
        return data
    before, _, after = layout
    end = len(data) - after
    return data[:before] + data[before:end].lower() + data[end:]


def name_to_wire(text: str) -> bytes:
    """A plain ASCII name such as ``example.test`` on the wire, lower case. Raises ValueError if it doesn't fit."""
    labels = text.lower().rstrip(".").split(".") if text.strip(".") else []
    if any(not 1 <= len(label) <= 63 for label in labels):
        raise ValueError(f"{text!r} has an empty or too long label")
    wire = b"".join(bytes((len(label),)) + label.encode("ascii") for label in labels) + b"\0"
    if len(wire) > NAME_BYTES_MAX:
        raise ValueError(f"{text!r} is too long")
    return wire


def newer(one: int, other: int) -> bool:
    """Whether serial ``one`` comes after ``other`` on the circle of 2**32 (RFC 1982 section 3.2)."""
    return one != other and (one - other) & 0xFFFFFFFF < 0x80000000


def serial_after(serial: int) -> int:
    """The next serial; zero is left out, since some secondaries take it for "none"."""
    return (serial + 1) & 0xFFFFFFFF or 1
