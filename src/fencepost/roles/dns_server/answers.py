"""Answers as wire, kept and patched: a repeated question costs a dictionary look-up and one concatenation.

An answer is kept under its question in lower case, followed by the client's OPT record in plain form, so that answers
of different sizes don't mix; a reply takes id, RD bit and the question's very spelling (0x20) from the request. Keys
whose fixed part has a byte that lower case would change are never kept (type 65 and type 97 would be one key).

Kept answers go when a name they were made from changes. Answers that depend on more than their own names (negative
ones carry the serial) are filed under the apex, which every change touches. Names that don't exist and names a wildcard
stands for are not kept at all: there are endlessly many, and a flood of them would push the others out.

Three shapes: fixed; a ring, whose addresses start one further each time; and drawn, for weights, a few precomputed
draws each used once, so that the probabilities hold exactly.
"""

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Protocol

from fencepost.core.dns_numbers import AAAA, HEADER_BYTES, NOERROR, NXDOMAIN, A

from .contents import Contents, RecordSet
from .lookup import Found
from .weights import choose, endpoint_of, weights_of

KEPT_BYTES_MAX = 16 << 20
"""Kept answers' own bytes; past that all are dropped and made again as they are asked for."""

_DRAWS = 16
_ENTRY_BYTES = 600  # what the objects around one kept answer take, measured

Draw = Callable[[int], list[float]]
"""Gives so many random numbers from [0, 1)."""


class Answer(Protocol):
    """One kept answer."""

    size: int

    def reply(self, message: bytes) -> bytes:
        """The whole reply to a request that asked this question."""
        ...


class Fixed:
    """Always the same bytes after the question."""

    __slots__ = ("_end", "_heads", "_tail", "size")

    def __init__(self, head: bytes, end: int, tail: bytes) -> None:
        self._heads = _both(head)
        self._end = end
        self._tail = tail
        self.size = len(tail)

    def reply(self, message: bytes) -> bytes:
        """The reply: id, flags, counts, the question as it was spelt, the records."""
        return message[:2] + self._heads[message[2] & 1] + message[12 : self._end] + self._tail


class Ring:
    """Addresses in a circle: each reply starts one further, so that clients who take the first one spread."""

    __slots__ = ("_after", "_at", "_before", "_end", "_heads", "_ring", "_shown", "_step", "_turn", "size")

    def __init__(self, head: bytes, end: int, before: bytes, ring: bytes, step: int, shown: int, after: bytes) -> None:
        self._heads = _both(head)
        self._end = end
        self._before = before
        self._turn = len(ring)
        self._step = step
        self._shown = shown * step
        self._ring = ring + ring[: self._shown]
        self._after = after
        self._at = 0
        self.size = len(self._ring) + len(before)

    def reply(self, message: bytes) -> bytes:
        """The reply, and one step on."""
        at = self._at
        self._at = (at + self._step) % self._turn
        return (
            message[:2]
            + self._heads[message[2] & 1]
            + message[12 : self._end]
            + self._before
            + self._ring[at : at + self._shown]
            + self._after
        )


class Drawn:
    """Weighted addresses: a stock of draws, each used once, then drawn anew."""

    __slots__ = ("_count", "_end", "_fill", "_stock", "size")

    def __init__(self, end: int, fill: Callable[[], tuple[bytes, bytes]]) -> None:
        self._end = end
        self._fill = fill
        self._stock: list[tuple[tuple[bytes, bytes], bytes]] = []
        self._count = 1  # an answer that isn't kept replies once
        self.size = 4_096

    def reply(self, message: bytes) -> bytes:
        """The reply with the next draw."""
        if not self._stock:
            for _ in range(self._count):
                head, tail = self._fill()
                self._stock.append((_both(head), tail))
            self._count = _DRAWS
        heads, tail = self._stock.pop()
        return message[:2] + heads[message[2] & 1] + message[12 : self._end] + tail


class Kept:
    """The kept answers of all domains, by key; ``by_key`` is read directly where every microsecond counts."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Answer] = {}
        self._keys: dict[bytes, list[bytes]] = {}
        self._bytes = 0

    def keep(self, key: bytes, answer: Answer, found: Found, apex: bytes) -> None:
        """Keep an answer under its key, if it may be kept."""
        if found.rcode != NOERROR or found.wildcard or not found.authoritative:
            return
        if self._bytes > KEPT_BYTES_MAX:
            self.clear()
        self.by_key[key] = answer
        self._bytes += answer.size + len(key) + _ENTRY_BYTES
        owners = {owner for owner, _ in found.answer}
        if found.authority or len(owners) > 1 or found.answer[0][1].rtype == 5:
            owners = {apex}  # a chain's end may lie beyond its owners, a negative answer carries the serial
        for owner in owners:
            self._keys.setdefault(owner, []).append(key)

    def forget(self, owners: Iterable[bytes]) -> None:
        """Drop what was made from these names; the apex is among them at every change."""
        for owner in owners:
            endpoint = endpoint_of(owner)
            for name in (owner,) if endpoint is None else (owner, endpoint):
                for key in self._keys.pop(name, ()):
                    answer = self.by_key.pop(key, None)
                    if answer is not None:
                        self._bytes -= answer.size + len(key) + _ENTRY_BYTES

    def clear(self) -> None:
        """Drop everything."""
        self.by_key.clear()
        self._keys.clear()
        self._bytes = 0


def key_of(question: bytes, opt: bytes) -> bytes | None:
    """The key for a question (name in lower case, type, class) and OPT without options; None if not to be kept."""
    fixed = question[-4:] + opt
    if fixed.lower() != fixed or fixed.upper() != fixed:
        return None
    return question + opt


def build(contents: Contents, found: Found, name: bytes, room: int, opt: bytes, draw: Draw | None) -> Answer:
    """An answer to a question for ``name``, its message at most ``room`` bytes, ``opt`` last.

    With ``draw`` None the records come whole and in their own order.
    """
    end = HEADER_BYTES + len(name) + 4
    room -= end + len(opt)
    reference = _References(name, contents.apex)
    if draw is not None and found.answer and not found.authority:
        owner, last = found.answer[-1]
        if last.rtype in (A, AAAA) and len(last.rdatas) > 1:
            before = [record for owner_, set_ in found.answer[:-1] for record in _records(reference.to(owner_), set_)]
            return _spread(contents, found, before, _records(reference.to(owner), last), end, room, opt, draw)
    sections = [
        [record for owner, set_ in section for record in _records(reference.to(owner), set_)]
        for section in (found.answer, found.authority, found.additional)
    ]
    fits = _fitting([record for section in sections for record in section], room)
    counts = []
    left = fits
    for section in sections:
        counts.append(min(left, len(section)))
        left -= counts[-1]
    records = [record for section in sections for record in section]
    head = _head(found, counts, opt, truncated=fits < len(records))
    return Fixed(head, end, b"".join(records[:fits]) + opt)


def _spread(
    contents: Contents,
    found: Found,
    before: list[bytes],
    records: list[bytes],
    end: int,
    room: int,
    opt: bytes,
    draw: Draw,
) -> Answer:
    """An answer that ends in several addresses: weighted if their marker says so, else a ring."""
    prefix = b"".join(before)
    step = len(records[0])
    shown = min(len(records), max(0, room - len(prefix)) // step)
    if len(prefix) > room or shown == 0:
        return Fixed(_head(found, [0, 0, 0], opt, truncated=True), end, opt)
    weights = weights_of(contents, found.source, found.answer[-1][1])
    if not weights:
        head = _head(found, [len(before) + shown, 0, 0], opt, truncated=shown < len(records))
        return Ring(head, end, prefix, b"".join(records), step, shown, opt)

    def fill() -> tuple[bytes, bytes]:
        chosen = choose(weights, draw(len(weights)), draw(len(weights)))
        fits = chosen[:shown]
        head = _head(found, [len(before) + len(fits), 0, 0], opt, truncated=len(fits) < len(chosen))
        return head, prefix + b"".join([records[index] for index in fits]) + opt

    return Drawn(end, fill)


class _References:
    """Owner names for an answer: pointers into the question as far as it goes (RFC 1035 section 4.1.4)."""

    def __init__(self, name: bytes, apex: bytes) -> None:
        self._name = name
        self._apex = apex

    def to(self, owner: bytes) -> bytes:
        """An owner that lies in the same domain as the question."""
        tail = owner if self._name == owner else self._apex
        at = HEADER_BYTES + len(self._name) - len(tail)
        return owner[: len(owner) - len(tail)] + (0xC000 | at).to_bytes(2, "big")


def _records(reference: bytes, found: RecordSet) -> list[bytes]:
    head = b"%b%b\0\x01%b" % (reference, found.rtype.to_bytes(2, "big"), found.ttl.to_bytes(4, "big"))
    return [b"%b%b%b" % (head, len(rdata).to_bytes(2, "big"), rdata) for rdata in found.rdatas]


def _fitting(records: list[bytes], room: int) -> int:
    """How many of the records fit, in order."""
    return sum(1 for total in accumulate(map(len, records)) if total <= room)


def _head(found: Found, counts: list[int], opt: bytes, *, truncated: bool) -> bytes:
    """Flags and counts of an answer, without RD: QR, AA and TC (RFC 1035 section 4.1.1)."""
    flags = 0x80 | (4 if found.authoritative else 0) | (2 if truncated else 0)
    rcode = found.rcode if found.rcode in (NOERROR, NXDOMAIN) else NOERROR
    return b"%c%c\0\x01%b%b%b" % (
        flags,
        rcode,
        counts[0].to_bytes(2, "big"),
        counts[1].to_bytes(2, "big"),
        (counts[2] + bool(opt)).to_bytes(2, "big"),
    )


def _both(head: bytes) -> tuple[bytes, bytes]:
    """The head for a request without RD and for one with it."""
    return head, bytes((head[0] | 1,)) + head[1:]
