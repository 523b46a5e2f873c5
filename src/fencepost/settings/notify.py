"""Where enactors take NOTIFY (RFC 1996) from a primary that isn't ours: an address for each zone.

The embedded server learns from the store where each role listens, so there any free port will do. BIND, Knot and
PowerDNS are told by their own configuration, and so the place has to be a fixed one. It is one a zone, since each
enactor is a process, often on a host of its own, and one NOTIFY reaches one socket: of two that shared a port only one
would be woken. Domains share their enactor's place; a NOTIFY says which it is about.
"""

from typing import Any

from fencepost.settings.mistakes import clean, shown
from fencepost.settings.schema import HostPort, Region
from fencepost.settings.values import Reader, UnfitError, place

_EXAMPLE = 'notify = { a = "192.0.2.7:5353", b = "192.0.2.8:5353" }'


def places_by_zone(value: Any) -> tuple[tuple[str, HostPort], ...]:
    """Read ``{ ZONE = "address:port" }``, by zone."""
    if not isinstance(value, dict):
        raise UnfitError(f"is not a table: each zone's enactor listens at a place of its own; write {_EXAMPLE}")
    if not value:
        raise UnfitError("is empty; leave it out, or say where the enactor of at least one zone listens")
    read: Reader = place()
    found = []
    for zone, said in sorted(value.items()):
        try:
            found.append((zone, read(said)))
        except ValueError as error:
            raise UnfitError(f"{clean(zone)} = {shown(said)} {error}") from error
    return tuple(found)


def notify_faults(region: Region) -> list[str]:
    """Say what can't be right about the places, beside the region's zones and whatever else listens."""
    found = []
    given: dict[HostPort, str] = {}
    for zone, at in region.dns.notify:
        if zone not in region.zones:
            found.append(f"there is no zone {clean(zone)}; it is one of {', '.join(region.zones)}")
        if at in given:
            both = f"{given[at]} and {zone} are both {at}"
            found.append(f"{both}: one NOTIFY wakes only one of two that share a port; write another")
        given.setdefault(at, zone)
        for what, other in (("[api] listen", region.api.listen), ("[dns] server", region.dns.server)):
            if at == other:
                found.append(f"{zone} is {at}, which is also {what}: one port, two that listen; write another")
    return found
