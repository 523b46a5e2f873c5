"""SRV records beside an endpoint's addresses (RFC 2782): how callers of servers that answer all alike get weights.

An endpoint ``api.example.com`` with the service ``_http._tcp`` has, beside its addresses, one SRV record an address at
``_http._tcp.api.example.com``, with the address's weight and port. A SRV record names a host, never an address, and
that host must be no alias; so each address has a *host* below the endpoint, ``a-192-0-2-10.api.example.com`` or
``aaaa-20010db8…`` (32 hex digits), whose only record it is.

All of it is a pure function of the content, so the marker, which always carries the content of such an endpoint, says
which records beside it are ours. They are written in the same transaction as the marker and the addresses. The fence
stays what it was, with one requirement more: where the marker that was seen doesn't name the service yet, what stands
at its name must still be what was seen, so that no stranger's set is ever replaced by one that came in between.

A stranger's SRV set is one that no marker of ours names and that sends callers elsewhere than to hosts of this form.
Names of this form directly below an endpoint with a service are taken to be ours.
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from fencepost.core.fence import Foreign, Marker
from fencepost.core.record_set import Content, Srv, ports_of

_FOUR, _SIX = "a-", "aaaa-"
HOST_LABEL_MAX = len(_SIX) + 32
"""Characters of the longest label of a host."""
PRIORITY = 0
"""All targets are of one priority: which of them are in service is what the set itself says."""


class Pointer(NamedTuple):
    """One SRV record; ``target`` is a normalised name."""

    priority: int
    weight: int
    port: int
    target: str


class Service(Struct, frozen=True, gc=False):
    """What stands at a service's name directly below an endpoint: SRV records in order, their TTL in seconds.

    ``label`` is the two labels, ``_http._tcp``; ``other`` names record types there that keep SRV records away (CNAME).
    """

    label: str
    ttl: int = 0
    records: tuple[Pointer, ...] = ()
    other: tuple[str, ...] = ()


class Host(Struct, frozen=True, gc=False):
    """What stands at a host's name directly below an endpoint: its first ``label``, addresses, TTL in seconds."""

    label: str
    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    ttl: int = 0
    other: tuple[str, ...] = ()


def host_label(address: str) -> str:
    """The first label of an address's host: ``a-192-0-2-10``, ``aaaa-`` and 32 hex digits."""
    if ":" in address:
        return f"{_SIX}{ipaddress.IPv6Address(address).packed.hex()}"
    return _FOUR + address.replace(".", "-")


def address_of(label: str) -> str | None:
    """The address that a host's label stands for; None if it is no such label."""
    try:
        if label.startswith(_SIX):
            made = str(ipaddress.IPv6Address(bytes.fromhex(label[len(_SIX) :])))
        elif label.startswith(_FOUR):
            made = str(ipaddress.IPv4Address(label[len(_FOUR) :].replace("-", ".")))
        else:
            return None
    except ValueError:
        return None
    return made if host_label(made) == label else None


def endpoint_beside(name: str) -> str | None:
    """The endpoint that a name would stand beside, if it has the form of a service's or a host's; None if not."""
    first, _, rest = name.partition(".")
    if first.startswith((_FOUR, _SIX)):
        return rest if rest and address_of(first) is not None else None
    second, _, rest = rest.partition(".")
    return rest if rest and first.startswith("_") and second.startswith("_") else None


def service_of(name: str, value: Content) -> Service | None:
    """The service set that belongs beside an endpoint; None if its content has none."""
    if value.srv is None:
        return None
    weights = value.weights or (1,) * len(value.addresses)
    records = [
        Pointer(PRIORITY, weight, port, f"{host_label(address)}.{name}")
        for (address, port), weight in zip(ports_of(value).items(), weights, strict=True)
    ]
    return Service(value.srv.service, value.ttl, tuple(sorted(records)))


def hosts_of(value: Content) -> tuple[Host, ...]:
    """The hosts that belong beside an endpoint, by label; () if its content has no service."""
    if value.srv is None:
        return ()
    four = [Host(host_label(address), (address,), (), value.ttl) for address in value.a]
    six = [Host(host_label(address), (), (address,), value.ttl) for address in value.aaaa]
    return tuple(sorted(four + six, key=label_of))


def label_of(part: Service | Host) -> str:
    """What services and hosts are in order of."""
    return part.label


def claimed(marker: Marker | Foreign | None) -> Content | None:
    """The content that a marker carries with a service: what it names of the records beside it is ours."""
    value = marker.content if isinstance(marker, Marker) else None
    return value if value is not None and value.srv is not None else None


def names_service(marker: Marker | Foreign | None, srv: Srv) -> bool:
    """Whether a marker names this service, whatever its ports."""
    value = claimed(marker)
    return value is not None and value.srv is not None and value.srv.service == srv.service


def ours(name: str, service: Service) -> bool:
    """Whether a set sends callers only to hosts of our form below this endpoint."""
    tail = f".{name}"
    return all(
        each.target.endswith(tail) and address_of(each.target[: -len(tail)]) is not None for each in service.records
    )


def concerned(name: str, marker: Marker | Foreign | None, services: Iterable[Service]) -> frozenset[str]:
    """The labels of the hosts that an endpoint has to do with: those its marker names, and those its services name."""
    value, tail = claimed(marker), f".{name}"
    labels = {host.label for host in hosts_of(value)} if value is not None else set()
    for service in services:
        for each in service.records:
            label = each.target.removesuffix(tail)
            if label != each.target and address_of(label) is not None:
                labels.add(label)
    return frozenset(labels)
