"""The loaded configuration as a row of the store: what every role follows, and what plans are made from.

A file that is merely saved changes nothing; loading it (a start, ``fencepost reload``, SIGHUP) writes the row.
Revisions rise, so that a target's absence counts as its owner's act only in a newer file than the one it was listed in.
Two loads at once must not get one number, or the second's absences would count for nothing: the row is replaced by
compare-and-set, and who was overtaken writes nothing.
"""

import asyncio
import logging
import time
from pathlib import Path

import msgspec

from fencepost.core.instant import SECOND, Instant
from fencepost.ports import HistoryRow, Inputs, Misconfigured, PortError, Refused, StorePort
from fencepost.roles.bodies import read_body
from fencepost.roles.history import note
from fencepost.roles.status.rejected import clear_rejected
from fencepost.roles.whole_file import replace_whole
from fencepost.settings import Region
from fencepost.settings.changes import changes, summary

log = logging.getLogger(__name__)

FOLLOW_S = 2.0
"""How soon another configuration is noticed: it seldom changes, and looking more often is most of what idling costs."""


class Loaded(msgspec.Struct, frozen=True):
    """A region as loaded.

    Its revision, when (nanoseconds since 1970), and whether its owner said yes to leaving targets.
    """

    region: Region
    revision: int
    loaded_at: Instant
    confirmed: bool = False


def encode(loaded: Loaded) -> bytes:
    """As it stands in the store."""
    return msgspec.json.encode(loaded)


def decode(body: bytes) -> Loaded | None:
    """What :func:`encode` wrote; None for b"" (nothing was loaded yet). Raises ``Misconfigured``."""
    return read_body(Loaded, body, "the configuration row") if body else None


class Running:
    """The running configuration, decoded once for each body; the last good one while the row can't be read.

    ``copy`` is the local copy that :func:`keep` makes: the last good one after a restart. ``problem`` is what is wrong.
    """

    def __init__(self, copy: Path | None = None) -> None:
        self.copy = copy
        self.body: bytes | None = None
        self.loaded: Loaded | None = None
        self.problem: Misconfigured | None = None

    def take(self, body: bytes) -> Loaded | None:
        """Take up the row's body as it is now; None if nothing was ever loaded, or nothing can be read."""
        if body == self.body:
            return self.loaded
        self.body = body
        try:
            self.loaded, self.problem = decode(body), None
        except Misconfigured as problem:
            if self.loaded is None and self.copy is not None:
                self.loaded = read_copy(self.copy)
            kept = f"revision {self.loaded.revision} stands" if self.loaded else "none that was read before is known"
            self.problem = Misconfigured(f"{problem.what}; {kept}", hint=problem.hint)
        return self.loaded


class _Revision(msgspec.Struct, frozen=True):
    """All that must be read of a row that is replaced."""

    revision: int


def _replaced(body: bytes) -> tuple[Loaded | None, int]:
    """The row that a load replaces, and its revision: as far as it can be read, since a load is what mends it."""
    try:
        running = decode(body)
    except Misconfigured as problem:
        log.warning("%s; it is replaced", problem)
        try:
            return None, max(0, msgspec.json.decode(body, type=_Revision).revision)
        except (msgspec.MsgspecError, ValueError, TypeError):
            return None, 0
    return running, running.revision if running else 0


async def put(
    store: StorePort, region: Region, *, confirmed: bool = False, seen: Inputs | None = None, by: str = ""
) -> Loaded:
    """Make ``region`` the running configuration, unless it is already; no other text of the file is refused then.

    The history has a line of it, whichever command it was: ``by`` whom, and what differs from what ran before.

    ``seen`` is what it was judged against: raises ``Refused`` if another was loaded since. Without it, a load that was
    overtaken starts over.
    """
    await clear_rejected(store)
    while True:
        over = (seen or await store.inputs()).config
        running, revision = _replaced(over)
        if running is not None and running.region == region:
            return running
        loaded = Loaded(region, revision + 1, time.time_ns(), confirmed)
        if await store.put_config(encode(loaded), over):
            await _tell(store, running, loaded, by)
            return loaded
        if seen is not None:
            return _overtaken(region, (await store.inputs()).config)


async def _tell(store: StorePort, running: Loaded | None, loaded: Loaded, by: str) -> None:
    """Write who loaded what over what ran; a first load replaced nothing, and moved lines mean nothing else."""
    changed = changes(running.region, loaded.region) if running is not None else None
    if changed is None or changed.nothing:
        return
    text = f"reload: revision {loaded.revision}, {summary(changed)}"
    await note(store, [HistoryRow("operator", loaded.region.name, by, text, time.time_ns())])


def _overtaken(region: Region, body: bytes) -> Loaded:
    """What another load put there in the meantime, if it is the same. Raises ``Refused`` if it isn't."""
    running, revision = _replaced(body)
    if running is not None and running.region == region:
        return running
    raise Refused(
        f"another load came first: revision {revision} runs now, and is not this file. Nothing was changed",
        where=region.path,
        hint="fencepost reload    loads this file over it, judged against what runs now",
    )


async def keep(store: StorePort, region: Region, copy: Path) -> None:
    """See to it that the store has a configuration; until cancelled.

    A start isn't a load: a role started again by its supervisor must not undo a reload made since. Only where the store
    holds none (it is new, or was lost) is one put: the newest seen, of which ``copy`` is a local copy, else ``region``.
    """
    latest = read_copy(copy)
    compared, kept = False, True
    waiter = store.waiter()
    body: bytes | None = None
    while True:
        try:
            config = (await store.inputs()).config
            if config and config == body:
                if not kept and latest is not None:
                    kept = write_copy(copy, latest)
                await waiter.wait(SECOND)
                continue
            body = config
            try:
                running = decode(config)
            except Misconfigured as problem:  # never replaced by the copy: it may be a newer version's
                log.warning("%s", problem)
                continue
            if running is None:
                put_back = latest or Loaded(region, 1, time.time_ns())
                if await store.put_config(encode(put_back), b""):
                    log.info("the store held no configuration; revision %d was put there", put_back.revision)
            elif running != latest:
                latest = running
                kept = write_copy(copy, running)
                if not kept:
                    log.warning("%s can't be written now; it is tried again each second", copy)
            if not compared and running is not None and running.region != region:
                log.warning("%s differs from the configuration that runs; fencepost reload  would load it", region.path)
            compared = compared or running is not None
        except PortError as error:
            log.debug("configuration: %s", error)
            await asyncio.sleep(0.2)
            continue
        await waiter.wait(SECOND)


def read_copy(path: Path) -> Loaded | None:
    """The local copy of the newest configuration seen; None if there is none that can be read."""
    try:
        return decode(path.read_bytes())
    except (OSError, Misconfigured):
        return None


def write_copy(path: Path, loaded: Loaded) -> bool:
    """Replace the local copy whole; whether it could be. A full disk costs the copy, no more."""
    try:
        replace_whole(path, encode(loaded))
    except OSError as error:
        log.debug("%s isn't kept: %s", path, error.strerror)
        return False
    return True
