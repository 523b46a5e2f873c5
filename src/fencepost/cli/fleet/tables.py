"""``fencepost fleet hosts`` and ``fleet instances``: what there is, in words and in tables."""

import json as json_text
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.fleet.reading import Seen, fleet_region, look
from fencepost.cli.layout import table, width
from fencepost.cli.terminal import ago, interactive, say, styled
from fencepost.core.instant import SECOND
from fencepost.ports import Refused
from fencepost.roles.fleet.view import HostSeen, InstanceSeen
from fencepost.roles.status.document import instant
from fencepost.roles.status.fleet import of_drained
from fencepost.settings import Region
from fencepost.settings.mistakes import advice
from fencepost.settings.units import spoken

RowSeen = TypeVar("RowSeen", HostSeen, InstanceSeen)
PAGE = 40
STUCK_NAMED = 5
"""So many rows are shown on a terminal unless all are asked for: more would push the line that sums them up away."""
CALIBRATE = "fencepost fleet calibrate"
LEASES = ("held", "suspect", "lapsed", "unknown")
STATES = ("ready", "pending", "waiting", "ending", "ended")
ODD = {"suspect": "yellow", "lapsed": "yellow", "unknown": "yellow", "pending": "yellow", "waiting": "yellow"}


def hosts(
    *,
    zone: str | None = None,
    all_: bool = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """List the fleet's hosts: lease, room, what runs there, what a person said.

    Parameters
    ----------
    zone
        Those of one failure zone.
    all_
        Also where they are more than a terminal's page.
    """
    region = fleet_region(config)
    known(region.zones, zone, "zone")
    seen = look(region, "hosts", duration(timeout, "--timeout"))
    found = [each for each in seen.hosts if zone in (None, each.zone)]
    if json:
        say(document("hosts", seen, region, found))
        return 0
    never = [f"never calibrated: {CALIBRATE}  measures how many may be asked at once"]
    lines = host_lines(found, width(sys.stdout), most_of(all_)) if found or zone else no_hosts(region)
    tell(seen, [*lines, *(() if seen.calibrated or not seen.hosts else never)])
    return 0


def instances(
    *,
    pool: str | None = None,
    host: str | None = None,
    all_: bool = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """List the instances that were launched: where each runs, and what it waits for.

    Parameters
    ----------
    pool
        Those of one pool.
    host
        Those at one host.
    all_
        Also those that have ended, and also where they are more than a terminal's page.
    """
    region = fleet_region(config)
    known([each.name for each in region.pools], pool, "pool")
    seen = look(region, "instances", duration(timeout, "--timeout"))
    found = [each for each in seen.instances if pool in (None, each.pool) and host in (None, each.host, each.old)]
    ended = sum(each.state == "ended" for each in found)
    shown = found if all_ else [each for each in found if each.state != "ended"]
    if json:
        say(document("instances", seen, region, shown))
        return 0
    where = (f" of pool {pool}" if pool else "") + (f" at {host}" if host else "")
    if not shown and (where or ended):
        over = f"; {ended} {'has' if ended == 1 else 'have'} ended (--all shows them)" if ended else ""
        tell(seen, [f"no instance{where}{over}"])
        return 0
    lines = instance_lines(shown, width(sys.stdout), region, most_of(all_))
    if ended and not all_:
        lines.append(f"{ended} more {'has' if ended == 1 else 'have'} ended (--all shows them)")
    tell(seen, lines)
    return 0


def known(names: Sequence[str], given: str | None, what: str) -> None:
    """Refuse what there is none of."""
    if given is not None and given not in names:
        raise Refused(f"there is no {what} {given}", hint=advice(given, names))


def document(what: str, seen: Seen, region: Region, found: Sequence[HostSeen | InstanceSeen]) -> str:
    """The one document."""
    head = {"schema": f"fencepost.{what}/1", "region": region.name, "source": seen.source}
    return json_text.dumps({**head, what: [msgspec.to_builtins(each) for each in found]})


def tell(seen: Seen, lines: Iterable[str]) -> None:
    """Print lines, after how far down it had to look."""
    if seen.line:
        say(styled(seen.line, "yellow"))
    say("\n".join(lines))


def marked(word: str) -> str:
    """A word that says that something isn't as it should be, in its colour."""
    return styled(word, ODD[word]) if word in ODD else word


def tally(words: Iterable[str], order: Sequence[str]) -> str:
    """How many of each, in an order: ``2 held, 1 lapsed``."""
    counts = Counter(words)
    return ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def room(host: HostSeen) -> int:
    """How many more instances a host takes, as far as its row says."""
    return host.free if host.lease == "held" else 0


def used(host: HostSeen) -> str:
    """How many instances run at a host, of how many places; and that it has no address for another, if so."""
    lacks = ", no address free" if host.used < host.room and not host.addresses else ""
    return f"{host.used} of {host.room}{lacks}"


def most_of(all_: bool) -> int | None:
    """How many rows a list has at most; None for all, where nobody reads it off a screen."""
    return None if all_ or not interactive(sys.stdout) else PAGE


def shown_first(found: Sequence[RowSeen], odd: Callable[[RowSeen], bool], most: int | None) -> list[RowSeen]:
    """The rows to show: all, or so many, with those that aren't as they should be before others."""
    if most is None or len(found) <= most:
        return list(found)
    return sorted(found, key=lambda each: not odd(each))[:most]


def rest(found: Sequence[object], shown: Sequence[object]) -> list[str]:
    """What a cut list ends with."""
    left = len(found) - len(shown)
    return [f" … and {left:,} more: --all"] if left else []


def host_lines(found: Sequence[HostSeen], columns: int, most: int | None = None) -> list[str]:
    """Hosts as a table, after one line that sums them up."""
    if not found:
        return ["no host has made itself known there"]
    free = sum(room(each) for each in found)
    shown = shown_first(found, lambda each: each.lease in ODD or bool(each.word or each.unable), most)
    rows: list[tuple[str, ...]] = [("HOST", "ZONE", "LEASE", "USED", "WORD", "SEEN", "AT")]
    rows += [
        (
            each.host,
            each.zone,
            marked(each.lease),
            used(each),
            each.word or "-",
            "-" if each.seen_s is None else f"{spoken(each.seen_s * SECOND)} ago",
            each.at,
        )
        for each in shown
    ]
    lines = table(rows, columns=columns, drop=(6, 5))
    head = f"{counted(len(found), 'host')}: {tally((each.lease for each in found), LEASES)}; room for {free} more"
    return [head, styled(lines[0], "bold"), *lines[1:], *rest(found, shown), *unable_lines(found), *stuck_lines(found)]


def no_hosts(region: Region) -> list[str]:
    """That no host is known, how one makes itself known, and when those that run do so after a store was lost."""
    within = spoken(3 * region.fleet.renew_ns) if region.fleet is not None else "a minute"
    return [
        "no host has made itself known; one does by  fencepost run agent",
        f"  agents that run already do so again by themselves, within {within} of a new store's beginning",
    ]


def unable_lines(found: Sequence[HostSeen]) -> list[str]:
    """The hosts that can't write their memories, and why: they take no orders."""
    unable = [each for each in found if each.unable]
    lines = [f" {each.host} takes no orders{since(each)}: {each.unable}" for each in unable[:STUCK_NAMED]]
    left = len(unable) - STUCK_NAMED
    return lines + (
        [f" … and {counted(left, 'host')} more that can't write {'its' if left == 1 else 'their'} memory"]
        if left > 0
        else []
    )


def since(each: HostSeen) -> str:
    """Since when it can't write its memory."""
    return f" since {ago(instant(each.unable_at))}" if each.unable_at else ""


def stuck_lines(found: Sequence[HostSeen]) -> list[str]:
    """The drained hosts whose instances have no place elsewhere: nothing more happens there by itself."""
    stuck = [each for each in found if each.stuck]
    lines = [
        f" {each.host} is drained, and {of_drained(each.stuck)} no place elsewhere:"
        f" add a host, or  fencepost resume {each.host}"
        for each in stuck[:STUCK_NAMED]
    ]
    left = len(stuck) - STUCK_NAMED
    return lines + ([f" … and {counted(left, 'drained host')} more"] if left > 0 else [])


def instance_lines(found: Sequence[InstanceSeen], columns: int, region: Region, most: int | None = None) -> list[str]:
    """Instances as a table, after one line that sums them up; below it what each that isn't ready waits for."""
    if not found:
        pool = next((each.name for each in region.pools if each.launch is not None), "POOL")
        return [f"nothing is launched; something is by  fencepost fleet launch {pool}"]
    shown = shown_first(found, lambda each: each.state in ODD, most)
    later = any(each.again_at for each in found)
    rows: list[tuple[str, ...]] = [
        ("INSTANCE", "STATE", "HOST", "ZONE", "ADDRESS", "ATTEMPT", *(["NEXT"] if later else []), "ASKED")
    ]
    rows += [
        (
            each.instance,
            marked(each.state),
            each.host + (f" (old: {each.old})" if each.old else "") if each.host else "-",
            each.zone or "-",
            place(each),
            str(each.attempt or "-"),
            *([due(each)] if later else []),
            ago(instant(each.asked_at)) if each.asked_at else "-",
        )
        for each in shown
    ]
    lines = table(rows, columns=columns, drop=(7, 5, 3) if later else (6, 5, 3), right=(5,))
    head = f"{counted(len(found), 'instance')}: {tally((each.state for each in found), STATES)}"
    whys = Counter(f"{each.state}: {each.why}" for each in found if each.why and each.state in ODD)
    stuck = Counter(f"no place elsewhere, though {each.host} is drained: {each.stuck}" for each in found if each.stuck)
    told = [f" {count} {why}" for why, count in whys.most_common(5)]
    told += [f" {count} {'has' if count == 1 else 'have'} {why}" for why, count in stuck.most_common(STUCK_NAMED)]
    return [head, styled(lines[0], "bold"), *lines[1:], *rest(found, shown), *told]


def due(each: InstanceSeen) -> str:
    """When its next attempt is due, after one that ended by itself; "-" where none is waited for."""
    if not each.again_at:
        return "-"
    left = instant(each.again_at) - time.time_ns()
    return f"in {spoken(-(-left // SECOND) * SECOND)}" if left > 0 else "due now"


def place(each: InstanceSeen) -> str:
    """Where it serves."""
    if not each.address:
        return "-"
    host = f"[{each.address}]" if ":" in each.address else each.address
    return f"{host}:{each.port}" if each.port else each.address
