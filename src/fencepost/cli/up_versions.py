"""Roles of another version that run already, as their signs of life in the store tell.

Within a version roles understand each other's rows. Between two they do as far as the changelog says, which is what an
upgrade role by role rests on: so ``run`` warns and goes on. ``up`` starts all of a region's roles at once: then another
version's role beside them is one that somebody forgot, and it refuses.

Awkward truth: a role whose sign of life can't be read, or comes to another store, isn't seen.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fencepost import __version__
from fencepost.cli.regions import shown
from fencepost.cli.terminal import note
from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Beat, Misconfigured, PortError
from fencepost.roles.status.processes import alive
from fencepost.roles.status.running import SPEAKS_WITHIN
from fencepost.settings import Region

LOOK_S = 2.0
"""A store that doesn't answer sooner is not waited for: roles start without a store."""
NAMED_MOST = 3
UPGRADE = "docs/operating/upgrade.md"


def refuse_other_versions(region: Region) -> None:
    """Raise ``Misconfigured`` if a role of this region runs in another version: which, and what to do."""
    others = other_versions(region)
    if not others:
        return
    stop = f"stop {'them' if len(others) > 1 else 'it'} first: Ctrl-C of that fencepost up, or"
    units = " ".join(f"fencepost-{beat.role.replace('/', '@')}" for beat in others[:NAMED_MOST])
    hint = f"{stop}  systemctl stop {units}    ({UPGRADE} says how to go on role by role)"
    if not all(alive(beat.pid) for beat in others):  # on another machine, or ended this moment: a sign doesn't say
        hint += f"; one that has ended is forgotten {SPEAKS_WITHIN // SECOND} s after its last sign of life"
    raise Misconfigured(f"{told(others)}; this is {__version__}", where=shown(Path(region.path)), hint=hint)


def warn_of_other_versions(region: Region) -> None:
    """Say so, and go on: an upgrade role by role passes through this."""
    others = other_versions(region)
    if others:
        note(f"note: {told(others)}; this is {__version__}. Finish the upgrade: {UPGRADE}")


def told(others: Sequence[Beat]) -> str:
    """Which roles, their processes and versions; the first few of many."""
    first = others[:NAMED_MOST]
    parts = [f"{beat.role} (pid {beat.pid}) of version {beat.version}" for beat in first]
    more = len(others) - len(first)
    ends = f" and {more} more" if more else ""
    return f"{', '.join(parts)}{ends} run{'' if len(others) > 1 else 's'} already"


def other_versions(region: Region) -> tuple[Beat, ...]:
    """Signs of life of roles that run in another version; none if the store can't be asked."""
    here = region.store.kind == "sqlite"
    found = [beat for beat in signs_of_life(region) if beat.version not in ("", __version__)]
    return tuple(beat for beat in found if runs(beat, time.time_ns(), here=here))


def runs(beat: Beat, now: Instant, *, here: bool) -> bool:
    """Whether the role of a sign of life still runs. ``here``: surely on this machine, as is who shares a file.

    On this machine its process tells, also of one that was stopped and gives no sign; by name, since pids come again.
    Elsewhere a fresh sign does.
    """
    if is_process_of(beat):
        return True
    fresh = abs(now - beat.at) < SPEAKS_WITHIN
    return fresh and (alive(beat.pid) if here else True)


def is_process_of(beat: Beat) -> bool:
    """Whether the process of that pid here is called as a role calls itself (see :func:`process.entitle`)."""
    try:
        name = Path(f"/proc/{beat.pid}/comm").read_text().rstrip("\n")
    except OSError:
        return False
    return name == f"fp {beat.role}"[:15]


def signs_of_life(region: Region) -> Sequence[Beat]:
    """What the store holds; nothing if it can't be asked. Leaves no thread behind: the caller may fork."""
    from fencepost import assembly

    async def read() -> Sequence[Beat]:
        store = assembly.open_store(region)
        try:
            return await store.beats()
        finally:
            await store.close()

    try:
        return asyncio.run(asyncio.wait_for(read(), LOOK_S))
    except (PortError, TimeoutError):
        return ()
    finally:
        be_alone()


def be_alone(most_s: float = 1.0) -> int:
    """Wait until threads that were told to end have; how many haven't in time.

    A fork copies the one thread that calls it and whatever locks the others hold. A store's thread ends a moment after
    the store was closed.
    """
    until = time.monotonic() + most_s
    others = [each for each in threading.enumerate() if each is not threading.current_thread()]
    for each in others:
        each.join(max(0.0, until - time.monotonic()))
    return sum(each.is_alive() for each in others)


__all__ = ["be_alone", "other_versions", "refuse_other_versions", "warn_of_other_versions"]
