"""Which hosted zone a domain is: by its id if one is given, else by its name, if only one has that name.

Two hosted zones may share a name: a public and a private one, or two of which one is left over. Taking either would be
a guess (octodns does; so do others, and write to the one nobody asks), so both are listed and a person chooses.
"""

from typing import Any

from msgspec import Struct

from fencepost.adapters.dns_route53.client import Client
from fencepost.adapters.dns_route53.errors import Asked
from fencepost.adapters.dns_route53.names import owner_of
from fencepost.adapters.dns_route53.settings import Route53Settings
from fencepost.ports import Misconfigured


class HostedZone(Struct, frozen=True):
    """A hosted zone. ``sets`` is how many record sets it has, as AWS counts; for estimates only."""

    id: str
    name: str
    private: bool
    sets: int

    def __str__(self) -> str:
        return f"{self.id} ({'private' if self.private else 'public'}, {self.sets} record sets)"


async def find_zone(client: Client, settings: Route53Settings) -> HostedZone:
    """The domain's hosted zone. Raises the ports' exceptions."""
    domain, given = settings.domain, settings.zone_id
    if given:
        asked = Asked("GetHostedZone", f"looking for {domain}", given)
        answer = await client.ask("GetHostedZone", asked, urgent=True, Id=given)
        found = _zone(answer["HostedZone"])
        if found.name == owner_of(domain):
            return found
        if not settings.several:
            raise Misconfigured(
                f"hosted zone {given} is {found.name.removesuffix('.')}, not {domain}",
                where="[dns] zone_id",
                hint="name the hosted zone of the domain, or leave zone_id out to find it by name",
            )
    asked = Asked("ListHostedZonesByName", f"looking for {domain}")
    answer = await client.ask("ListHostedZonesByName", asked, urgent=True, DNSName=owner_of(domain))
    zones = [zone for zone in map(_zone, answer["HostedZones"]) if zone.name == owner_of(domain)]
    if len(zones) == 1:
        return zones[0]
    if not zones:
        raise Misconfigured(
            f"Route 53 has no hosted zone {domain} in this account",
            where=f"looking for {domain}",
            hint="name under [dns] domain one that is there, or sign in to the account that has it",
        )
    raise Misconfigured(
        f"Route 53 has {len(zones)} hosted zones {domain}: {', '.join(map(str, zones))}",
        where=f"looking for {domain}",
        hint=f'say which one is meant: zone_id = "{zones[0].id}" under [dns]',
    )


def _zone(listed: dict[str, Any]) -> HostedZone:
    return HostedZone(
        listed["Id"].rpartition("/")[2],
        listed["Name"],
        bool(listed.get("Config", {}).get("PrivateZone", False)),
        int(listed.get("ResourceRecordSetCount", 0)),
    )
