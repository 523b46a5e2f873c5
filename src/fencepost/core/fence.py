"""The fence: generations, and the marker that carries one beside the records it stands for.

In October 2025 the automation checked once, before its walk, whether its plan was newer, and then wrote: nothing tied
the check to the write. Here each endpoint has a TXT record ``_fencepost.<endpoint>``, its *marker*, that says which
generation is live; every write requires the exact marker it read and replaces it together with the addresses, in one
transaction of the DNS provider. A stale writer isn't told to stop: its write can't apply.

A generation is a pair (epoch, number), epoch first. The number is that of the plan which last changed the endpoint; the
epoch rises only when a person places a hold (repair, rollback, withdrawal), so that a hold outranks every plan made
without knowing of it. The identity of a set is (generation, digest): after a store is lost the same number may come
twice, and the digest tells the two apart.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Literal, Self, TypeAlias

from msgspec import Struct

from fencepost.core.instant import SECOND, Instant
from fencepost.core.record_set import Content, pack, unpack

HoldKind: TypeAlias = Literal["repair", "rollback", "withdraw"]


class Generation(Struct, frozen=True, gc=False, order=True):
    """What is newer: compared by epoch, then by number."""

    epoch: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.number} (epoch {self.epoch})" if self.epoch else str(self.number)


NEVER = Generation()
"""Older than anything ever published."""


class Hold(Struct, frozen=True, gc=False):
    """A person's word about an endpoint, standing until released or ``until_s`` (seconds since 1970; 0 = no end).

    ``id`` is the epoch at which it was placed. A release names it, so that a release meant for one hold can't end a
    later.
    """

    kind: HoldKind
    id: int
    until_s: int = 0

    def ended(self, released: int, now: Instant) -> bool:
        """Whether a release up to ``released``, or the time (nanoseconds since 1970), has ended it."""
        return self.id <= released or 0 < self.until_s * SECOND <= now

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}:{self.until_s}"


def hold_epoch(kind: HoldKind, known: int, now: Instant) -> int:
    """The epoch a new hold is placed at: above every epoch known, and at least the seconds since 1970.

    The time keeps two holds apart when what was known of the first has been lost in between. Not within one second,
    and two may be placed on the same knowledge: a repair by its tool, and a rollback or withdrawal by a planner that
    hasn't read it. So a repair's epoch is odd and theirs are even: neither is ever taken for the other.
    """
    epoch = max(known + 1, now // SECOND)
    return epoch + (epoch % 2 != (kind == "repair"))


@lru_cache(maxsize=1024)
def digest(value: Content, hold: Hold | None) -> str:
    """Names addresses, weights, TTL, SRV and hold together, 16 hex digits. Remembered: a pool's endpoints share it."""
    text = f"{','.join(value.a)}|{','.join(value.aaaa)}|{','.join(map(str, value.weights))}|{value.ttl}|{hold or ''}"
    if value.srv is not None:
        text += f"|{value.srv}"
    return sha256(text.encode()).hexdigest()[:16]


_NUMBER = r"(0|[1-9][0-9]{0,17})"  # fits 63 bits, as stores keep it
_MARKER = re.compile(
    (
        rf"fencepost=1 owner=([a-z0-9][a-z0-9_.-]{{0,62}}) store=([0-9a-f]{{4}}) gen={_NUMBER} epoch={_NUMBER}"
        rf" digest=([0-9a-f]{{16}}) writes={_NUMBER}"
        rf"(?: hold=(repair|rollback|withdraw):{_NUMBER}:{_NUMBER})?"
        rf"(?: ttl={_NUMBER} a={_NUMBER})?"
    ).encode()
)
SERVICE = r"_[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?\._(?:tcp|udp|sctp|dccp)"
"""A service and its protocol as SRV names them (RFC 2782; RFC 6335 section 5.1 gives a service name 15 characters)."""
_SRV = re.compile(rf"srv=({SERVICE})(?::([1-9][0-9]{{0,4}}))?".encode())
TTL_MAX = 2**31 - 1
"""RFC 2181 section 8."""
NUMBER_PLAUSIBLE = 10**12
"""No region makes so many plans: a thousand a second would take thirty years."""
EPOCH_AHEAD_S = 10 * 366 * 86_400
"""An epoch is a time of day, or one more than the one before; ten years ahead it is neither."""
_STRING_MAX = 255  # RFC 1035 section 3.3: a character-string's length is one byte


class Marker(Struct, frozen=True, gc=False):
    """What stands at ``_fencepost.<endpoint>``: who owns the endpoint, what is live, and whether a person holds it.

    ``store`` is four hex digits of the identity of the store whose plan this is. ``writes`` counts the writes, for
    audit; no promise needs it. ``content`` rides along when a hold stands (so that it outlives the store) or when
    weights differ (so that a name server can draw by them), and always for an endpoint with SRV records: the marker
    then says which of the records beside the endpoint are ours, to be put right or taken away. Else it is None and the
    records themselves are all there is to know.
    """

    owner: str
    store: str
    generation: Generation
    digest: str
    writes: int = 1
    hold: Hold | None = None
    content: Content | None = None

    @classmethod
    def of(cls, owner: str, store: str, generation: Generation, value: Content, hold: Hold | None, writes: int) -> Self:
        """The marker that belongs beside ``value``."""
        carried = value if hold is not None or value.weights or value.srv is not None else None
        return cls(owner, store, generation, digest(value, hold), writes, hold, carried)

    def encode(self) -> tuple[bytes, ...]:
        """The strings of its one TXT record, each at most 255 bytes (RFC 1035 section 3.3.14)."""
        head = (
            f"fencepost=1 owner={self.owner} store={self.store} gen={self.generation.number}"
            f" epoch={self.generation.epoch} digest={self.digest} writes={self.writes}"
        )
        if self.hold is not None:
            head += f" hold={self.hold}"
        if self.content is None:
            return (head.encode(),)
        packed = pack(self.content)
        head += f" ttl={self.content.ttl} a={len(self.content.a)}"
        strings = [packed[at : at + _STRING_MAX] for at in range(0, len(packed), _STRING_MAX)]
        srv = self.content.srv
        if srv is not None:
            port = f":{srv.ports[0]}" if len(srv.ports) == 1 else ""
            strings.insert(0, f"srv={srv.service}{port}".encode())
        return (head.encode(), *strings)

    @classmethod
    def parse(cls, strings: tuple[bytes, ...]) -> Self | None:
        """The marker in the strings of a TXT record, or None if it is not exactly one as :meth:`encode` writes it.

        Anything else at a marker's name is another's, and is left alone.
        """
        if not strings:
            return None
        found = _MARKER.fullmatch(strings[0])
        if found is None:
            return None
        owner, store, number, epoch, name, writes, kind, hold_id, until, ttl, v4 = found.groups()
        hold = Hold(kind.decode(), int(hold_id), int(until)) if kind else None  # type: ignore[arg-type]
        carried = None
        if ttl is not None:
            carried = _carried(strings[1:], int(v4), int(ttl))
            if carried is None:
                return None
        elif len(strings) > 1:
            return None
        return cls(
            owner.decode(),
            store.decode(),
            Generation(int(epoch), int(number)),
            name.decode(),
            int(writes),
            hold,
            carried,
        )


def _carried(strings: tuple[bytes, ...], v4: int, ttl: int) -> Content | None:
    """The content in a marker's further strings; None if it is none. A service, if there is one, comes first."""
    service, port = "", 0
    srv = _SRV.fullmatch(strings[0]) if strings else None
    if srv is not None:
        service, port, strings = srv[1].decode(), int(srv[2] or 0), strings[1:]
    if any(len(string) != _STRING_MAX for string in strings[:-1]) or b"" in strings or ttl > TTL_MAX:
        return None
    try:
        return unpack(b"".join(strings), v4=v4, ttl=ttl, service=service, port=port)
    except ValueError:
        return None


def plausible(generation: Generation, planned: int, now: Instant) -> bool:
    """Whether a generation can have come about by itself, where plan ``planned`` is the newest known.

    Whoever holds the DNS key can write any marker. One with a number or an epoch near what fits would, if planners went
    above it, use up all numbers of all endpoints; so it is left to a person.
    """
    return generation.number <= max(NUMBER_PLAUSIBLE, planned) and generation.epoch <= now // SECOND + EPOCH_AHEAD_S


class Foreign(Struct, frozen=True, gc=False):
    """What stands at a marker's name and is not a marker of ours: another owner's, or no marker at all.

    ``owner`` is the other region's, or "" if it can't be told; ``raw`` is each TXT record's strings, in order.
    """

    owner: str
    raw: tuple[tuple[bytes, ...], ...] = ()
