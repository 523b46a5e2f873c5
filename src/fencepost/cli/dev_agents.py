"""``fencepost dev agents``: a fleet of hosts to try things on, in one process on this machine, until Ctrl-C."""

import json as json_text
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from fencepost.cli.flags import Config, Json
from fencepost.cli.terminal import say
from fencepost.core.instant import SECOND
from fencepost.ports import Misconfigured

MOST = (1_000_000, 1000, 10_000)
"""Of hosts, of instances on each, of answers at once."""
RENEW = 10 * SECOND
"""How often hosts are asked where neither a region's file nor an API says it."""


def agents(
    *,
    hosts: int = 10,
    listen: str = "127.0.0.1:7700",
    zones: str | None = None,
    room: int = 4,
    join: str | None = None,
    state: Path | None = None,
    deaf: Annotated[
        tuple[str, ...], Parameter(help="A host that doesn't answer; zone:b for all of one, * for all.")
    ] = (),
    slow: str = "",
    servers: int = 64,
    control: Path | None = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Many hosts in one process, each with the decider that real agents have. Nothing runs on them.

    Parameters
    ----------
    hosts
        How many.
    listen
        Where they answer, UDP and TCP, on loopback; port 0 takes any free one.
    zones
        Failure zones that they lie in by turns, as a,b,c; the region's unless given.
    room
        How many instances each takes.
    join
        The API at which they register; that of the region's file unless given.
    state
        The folder that their memories are in.
    slow
        How long an answer takes on average, such as 40ms; as fast as it can be unless given.
    servers
        How many answers are made at once, where they are slow; past that they get slower.
    control
        A JSON file that says who misbehaves, read again whenever it changes.
    """
    flags = ManyFlags(hosts, listen, zones, room, join, state, deaf, slow, servers, control, config, json)
    return run_agents(flags)


class ManyFlags(Struct, frozen=True):
    """The command's flags, as given."""

    hosts: int
    listen: str
    zones: str | None
    room: int
    join: str | None
    state: Path | None
    deaf: tuple[str, ...]
    slow: str
    servers: int
    control: Path | None
    config: str | None
    json: bool


def run_agents(flags: ManyFlags) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code. Raises ``Misconfigured``."""
    from fencepost.assembly.dev_agents import ManyOptions, many_main
    from fencepost.cli import agent as own
    from fencepost.dev.agents import names_of
    from fencepost.roles.process import run
    from fencepost.settings.schema import Secret

    place = own.place_of(flags.listen)
    judge(flags, place.host)
    region = own.region_of(flags.config)
    fleet = region.fleet if region is not None else None
    zones = zones_of(flags.zones, region.zones if region is not None else ())
    folder = flags.state or own.folder_of(None, region, "dev-agents")
    join = own.join_of(flags.join, region)
    options = ManyOptions(
        names=names_of(flags.hosts, zones),
        folder=folder,
        listen=place,
        key=own.key_of(folder, fleet.key if fleet is not None else Secret(file=str(folder / "fleet.key"))),
        ready=ready(flags, place.host, zones),
        join=join,
        token=own.token_of(folder, region) if join else "",
        room=flags.room,
        renew=fleet.renew_ns if fleet is not None else None if join else RENEW,
        deaf=flags.deaf,
        slow=flags.slow,
        servers=flags.servers,
        control=flags.control,
    )
    return run("dev agents", many_main(options), folder, log_to_stderr=True)


def judge(flags: ManyFlags, host: str) -> None:
    """Refuse numbers that are none, and other places than loopback: these hosts are a stand-in's."""
    import ipaddress

    from fencepost.settings.units import duration_ns

    given = (("--hosts", flags.hosts), ("--room", flags.room), ("--servers", flags.servers))
    for (flag, number), most in zip(given, MOST, strict=True):
        if not 1 <= number <= most:
            raise Misconfigured(f"{flag} {number} isn't 1 to {most:,}", hint=f"{flag} 10")
    if not ipaddress.ip_address(host).is_loopback:
        raise Misconfigured(f"--listen {host} isn't on loopback", hint="--listen 127.0.0.1:7700")
    try:
        if flags.slow:
            duration_ns(flags.slow)
    except ValueError as error:
        raise Misconfigured(f"--slow {flags.slow!r} {error}", hint="--slow 40ms") from None


def zones_of(text: str | None, region: tuple[str, ...]) -> tuple[str, ...]:
    """Failure zones, as given or the region's. Raises ``Misconfigured``."""
    names = tuple(filter(None, text.split(","))) if text is not None else region or ("a", "b", "c")
    unknown = [each for each in names if region and each not in region]
    if not names or unknown:
        what = f"no zone {unknown[0]!r} in this region" if unknown else "--zones names none"
        raise Misconfigured(what, hint=f"--zones {','.join(region or ('a', 'b', 'c'))}")
    return names


def ready(flags: ManyFlags, host: str, zones: tuple[str, ...]) -> Callable[[int], None]:
    """What says where they are, told the port."""

    def tell(port: int) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if flags.json:
            say(json_text.dumps({"at": place, "hosts": flags.hosts, "zones": list(zones)}))
        else:
            where = f"zones {', '.join(zones)} at {place}, UDP and TCP"
            say(f"{flags.hosts:,} hosts in {where}, until Ctrl-C. Nothing runs on them.")

    return tell
