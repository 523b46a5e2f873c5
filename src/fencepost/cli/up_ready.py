"""When a region that was just started is ready: every endpoint is answered with addresses, and the API answers."""

import socket
import struct
from collections.abc import Collection

from fencepost.cli.check import counted
from fencepost.cli.looking import ask_api
from fencepost.core.dns_numbers import HEADER_BYTES
from fencepost.core.instant import SECOND
from fencepost.ports import PortError
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
