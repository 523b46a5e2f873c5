"""When a region that was just started is ready: endpoints are answered, the API answers, and every enactor can work.

That the names answer isn't enough: an earlier run, or another region, may have written what stands there.
"""

import socket
import struct
from collections.abc import Collection
from datetime import datetime

from fencepost.cli.check import counted
from fencepost.cli.looking import ask_api
from fencepost.core.dns_numbers import HEADER_BYTES
from fencepost.core.instant import SECOND
from fencepost.ports import PortError
from fencepost.roles.status.document import RoleStatus, Status
from fencepost.settings import Region
from fencepost.settings.providers import by_api, where

ENDPOINTS_MOST = 100
"""So many are asked for; a region of thousands is ready when its first ones are."""


def missing(region: Region, settled: Collection[str], *, api: bool) -> str:
    """What isn't answered yet, "" if nothing is missing; ``settled`` endpoints have no addresses and need none."""
    place = region.dns.place
    for endpoint in region.endpoints[:ENDPOINTS_MOST]:
        if place is None or endpoint.name in settled:
            continue
        if not answered(place.host, place.port, endpoint.name, endpoint.records[0]):
            return f"DNS at {place} doesn't answer {endpoint.name}"
    if api:
        try:
            ask_api(region, "/status", 2 * SECOND)
        except PortError as error:
            return str(error)
    return ""


def cannot_enact(region: Region, status: Status | None, since_s: float) -> str:
    """Which enactor can't read the provider or is misconfigured, and why; "" if none, as its sign of life has it.

    Only one given after ``since_s`` (seconds since 1970) counts: an earlier run's enactor had another key. The first
    says "up" before anything was read, so where markers of ours stand, or it isn't known whether they do, one of them
    must have been seen.
    """
    if status is None:
        return "the status of the enactors isn't known yet"
    at_s = datetime.fromisoformat(status.at).timestamp()
    marked = status.ages.dns_s is None or any(
        each.generation is not None and each.state != "foreign" for each in status.endpoints
    )
    known = {role.name: role for role in status.roles}
    for zone in region.zones:
        role = known.get(f"enactor/{zone}")
        if role is None or role.seen_s is None or at_s - role.seen_s < since_s:
            return f"enactor/{zone} gave no sign of life yet{store_trouble(status)}"
        if why := trouble(role, marked=marked):
            return f"enactor/{zone} {why}"
    return ""


def trouble(role: RoleStatus, *, marked: bool) -> str:
    """Why an enactor can't work; "" if it can. What is unavailable to one that has read may be a single endpoint."""
    if role.state == "misconfigured":
        return f"is misconfigured: {role.last_error}"
    if role.state in ("down", "silent"):
        return f"is {role.state}"
    if marked and role.generation is None:
        return f"can't read {role.last_error}" if role.last_error else "has read nothing yet"
    return ""


def store_trouble(status: Status) -> str:
    """Why signs of life can't be read, if that is known."""
    said = [each.what for each in status.problems if each.id in ("store-unavailable", "store-misconfigured")]
    return f" ({said[0]})" if said else ""


def parts(region: Region, *, api: bool) -> str:
    """What is there, for the line that says so."""
    at = where(region.dns) if by_api(region.dns) else f"dns {region.dns.place}"
    zones, targets = len(region.zones), sum(len(pool.targets) for pool in region.pools)
    counts = f"{counted(zones, 'checker')}, {counted(zones, 'enactor')}, {counted(targets, 'target')}"
    return " · ".join([at, *([f"api http://{region.api.listen}"] if api else []), counts])


def answered(host: str, port: int, name: str, kind: str) -> bool:
    """Whether a server answers a name with at least one record: one question over UDP (RFC 1035 section 4.1)."""
    labels = b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.split("."))
    question = (
        struct.pack("!6H", 0x6670, 0x0100, 1, 0, 0, 0)
        + labels
        + b"\0"
        + struct.pack("!2H", 28 if kind == "AAAA" else 1, 1)
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as link:
            link.settimeout(0.5)
            link.connect((host, port))
            link.send(question)
            reply = link.recv(4096)
    except OSError:
        return False
    return len(reply) >= HEADER_BYTES and reply[:2] == question[:2] and struct.unpack("!H", reply[6:8])[0] > 0
