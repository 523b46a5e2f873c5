"""Which DNS provider a region has: its ports, and whom the observer asks. Modules are imported only when chosen."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fencepost.assembly.places import state_folder
from fencepost.ports import DnsPort, Notified
from fencepost.settings import Region
from fencepost.settings.providers import PROVIDERS

if TYPE_CHECKING:
    from fencepost.roles.observer import Witness


def open_dns(region: Region) -> dict[str, DnsPort]:
    """A DNS port for each of the region's domains. Raises ``Misconfigured``."""
    opened: dict[str, DnsPort] = import_provider(region).open_domains(region, state_folder(region))
    return opened


def open_witness(region: Region) -> "Witness | None":
    """Whom the observer asks what happened in a domain; None where a provider keeps no account of single changes."""
    opener = getattr(import_provider(region), "open_witness", None)
    return opener(region, state_folder(region)) if opener is not None else None


def import_provider(region: Region) -> Any:
    """The module of the region's provider."""
    return importlib.import_module(PROVIDERS[region.dns.provider].module)


async def listening(ports: Mapping[str, DnsPort]) -> str:
    """Have the ports that take NOTIFY (RFC 1996) listen; where they do, as "host:port host:port"."""
    places = [await port.listen() for port in ports.values() if isinstance(port, Notified)]
    return " ".join(f"{host}:{port}" for host, port in places)
