"""The fleet's rows in the store's file.

A commit is one transaction: under the write lock it looks whether the claim stands, reads the revisions of all rows it
is about at once, and writes those groups that fit. Commits of a thousand hosts in the order of their names cost a
fraction of the same rows one by one. Rows that only people look at (checkpoints) don't wait for the disk.
"""

import asyncio
import contextlib
import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from fencepost.adapters.store_fleet_rows import SHARD_IS, encode, hash_of, shard_row, shard_values, versioned
from fencepost.adapters.store_sqlite import life as lives
from fencepost.adapters.store_sqlite.database import Database
from fencepost.adapters.store_sqlite.life import clock
from fencepost.adapters.store_sqlite.watch import Watch
from fencepost.adapters.store_waiting import TaskWaiters
from fencepost.core.capacity.fleet_store import Claim, Group, Versioned
from fencepost.core.capacity.rows import KINDS, Kind, ShardRow
from fencepost.core.instant import Duration
from fencepost.ports import PortError
from fencepost.ports.fleet import Page, Proof, Written
from fencepost.world.reference_fleet import SHARDED, refuse_unlawful_groups

T = TypeVar("T")
_UNTOLD: frozenset[Kind] = frozenset(("shard", "checkpoint", "drain"))
"""Whose changes wake nobody. A shard's row is its manager's sign of life, written all the time; who goes by the others
looks by itself."""
_NEWEST = " UNION ALL ".join("SELECT max(revision) FROM fleet_row WHERE kind = ?" for _ in KINDS)
_UNHURRIED: frozenset[Kind] = frozenset(("checkpoint", "calibration", "drain"))
_REVISIONS = "SELECT key, revision FROM fleet_row WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"
_PUT = (
    "INSERT INTO fleet_row VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET revision = excluded.revision, body = excluded.body"
)
Put = tuple[Kind, str, int, bytes | None]
"""A change as columns: kind, key, hash, and the body, None for what goes."""


class SqliteFleetStore:
    """:class:`fencepost.ports.fleet.FleetStorePort` on SQLite. Opened after forking, used from one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watch = FleetWatch(database.path)
        self._waiters = TaskWaiters(self._watch)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fleet-store")
        self._read: tuple[object, str, int, dict[Kind, int]] | None = None
        """What the log looked like before the last read, and what this found: life, snapshot, each kind's newest."""

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Self:
        """The rows in the store at ``path``. Raises nothing, as :meth:`~.store.SqliteStore.open`."""
        database = Database(Path(os.path.realpath(path)), create=create)
        with contextlib.suppress(PortError):
            database.read(clock)
        return cls(database)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """All rows of a kind (of a shard) changed after snapshot ``since``.

        Whoever asks for one kind after the other, and nothing was committed meanwhile, costs one look at the file.
        """
        known = self._read
        if known is not None and since and since >= known[3].get(kind, 0) and self._watch.glance() == known[0]:
            return Page(known[1], known[2], ())
        return await self._run(lambda: self._rows(kind, shard, since))

    def _rows(self, kind: Kind, shard: int | None, since: int) -> Page:
        before = self._watch.glance()
        page, kinds = self._database.read(lambda db: (changed(db, kind, shard, since), newest(db)))
        self._read = (before, page.life, page.snapshot, kinds) if before is not None else None
        return page

    async def some_rows(self, kind: Kind, shard: int | None, after: str, most: int) -> Page:
        """The first ``most`` rows of a kind (of a shard) with a key after this one, as they are now."""
        return await self._run(lambda: self._database.read(lambda db: some(db, kind, shard, after, most)))

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """One consistent look at a shard's row and these rows."""
        return await self._run(lambda: self._database.read(lambda db: proof(db, shard, places)))

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """Groups of changes, each all or nothing, under a claim; None if that doesn't stand.

        Raises ``Refused`` as :func:`~fencepost.world.reference_fleet.refuse_unlawful_groups` does.
        """
        refuse_unlawful_groups(groups, str(self._database.path))
        return await self._run(lambda: self._commit(claim, groups))

    def _commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        ready = [[put(change.place, change.row) for change in group] for group in groups]
        durable = any(kind not in _UNHURRIED for puts in ready for kind, *_ in puts)
        done = self._database.write(lambda db: commit(db, claim, groups, ready), durable=durable)
        if done is None:
            return None
        life, written = done
        if durable and any(written.applied):
            lives.note_commit(self._database.path, life, written.snapshot)
        return written

    async def restamp(self) -> str:
        """Begin a new life: every lease counts as unknown from now on. The new life."""

        def work(db: sqlite3.Connection) -> str:
            lives.begin_anew(db, self._database.path)
            return clock(db)[0]

        return await self._run(lambda: self._database.write(work))

    def wait(self, most: Duration) -> Coroutine[Any, Any, None]:
        """Return when rows may have changed since this task's last call, at the latest after ``most``."""
        return self._waiters.wait(most)

    async def close(self) -> None:
        """Let go of the file and end the threads."""
        await self._watch.close()
        await self._run(self._database.close)
        self._thread.shutdown(wait=False)


class FleetWatch(Watch):
    """Wakes those who wait for fleet rows, and only for those."""

    def planned(self) -> object:
        """What differs after each commit of rows that somebody waits for."""
        try:
            life, kinds = self._database.read(lambda db: (clock(db)[0], newest(db)))
            return (self._database.file, life, {kind: at for kind, at in kinds.items() if kind not in _UNTOLD})
        except PortError as problem:
            return type(problem)


def newest(db: sqlite3.Connection) -> dict[Kind, int]:
    """The revision of each kind's newest row, 0 where there is none: an index has them."""
    return {kind: int(at or 0) for kind, (at,) in zip(KINDS, db.execute(_NEWEST, KINDS), strict=True)}


def own_row(db: sqlite3.Connection, shard: int) -> ShardRow | None:
    """A shard's row."""
    found = db.execute("SELECT body FROM fleet_row WHERE kind = 'shard' AND key = ?", (str(shard),)).fetchone()
    return shard_row(found[0] if found is not None else None, shard)


def changed(db: sqlite3.Connection, kind: Kind, shard: int | None, since: int) -> Page:
    """The rows changed after a snapshot: by the index, unless all are wanted."""
    life, snapshot = clock(db)
    which, values = "SELECT key, revision, body FROM fleet_row WHERE kind = ?", (kind, since)[: 1 + (since > 0)]
    if since > 0:
        which = "SELECT key, revision, body FROM fleet_row INDEXED BY fleet_row_changed WHERE kind = ? AND revision > ?"
    own = of_shard(db, kind, shard)
    rows = db.execute(f"{which} AND {own} ORDER BY key", values) if own is not None else ()
    return Page(life, snapshot, tuple(versioned(kind, key, revision, body) for key, revision, body in rows))


def some(db: sqlite3.Connection, kind: Kind, shard: int | None, after: str, most: int) -> Page:
    """Rows in the order of their keys, from after one on."""
    life, snapshot = clock(db)
    which = "SELECT key, revision, body FROM fleet_row WHERE kind = ? AND key > ?"
    own = of_shard(db, kind, shard)
    rows = db.execute(f"{which} AND {own} ORDER BY key LIMIT ?", (kind, after, most)) if own is not None else ()
    return Page(life, snapshot, tuple(versioned(kind, key, revision, body) for key, revision, body in rows))


def of_shard(db: sqlite3.Connection, kind: Kind, shard: int | None) -> str | None:
    """SQL that is true of a shard's rows, and of all where it makes no difference; None if nobody has it yet."""
    if shard is None or kind not in SHARDED:
        return "true"
    own = own_row(db, shard)
    return SHARD_IS.format_map(shard_values(own)) if own is not None else None


def proof(db: sqlite3.Connection, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
    """A shard's row and some others."""
    found: list[Versioned | None] = []
    for kind, key in places:
        row = db.execute("SELECT revision, body FROM fleet_row WHERE kind = ? AND key = ?", (kind, key)).fetchone()
        found.append(versioned(kind, key, *row) if row is not None else None)
    return Proof(clock(db)[0], own_row(db, shard), tuple(found))


def put(place: tuple[Kind, str], row: object) -> Put:
    """A change as columns."""
    kind, key = place
    return kind, key, hash_of(key), encode(row) if row is not None else None


def commit(
    db: sqlite3.Connection, claim: Claim | None, groups: Sequence[Group], ready: Sequence[Sequence[Put]]
) -> tuple[str, Written] | None:
    """The store's life, and the groups that fit, under the write lock; ``ready`` are their changes as columns."""
    life, snapshot = clock(db)
    if claim is not None and not claim.stands(own_row(db, claim.shard), life):
        return None
    stand = revisions(db, (put[:2] for puts in ready for put in puts))
    applied = tuple(all(stand.get(change.place, 0) == change.seen for change in group) for group in groups)
    if not any(applied):
        return life, Written(snapshot, applied)
    puts = [put for ok, puts in zip(applied, ready, strict=True) if ok for put in puts]
    db.executemany(_PUT, [(*put[:3], snapshot + 1, put[3]) for put in puts if put[3] is not None])
    db.executemany("DELETE FROM fleet_row WHERE kind = ? AND key = ?", [put[:2] for put in puts if put[3] is None])
    db.execute("UPDATE fleet SET snapshot = ?", (snapshot + 1,))
    return life, Written(snapshot + 1, applied)


def revisions(db: sqlite3.Connection, places: Iterable[tuple[Kind, str]]) -> dict[tuple[Kind, str], int]:
    """The revisions of those rows that are there."""
    keys: dict[Kind, list[str]] = defaultdict(list)
    for kind, key in places:
        keys[kind].append(key)
    return {
        (kind, key): revision
        for kind, wanted in keys.items()
        for key, revision in db.execute(_REVISIONS, (kind, json.dumps(wanted)))
    }
