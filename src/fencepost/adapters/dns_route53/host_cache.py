"""What a region's roles on one host share about Route 53: a budget of requests, pages of listings, and their writes.

Five requests a second are all that an account has, for everybody. Six roles that each listed a zone for themselves
would spend them on the same pages; so there is one budget, in a small SQLite file in the region's folder, and beside it
each page that one of them was given and what each of their writes left. A role takes in the others' pages and writes
before it asks for anything, so listing costs the same however many they are.

It is a cache and may be lost or deleted at any time. Nothing safe rests on it: a stale page makes a write that Route 53
refuses. Where it can't be used (a full disk, a wrong owner, the region's folder away) a role goes on with a private one
in memory until it is started again, and says so.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from fencepost.adapters.dns_route53.mirror import Page, Sets
from fencepost.core.instant import SECOND, Duration, Instant

log = logging.getLogger(__name__)
T = TypeVar("T")

KEPT: Duration = 600 * SECOND
"""How long writes and pages are kept for roles that look rarely; later ones list for themselves."""
AHEAD_MOST: Duration = SECOND
"""A page dated later than now by more than this is as old as can be."""
_SCHEMA = """
create table if not exists pace (one integer primary key check (one = 1), next integer, yielding integer, slow real);
create table if not exists pages (seq integer primary key autoincrement, zone text, start text, following text,
  asked integer, sets blob, unique (zone, start));
create table if not exists writes (seq integer primary key autoincrement, zone text, owner text, at integer, sets blob);
create table if not exists cursors (zone text primary key, start text, due integer);
insert or ignore into pace values (1, 0, 0, 1.0);
"""
_decoder = msgspec.json.Decoder(Sets)


class Write(NamedTuple):
    """What a write left at one name, and when its answer came (nanoseconds since 1970)."""

    owner: str
    sets: Sets
    at: Instant


class Shared:
    """The file. Every call is a short transaction of its own."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._mine: set[int] = set()
        self._db = self._open(path)

    def _open(self, path: Path | None) -> sqlite3.Connection:
        try:
            return _connect(str(path) if path is not None else ":memory:")
        except (sqlite3.Error, OSError) as error:
            # Without its folder no role runs here that could share it, as before the first start.
            level = logging.WARNING if path is not None and path.parent.is_dir() else logging.INFO
            log.log(level, "%s can't be used (%s): requests to Route 53 are paced by this process alone", path, error)
            return _connect(":memory:")

    def run(self, sql: str, arguments: tuple[Any, ...] = ()) -> list[Any]:
        """One statement; a file that fails is left for memory."""
        try:
            return self._db.execute(sql, arguments).fetchall()
        except sqlite3.Error as error:
            if self._path is None:
                raise
            self._leave(error)
            return self._db.execute(sql, arguments).fetchall()

    def _leave(self, error: Exception) -> None:
        """Go on in memory."""
        log.warning("%s fails (%s): requests to Route 53 are paced by this process alone", self._path, error)
        self._db.close()
        self._path = None
        self._db = _connect(":memory:")

    def _made(self, make: Callable[[Any], T], rows: Iterable[Any]) -> list[T]:
        """What rows say; nothing, and the file is left, where one is damaged or another version's."""
        try:
            return [make(row) for row in rows]
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            self._leave(error)
            return []

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def put_page(self, zone: str, page: Page) -> None:
        """Keep a page for the others."""
        sets = msgspec.json.encode(page.sets)
        ((seq,),) = self.run(
            "insert or replace into pages (zone, start, following, asked, sets) values (?, ?, ?, ?, ?) returning seq",
            (zone, page.start, page.following, page.asked, sets),
        )
        self._mine.add(seq)
        self.run("delete from pages where asked < ?", (page.asked - KEPT,))

    def page(self, zone: str, start: str, since: Instant) -> Page | None:
        """A page that was asked for since, if there is one; none that a clock dated which has been set back since."""
        found = self.run(
            "select start, following, asked, sets from pages"
            " where zone = ? and start = ? and asked >= ? and asked <= ?",
            (zone, start, since, now() + AHEAD_MOST),
        )
        made = self._made(_page, found)
        return made[0] if made else None

    def pages(self, zone: str, after: int) -> tuple[int, list[Page]]:
        """The others' pages after so many, and how many there are now."""
        found = self.run(
            "select seq, start, following, asked, sets from pages where zone = ? and seq > ? order by seq",
            (zone, after),
        )
        last = found[-1][0] if found else after
        pages = self._made(_page, (row[1:] for row in found if row[0] not in self._mine))
        self._mine.clear()
        return last, pages

    def put_writes(self, zone: str, left: Mapping[str, Sets], at: Instant) -> None:
        """Tell the others what a write left."""
        bodies = msgspec.json.encode({owner: msgspec.json.encode(sets).decode() for owner, sets in left.items()})
        self.run(
            "insert into writes (zone, owner, at, sets) select ?, key, ?, value from json_each(?)",
            (zone, at, bodies.decode()),
        )
        self.run("delete from writes where at < ?", (at - KEPT,))

    def writes(self, zone: str, after: int) -> tuple[int, list[Write]]:
        """What was written after so many, and how many there are now."""
        found = self.run(
            "select seq, owner, at, sets from writes where zone = ? and seq > ? order by seq", (zone, after)
        )
        last = found[-1][0] if found else after
        return last, self._made(lambda row: Write(row[1], _decoder.decode(row[3]), row[2]), found)

    def last_write(self, zone: str) -> int:
        """How many writes there are."""
        return int(self.run("select coalesce(max(seq), 0) from writes where zone = ?", (zone,))[0][0])

    def begin(self, zone: str, due: Instant) -> None:
        """Have a rolling scan, from the first name on, if there is none."""
        self.run("insert or ignore into cursors values (?, '', ?)", (zone, due))

    def claim(self, zone: str, now: Instant, lease: Duration) -> str | None:
        """Where the rolling scan goes on, if that is due and nobody else is at it: it is this role's for a while."""
        found = self.run(
            "update cursors set due = ? where zone = ? and (due <= ? or due > ?) returning start",
            (now + lease, zone, now, now + 3_600 * SECOND),
        )
        return str(found[0][0]) if found else None

    def due(self, zone: str) -> Instant:
        """When the rolling scan goes on; 0 before its first page."""
        found = self.run("select due from cursors where zone = ?", (zone,))
        return int(found[0][0]) if found else 0

    def move_on(self, zone: str, start: str, due: Instant) -> None:
        """The rolling scan goes on at a name, not before ``due``."""
        self.run("update cursors set start = ?, due = ? where zone = ?", (start, due, zone))


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=2, isolation_level=None)
    if path != ":memory:":
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = off")  # a cache: what a crash takes is listed again
    db.executescript(_SCHEMA)
    return db


def _page(row: tuple[str, str, int, bytes]) -> Page:
    start, following, asked, sets = row
    return Page(start, following, asked, _decoder.decode(sets))


def now() -> Instant:
    """Nanoseconds since 1970, which all roles of a host agree on."""
    return time.time_ns()
