"""``fencepost run agent``: what an agent goes by, from its flags, its region's file if there is one, and its folder."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from fencepost.cli.folder import here, made, meant
from fencepost.ports import Misconfigured
from fencepost.settings.fleet import HOST_NAME, instance_addresses
from fencepost.settings.schema import HostPort, Region, Secret
from fencepost.settings.values import UnfitError

if TYPE_CHECKING:
    from fencepost.assembly.agents import AgentOptions

PORT = 7700
"""Where an agent answers unless told otherwise, UDP and TCP."""


class AgentFlags(Struct, frozen=True):
    """The flags of ``fencepost run agent``, as given."""

    host: str | None = None
    zone: str | None = None
    listen: str | None = None
    join: str | None = None
    room: int = 1
    address: tuple[str, ...] = ()
    state: Path | None = None
    config: str | None = None


def run_agent(flags: AgentFlags) -> int:
    """Serve until SIGTERM; the exit code. Instances go on."""
    from fencepost.assembly.agents import agent_main
    from fencepost.roles.process import run

    options = options_of(flags)
    made(options.folder.parent)
    return run(f"agent/{options.host}", agent_main(options), options.folder, log_to_stderr=True)


def options_of(flags: AgentFlags) -> "AgentOptions":
    """What the flags come to. Raises ``Misconfigured``."""
    from fencepost.assembly.agents import AgentOptions

    host, zone = flags.host or socket.gethostname().lower(), flags.zone
    if not HOST_NAME.fullmatch(host):
        hint = "--host NAME: small letters, digits, hyphens and dots, at most 63"
        raise Misconfigured(f"{host!r} is no name for a host", hint=hint)
    if flags.room < 1:
        raise Misconfigured(f"--room {flags.room} takes no instance", hint="--room 1 takes one")
    region = region_of(flags.config)
    if zone is None:
        raise Misconfigured(
            "an agent's host lies in a failure zone", hint=f"--zone {region.zones[0] if region else 'a'}"
        )
    if region is not None and zone not in region.zones:
        raise Misconfigured(f"no zone {zone!r} in this region", hint=f"one of: {', '.join(region.zones)}")
    fleet = region.fleet if region is not None else None
    folder = folder_of(flags.state, region, host)
    join = join_of(flags.join, region)
    if fleet is None and not join:
        hint = "--join https://api.example.com, whose answer says it"
        raise Misconfigured("without a region.toml here nobody tells how often hosts are asked", hint=hint)
    listen = place_of(flags.listen or f"127.0.0.1:{PORT}")
    return AgentOptions(
        host=host,
        zone=zone,
        folder=folder,
        listen=listen,
        advertised=advertised(listen.host, join),
        key=key_of(folder, fleet.key if fleet is not None else None),
        join=join,
        token=token_of(folder, region) if join else "",
        room=flags.room,
        addresses=addresses_of(flags.address),
        renew=fleet.renew_ns if fleet is not None else None,
        driver=fleet.driver if fleet is not None else "process",
    )


def region_of(config: str | None) -> Region | None:
    """The region of this machine, if it has its file. Raises ``Misconfigured`` for a file that is none."""
    from fencepost.cli import regions

    found = meant(config)
    if config is None and (found is None or not found.path.exists()):
        return None
    region = regions.region_of(config, forgiving=True)
    if region.fleet is None:
        hint = "write [fleet] there, on a line of its own"
        raise Misconfigured("this region has no fleet", where=region.path, hint=hint)
    return region


def folder_of(state: Path | None, region: Region | None, host: str) -> Path:
    """The agent's folder."""
    from fencepost.assembly.places import state_folder

    if state is not None:
        return state
    if region is not None:
        return state_folder(region) / "hosts" / host
    given = os.environ.get("STATE_DIRECTORY")
    return Path(given) if given else here() / ".fencepost" / "hosts" / host


def key_of(folder: Path, secret: Secret | None) -> bytes:
    """The fleet's key: the region's, made if need be, or FOLDER/fleet.key of a host without a region's file."""
    from fencepost.assembly.fleet_key import fleet_key, make_fleet_key

    if secret is not None:
        if secret.file:
            made(Path(secret.file).parent)
        make_fleet_key(secret)
    return fleet_key(secret or Secret(file=str(folder / "fleet.key")))


def token_of(folder: Path, region: Region | None) -> str:
    """What the API asks for: the region's token, or FENCEPOST_API_TOKEN, or FOLDER/api.token."""
    from fencepost.settings.secret import read_secret

    variable = "FENCEPOST_API_TOKEN"
    secret = Secret(env=variable) if variable in os.environ else Secret(file=str(folder / "api.token"))
    if region is not None and variable not in os.environ:
        secret = region.api.token
    try:
        return read_secret(secret, os.environ)
    except ValueError as error:
        hint = "copy the region's api.token there, mode 0600; the API makes it at its first start"
        raise Misconfigured(f"the API's token: {error}", hint=hint) from None


def join_of(join: str | None, region: Region | None) -> str:
    """The API's address: as given, or the region's own. Raises ``Misconfigured``."""
    if join is None:
        return f"http://{region.api.listen}" if region is not None else ""
    parts = urlsplit(join)
    loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        return join
    raise Misconfigured(
        f"--join {join!r} must be https, or http on loopback: a token goes along", hint="--join https://api.example.com"
    )


def place_of(listen: str) -> HostPort:
    """An address and a port. Raises ``Misconfigured``."""
    import ipaddress

    host, colon, port = listen.rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        address = None
    if not colon or address is None or not port.isascii() or not port.isdigit() or int(port) > 65535:
        hint = f"--listen 127.0.0.1:{PORT}, or [::1]:{PORT}"
        raise Misconfigured(f"--listen {listen!r} is no address with a port", hint=hint)
    return HostPort(str(address), int(port))


def addresses_of(given: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses for instances, as they are written; what a region's file refuses too. Raises ``Misconfigured``."""
    try:
        return instance_addresses(part for text in given for part in text.split(",") if part)
    except UnfitError as error:
        raise Misconfigured(f"--address {error}", hint="--address 192.0.2.10, each once") from None


def advertised(listening: str, join: str) -> str:
    """The address that managers are told: where it listens, or, listening everywhere, the one it meets the API from."""
    if listening not in ("0.0.0.0", "::"):  # noqa: S104  it is compared, not listened at
        return listening
    parts = urlsplit(join)
    try:
        if not parts.hostname:
            raise OSError("there is no --join")  # noqa: TRY301  told as what else may hinder it
        family, kind, _, _, place = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(place)  # a datagram's socket sends nothing by this, and knows its own address after
            return str(probe.getsockname()[0])
    except OSError as error:
        hint = "--listen with the address that managers are to use"
        raise Misconfigured(
            f"which of this host's addresses leads to the API isn't known: {error}", hint=hint
        ) from None
