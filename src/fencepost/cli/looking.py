"""The status document from as near as it can be had: the API, else the store, else the markers in DNS."""

import socket
from collections.abc import Iterable

from fencepost.cli.talk import Talk
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError, Unavailable
from fencepost.roles.status.document import RoleStatus, Status, decode
from fencepost.settings import Region
from fencepost.settings.units import spoken

API_PATIENCE_S = 1.5
SAID_FROM_S = 3.0
"""What is younger is now, for people."""
KEEPING = ("checker", "planner", "host-manager")
"""Roles that keep what the store says of targets and hosts true."""


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


def source_line(found: Status) -> str:
    """How far down one had to look for a document, where each part of it comes from and how old that is; "" for all.

    An API whose store is away shows what it read before, which no document that was put together here has.
    """
    if found.source == "api":
        return ""
    if found.source == "store":
        still = unheard(found.roles)
        return "the API doesn't answer; this is read from the store and DNS" + (f"; {still}" if still else "")
    by_api = found.observed is not None or found.ages.store_s is not None
    dns, away = markers(found.ages.dns_s), "the store is away" if by_api else "API and store are away"
    processes = "pids from the supervisor" if found.restarts is not None else "no supervisor tells of processes"
    if found.ages.store_s is not None:
        stored = f"plan, budget, votes and hosts as the store had them {aged(found.ages.store_s)}"
    else:
        stored = "what only the store knows (plan, budget, votes, hosts) isn't known"
    return f"{away}; {dns}; {processes}; {stored}"


def markers(age_s: float | None) -> str:
    """Where the endpoints come from."""
    if age_s is None:
        return "DNS can't be read either"
    return "endpoints are read from the markers in DNS" + (f", {aged(age_s)}" if age_s >= SAID_FROM_S else "")


def unheard(roles: Iterable[RoleStatus]) -> str:
    """That none of the roles who bring the store's facts up to date is heard, and since when; "" if one is."""
    keeping = [each for each in roles if each.name.partition("/")[0] in KEEPING]
    if any(each.state not in ("down", "silent") for each in keeping):
        return ""
    heard = min((each.seen_s for each in keeping if each.seen_s is not None), default=None)
    since = f", the last was {aged(heard)}: what the store says is as of then" if heard is not None else ""
    return f"no checker, planner or manager is heard{since}"


def aged(age_s: float) -> str:
    """An age in words."""
    return f"{spoken(int(age_s) * SECOND)} ago"
