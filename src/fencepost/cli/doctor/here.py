"""What can be looked at on this machine: the file, the version, the disk, the clock, the ports."""

import ctypes
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from fencepost import __version__
from fencepost.assembly.doctor import Look
from fencepost.assembly.ports_in_use import taken
from fencepost.cli.check import counted
from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Beat, Misconfigured
from fencepost.roles.status.running import SPEAKS_WITHIN
from fencepost.settings import Region
from fencepost.settings import check as judged
from fencepost.settings.units import spoken

DISK_LEAST_BYTES = 200 * 1024 * 1024
DISK_LEAST_SHARE = 0.03
SKEW_MOST = 2 * SECOND
"""Two clocks further apart make lines of one history look as if they came in another order."""
_TIME_ERROR = 5
_CLOCK_TOO_FAR_US = 1_000_000


def look_at_file(region: Region) -> Iterator[Look]:
    """What ``check`` warns of."""
    report = judged(region.path)
    if report.mistakes:
        first = report.mistakes[0]
        more = f" (and {len(report.mistakes) - 1} more)" if len(report.mistakes) > 1 else ""
        yield Look("attention", "file", f"{first}{more}; what runs is what was loaded before", "fencepost check")
        return
    held = f"{counted(len(region.endpoints), 'endpoint')}, {counted(len(region.pools), 'pool')}"
    yield Look("ok", "file", f"{region.path}: {held}")
    for caution in report.cautions:
        yield Look("note", "file", str(caution))


def look_at_versions(beats: Sequence[Beat], now: Instant) -> Iterator[Look]:
    """Roles that speak in another version than this command's."""
    others = sorted({(each.version, each.role) for each in fresh(beats, now) if each.version != __version__})
    if not others:
        yield Look("ok", "version", f"fencepost {__version__}")
    for version, role in others:
        hint = f"start {role} again with this one, or use the fencepost that it runs (docs/operating/upgrade.md)"
        yield Look("attention", "version", f"{role} runs {version}, this is {__version__}", hint)


def fresh(beats: Sequence[Beat], now: Instant) -> list[Beat]:
    """The signs of life that are recent."""
    return [each for each in beats if now - each.at < SPEAKS_WITHIN]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names, the first few of many."""
    return ", ".join(sorted(names)[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def look_at_disk(places: Mapping[str, Path]) -> Iterator[Look]:
    """Room where this region writes."""
    for what, place in places.items():
        existing = next((each for each in (place, *place.parents) if each.exists()), Path("/"))
        try:
            found = os.statvfs(existing)
        except OSError as error:
            yield Look("attention", "disk", f"{what}: {existing}: {error.strerror}", f"ls -ld {existing}")
            continue
        free, share = found.f_bavail * found.f_frsize, found.f_bavail / max(1, found.f_blocks)
        text = f"{what}: {free / 2**30:.1f} GiB free ({share:.0%}) at {existing}"
        low = free < DISK_LEAST_BYTES or share < DISK_LEAST_SHARE
        hint = f"make room (df -h {existing}): a full disk stops the store, not the endpoints"
        if not os.access(existing, os.W_OK):
            yield Look("note", "disk", f"{what}: {existing} can't be written by this user", "be the roles' user")
        yield Look("attention", "disk", text, hint) if low else Look("ok", "disk", text)


def look_at_clock(beats: Sequence[Beat], now: Instant, *, alone: bool) -> Iterator[Look]:
    """Whether this machine's clock is kept right, and agrees with the roles'. ``alone``: nobody else's counts."""
    state, error_us = kernel_clock()
    if state < 0:
        yield Look("unknown", "clock", "this system doesn't say whether its clock is kept by NTP", "timedatectl")
    elif state == _TIME_ERROR or error_us > _CLOCK_TOO_FAR_US:
        hint = "timedatectl set-ntp true    (or chrony); signatures are refused past five minutes (RFC 8945)"
        said = "the kernel says that nothing keeps this machine's clock right"
        yield Look("note" if alone else "attention", "clock", said, hint)
    else:
        yield Look("ok", "clock", f"kept by NTP, within {error_us / 1000:.0f} ms")
    ahead = [each for each in fresh(beats, now) if each.at - now > SKEW_MOST]
    if ahead:  # one cause, told once: usually it is this clock, and then every role is ahead
        by = spoken(max(each.at for each in ahead) - now)
        are = "is" if len(ahead) == 1 else "are"
        text = f"{listed([each.role for each in ahead])} {are} {by} ahead of this machine's clock"
        yield Look("attention", "clock", text, "set both machines' clocks by NTP")


def kernel_clock() -> tuple[int, int]:
    """What the kernel says of its clock (adjtimex(2)): its state, -1 if none, and the most it may err in µs."""
    buffer = ctypes.create_string_buffer(256)  # struct timex, modes = 0: only asks
    try:
        state = ctypes.CDLL(None).adjtimex(buffer)
    except (OSError, AttributeError):
        return -1, 0
    return state, ctypes.c_long.from_buffer(buffer, 3 * ctypes.sizeof(ctypes.c_long)).value


def look_at_ports(region: Region, ours: Collection[int] | None, *, api_answers: bool) -> Iterator[Look]:
    """The places the region listens at: free, or its own processes'.

    ``ours`` are the pids of its roles on this machine, None where they aren't known. Then, or where whose process it is
    can't be told, an API that calls itself this region's is taken for it; else it may be that of another folder.
    """
    places = {"[api] listen": (region.api.listen, False)}
    if region.dns.provider == "embedded" and region.dns.listen is not None:
        places["[dns] listen"] = (region.dns.listen, True)
    for what, (place, udp) in places.items():
        try:
            found = taken(place.host, place.port, what, udp=udp)
        except Misconfigured as error:
            yield Look("attention", "ports", str(error), f"write an address of this machine in {what}")
            continue
        alike = api_answers and what == "[api] listen"
        told = ours is not None and found is not None and found.pid
        if found is None:
            yield Look("ok", "ports", f"{what}: {place} is free")
        elif found.pid in (ours or ()) if told else alike:
            yield Look("ok", "ports", f"{what}: {place} is this region's")
        else:
            more = f"; it answers as {region.name}, and is none of this folder's or store's roles" if alike else ""
            hint = "if that isn't this region's own process, write another port, or end it"
            yield Look("note", "ports", f"{what}: {found.why}{more}", hint)


def now_ns() -> Instant:
    """Nanoseconds since 1970."""
    return time.time_ns()
