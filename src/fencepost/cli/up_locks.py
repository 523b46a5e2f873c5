"""The places on this machine that one region alone may have: its owner at a DNS server, and its store.

A region's own folder has a lock of its own (``supervisor.lock``, which names who runs there). These are others': two
folders may name the same owner at the same server, or the same store, and each must find out about the other whatever
folder it lies in. So their files lie where all processes of a user look: in ``$XDG_RUNTIME_DIR``, else in the folder
for temporary files (and there other users' regions are found too). Not beside the store: a second name for it, and a
server's address, have no folder.

A file is taken away by whoever had its lock last, while it still has it. Whoever opened it in between then gets the
lock of a file that has no name any more, sees that, and begins anew; else two would hold one place, each in its own
file. What a kill left is taken away by whichever region starts next. That looks at a lock by taking it for a moment, so
one that is refused is asked for a few times more before anybody is told that it is in use.

Awkward truth: two regions on two machines, in two containers, or with two such folders don't see each other here. For
those there is the owner in the marker, and the store's own identity.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fencepost.assembly.stores import dsn
from fencepost.ports import Misconfigured
from fencepost.settings import Region
from fencepost.settings.lookup import is_sample
from fencepost.settings.providers import where

NAMES = re.compile(r"fencepost-.+-[0-9a-f]{12}\.lock")
ASKED_TIMES, ASKED_EACH_S = 10, 0.02
"""How often a lock is asked for before it is another region's: a look at it takes microseconds."""


class Place(NamedTuple):
    """One place that is held as long as ``fd`` is open, here or in a child; ``path`` is its file."""

    fd: int
    path: Path


def folder() -> Path:
    """Where the files lie."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())


def hold_places(region: Region) -> tuple[Place, ...]:
    """Hold the locks of this owner at this server and each domain, and of the store.

    The same owner at another server is another's business: their markers never meet. Two regions in one store would
    each take the other's configuration for its own. Raises ``Misconfigured`` if another region on this machine has one.
    """
    place = " ".join([where(region.dns), region.dns.option("zone_id"), region.dns.option("endpoint")]).strip()
    held: list[Place] = []
    try:
        for domain in region.dns.domains:
            what = f'owner "{region.owner}" is in use for {domain} at {place} already'
            hint = f"no two regions share an owner: {another(region)}, or end that one"
            held.append(hold_place(region, f"{region.owner}-{digest(f'{place} {domain}')}", what, hint))
        store = str(Path(region.store.path).resolve()) if region.store.kind == "sqlite" else region.store.place
        exact = dsn(region) if region.store.kind == "postgresql" else store
        what = f"the store {store} is another region's already"
        hint = "no two regions share a store: write another one in [store], or end that one"
        held.append(hold_place(region, f"store-{digest(exact)}", what, hint))
    except BaseException:
        let_go(held)
        raise
    return tuple(held)


def another(region: Region) -> str:
    """How to name another owner. The sample lies among what its runs leave, which `--fresh` forgets: none to edit."""
    if is_sample(Path(region.path)):
        return "fencepost init --sample  gives a region.toml to name another in"
    return "write another in [region]"


def digest(text: str) -> str:
    """A short name for a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def hold_place(region: Region, name: str, what: str, hint: str) -> Place:
    """Hold one lock. Raises ``Misconfigured`` with those words if another process on this machine has it."""
    path = folder() / f"fencepost-{name}.lock"
    refused = 0
    while True:
        fd = opened(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            refused += 1
            other = os.read(fd, 4096).decode(errors="replace").strip()
            os.close(fd)
            if refused >= ASKED_TIMES:
                raise said_of(other, region, what, hint) from None
            time.sleep(ASKED_EACH_S)
            continue
        if named(fd, path):
            break
        os.close(fd)
    if os.access(path, os.W_OK):
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.path.abspath(region.path)} (pid {os.getpid()})\n".encode(), 0)
    return Place(fd, path)


def said_of(other: str, region: Region, what: str, hint: str) -> Misconfigured:
    """That another region has a place, or this one, started in the same moment and a little sooner."""
    path, _, pid = other.rpartition(" (pid ")
    if path != os.path.abspath(region.path):
        return Misconfigured(f"{what}, by {other}", where=region.path, hint=hint)
    ends = "fencepost status    shows it; to end it, Ctrl-C in its terminal"
    return Misconfigured(f"this region runs already (pid {pid}", where=region.path, hint=ends)


def opened(path: Path) -> int:
    """A lock's file, made if there is none; another user's can only be read."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        except PermissionError:
            with contextlib.suppress(FileNotFoundError):
                return os.open(path, os.O_RDONLY | flags)
            if not os.access(path.parent, os.W_OK):
                raise


def named(fd: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), path.lstat())
    return False


def let_go(places: Iterable[Place]) -> None:
    """Take the files away, and then let go of the locks. Another user's file is left to him."""
    for place in places:
        with contextlib.suppress(OSError):
            if named(*place):
                place.path.unlink()
        os.close(place.fd)


def clear_left() -> None:
    """Take away what regions of this user left that were killed."""
    with contextlib.suppress(OSError), os.scandir(folder()) as entries:
        for entry in entries:
            if NAMES.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    clear(Path(entry.path))


def clear(path: Path) -> None:
    """Take one file away, if it is ours and nobody has its lock. Raises ``OSError``."""
    if path.lstat().st_uid != os.getuid():
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if named(fd, path):
            path.unlink()
    finally:
        os.close(fd)
