"""The providers that are a primary with signed updates: the embedded server, BIND, Knot, PowerDNS."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

# dnspython is imported here, with the adapter, so that roles forked later have it already.
from fencepost.adapters.dns_differences import witness_of
from fencepost.adapters.dns_notify import Ear
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.assembly.places import tsig_key
from fencepost.ports import DnsPort, Misconfigured
from fencepost.settings import Region
from fencepost.settings.schema import HostPort

if TYPE_CHECKING:
    from fencepost.roles.observer import Witness


def open_domains(region: Region, folder: Path, zone: str = "") -> Mapping[str, DnsPort]:  # noqa: ARG001  all get one
    """A DNS port for each of the region's domains. Those of a zone's enactor share the place that the file gives it for
    NOTIFY. Raises ``Misconfigured``."""
    place = region.dns.notify_at(zone)
    ear = Ear((place.host, place.port)) if place is not None else None
    return {each.domain: Rfc2136Dns(each, ear) for each in dns_settings(region, place)}


def open_witness(region: Region, folder: Path) -> "Witness":  # noqa: ARG001  as above
    """The primary, over connections of its own."""
    return witness_of(dns_settings(region))


def dns_settings(region: Region, notify: HostPort | None = None) -> list[Rfc2136Settings]:
    """How each of the region's domains is reached, and where NOTIFY is taken. Raises ``Misconfigured``."""
    key, at = tsig_key(region), region.dns.place
    if at is None:
        raise Misconfigured("no DNS server is named", where=region.path, hint='write server = "192.0.2.53:53" in [dns]')
    place = ("::1" if at.host == "::1" else "127.0.0.1", 0) if notify is None else (notify.host, notify.port)
    return [
        Rfc2136Settings(
            server=(at.host, at.port),
            domain=domain,
            owner=region.owner,
            key_name=key.name,
            key_algorithm=key.algorithm,
            key_secret=base64.b64encode(key.secret).decode(),
            notify=place,
        )
        for domain in region.dns.domains
    ]
