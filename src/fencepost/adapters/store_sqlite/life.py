"""Which life the fleet's rows are in: another one whenever the file is older than what was last written at its place.

A lease that an older copy holds may have lapsed, and its host's work been started elsewhere, since the copy was made:
so a copy's leases must count as unknown, and they do as soon as the life is another. What DNS is about isn't touched:
there the records themselves are the fence.

Two things tell. The file names filesystem and inode it was written in, which a copy elsewhere doesn't share. And beside
it stands a small file, ``-life``, with life and snapshot of the last commit: a copy put in the store's place, even over
it, is behind that. The small file is written after each commit and not forced to disk, so it may be behind and is never
ahead; where it is missing or can't be written, only the former tells.

Awkward truth: a whole disk, or the folder with both files, set back to an older day and the same inode tells nothing.
``fencepost store restamp`` is for that.
"""

import contextlib
import os
import secrets
import sqlite3
from pathlib import Path

from fencepost.adapters.store_bodies import checked

LIFE_BYTES = 8
END = "-life"
RECORD_BYTES = 64


def clock(db: sqlite3.Connection) -> tuple[str, int]:
    """Life and snapshot; ``ValueError`` if the file holds neither."""
    found = db.execute("SELECT life, snapshot FROM fleet").fetchone()
    if found is None:
        raise ValueError("the fleet has no life")
    checked("fleet", 1, found, (str, int))
    return found[0], found[1]


def settle(db: sqlite3.Connection, path: Path) -> None:
    """Begin a new life if this file isn't where it was written, or is behind what was. To be called at each opening."""
    origin = here(path)
    if _stands(db, path, origin):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # Under the lock nobody commits, so what stands beside can't be ahead of what we read.
        if not _stands(db, path, origin):
            ((before,),) = db.execute("SELECT origin FROM fleet").fetchall()
            if before or _behind(db, path):  # "" was just made, or migrated where it lay
                begin_anew(db, path)
            db.execute("UPDATE fleet SET origin = ?", (origin,))
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def begin_anew(db: sqlite3.Connection, path: Path) -> None:
    """Let every lease count as unknown from now on; within a transaction."""
    db.execute("UPDATE fleet SET life = ?, snapshot = snapshot + 1", (secrets.token_hex(LIFE_BYTES),))
    note(path, *clock(db))  # before the commit: who opens it next must not see this life behind the last


def note_commit(path: Path, life: str, snapshot: int) -> None:
    """Write beside the store what it has come to, unless another life has begun there since."""
    seen = _noted(path)
    if seen is None or seen[0] == life:
        note(path, life, snapshot)


def note(path: Path, life: str, snapshot: int) -> None:
    """Write beside the store what it has come to; nothing if that can't be written."""
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{path}{END}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, f"{life} {snapshot}\n".ljust(RECORD_BYTES).encode(), 0)
        finally:
            os.close(descriptor)


def here(path: Path) -> str:
    """Which file this is: filesystem and inode."""
    return f"{os.statvfs(path).f_fsid:x}/{os.stat(path).st_ino}"


def _stands(db: sqlite3.Connection, path: Path, origin: str) -> bool:
    # The file beside is read first: then a commit in between can't make the store look behind it.
    return not _behind(db, path) and db.execute("SELECT origin FROM fleet").fetchone() == (origin,)


def _behind(db: sqlite3.Connection, path: Path) -> bool:
    """Whether something else, or something later, was last written at this place."""
    seen = _noted(path)
    life, snapshot = clock(db)
    return seen is not None and (seen[0] != life or seen[1] > snapshot)


def _noted(path: Path) -> tuple[str, int] | None:
    try:
        with open(f"{path}{END}", "rb") as file:
            life, snapshot = file.read(RECORD_BYTES).decode().split()
            return life, int(snapshot)
    except (OSError, ValueError):
        return None
