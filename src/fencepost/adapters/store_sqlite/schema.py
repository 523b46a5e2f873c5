"""The file's tables and version, and the steps from an older version to this one.

A row counts only if a plan names it: each row belongs to a plan, and every query joins the two. ``newest`` and
``spent`` are kept beside ``row`` so that neither a reader nor the janitor ever walks all rows: one change costs the
same among a thousand endpoints as among a hundred thousand.
"""

import secrets
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from fencepost.adapters.store_sqlite import life
from fencepost.ports import Misconfigured, Unavailable

SCHEMA_VERSION = 3
APPLICATION_ID = 0x46505331  # "FPS1": tells a store from any other SQLite file
IDENTITY_BYTES = 8

_FIRST = (
    # One row. `snapshot` is the input snapshot counter; the other four are the head as published.
    """CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1), store TEXT NOT NULL, number INTEGER NOT NULL, nonce TEXT NOT NULL,
        inputs INTEGER NOT NULL, snapshot INTEGER NOT NULL
    )""",
    # The chain of heads. `rows` counts the plan's rows that are still kept.
    """CREATE TABLE plan (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, nonce TEXT NOT NULL UNIQUE,
        inputs INTEGER NOT NULL, rows INTEGER NOT NULL, why BLOB NOT NULL
    )""",
    "CREATE INDEX plan_without_rows ON plan (seq) WHERE rows = 0",
    """CREATE TABLE row (
        id INTEGER PRIMARY KEY, plan INTEGER NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL,
        number INTEGER NOT NULL, body BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX row_of_name ON row (name, plan)",
    "CREATE TABLE newest (name TEXT PRIMARY KEY, row INTEGER NOT NULL, plan INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX newest_of_plan ON newest (plan)",
    "CREATE TABLE spent (row INTEGER PRIMARY KEY)",
    "CREATE TABLE config (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL)",
    "CREATE TABLE membership (pool TEXT PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE override (name TEXT PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE waiting_order (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, body BLOB NOT NULL)",
    "CREATE TABLE carried_out (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    """CREATE TABLE report (
        pool TEXT NOT NULL, zone TEXT NOT NULL, sequence INTEGER NOT NULL, body BLOB NOT NULL, beat BLOB NOT NULL,
        PRIMARY KEY (pool, zone)
    )""",
    """CREATE TABLE enacted (
        name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, number INTEGER NOT NULL, role TEXT NOT NULL,
        at INTEGER NOT NULL, writes INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE finding (role TEXT PRIMARY KEY, body BLOB NOT NULL)",
    """CREATE TABLE history (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
        role TEXT NOT NULL, text TEXT NOT NULL
    )""",
    "CREATE TABLE beat (role TEXT PRIMARY KEY, body BLOB NOT NULL)",
)

_SECOND = (
    # Of each override's id that ever stood here: "" if a person placed it, or the lost store that it was put back from.
    "CREATE TABLE override_origin (name TEXT PRIMARY KEY, lost TEXT NOT NULL) WITHOUT ROWID",
    "INSERT INTO override_origin SELECT name, '' FROM override",
    # As of which snapshot of a lost store its overrides were put back.
    "CREATE TABLE put_back (lost TEXT PRIMARY KEY, snapshot INTEGER NOT NULL) WITHOUT ROWID",
)

_THIRD = (
    # One row. `snapshot` numbers the commits of fleet rows; `life` and `origin` as :mod:`.life` says.
    """CREATE TABLE fleet (
        one INTEGER PRIMARY KEY CHECK (one = 1), life TEXT NOT NULL, origin TEXT NOT NULL, snapshot INTEGER NOT NULL
    )""",
    "INSERT INTO fleet SELECT 1, store, '', 0 FROM head",
    """CREATE TABLE fleet_row (
        kind TEXT NOT NULL, key TEXT NOT NULL, hash INTEGER NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX fleet_row_changed ON fleet_row (kind, revision, hash)",
)

STEPS: Mapping[int, tuple[str, ...]] = {0: _FIRST, 1: _SECOND, 2: _THIRD}
"""What leads from version n to n + 1; version 0 is an empty file."""


def prepare(db: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Bring a just opened file to this version, or raise.

    ``Unavailable`` for an empty file that we may not fill, ``Misconfigured`` for a file that is no store or a newer
    one. An empty file becomes a new store, with an identity of its own.
    """
    version = checked_version(db, path)
    if version == 0 and not create:
        raise Unavailable("the store file is empty", where=str(path), hint=MAKE_HINT)
    # Set outside a transaction; it stays in the file, so later opens find it there.
    if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        db.execute("PRAGMA journal_mode = WAL")
    if version != SCHEMA_VERSION:
        _migrate(db, path)
    life.settle(db, path)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while we waited for the lock.
        for step in range(checked_version(db, path), SCHEMA_VERSION):
            for statement in STEPS[step]:
                db.execute(statement)
            if step == 0:
                db.execute("INSERT INTO head VALUES (1, ?, 0, '', 0, 0)", (secrets.token_hex(IDENTITY_BYTES),))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


MAKE_HINT = "a planner makes it; start one (`fencepost up`), or put the file back"


def checked_version(db: sqlite3.Connection, path: Path) -> int:
    """The file's schema version, 0 for an empty file; ``Misconfigured`` for another program's or a newer one."""
    version, application = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
    if application != APPLICATION_ID:
        if application == 0 and version == 0 and db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            return 0
        raise Misconfigured(
            "this SQLite file is not a fencepost store",
            where=str(path),
            hint="name another file under [store] path; the DNS server's file and the store are two files",
        )
    if version > SCHEMA_VERSION:
        raise Misconfigured(
            f"the store has schema version {version}; this fencepost knows versions up to {SCHEMA_VERSION}",
            where=str(path),
            hint="run the newer fencepost that wrote it; nothing was changed",
        )
    return int(version)
