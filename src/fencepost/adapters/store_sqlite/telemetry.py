"""What is observed and told, and decides nothing by itself. Each function runs inside a transaction.

None of it raises the input snapshot, and a power cut may lose the last second of it.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import msgspec

from fencepost.adapters.store_bodies import checked, decoded
from fencepost.adapters.store_sqlite.plans import encode
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.ports import Beat, Enacted, HistoryRow

HISTORY_KEPT = 100_000
"""So many lines of history are kept."""
_ASKED_ONE_BY_ONE = 500
_ENACTED_KINDS = (str, int, int, str, int, int)
_HISTORY_KINDS = (str, str, str, str, int, int)

_decode_beat = msgspec.json.Decoder(Beat).decode
_decode_findings = msgspec.json.Decoder(dict[str, tuple[str, str]]).decode


def put_report(db: sqlite3.Connection, zone: str, pool: str, sequence: int, body: bytes) -> None:
    """A checker's report, in place of its last."""
    db.execute(
        "INSERT INTO report VALUES (?, ?, ?, ?, x'')"
        " ON CONFLICT DO UPDATE SET sequence = excluded.sequence, body = excluded.body",
        (pool, zone, sequence, body),
    )


def beat_report(db: sqlite3.Connection, zone: str, pool: str, sequence: int, body: bytes) -> None:
    """A checker's heartbeat, in place of its last; the report stays."""
    db.execute(
        "INSERT INTO report VALUES (?, ?, ?, x'', ?) ON CONFLICT DO UPDATE SET beat = excluded.beat",
        (pool, zone, sequence, body),
    )


def reports(db: sqlite3.Connection, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
    """Each checker's (zone, report, heartbeat), b"" for what it hasn't sent yet."""
    return tuple(db.execute("SELECT zone, body, beat FROM report WHERE pool = ? ORDER BY zone", (pool,)))


def note_enacted(db: sqlite3.Connection, enacted: Sequence[Enacted]) -> None:
    """Remember who enacted what; a late note about an older generation changes nothing."""
    db.executemany(
        "INSERT INTO enacted VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch,"
        " number = excluded.number, role = excluded.role, at = excluded.at, writes = excluded.writes"
        " WHERE (excluded.epoch, excluded.number, excluded.at) >= (epoch, number, at)",
        ((one.name, one.generation.epoch, one.generation.number, one.by, one.at, one.writes) for one in enacted),
    )


def enacted(db: sqlite3.Connection, names: Collection[str] | None) -> Mapping[str, Enacted]:
    """The last enactment of each endpoint, or of these."""
    query = "SELECT name, epoch, number, role, at, writes FROM enacted"
    if names is None or len(names) > _ASKED_ONE_BY_ONE:
        found = db.execute(query).fetchall()
    else:
        found = [one for name in names for one in db.execute(f"{query} WHERE name = ?", (name,))]
    for row in found:
        checked("enacted", row[0], row, _ENACTED_KINDS)
    wanted = None if names is None else frozenset(names)
    return {
        name: Enacted(name, Generation(epoch, number), by, at, writes)
        for name, epoch, number, by, at, writes in found
        if wanted is None or name in wanted
    }


def put_findings(db: sqlite3.Connection, by: str, found: Mapping[str, tuple[str, str]]) -> None:
    """A role's findings, in place of its last."""
    if found:
        db.execute("INSERT OR REPLACE INTO finding VALUES (?, ?)", (by, encode(dict(found))))
    else:
        db.execute("DELETE FROM finding WHERE role = ?", (by,))


def findings(db: sqlite3.Connection) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Each role's findings; a role that has none isn't named."""
    found = db.execute("SELECT role, body FROM finding ORDER BY role")
    return {by: decoded("finding", by, _decode_findings, body) for by, body in found}


def note(db: sqlite3.Connection, rows: Sequence[HistoryRow]) -> None:
    """Append to the history, and forget what is too old."""
    db.executemany(
        "INSERT INTO history (at, kind, subject, role, text) VALUES (?, ?, ?, ?, ?)",
        ((row.at, row.kind, row.on, row.by, row.text) for row in rows),
    )
    db.execute("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", (HISTORY_KEPT,))


def history(db: sqlite3.Connection, after: int, since: Instant, most: int) -> Sequence[HistoryRow]:
    """The newest ``most`` lines after an id and at or after a time, oldest first."""
    found = db.execute(
        "SELECT kind, subject, role, text, at, id FROM history WHERE id > ? AND at >= ? ORDER BY id DESC LIMIT ?",
        (after, since, most),
    ).fetchall()
    for row in found:
        checked("history", row[-1], row, _HISTORY_KINDS)
    return tuple(HistoryRow(*row) for row in reversed(found))


def beat(db: sqlite3.Connection, one: Beat) -> None:
    """A role's sign of life, in place of its last."""
    db.execute("INSERT OR REPLACE INTO beat VALUES (?, ?)", (one.role, encode(one)))


def beats(db: sqlite3.Connection) -> Sequence[Beat]:
    """Each role's last sign of life."""
    found = db.execute("SELECT role, body FROM beat ORDER BY role")
    return tuple(decoded("beat", role, _decode_beat, body) for role, body in found)
