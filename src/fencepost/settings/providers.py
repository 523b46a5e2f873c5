"""The DNS providers: for each the module that opens its domains, and the keys of [dns] that are its own.

Adding one is a module with an ``open_domains(region, folder)`` that gives a :class:`~fencepost.ports.DnsPort` for each
domain, and a line here. The module is named, not imported: what a region doesn't use is never loaded.
"""

from collections.abc import Mapping
from typing import NamedTuple

from fencepost.core.traffic.room import Room
from fencepost.settings import google, values
from fencepost.settings.schema import Dns
from fencepost.settings.values import Reader

NONE: Mapping[str, Reader] = {}
_RFC2136 = "fencepost.assembly.rfc2136"


UPDATES_AT_ONCE, UPDATES_MOST = 12, 256
"""UPDATEs of one commit, a few of them under way at a time, and of one where there is much to write."""


class Provider(NamedTuple):
    """One provider. ``options`` are its own keys of text, ``secrets`` those that say where a secret is to be found.

    ``must`` names those of them that have to be given, each with an example. ``room`` is what one transaction holds,
    ``at_once`` how many make a commit and ``at_once_most`` a long one, ``weighted`` whether it has weighted record
    sets, ``srv`` whether its adapter keeps SRV records beside an endpoint.
    """

    label: str
    module: str
    options: Mapping[str, Reader] = NONE
    secrets: tuple[str, ...] = ()
    must: Mapping[str, str] = {}
    room: Room = Room()
    at_once: int = 1
    at_once_most: int = 1
    weighted: bool = False
    srv: bool = False


PROVIDERS = {
    "embedded": Provider("the embedded server", _RFC2136, at_once=UPDATES_AT_ONCE, at_once_most=UPDATES_MOST, srv=True),
    "rfc2136": Provider("RFC 2136", _RFC2136, at_once=UPDATES_AT_ONCE, at_once_most=UPDATES_MOST, srv=True),
    "route53": Provider(
        "Route 53",
        "fencepost.adapters.dns_route53",
        {"zone_id": values.hosted_zone, "requests": values.frequency, "endpoint": values.api_url},
        # Developer Guide, "Quotas": records and characters of a batch, records of a set, characters of a TXT value. Two
        # records are the least an endpoint takes, so 500 endpoints can fit.
        room=Room(endpoints=500, octets=0, records=1_000, characters=32_000, per_set=100, text=4_000),
        weighted=True,
    ),
    "clouddns": Provider(
        "Google Cloud DNS",
        "fencepost.adapters.dns_cloud_dns",
        {"project": google.project, "managed_zone": google.managed_zone},
        secrets=("token",),
        must={"project": '"my-project"', "managed_zone": '"example-com"', "token": '{ env = "CLOUD_DNS_TOKEN" }'},
        # Of a change: 1,000 sets (three an endpoint, and the SOA record), 100,000 bytes of values; 100 values a set.
        room=Room(endpoints=300, octets=0, characters=90_000, per_set=100),
    ),
}
"""By the name that ``provider`` takes. The first two have keys of [dns] itself: listen, transfer; server, key."""

BY_UPDATE = ("embedded", "rfc2136")
"""Those that are written by DNS messages to a primary (RFC 2136); every other has an API of its own."""


def by_api(dns: Dns) -> bool:
    """Whether the provider is written by an API of its own, not by DNS messages to a primary."""
    return dns.provider not in BY_UPDATE


def where(dns: Dns) -> str:
    """Where records are written, for people: the primary's address, or the provider's name."""
    return PROVIDERS[dns.provider].label if by_api(dns) or dns.place is None else str(dns.place)
