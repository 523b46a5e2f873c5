"""A domain's endpoints as a DNS provider holds them, and the fenced transaction: the reference semantics.

Every provider adapter must behave as :func:`transact` does (``tests/contracts`` runs one suite over all of them), and
the explorer runs on it directly. It is the rule *exact*: a change requires the exact marker **and** the exact addresses
as read, or their absence. Requiring the marker alone isn't enough: a writer that saw "no marker" could come after
another had written and someone had then deleted the marker by hand; the addresses give it away.

TTL can't be required by RFC 2136 (section 2.4.2 ignores it), so it isn't part of what is exact.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from fencepost.core.fence import Foreign, Marker, digest
from fencepost.core.record_set import Content


class Live(Struct, frozen=True, gc=False):
    """One endpoint as last read from DNS: its marker (None if absent), addresses in canonical order, and their TTL.

    ``other`` names record types at the endpoint's name that we don't write (CNAME, say): such a name isn't ours to
    take.
    """

    name: str
    marker: Marker | Foreign | None = None
    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    ttl: int = 0
    other: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no address stands here."""
        return not self.a and not self.aaaa

    def content(self) -> Content:
        """The records as a content; weights are those the marker carries for exactly these addresses."""
        carried = self.marker.content if isinstance(self.marker, Marker) else None
        same = carried is not None and carried.a == self.a and carried.aaaa == self.aaaa
        weights = carried.weights if carried is not None and same else ()
        return Content(self.a, self.aaaa, weights, self.ttl)

    def holds(self, value: Content) -> bool:
        """Whether the records are exactly ``value``'s (weights ride in the marker, not here)."""
        return self.a == value.a and self.aaaa == value.aaaa and (self.ttl == value.ttl or value.empty)

    def verified(self) -> bool:
        """Whether the records match the digest that the marker beside them states."""
        if not isinstance(self.marker, Marker):
            return False
        return digest(self.content(), self.marker.hold) == self.marker.digest


class Change(Struct, frozen=True, gc=False):
    """One endpoint's part of a transaction: what must still stand there, and what replaces it.

    ``families`` ("4", "6" or "46") are the address families the endpoint is published in.
    """

    name: str
    seen: Live
    marker: Marker
    content: Content
    families: str

    def empties(self) -> bool:
        """Whether a published family would be left without an address: no provider adapter may send this."""
        return lacks_family(self.content, self.families) and not withdraws(self.marker)


Batch: TypeAlias = tuple[Change, ...]
"""Changes that apply all together or not at all."""

Domain: TypeAlias = Mapping[str, Live]
"""What stands in a domain, by endpoint name; an absent name is ``Live(name)``."""


def withdraws(marker: Marker) -> bool:
    """Whether the marker is a tombstone: its owner took the endpoint away."""
    return marker.hold is not None and marker.hold.kind == "withdraw"


def lacks_family(value: Content, families: str) -> bool:
    """Whether a published family of ``families`` has no address in ``value``."""
    return ("4" in families and not value.a) or ("6" in families and not value.aaaa)


def exact(live: Live, change: Change) -> bool:
    """Whether an endpoint stands exactly as the change's writer saw it (RFC 2136 section 2.4, value-dependent)."""
    seen = change.seen
    return live.marker == seen.marker and live.a == seen.a and live.aaaa == seen.aaaa


def after(live: Live, change: Change) -> Live:
    """The endpoint once the change has been applied."""
    value = change.content
    return Live(live.name, change.marker, value.a, value.aaaa, value.ttl, live.other)


def transact(domain: Domain, batch: Batch) -> dict[str, Live] | None:
    """The endpoints of ``batch`` after it, or None if any isn't as its writer saw it: then nothing changed."""
    replaced = {}
    for change in batch:
        live = domain.get(change.name) or Live(change.name)
        if not exact(live, change):
            return None
        replaced[change.name] = after(live, change)
    return replaced
