"""Whether the store's disk is full, found where no write of ours is needed to tell.

A store on a full disk still reads well, so a document made from it looks well too: what can't be written is, among
other things, every role's sign of life and what it would say in it. So the disk is asked (statvfs(3)); and where it
says nothing (a quota, a limit, another machine's disk), the roles' logs are, once signs of life are overdue.

Awkward truth: logs often lie on the same disk, and take no line either. Then what the disk says is all there is.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.ports import Beat, Unavailable
from fencepost.roles.heartbeat import EVERY_S
from fencepost.settings.schema import Store

LEAST_BYTES = 16 * 1024
"""A disk with less left takes no commit: SQLite's log grows by some pages of 4 KiB with each."""
OVERDUE: Duration = int(1.2 * EVERY_S * SECOND)
TAIL_BYTES = 8 * 1024
NO_SPACE = "no space is left"
"""What each store's adapter says of a full disk or quota; its errors stand in the logs of roles."""


def full_disk(
    store: Store, folder: str, logs: Iterable[str], beats: Iterable[Beat], now: Instant
) -> Unavailable | None:
    """What is to be said of the store, whose rows could be read; None if there is room, as far as can be told.

    ``logs`` are names of files in ``folder``; ``now`` is nanoseconds since 1970.
    """
    last = max((beat.at for beat in beats), default=0)
    disk = os.path.dirname(store.path) if store.kind == "sqlite" else ""
    overdue = bool(last) and now - last > OVERDUE
    if not (disk and no_room(disk)) and not (overdue and any(says_so(folder, name, last) for name in logs)):
        return None
    hint = f"make room on the disk of {disk}" if disk else "make room on its disk"
    return Unavailable("no space is left for the store", where=store.place, hint=f"{hint}; it goes on by itself then")


def no_room(disk: str) -> bool:
    """Whether a directory's file system is full for this user."""
    try:
        found = os.statvfs(disk)
    except OSError:
        return False
    free = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    return found.f_blocks > 0 and free * found.f_frsize < LEAST_BYTES


def says_so(folder: str, name: str, since: Instant) -> bool:
    """Whether a log's end tells of a full disk later than a time: what was written after it says that it is over."""
    path = Path(folder, name)
    try:
        if path.stat().st_mtime_ns < since:
            return False
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return False
    return any(NO_SPACE in line and logged_at(line) > since for line in lines)


def logged_at(line: str) -> Instant:
    """When a line of a role's log was written, to the millisecond; 0 for lines that don't say it."""
    try:
        second = int(time.mktime(time.strptime(line[:19], "%Y-%m-%d %H:%M:%S")))
        return second * SECOND + int(line[20:23]) * MILLISECOND
    except (ValueError, OverflowError):
        return 0
