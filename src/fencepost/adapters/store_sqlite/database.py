"""One connection to the store file: opened when needed, retried when busy, dropped when the file is another.

*Busy.* SQLite's own waiting is unfair (one of eight writers was seen to wait 3.3 s), so it is turned off: each attempt
fails at once and is repeated after a random pause, 5 s in all, and then the process that holds the lock is named.

*Lost.* Before each transaction and after each write, device and inode of the path are compared with those opened. A
file that was deleted or replaced under us is opened anew; a deleted one is made anew only by whoever may create it, and
has another identity. A write that went into a file nobody will read again is Unavailable: its outcome is unknown.

*Lost log.* The same for ``-wal`` and ``-shm``: who opens the store after they were removed makes others, and two logs
of one file are two stores. A process that finds others there than it has open lets go of the file in all its threads
(SQLite shares the index among a process's connections) and opens it anew, one process after the other, so that one
which still has the old log open keeps SQLite from copying that log into the file when another closes it. All meet in
the new log; what only the removed one held is gone, as when an older copy is put back.

*Made whole.* A new store is built under another name and renamed into place, under a lock beside it, so that no process
ever opens half a store. What an earlier file left beside it (``-wal``, ``-shm``) is removed first: processes that still
have the old file open share that memory, and would write into the new store's index.

*Durable.* Synchronous FULL: a commit is on disk when it returns, or a generation could fall after a power cut. Reports,
beats and history are committed without waiting for the disk (NORMAL), where the next full commit carries them along.

Awkward truth: a copy put in the place of a running store while its ``-wal`` file stays is mixed with that file's
contents by SQLite itself. Restoring means stopping the region and removing ``-wal`` and ``-shm`` with the old file.
"""

import contextlib
import errno
import fcntl
import logging
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_sqlite import drafts, faults, schema
from fencepost.adapters.store_sqlite.writer import WriteLock
from fencepost.ports import Misconfigured, Unavailable

log = logging.getLogger(__name__)
T = TypeVar("T")
PATIENCE_S = 5.0
PAUSE_LEAST_S = 0.0005
PAUSE_MOST_S = 0.02
LOG_KEPT_BYTES = 16 * 1024 * 1024
"""To this much the write-ahead log is cut when it starts over."""
_NEVER_OPENED = (-1, -1)
_opening = threading.Lock()
"""Held while this process opens a store, or lets go of one in all its threads."""
_open_here: "dict[Path, set[weakref.ref[Database]]]" = {}
_writing_here: "dict[Path, set[weakref.ref[Database]]]" = {}


class _BusyError(Exception):
    """Another connection holds a lock; to be tried again."""


class _LogLostError(Exception):
    """``-wal`` or ``-shm`` at the path isn't the one that is open."""


class Database:
    """The store file. Blocking; to be used from one thread at a time. Open it after forking, never before."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self.lock = WriteLock(path)
        self._create = create
        self._using = threading.Lock()
        self._me = weakref.ref(self)
        self._db: sqlite3.Connection | None = None
        self._file = _NEVER_OPENED
        self._log = (0, 0)
        self._openings = 0
        self._synchronous = ""

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` finds, all of it as of one moment. Raises ``Unavailable`` or ``Misconfigured``."""

        def attempt() -> T:
            db = self._ready()
            db.execute("BEGIN")
            found = work(db)
            db.execute("COMMIT")
            return found

        return self._told(attempt)

    def write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Do ``work`` in one transaction, alone; what it returns. Raises ``Unavailable`` (the outcome is unknown) or
        ``Misconfigured``. Not ``durable``: a power cut may lose it (never a crash of a process)."""

        def attempt() -> T:
            db = self._ready()
            self._sync("FULL" if durable else "NORMAL")
            db.execute("BEGIN IMMEDIATE")
            done = work(db)
            db.execute("COMMIT")
            self._check_still(self._file, "written")
            return done

        writing = _writing_here.setdefault(self.path, set())
        writing.add(self._me)
        try:
            return self._told(attempt)
        finally:
            writing.discard(self._me)

    def data_version(self) -> int:
        """A number that changes when another connection commits. About 6 µs."""

        def attempt() -> int:
            return int(self._ready().execute("PRAGMA data_version").fetchone()[0])

        return self._told(attempt)

    @property
    def file(self) -> tuple[int, int, int]:
        """Device and inode of the file that is open, and which opening of it this is."""
        return (*self._file, self._openings)

    def checkpoint(self, how: str) -> None:
        """Copy the write-ahead log into the file: ``how`` is PASSIVE (waits for nobody) or TRUNCATE (waits 0.1 s)."""

        def attempt() -> None:
            db = self._ready()
            db.execute("PRAGMA busy_timeout = 100")
            try:
                db.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            finally:
                db.execute("PRAGMA busy_timeout = 0")

        self._told(attempt)

    def close(self) -> None:
        """Let go of the file; the next call would open it again."""
        with self._using:
            self._close()

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db, self._file = None, _NEVER_OPENED
        _open_here.get(self.path, set()).discard(self._me)

    def glance(self) -> None:
        """Look whether file and log are still those that are open, and open them anew if not. About 5 µs."""

        def attempt() -> None:
            if self._db is not None:
                self._ready()

        self._told(attempt)

    def _told(self, attempt: Callable[[], T]) -> T:
        """Try until the lock is free or patience ends; every error as the port's."""
        deadline, pause = time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
        while True:
            try:
                with self._using:
                    return self._once(attempt)
            except _BusyError as busy:
                if time.monotonic() >= deadline:
                    raise faults.locked(self.path, PATIENCE_S, self.lock.holder()) from busy.__cause__
            except _LogLostError as lost:
                if time.monotonic() >= deadline:
                    raise faults.log_lost(self.path) from lost
                self._meet_again()
            time.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
            pause = min(pause * 1.5, PAUSE_MOST_S)

    def _once(self, attempt: Callable[[], T]) -> T:
        try:
            return attempt()
        except sqlite3.Error as error:
            busy = faults.code_of(error) in faults.BUSY
            self._back_out(keep=busy or faults.code_of(error) == sqlite3.SQLITE_FULL)
            if busy:
                raise _BusyError from error
            raise faults.translated(error, self.path) from error
        except UnreadableError as error:
            self._back_out(keep=True)
            raise faults.unreadable(self.path, error) from error
        except (msgspec.DecodeError, ValueError, OverflowError) as error:  # a number past SQLite's, say
            self._back_out(keep=True)
            raise faults.damaged(self.path, str(error)) from error
        except BaseException:
            self._back_out(keep=True)
            raise

    def _meet_again(self) -> None:
        """Let go of the file in all threads of this process and open it with the log that is at the path now."""
        with _opening, _one_process(self.path):
            if self._db is None:  # another thread has done it
                return
            log.warning("%s: its -wal or -shm was removed or replaced; it is opened anew", self.path)
            lost, there = self._log, _inodes(self.path)
            if there[0] != lost[0] and there[1] == lost[1]:
                # The index of a log that is gone must not be taken for that of the new one.
                self.path.with_name(self.path.name + "-shm").unlink(missing_ok=True)
            for known in list(_open_here.get(self.path, ())):
                each = known()
                if each is not None:
                    with each._using:
                        each._close()
            found = self._found()
            if found != _NEVER_OPENED:
                with self._using, contextlib.suppress(_BusyError):
                    self._once(lambda: self._open(found))

    def _back_out(self, *, keep: bool) -> None:
        """Undo what was begun. A connection that met anything but a lock or a full disk isn't trusted with more."""
        if self._db is None:
            return
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            keep = False
        if not keep:
            self._close()

    def _sync(self, level: str) -> None:
        if self._synchronous != level and self._db is not None:
            self._db.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    def _found(self) -> tuple[int, int]:
        """Device and inode of what is at the path now."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return _NEVER_OPENED
        except OSError as error:
            hint = "the user fencepost runs as must be able to enter the directory"
            what = f"the store can't be reached ({error.strerror})"
            raise Misconfigured(what, where=str(self.path), hint=hint) from error
        return found.st_dev, found.st_ino

    def _check_still(self, file: tuple[int, int], doing: str) -> None:
        if self._found() != file:
            raise Unavailable(f"the store file was replaced while it was {doing}", where=str(self.path))
        if doing == "written" and _inodes(self.path) != self._log:
            raise faults.log_lost(self.path)

    def _ready(self) -> sqlite3.Connection:
        """The connection, to the file that is at the path now."""
        found = self._found()
        if self._db is not None and found == self._file:
            if _inodes(self.path) != self._log:
                raise _LogLostError
            return self._db
        self._close()
        if not _opening.acquire(blocking=False):
            raise _BusyError
        try:
            return self._open(found)
        finally:
            _opening.release()

    def _open(self, found: tuple[int, int]) -> sqlite3.Connection:
        """Open the file that was found, or make it; ``_opening`` is held."""
        if found == _NEVER_OPENED:
            if not self.path.parent.is_dir() or not self._create:
                raise faults.cannot_open(self.path, "")
            make(self.path)
            found = self._found()
        db = connect(self.path)
        try:
            schema.prepare(db, self.path, create=self._create)
            self._check_still(found, "opened")
        except BaseException:
            db.close()
            raise
        self._db, self._file, self._synchronous = db, found, ""
        # Nobody removes these as long as a connection is open, but by hand; at the end SQLite does, for the last one.
        self._log = _inodes(self.path)
        self._openings += 1
        _open_here.setdefault(self.path, set()).add(self._me)
        return db


def writes_here(path: Path) -> bool:
    """Whether some thread of this process is writing to the store at a path. SQLite's locks don't tell it that."""
    return bool(_writing_here.get(path))


def _inodes(path: Path) -> tuple[int, int]:
    """The inodes of log and index that are at the path now, 0 for what isn't there."""
    return _inode(f"{path}-wal"), _inode(f"{path}-shm")


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


@contextlib.contextmanager
def _one_process(path: Path) -> Iterator[None]:
    """One process after the other; without the lock where it can't be made."""
    try:
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        _lock_patiently(lock, path)
        yield
    finally:
        os.close(lock)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that exists: no waiting of SQLite's own, no checkpoint at commits."""
    db = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    try:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}")
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


def make(path: Path) -> None:
    """Make a new, empty store at a path where no file is; nothing if another process does so first."""
    beside = path.with_name(path.name + ".lock")
    draft = path.with_name(path.name + ".new")
    try:
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock_patiently(lock, path)
            if path.exists():
                return
            drafts.remove(path, drafts.BESIDE)
            with drafts.drafted(draft):
                db = connect(draft)
                try:
                    schema.prepare(db, draft, create=True)
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # closing does it too, and is silent if it can't
                finally:
                    db.close()
                draft.rename(path)
            drafts.sync_directory(path.parent)
        finally:
            os.close(lock)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise faults.full(path) from error
        hint = "the user fencepost runs as must be able to write the store's directory"
        raise Misconfigured(f"the store can't be made ({error.strerror})", where=str(path), hint=hint) from error


def _lock_patiently(lock: int, path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise Unavailable("another process is making the store", where=str(path)) from error
            time.sleep(PAUSE_MOST_S)
        else:
            return
