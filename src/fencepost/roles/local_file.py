"""An enactor's local file: the newest whole set of each endpoint that it wrote, or read and found whole; and the newest
overrides (drain, keep, pause) that it read from the store, for the case that the store is lost.

From the sets an emptied endpoint is healed while the store is away (the store may sit behind that very endpoint). What
is used of them must match a marker's generation and digest exactly, so a stale or lost file does no harm; hence it
isn't synced at every write. An older memory of overrides gives way to a newer one in the store that takes them back.

A damaged one is put aside and begun anew, but only on SQLite's word that it is damaged, and never over one put aside
earlier: a full disk, missing rights or a failing read say nothing of what the file holds, and healing is wanted most
just then. In these cases it is read only if that works, else the enactor runs without it, and it is tried again later.

Awkward truth: where not even the log's index can be made (a full disk), the file is read without its log (``immutable``
of sqlite.org/uri.html), so it may be older than what was last kept.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from fencepost.core.judge import Remembered
from fencepost.roles.overrides import KeptWords

log = logging.getLogger(__name__)

ASIDE_MOST = 3
"""So many damaged files are kept; of further ones nothing new is to be learnt, so they go."""
AGAIN_AFTER_S = 10.0
"""How long a file that can't be written is left alone before it is tried again."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = (
    "create table if not exists known (name text primary key, body blob not null) without rowid",
    "create table if not exists words (one integer primary key check (one = 1), body blob not null)",
)
_ENDS = ("-wal", "-shm", "-journal")


class LocalFile:
    """The file at ``path``. Calls are short and block; :meth:`keep` is meant for a handful of endpoints at a time.

    None of them raises for what is wrong with the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Remembered)
        self._connection: sqlite3.Connection | None = None
        self._writable = False
        self._again_at = 0.0
        self._said = False
        self._open()

    def recall(self, name: str) -> Remembered | None:
        """What is remembered of an endpoint; None if nothing is, or the file can't be read now."""
        self._open()
        if self._connection is None:
            return None
        try:
            found = self._connection.execute("select body from known where name = ?", (name,)).fetchone()
            return self._decoder.decode(found[0]) if found else None
        except sqlite3.Error as error:
            self._failed(error)
        except (msgspec.MsgspecError, TypeError) as error:
            log.warning("%s: %s is forgotten: %s", self.path, name, error)
        return None

    def keep(self, known: Iterable[tuple[str, Remembered]]) -> None:
        """Remember sets. A full disk or damaged file costs the memory, never the write that it is about."""
        rows = [(name, self._encoder.encode(remembered)) for name, remembered in known]
        self._write("insert or replace into known values (?, ?)", rows)

    def recall_words(self) -> KeptWords | None:
        """The overrides that were kept last; None if there are none, or they can't be read now."""
        self._open()
        if self._connection is None:
            return None
        try:
            found = self._connection.execute("select body from words").fetchone()
            return msgspec.json.decode(found[0], type=KeptWords) if found else None
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # no such table: made before there were any
                self._failed(error)
        except sqlite3.Error as error:
            self._failed(error)
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            log.warning("%s: the overrides are forgotten: %s", self.path, error)
        return None

    def keep_words(self, words: KeptWords) -> None:
        """Remember these overrides instead of those before. Fails as :meth:`keep` does."""
        self._write("insert or replace into words values (1, ?)", [(msgspec.json.encode(words),)])

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._open()
        if not rows or self._connection is None or not self._writable:
            return
        try:
            self._connection.execute("begin")
            self._connection.executemany(statement, rows)
            self._connection.execute("commit")
            self._works()
        except sqlite3.Error as error:
            self._failed(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._writable = None, False

    def _open(self) -> None:
        """See to a connection that can write, as long as it isn't too soon to try again."""
        if self._writable or time.monotonic() < self._again_at:
            return
        self.close()
        try:
            self._connection, self._writable = self._connect("rwc"), True
        except sqlite3.Error as error:
            self._failed(error)

    def _works(self) -> None:
        if self._said:
            log.warning("%s: sets are kept again", self.path)
        self._said = False

    def _failed(self, error: sqlite3.Error) -> None:
        """Say it once; begin anew after damage, else read what can be read until it is tried again."""
        self.close()
        self._again_at = time.monotonic() + AGAIN_AFTER_S
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED and self._put_aside(error):
            try:
                self._connection, self._writable = self._connect("rwc"), True
                return
            except sqlite3.Error as another:
                error = another
        if not self._said:
            log.warning("%s: sets can't be kept now, which only healing without the store needs: %s", self.path, error)
        self._said = True
        for how in ("ro", "ro&immutable=1"):
            try:
                self._connection = self._connect(how)
                return
            except sqlite3.Error as another:
                log.debug("%s (%s): %s", self.path, how, another)

    def _connect(self, mode: str) -> sqlite3.Connection:
        where = f"file:{quote(str(self.path))}?mode={mode}"
        connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False)
        try:
            if mode == "rwc":
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = normal")
                for statement in _SCHEMA:
                    connection.execute(statement)
            connection.execute("select 1 from known limit 1").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _put_aside(self, error: sqlite3.Error) -> bool:
        """Move the damaged file and what belongs to it out of the way; whether that worked."""
        names = [self.path.with_suffix(".damaged" if n == 1 else f".damaged-{n}") for n in range(1, ASIDE_MOST + 1)]
        aside = next((name for name in names if not os.path.lexists(name)), None)
        try:
            for end in ("", *_ENDS):
                part = self.path.with_name(self.path.name + end)
                if not part.exists():
                    continue
                if aside is None:
                    part.unlink()
                else:
                    part.rename(aside.with_name(aside.name + end))
        except OSError as problem:
            log.warning("%s is damaged (%s) and can't be put aside: %s", self.path, error, problem.strerror)
            return False
        kept = f"kept as {aside.name}" if aside is not None else f"removed, for {ASIDE_MOST} such files are kept"
        log.warning("%s is damaged (%s); it is %s and a new one begun", self.path, error, kept)
        return True
