"""``fencepost dev route53``: a Route 53 to try things on, on this machine, until Ctrl-C."""

import asyncio
import json as json_text
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.terminal import say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # loaded when it is wanted
    from fencepost.dev.route53 import Route53Server, Route53Settings


def route53(
    *,
    listen: str = "127.0.0.1:5380",
    dns: str | None = None,
    zone: Annotated[tuple[str, ...], Parameter(help="A hosted zone to have; may be given several times.")] = (),
    data: Path | None = None,
    requests_per_s: int = 5,
    json: Json = False,
) -> int:
    """A strict stand-in for Amazon Route 53 on this machine, in the foreground, until Ctrl-C.

    Parameters
    ----------
    listen
        Where the API listens, on loopback; port 0 takes any free one.
    dns
        Where DNS is answered for its zones (UDP and TCP); nowhere unless given.
    data
        A file that keeps its zones over a restart; memory only unless given.
    requests_per_s
        How many requests a second an account may make, as on AWS; 0 for as many as come.
    """
    from fencepost.dev.route53 import Route53Settings

    for flag, place in (("--listen", listen), ("--dns", dns)):
        if place is not None:
            judge(flag, place)
    if requests_per_s < 0:
        raise Misconfigured(f"--requests-per-s {requests_per_s} is less than none", hint="5 as on AWS, 0 for no limit")
    settings = Route53Settings(
        listen=listen,
        dns=dns,
        zones=zone,
        data=str(data) if data is not None else None,
        requests_per_s=requests_per_s or None,
    )
    asyncio.run(serve_until_told(settings, as_json=json))
    return 0


def judge(flag: str, place: str) -> None:
    """Refuse what is no place on loopback: a stand-in lets anybody in."""
    import ipaddress

    host, colon, port = place.rpartition(":")
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not colon or not port.isdigit() or int(port) > 65535 or not loopback:
        hint = f"{flag} 127.0.0.1:5380" if flag == "--listen" else f"{flag} 127.0.0.1:5353"
        raise Misconfigured(f"{flag} {place!r} is no address on loopback with a port", hint=hint)


async def serve_until_told(settings: "Route53Settings", *, as_json: bool) -> None:
    """Serve until SIGINT or SIGTERM. Raises ``Misconfigured`` if it can't."""
    from fencepost.dev.route53.beside import serve

    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(serve(settings, lambda server: tell(server, as_json=as_json)))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return


def tell(server: "Route53Server", *, as_json: bool) -> None:
    """Say where it is, what it has, and how a client is pointed at it."""
    dns = f"{host_of(server.settings.dns)}:{server.dns_port}" if server.settings.dns else None
    zones = {zone.name: zone.id for zone in server.account.zones.values()}
    if as_json:
        say(json_text.dumps({"endpoint": server.url, "dns": dns, "zones": zones}))
        return
    lines = [f"Route 53 stand-in at {server.url}, until Ctrl-C. Any credentials will do; nothing leaves this machine."]
    lines += [f"  zone     {name}  {id_}" for name, id_ in zones.items()]
    lines += [
        f"  client   export AWS_ENDPOINT_URL_ROUTE_53={server.url}",
        "           export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1",
        "           export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any",
    ]
    if dns is not None:
        at = next(iter(zones), "example.test.")
        lines.append(f"  ask      dig @{host_of(dns)} -p {server.dns_port} {at} SOA")
    lines.append(f"  keeps    {server.settings.data or 'nothing; --data FILE would'}")
    say("\n".join(lines))


def host_of(place: str) -> str:
    """The host of ``host:port``, without brackets."""
    return place.rpartition(":")[0].strip("[]")
