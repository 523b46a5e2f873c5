"""What single transactions did to one endpoint, as the DNS server itself tells it (RFC 1995 difference sequences).

A look at DNS is a sample; the differences between two serials say what happened in between, in order. The server
that was written to is the witness, not whoever wrote. A :class:`Difference` is one version's part for one endpoint;
:func:`states` puts several after a state that was looked at.

The state that was looked at belongs to *some* version between the serial known before the look and the newest one, not
surely to the first: so each place is tried at which what went was there and what came was not. Of several the first is
taken. That loses nothing: if the same state stands twice, the promises' memory after it is the same both times.

Awkward truth: a server may put several transactions into one version (RFC 1995 section 6 allows condensing). Where the
serial rose by one it didn't, or only those that came in one breath: see :attr:`Difference.alone`.
"""

import ipaddress
from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from fencepost.core.fence import Foreign, Marker
from fencepost.core.zone import Live

T = TypeVar("T")

SERIALS = 1 << 32


class Records(Struct, frozen=True, gc=False):
    """The records of one endpoint: the strings of each TXT at its marker's name, addresses as canonical text, TTLs."""

    texts: frozenset[tuple[bytes, ...]] = frozenset()
    a: frozenset[str] = frozenset()
    aaaa: frozenset[str] = frozenset()
    ttl_a: int = 0
    ttl_aaaa: int = 0

    @classmethod
    def of(cls, live: Live) -> "Records":
        """An endpoint taken apart. One that shows one TTL is taken to have it in both families."""
        marker = live.marker
        texts = () if marker is None else (marker.encode(),) if isinstance(marker, Marker) else marker.raw
        return cls(frozenset(texts), frozenset(live.a), frozenset(live.aaaa), live.ttl, live.ttl)

    def live(self, name: str) -> Live:
        """Put together again. Families with different TTLs get the TTL -1, which no marker stands for."""
        marker: Marker | Foreign | None = None
        if self.texts:
            raw = tuple(sorted(self.texts))
            marker = (Marker.parse(raw[0]) if len(raw) == 1 else None) or Foreign("", raw)
        ttl = self.ttl_a if self.a else self.ttl_aaaa if self.aaaa else 0
        if self.a and self.aaaa and self.ttl_a != self.ttl_aaaa:
            ttl = -1
        return Live(name, marker, _in_order(self.a), _in_order(self.aaaa), ttl)

    def texts_only(self) -> "Records":
        """The marker's records alone, as if no address stood there."""
        return Records(self.texts)


class Difference(Struct, frozen=True, gc=False):
    """One version's part for one endpoint: the serials before and after, what went, what came."""

    before: int
    after: int
    gone: Records
    come: Records

    @property
    def alone(self) -> bool:
        """Whether the serial rose by one (0 is left out by some): several transactions in one version are unlikely."""
        return self.after in ((self.before + 1) % SERIALS, (self.before + 2) % SERIALS if self.after == 1 else -1)

    def texts_only(self) -> "Difference":
        """What became of the marker's records alone."""
        return Difference(self.before, self.after, self.gone.texts_only(), self.come.texts_only())


def done(state: Records, difference: Difference) -> Records | None:
    """The state after a difference; None if the state isn't one that it was made from."""
    return _exchanged(state, difference.gone, difference.come)


def undone(state: Records, difference: Difference) -> Records | None:
    """The state before a difference; None if the state isn't one that it leads to."""
    return _exchanged(state, difference.come, difference.gone)


def states(base: Records, differences: Sequence[Difference]) -> tuple[int, list[Records]] | None:
    """Where among the differences ``base`` stood, and the state there and after each later one; None if nowhere."""
    for place in range(len(differences) + 1):
        before: Records | None = base
        for difference in reversed(differences[:place]):
            before = undone(before, difference) if before is not None else None
        if before is None:
            continue
        found = [base]
        for difference in differences[place:]:
            after = done(found[-1], difference)
            if after is None:
                break
            found.append(after)
        else:
            return place, found
    return None


def _exchanged(state: Records, gone: Records, come: Records) -> Records | None:
    texts = _each(state.texts, gone.texts, come.texts)
    a, aaaa = _each(state.a, gone.a, come.a), _each(state.aaaa, gone.aaaa, come.aaaa)
    if texts is None or a is None or aaaa is None:
        return None
    if (gone.a and gone.ttl_a != state.ttl_a) or (gone.aaaa and gone.ttl_aaaa != state.ttl_aaaa):
        return None
    ttl_a = come.ttl_a if come.a else state.ttl_a
    return Records(texts, a, aaaa, ttl_a, come.ttl_aaaa if come.aaaa else state.ttl_aaaa)


def _each(stands: frozenset[T], gone: frozenset[T], come: frozenset[T]) -> frozenset[T] | None:
    left = stands - gone
    return left | come if gone <= stands and not left & come else None


def _in_order(addresses: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(addresses, key=lambda text: int(ipaddress.ip_address(text))))
