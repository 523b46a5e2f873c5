"""Which DNS provider a region has: its ports, and whom the observer asks. Modules are imported only when chosen."""

import importlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fencepost.assembly.places import state_folder
from fencepost.assembly.ports_in_use import taken_by
from fencepost.ports import DnsPort, Misconfigured, Notified
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.schema import HostPort

if TYPE_CHECKING:
    from fencepost.roles.observer import Witness

log = logging.getLogger(__name__)


def open_dns(region: Region, zone: str = "") -> dict[str, DnsPort]:
    """A DNS port for each of the region's domains; ``zone`` is that of the enactor they are for, which may have a place
    of its own for NOTIFY. Raises ``Misconfigured``."""
    of_zone = (zone,) if region.dns.notify_at(zone) is not None else ()
    opened: dict[str, DnsPort] = import_provider(region).open_domains(region, state_folder(region), *of_zone)
    return opened


def open_witness(region: Region) -> "Witness | None":
    """Whom the observer asks what happened in a domain; None where a provider keeps no account of single changes."""
    opener = getattr(import_provider(region), "open_witness", None)
    return opener(region, state_folder(region)) if opener is not None else None


def import_provider(region: Region) -> Any:
    """The module of the region's provider."""
    return importlib.import_module(PROVIDERS[region.dns.provider].module)


async def listening(ports: Mapping[str, DnsPort], place: HostPort | None = None) -> str:
    """Have the ports that take NOTIFY (RFC 1996) listen; where they do, as "host:port host:port".

    ``place`` is the one that the file gives them, if it does. One that another process has is said, with whose it is,
    and done without: the serial is asked for then.
    """
    places: dict[str, None] = {}
    for port in ports.values():
        if isinstance(port, Notified):
            try:
                host, number = await port.listen()
            except Misconfigured as error:
                taken = taken_by(place.host, place.port, "[dns] notify", udp=True) if place is not None else ""
                log.warning("[dns] notify: %s; until it is free the serial is asked for each second", taken or error)
            else:
                places[f"[{host}]:{number}" if ":" in host else f"{host}:{number}"] = None
    return " ".join(places)
