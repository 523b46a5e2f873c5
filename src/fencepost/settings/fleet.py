"""Reads and judges what a region's file says of its fleet: ``[fleet]`` and each ``[pool.NAME.launch]``.

Everything has a default, so ``[fleet]`` alone will do; it must stand there all the same, since whoever writes it gets
managers, agents and leases, and whoever doesn't gets none of them.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from fencepost.core.capacity.command import PLACEHOLDERS, unknown_words
from fencepost.settings import units, values
from fencepost.settings.lines import Path
from fencepost.settings.mistakes import advice, clean, shown
from fencepost.settings.relations import Read
from fencepost.settings.schema import Allowed, Region
from fencepost.settings.values import UnfitError

RENEW_LEAST, RENEW_MOST = "100ms", "10m"
"""Bounds of the time between two renewals; a lease is three of them."""

COMMAND_WORDS, COMMAND_BYTES = 64, 4096
"""What a command may have: it goes to a host with every instance of its set, and a message holds a thousand."""

HOST_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
"""What a host may be called: it stands in rows, on command lines and in addresses of pages."""

_ALLOW = re.compile(r"(?P<protocol>[a-z0-9]+)/(?P<port>[0-9]{1,5}) +from +(?P<source>\S+)")


def renew(value: Any) -> int:
    """Read how often a host's lease is renewed, in nanoseconds."""
    text = value if isinstance(value, str) else ""
    if text.lstrip().startswith("-") or re.fullmatch(r"0+(?:\.0+)? ?[a-z]+", text):
        why = "a lease of 0 seconds or less is over before it begins"
        raise UnfitError(f"must be {RENEW_LEAST} to {RENEW_MOST}: {why}")
    read: int = values.duration(RENEW_LEAST, RENEW_MOST)(value)
    return read


def command(value: Any) -> tuple[str, ...]:
    """Read the words of a command: the program, and its arguments one by one."""
    example = 'command = ["/usr/bin/web", "--listen", "{address}:{port}"]'
    if isinstance(value, str):
        raise UnfitError(f"must be a list of words, since no shell splits them: {example}")
    if not isinstance(value, list) or not value:
        raise UnfitError(f"must be a list of words that begins with the program: {example}")
    words = tuple(values.string(word) for word in value)
    if not words[0] or any("\0" in word for word in words):
        raise UnfitError(f"begins with nothing, or has a NUL in it; write {example}")
    if len(words) > COMMAND_WORDS or sum(len(word.encode()) for word in words) > COMMAND_BYTES:
        raise UnfitError(f"is over {COMMAND_WORDS} words or {COMMAND_BYTES} bytes; put the rest into a file of its own")
    for word in unknown_words(words):
        raise UnfitError(f"{{{clean(word)}}} stands for nothing; {advice(word, PLACEHOLDERS)}")
    return words


def allowed(value: Any) -> tuple[Allowed, ...]:
    """Read what instances accept: ``tcp/5302 from 127.0.0.0/8``."""
    if not isinstance(value, list):
        raise UnfitError('must be a list in square brackets, like ["tcp/5302 from 127.0.0.0/8"]')
    found = []
    for one in value:
        try:
            found.append(_allowed(one))
        except ValueError as error:
            raise UnfitError(f"{shown(one)} {error}") from error
    return tuple(dict.fromkeys(found))


def _allowed(value: Any) -> Allowed:
    match = _ALLOW.fullmatch(values.string(value).strip())
    if match is None:
        raise UnfitError('must be a protocol, a port and a source, like "tcp/5302 from 127.0.0.0/8"')
    if match["protocol"] not in ("tcp", "udp"):
        raise UnfitError(f"has the protocol {shown(match['protocol'])}; {advice(match['protocol'], ('tcp', 'udp'))}")
    if not 1 <= int(match["port"]) <= 65535:
        raise UnfitError("has a port that isn't 1 to 65535")
    try:
        source = ipaddress.ip_network(match["source"])
    except ValueError as error:
        hint = "; write the network's first address" if "host bits" in str(error) else ""
        raise UnfitError(f"has a source that is no network{hint}, like 127.0.0.0/8 or 2001:db8::/32") from None
    return Allowed(match["protocol"], int(match["port"]), str(source))


def hosts(value: Any) -> tuple[str, ...]:
    """Read the names of all hosts there are, sorted; none of them twice."""
    if not isinstance(value, list):
        raise UnfitError('must be a list in square brackets, like ["h1", "h2"]')
    if not value:
        raise UnfitError("is empty, so no host would be taken; leave it out to take every host that registers")
    found: set[str] = set()
    for one in value:
        if not HOST_NAME.fullmatch(values.string(one)):
            raise UnfitError(f"{shown(one)} must be 1 to 63 small letters, digits, hyphens and dots")
        if one in found:
            raise UnfitError(f"{shown(one)} is there twice")
        found.add(one)
    return tuple(sorted(found))


def judge_fleet(read: Read) -> None:
    """Note pools that launch without a fleet, without anything to run, or without a zone to be in."""
    fleet, launching = read.region.fleet, [pool for pool in read.region.pools if pool.launch is not None]
    for pool in launching:
        at: Path = ("pool", pool.name, "launch")
        if fleet is None:
            if any("[fleet]?" in said for _, said in read.notes.mistakes):
                return  # it is there, mistyped
            text = f"pool {pool.name} has [pool.{pool.name}.launch], and there is no [fleet] to launch on"
            read.notes.wrong(at, f"{text}; write [fleet] on a line of its own, with nothing below it for the defaults")
            return
        unread = {("fleet", "command"), ("fleet", "driver"), (*at, "command")} & read.bad
        if fleet.driver == "process" and pool.launch and not pool.launch.command and not unread:
            text = f'pool {pool.name} has no command to launch, and driver is "process"; write  command = ["…"]'
            read.notes.wrong(at, f"{text}  in [pool.{pool.name}.launch], or in [fleet] for all pools")
    if launching and not read.region.zones:
        text = 'no target names a zone, and hosts of a zone unknown here are taken by none; write zones = ["a", "b"]'
        read.notes.wrong(("region",), f"[region] has no zones: {text}")


def fleet_meaning(region: Region) -> tuple[str, ...]:
    """Say what a region's ``[fleet]`` comes to; nothing if it has none."""
    fleet = region.fleet
    if fleet is None:
        return ()
    head = "fleet   "
    owned = "1 host-manager owns all hosts" if fleet.shards == 1 else f"{fleet.shards} shards, each owned by a manager"
    spoken = units.spoken
    some = (
        f"{len(fleet.hosts)} hosts and no others" if len(fleet.hosts) > 1 else f"the host {''.join(fleet.hosts)} alone"
    )
    named = (f"{' ' * len(head)}{some}: instances are placed as soon as all have told what they run",)
    return (
        f"{head}{owned}; hosts are asked every {spoken(fleet.renew_ns)} (renew)",
        f"{' ' * len(head)}a dead host's instances start elsewhere {spoken(fleet.lease_ns + fleet.margin_ns)} after its"
        f" last answer (3 renewals and {spoken(fleet.margin_ns)} for clocks)",
        *(named if fleet.hosts else ()),
    )


def instance_addresses(given: Iterable[str]) -> tuple[str, ...]:
    """Read addresses that a host gives its instances, each once however it is written; the fault names which."""
    found: list[str] = []
    for text in given:
        try:
            found.append(values.address(text))
        except UnfitError as error:
            raise UnfitError(f"{text[:60]!r} {error}") from None
        if found[-1] in found[:-1]:
            raise UnfitError(f"{found[-1]} is given twice, and one instance has it at a time")
    return tuple(found)
