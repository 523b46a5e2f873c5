"""An enactor's local file: the newest whole set of each endpoint that it wrote, or read and found whole.

From it an emptied endpoint is healed while the store is away (the store may sit behind that very endpoint). What is
used from it must match a marker's generation and digest exactly, so a stale or lost file does no harm; hence it isn't
synced at every write, and a damaged one is put aside and begun anew.
"""

import logging
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fencepost.core.judge import Remembered

log = logging.getLogger(__name__)

_SCHEMA = "create table if not exists known (name text primary key, body blob not null) without rowid"


class LocalFile:
    """The file at ``path``. Calls are short and block; :meth:`keep` is meant for a handful of endpoints at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Remembered)
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            aside = self.path.with_suffix(".damaged")
            log.warning("%s is damaged (%s); it is kept as %s and a new one begun", self.path, error, aside.name)
            self.path.replace(aside)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute(_SCHEMA)
        return connection

    def recall(self, name: str) -> Remembered | None:
        """What is remembered of an endpoint."""
        try:
            found = self._connection.execute("select body from known where name = ?", (name,)).fetchone()
            return self._decoder.decode(found[0]) if found else None
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            log.warning("%s: %s is forgotten: %s", self.path, name, error)
            return None

    def keep(self, known: Iterable[tuple[str, Remembered]]) -> None:
        """Remember sets. A full disk or damaged file costs the memory, never the write that it is about."""
        rows = [(name, self._encoder.encode(remembered)) for name, remembered in known]
        if not rows:
            return
        try:
            self._connection.execute("begin")
            self._connection.executemany("insert or replace into known values (?, ?)", rows)
            self._connection.execute("commit")
        except sqlite3.Error as error:
            log.warning("%s: %d sets couldn't be kept: %s", self.path, len(rows), error)
            if self._connection.in_transaction:
                self._connection.execute("rollback")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
