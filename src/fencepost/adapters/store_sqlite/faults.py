"""SQLite's errors as the port's: what may pass by itself is Unavailable, what a person must mend is Misconfigured."""

import sqlite3
from pathlib import Path

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_sqlite.schema import MAKE_HINT
from fencepost.ports import Misconfigured, PortError, Unavailable

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
REPLACE_HINT = (
    "move the file, its -wal and its -shm aside while everything runs (stopping our DNS server ends its answers):"
    " a new store adopts what stands in DNS within a second or so; docs/operating/store-lost.md"
)
"""The way out of a store that holds something else than we wrote; the runbook and ``status`` say the same."""
_KEPT = "nothing that was committed is lost, and roles go on by themselves once that is over"


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code, 0 if the error is not SQLite's own (Python's module raises some)."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def gone(path: Path) -> Unavailable:
    """The file isn't there, and we may not make one."""
    return Unavailable("the store file is gone", where=str(path), hint=MAKE_HINT)


def log_lost(path: Path) -> Unavailable:
    """Log or index were removed or replaced under the open store."""
    hint = "never remove -wal or -shm of a store in use; the store goes on from what its file and its new log hold"
    return Unavailable("the store's log was removed while it was in use", where=str(path), hint=hint)


def full(path: Path) -> Unavailable:
    """The disk or the user's quota is used up."""
    return Unavailable("no space is left for the store", where=str(path), hint=f"free some space; {_KEPT}")


def locked(path: Path, seconds: float, holder: int | None) -> Unavailable:
    """Another process kept the write lock for all the time we had."""
    by = f"process {holder}" if holder is not None else "another process"
    hint = f"look at process {holder}; if it is stopped, `kill -CONT` or `kill -9` it" if holder is not None else _KEPT
    return Unavailable(f"{by} has held the store's write lock for {seconds:.0f} s", where=str(path), hint=hint)


def translated(error: sqlite3.Error, path: Path) -> PortError:
    """The port's exception for one of SQLite's."""
    code, where, text = code_of(error), str(path), str(error)
    name = getattr(error, "sqlite_errorname", "")
    if code == sqlite3.SQLITE_FULL:
        return full(path)
    if code == sqlite3.SQLITE_IOERR:
        hint = f"look at the disk and its limits (`dmesg`, `df`, `ulimit -f`); {_KEPT}"
        return Unavailable(f"the disk failed under the store ({name})", where=where, hint=hint)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        hint = "the file and its directory must be writable by the user fencepost runs as, and the disk not read-only"
        return Misconfigured("the store can't be written", where=where, hint=hint)
    if code == sqlite3.SQLITE_CANTOPEN:
        return cannot_open(path, text)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return damaged(path, text)
    return Unavailable(f"the store can't be used now ({name or text})", where=where, hint=_KEPT)


def damaged(path: Path, text: str) -> Misconfigured:
    """The file holds something else than was written."""
    return Misconfigured(
        f"the store file is damaged or no store ({text})",
        where=str(path),
        hint=REPLACE_HINT,
    )


def unreadable(path: Path, error: UnreadableError) -> Misconfigured:
    """One row holds something else than this version writes."""
    return Misconfigured(
        f"the store is damaged or another version's ({error})",
        where=str(path),
        hint=f"run the fencepost that wrote it; else {REPLACE_HINT}",
    )


def cannot_open(path: Path, text: str) -> PortError:
    """Why the file can't be opened, as far as a look at the path tells."""
    where = str(path)
    if not path.parent.is_dir():
        return Misconfigured("the store's directory is missing", where=where, hint=f"make it: mkdir -p {path.parent}")
    if path.is_dir():
        return Misconfigured("the store's path is a directory", where=where, hint="name a file under [store] path")
    if not path.exists():
        return gone(path)
    hint = "the user fencepost runs as must be able to read and write the file and its directory"
    return Misconfigured(f"the store can't be opened ({text})", where=where, hint=hint)
