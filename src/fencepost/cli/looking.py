"""The status document from as near as it can be had: the API, else the store, else the markers in DNS."""

import socket

from fencepost.cli.talk import Talk
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError, Unavailable
from fencepost.roles.status.document import Status, decode
from fencepost.settings import Region

API_PATIENCE_S = 1.5


def ask_api(region: Region, path: str, timeout: Duration) -> bytes:
    """The body of ``GET path`` of the region's API. Raises ``Unavailable``.

    A plain socket: HTTP libraries take longer to import than the answer takes to come.
    """
    place, limit = region.api.listen, min(timeout / SECOND, API_PATIENCE_S)
    request = f"GET {path} HTTP/1.0\r\nHost: {place}\r\nAccept: application/json\r\n\r\n"
    received = b""
    try:
        with socket.create_connection((place.host, place.port), timeout=limit) as link:
            link.sendall(request.encode())
            while part := link.recv(1 << 16):
                received += part
    except OSError as error:
        raise Unavailable(f"doesn't answer ({error.strerror or error})", where=f"the API at {place}") from None
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.") or head.split(b" ", 2)[1:2] != [b"200"]:
        said = head.split(b"\r\n")[0].decode(errors="replace") or "nothing"
        raise Unavailable(f"answered {said}", where=f"the API at {place}")
    return body


def from_api(region: Region, timeout: Duration) -> Status:
    """The API's document. Raises ``Unavailable``, also where another region's API answers."""
    import msgspec

    body = ask_api(region, "/status", timeout)
    try:
        status = decode(body)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"answered something else ({error})", where=f"the API at {region.api.listen}") from None
    if (status.region, status.owner) != (region.name, region.owner):
        raise Unavailable(f"is that of region {status.region}", where=f"the API at {region.api.listen}")
    return status


async def without_api(talk: Talk) -> Status:
    """The document put together here. Raises ``Unavailable`` if neither the store nor DNS can be read."""
    from fencepost import assembly
    from fencepost.assembly.stores import fleet_store
    from fencepost.cli.regions import refuse_unstarted, start_line
    from fencepost.roles.status.gather import gather
    from fencepost.roles.status.processes import load_processes

    refuse_unstarted(talk.region)
    folder = assembly.state_folder(talk.region)
    dns, unsigned = None, []
    try:
        dns = talk.dns.ports
    except PortError as error:
        unsigned.append(str(error))
    import time

    fleet = fleet_store(talk.region) if talk.region.fleet is not None else None
    processes, at = load_processes(folder), time.time_ns()
    try:
        status = await gather(talk.region, talk.store, dns, None, processes, at, folder=str(folder), fleet=fleet)
    finally:
        if fleet is not None:
            await fleet.close()
    if status.ages.store_s is None and status.ages.dns_s is None:
        sources = ("store-unavailable", "store-misconfigured", "dns-unavailable", "provider-refuses")
        said = [each.what for each in status.problems if each.id in sources] + unsigned
        raise Unavailable(
            f"neither its API, its store nor its DNS can be read ({'; '.join(said)})",
            where=talk.region.name,
            hint=f"{start_line(talk.region)}    starts it here",
        )
    return status


SOURCES = {
    "store": "the API doesn't answer; this is read from the store and DNS",
    "dns": "API and store are away; this is read from the markers in DNS",
}
"""What line one says of how far down it had to look."""
