"""The domain's file: SQLite in WAL mode with synchronous FULL, one row a record set, and a journal of recent changes.

An update is answered NOERROR only after its transaction is on disk: NORMAL may lose the last commits at a power cut,
and then a generation would fall. One process owns a file, kept so by a lock on a file beside it (locking the database
file itself would fight with SQLite's own locks, which POSIX drops as soon as any descriptor of it is closed).

The journal keeps the last 1,000 changes of each domain, at most 200,000 records of them, so that a secondary or an
enactor that was away for a while fetches what changed and not everything (RFC 1995). Its index is in memory.

A file that was removed or replaced under the server (or its ``-wal``) still holds everything for the connection that
has it open, and nothing for the next start. So device and inodes at the path are compared with those opened, before and
after each commit and now and then; what is open is then copied whole into a new file, which takes the path. Until that
works updates are answered SERVFAIL. A file that stands in its place by then is kept beside it as ``.replaced``.

All calls block; the server makes them from one thread of its own, never from two at once.
"""

import fcntl
import logging
import os
import sqlite3
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from fencepost.core.dns_numbers import SOA
from fencepost.ports import Misconfigured, PortError, Unavailable

from .contents import Change, Contents, Node, RecordSet, find, soa_serial

SCHEMA_VERSION = 1
APPLICATION_ID = 0x46505A31  # "FPZ1": tells a domain's file from any other SQLite file
JOURNAL_CHANGES = 1_000
JOURNAL_RECORDS = 200_000

_SCHEMA = f"""
BEGIN;
CREATE TABLE domain (id INTEGER PRIMARY KEY, apex BLOB NOT NULL UNIQUE, serial INTEGER NOT NULL);
CREATE TABLE record_set (
    domain INTEGER NOT NULL REFERENCES domain, name BLOB NOT NULL, type INTEGER NOT NULL, ttl INTEGER NOT NULL,
    rdatas BLOB NOT NULL, PRIMARY KEY (domain, name, type)
) WITHOUT ROWID;
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, domain INTEGER NOT NULL REFERENCES domain, serial_from INTEGER NOT NULL,
    serial_to INTEGER NOT NULL, records INTEGER NOT NULL, removed BLOB NOT NULL, added BLOB NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

_ENDS = ("-wal", "-shm", "-journal")
log = logging.getLogger(__name__)
_encode = msgspec.msgpack.encode
_decode_records = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


class JournalEntry(Struct, frozen=True, gc=False):
    """Where one change stands in the journal, and how many records it took away and added."""

    seq: int
    serial_from: int
    serial_to: int
    records: int


class Written(Struct, frozen=True, gc=False):
    """A change that is on disk, and how many of the oldest entries went for it."""

    entry: JournalEntry
    spent: int
    unsafe: PortError | None = None
    """Why it isn't in the file at the path, if it isn't: the file was removed just then, and no new one can be made."""


class DomainFile:
    """The one file that holds the domains. Raises Misconfigured or Unavailable where a call says nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journals: dict[bytes, deque[JournalEntry]] = {}
        self._ids: dict[bytes, int] = {}
        self._lock = self._take_lock()
        try:
            self._db = self._open()
            self._opened = _at(self.path)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the file and give its lock back."""
        self._db.close()
        self._lock.close()

    def load(self, apex: bytes) -> Contents | None:
        """What the file holds of a domain, or None if it is new here."""
        with _told(self.path):
            row = self._db.execute("SELECT id, serial FROM domain WHERE apex = ?", (apex,)).fetchone()
            if row is None:
                return None
            self._ids[apex] = row[0]
            contents = Contents(apex, self._nodes(row[0]))
            entries = self._db.execute(
                "SELECT seq, serial_from, serial_to, records FROM journal WHERE domain = ? ORDER BY seq", (row[0],)
            )
            self.journals[apex] = deque(JournalEntry(*entry) for entry in entries)
            soa = find(contents.node(apex), SOA)
            if soa is None or len(soa.rdatas) != 1 or soa_serial(soa.rdatas[0]) != row[1]:
                raise _damaged(self.path, "the serial and the SOA record differ")
            return contents

    def create(self, apex: bytes, serial: int, nodes: dict[bytes, Node]) -> None:
        """Write a domain that is new here, with its first records."""
        with _told(self.path), self._transaction():
            cursor = self._db.execute("INSERT INTO domain (apex, serial) VALUES (?, ?)", (apex, serial))
            assert cursor.lastrowid is not None  # an INSERT has one  # noqa: S101
            self._write(cursor.lastrowid, nodes)
        self._ids[apex] = cursor.lastrowid
        self.journals[apex] = deque()

    def commit(self, apex: bytes, change: Change) -> Written:
        """Write one change and its journal entry, on disk when this returns; tell :meth:`note` of it afterwards."""
        self.look()
        domain, journal = self._ids[apex], self.journals[apex]
        records = len(change.removed) + len(change.added)
        spent = self._spent(journal, records)
        with _told(self.path), self._transaction():
            self._write(domain, change.nodes)
            self._db.execute("UPDATE domain SET serial = ? WHERE id = ?", (change.serial_to, domain))
            if spent:
                self._db.execute("DELETE FROM journal WHERE domain = ? AND seq <= ?", (domain, spent[-1].seq))
            cursor = self._db.execute(
                "INSERT INTO journal (domain, serial_from, serial_to, records, removed, added)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (domain, change.serial_from, change.serial_to, records, _encode(change.removed), _encode(change.added)),
            )
            assert cursor.lastrowid is not None  # an INSERT has one  # noqa: S101
        unsafe = None
        try:
            self.look()
        except PortError as error:
            unsafe = error
        entry = JournalEntry(cursor.lastrowid, change.serial_from, change.serial_to, records)
        return Written(entry, len(spent), unsafe)

    def look(self) -> None:
        """Write the file anew if it isn't at its path any more; two system calls if it is.

        Raises Unavailable or Misconfigured as long as that can't be done.
        """
        if _at(self.path) == self._opened:
            return
        log.error("%s was removed or replaced while the server runs; it is written anew", self.path)
        try:
            with _told(self.path):
                self._write_anew()
        except OSError as error:
            hint = "the file and its directory must exist and be writable by the server's user"
            what = f"the domain's file was removed or replaced and can't be written anew ({error.strerror})"
            raise Misconfigured(what, where=str(self.path), hint=hint) from error

    def _write_anew(self) -> None:
        draft = self.path.with_name(self.path.name + ".new")
        for end in ("", *_ENDS):
            draft.with_name(draft.name + end).unlink(missing_ok=True)
        copy = sqlite3.connect(draft, isolation_level=None)
        try:
            self._db.backup(copy)
        finally:
            copy.close()
        lock = self.path.with_name(self.path.name + ".lock")
        if not lock.exists() or lock.stat().st_ino != os.fstat(self._lock.fileno()).st_ino:
            old_lock, self._lock = self._lock, self._take_lock()
            old_lock.close()
        if self.path.exists() and _at(self.path)[:2] != self._opened[:2]:
            self.path.rename(self.path.with_name(self.path.name + ".replaced"))
        for end in _ENDS:
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        draft.rename(self.path)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        old, self._db = self._db, self._open()
        self._opened = _at(self.path)
        old.close()  # SQLite sees that its file isn't at the path, and leaves the new one's log alone

    def note(self, apex: bytes, written: Written) -> None:
        """Put a written change into the journal's index: where the index is read, not where the file is written."""
        journal = self.journals[apex]
        for _ in range(written.spent):
            journal.popleft()
        journal.append(written.entry)

    def changes(self, apex: bytes, first: int, last: int) -> list[tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
        """Removed and added records of each change from journal position ``first`` to ``last``, if still kept."""
        with _told(self.path):
            rows = self._db.execute(
                "SELECT removed, added FROM journal WHERE domain = ? AND seq BETWEEN ? AND ? ORDER BY seq",
                (self._ids[apex], first, last),
            )
            return [(_decode_records(removed), _decode_records(added)) for removed, added in rows]

    @staticmethod
    def _spent(journal: deque[JournalEntry], records: int) -> list[JournalEntry]:
        """The oldest entries that must go so that one more of ``records`` records fits."""
        count, total = len(journal) + 1, sum(entry.records for entry in journal) + records
        spent: list[JournalEntry] = []
        for entry in journal:
            if count <= JOURNAL_CHANGES and total <= JOURNAL_RECORDS:
                break
            spent.append(entry)
            count, total = count - 1, total - entry.records
        return spent

    def _write(self, domain: int, nodes: dict[bytes, Node]) -> None:
        self._db.executemany("DELETE FROM record_set WHERE domain = ? AND name = ?", ((domain, name) for name in nodes))
        self._db.executemany(
            "INSERT INTO record_set (domain, name, type, ttl, rdatas) VALUES (?, ?, ?, ?, ?)",
            (
                (domain, name, found.rtype, found.ttl, _pack(found.rdatas))
                for name, node in nodes.items()
                for found in node
            ),
        )

    def _nodes(self, domain: int) -> Iterator[tuple[bytes, Node]]:
        rows = self._db.execute(
            "SELECT name, type, ttl, rdatas FROM record_set WHERE domain = ? ORDER BY name, type", (domain,)
        )
        owner, sets = b"", list[RecordSet]()
        for name, rtype, ttl, rdatas in rows:
            if name != owner:
                if sets:
                    yield owner, tuple(sets)
                owner, sets = name, []
            sets.append(RecordSet(rtype, ttl, _unpack(rdatas)))
        if sets:
            yield owner, tuple(sets)

    def _take_lock(self) -> IO[bytes]:
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            lock = beside.open("ab")
        except OSError as error:
            raise Misconfigured(
                f"can't open the lock beside the domain's file: {error.strerror}",
                where=str(beside),
                hint="give the server a directory that exists and that its user may write",
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise Misconfigured(
                "another process owns the domain's file",
                where=str(self.path),
                hint="stop the other DNS server, or give this one a file of its own",
            ) from error
        return lock

    def _open(self) -> sqlite3.Connection:
        with _told(self.path):
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=32)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        application = db.execute("PRAGMA application_id").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if not empty and (application != APPLICATION_ID or version != SCHEMA_VERSION):
            kind = f"version {version} of a domain's file" if application == APPLICATION_ID else "no domain's file"
            raise Misconfigured(
                f"this is {kind}; version {SCHEMA_VERSION} is wanted",
                where=str(self.path),
                hint="run the fencepost version that wrote it, or name another file",
            )
        if not os.access(self.path, os.W_OK):
            raise sqlite3.OperationalError("attempt to write a readonly database")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        if empty:
            db.executescript(_SCHEMA)
        elif db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _damaged(self.path, "SQLite's own check failed")

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._db)


def _at(path: Path) -> tuple[int, int, int]:
    """Device and inode of the file that is at the path, and the inode of its log; 0 for what isn't there."""
    found = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            found.append(os.stat(each))
        except OSError:
            return (0, 0, 0)
    return found[0].st_dev, found[0].st_ino, found[1].st_ino


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK on any error."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
                return
            except sqlite3.Error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


class _told:  # noqa: N801  reads as a word where it is used
    """Turns SQLite's errors into ours: what a person must mend is Misconfigured, what may pass is Unavailable."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, (sqlite3.Error, msgspec.DecodeError, struct.error)):
            return
        text, where, code = str(error), str(self._path), getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            hint = "the file and its directory must exist and be writable by the server's user"
            raise Misconfigured(f"can't write the domain's file ({text})", where=where, hint=hint) from error
        if code == sqlite3.SQLITE_FULL:
            raise Unavailable(
                "no space for the domain's file", where=where, hint="free space; the server keeps answering meanwhile"
            ) from error
        if isinstance(error, sqlite3.OperationalError):
            raise Unavailable(f"the domain's file can't be used now ({text})", where=where) from error
        raise _damaged(self._path, text) from error


def _damaged(path: Path, text: str) -> Misconfigured:
    return Misconfigured(
        f"the domain's file is damaged or something else ({text})",
        where=str(path),
        hint="put it aside and restart: the enactors write every endpoint again; other records need a backup",
    )


def _pack(rdatas: Iterable[bytes]) -> bytes:
    """Data one after the other, each after its length in two bytes."""
    return b"".join(len(rdata).to_bytes(2, "big") + rdata for rdata in rdatas)


def _unpack(packed: bytes) -> tuple[bytes, ...]:
    rdatas, at = [], 0
    while at < len(packed):
        (size,) = struct.unpack_from("!H", packed, at)
        rdatas.append(packed[at + 2 : at + 2 + size])
        at += 2 + size
    if at != len(packed):
        raise struct.error("cut short")
    return tuple(rdatas)
