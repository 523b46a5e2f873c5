"""Amazon Route 53 as a DNS provider.

port         the DNS port: read, live, commit, wait        mirror       what stands, as sets and as endpoints
batches      a commit as exact DELETEs and CREATEs         record_sets  sets, simple and weighted
listing      pages, and which are asked for                names        names and TXT values, spelled and read
client       requests, each sent once                      errors       what refusals mean
pace         how often it is asked                         host_cache   what the roles of one host share
zones        which hosted zone a domain is                 policy       the least that IAM has to allow
"""

from collections.abc import Mapping
from pathlib import Path

from fencepost.adapters.dns_route53.policy import least_policy
from fencepost.adapters.dns_route53.port import Route53Dns
from fencepost.adapters.dns_route53.settings import Route53Settings
from fencepost.settings import Region


def open_domains(region: Region, folder: Path) -> Mapping[str, Route53Dns]:
    """A DNS port for each of the region's domains; nothing is asked for yet."""
    requests = region.dns.option("requests") or "2/s"
    return {
        domain: Route53Dns(
            Route53Settings(
                domain=domain,
                owner=region.owner,
                zone_id=region.dns.option("zone_id"),
                requests=float(requests.removesuffix("/s")),
                folder=folder,
                weighted=frozenset(each.name for each in region.endpoints if each.weighted),
                endpoint=region.dns.option("endpoint"),
                several=len(region.dns.domains) > 1,
            )
        )
        for domain in region.dns.domains
    }


__all__ = ["Route53Dns", "Route53Settings", "least_policy", "open_domains"]
