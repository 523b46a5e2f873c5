"""A domain's endpoints as a DNS provider holds them, and the fenced transaction: the reference semantics.

Every provider adapter must behave as :func:`transact` does (``tests/contracts`` runs one suite over all of them), and
the explorer runs on it directly. It is the rule *exact*: a change requires the exact marker **and** the exact addresses
as read, or their absence. Requiring the marker alone isn't enough: a writer that saw "no marker" could come after
another had written and someone had then deleted the marker by hand; the addresses give it away.

TTL can't be required by RFC 2136 (section 2.4.2 ignores it), so it isn't part of what is exact. Nor are the SRV records
beside an endpoint and their hosts (:mod:`fencepost.core.service`), save at a service that the marker doesn't name yet.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.fence import Foreign, Marker, digest
from fencepost.core.record_set import Content
from fencepost.core.service import (
    Host,
    Service,
    claimed,
    concerned,
    hosts_of,
    label_of,
    names_service,
    ours,
    service_of,
)


class Live(Struct, frozen=True, gc=False):
    """One endpoint as last read from DNS: its marker (None if absent), addresses in canonical order, and their TTL.

    ``other`` names record types at the endpoint's name that we don't write (CNAME, say): such a name isn't ours to
    take. ``services`` are the SRV sets directly below it, ``hosts`` what stands at the hosts that its marker or those
    sets name, both by label; most endpoints have neither.
    """

    name: str
    marker: Marker | Foreign | None = None
    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    ttl: int = 0
    other: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()
    hosts: tuple[Host, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no address stands here."""
        return not self.a and not self.aaaa

    def content(self) -> Content:
        """The records as a content; weights and service are those the marker carries for exactly these addresses."""
        carried = self.marker.content if isinstance(self.marker, Marker) else None
        if carried is None or carried.a != self.a or carried.aaaa != self.aaaa:
            return Content(self.a, self.aaaa, (), self.ttl)
        return Content(self.a, self.aaaa, carried.weights, self.ttl, carried.srv)

    def answers(self, value: Content) -> bool:
        """Whether addresses and TTL are exactly ``value``'s (weights ride in the marker, not here)."""
        return self.a == value.a and self.aaaa == value.aaaa and (self.ttl == value.ttl or value.empty)

    def holds(self, value: Content) -> bool:
        """Whether the records are exactly ``value``'s, those beside too."""
        return self.answers(value) and (value.srv is None or not self.astray(value))

    def service(self, label: str) -> Service:
        """What stands at a service's name; ``Service(label)`` where there is nothing."""
        return next((each for each in self.services if each.label == label), Service(label))

    def astray(self, value: Content) -> tuple[str, ...]:
        """The labels beside the endpoint at which something else stands than ``value`` asks for; () if all is well."""
        wanted = service_of(self.name, value)
        if wanted is None:
            return ()
        stands = {host.label: host for host in self.hosts}
        found = [] if self.service(wanted.label) == wanted else [wanted.label]
        return (*found, *(host.label for host in hosts_of(value) if stands.get(host.label) != host))

    def barred(self, labels: tuple[str, ...]) -> tuple[str, str] | None:
        """The first of these labels where a record type stands beside which nothing can be written, and the type."""
        parts: tuple[Service | Host, ...] = (*self.services, *self.hosts)
        return next(((each.label, each.other[0]) for each in parts if each.other and each.label in labels), None)

    def strange_service(self, value: Content) -> str:
        """Why the name of ``value``'s service isn't ours to take; "" if it is, or it has none.

        What stands under a marker that names the service is ours, however it was altered.
        """
        if value.srv is None or names_service(self.marker, value.srv):
            return ""
        stands = self.service(value.srv.service)
        if stands.other:
            return f"a {stands.other[0]} record stands at {stands.label}.{self.name}"
        return "" if ours(self.name, stands) else f"another's SRV records stand at {stands.label}.{self.name}"

    def verified(self) -> bool:
        """Whether the addresses match the digest that the marker beside them states (SRV records may be astray)."""
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
    alike = live.marker == seen.marker and live.a == seen.a and live.aaaa == seen.aaaa
    srv = change.content.srv
    if srv is None or names_service(seen.marker, srv):
        return alike
    stands = live.service(srv.service)
    return alike and stands.records == seen.service(srv.service).records and not stands.other


def after(live: Live, change: Change) -> Live:
    """The endpoint once the change has been applied."""
    value = change.content
    made = Live(live.name, change.marker, value.a, value.aaaa, value.ttl, live.other, live.services, live.hosts)
    return made if value.srv is None and claimed(change.seen.marker) is None else _beside(made, change)


def _beside(live: Live, change: Change) -> Live:
    """With what the old marker named gone and what the new one names in place. Beside a CNAME nothing is added."""
    value, old = change.content, claimed(change.seen.marker)
    wanted = service_of(live.name, value)
    gone = {old.srv.service, *(host.label for host in hosts_of(old))} if old is not None and old.srv is not None else ()
    services = {each.label: each for each in live.services if each.other or each.label not in gone}
    hosts = {each.label: each for each in live.hosts if each.other or each.label not in gone}
    if wanted is not None and not services.get(wanted.label, wanted).other:
        services[wanted.label] = wanted
    hosts |= {each.label: each for each in hosts_of(value) if not hosts.get(each.label, each).other}
    known = concerned(live.name, change.marker, services.values())
    return replace(
        live,
        services=tuple(sorted(services.values(), key=label_of)),
        hosts=tuple(sorted((each for each in hosts.values() if each.label in known), key=label_of)),
    )


def transact(domain: Domain, batch: Batch) -> dict[str, Live] | None:
    """The endpoints of ``batch`` after it, or None if any isn't as its writer saw it: then nothing changed."""
    replaced = {}
    for change in batch:
        live = domain.get(change.name) or Live(change.name)
        if not exact(live, change):
            return None
        replaced[change.name] = after(live, change)
    return replaced
