"""Plans and their rows: the queries. Each function runs inside a transaction that the caller has begun."""

import sqlite3
from collections.abc import Sequence

import msgspec

from fencepost.adapters.store_bodies import checked, decode_row, decoded, rows_alike
from fencepost.core.fence import Generation
from fencepost.core.store import Head, Plan, Row

PLANS_KEPT = 10_000
"""Plans without any row left are remembered so far back; a reader that is further behind is given every row."""
CARRIED_OUT_KEPT = 10_000
"""So many orders that were carried out are remembered, so that one put again by a retry isn't done again."""

encode = msgspec.json.encode
_HEAD = "SELECT store, number, nonce, inputs, snapshot FROM head"
_HEAD_KINDS = (str, int, str, int, int)
_NEWEST = "SELECT row.name, row.body FROM newest JOIN row ON row.id = newest.row JOIN plan ON plan.seq = row.plan"
_INSERT = "INSERT INTO row (plan, name, epoch, number, body) VALUES (?, ?, ?, ?, ?)"


def head_and_snapshot(db: sqlite3.Connection) -> tuple[Head, int]:
    """The newest plan, and the input snapshot counter; ``ValueError`` if the file holds neither."""
    found = db.execute(_HEAD).fetchone()
    if found is None:
        raise ValueError("there is no head")
    checked("head", 1, found, _HEAD_KINDS)
    return Head(*found[:4]), found[4]


def read_head(db: sqlite3.Connection) -> Head:
    """The newest plan."""
    return head_and_snapshot(db)[0]


def newest_rows(db: sqlite3.Connection, since: Head | None) -> tuple[Head, Sequence[Row]]:
    """The head, and the newest row of each endpoint that a plan after ``since`` changed (of all if it isn't ours)."""
    head = read_head(db)
    if since == head:
        return head, ()
    after = _place(db, since) if since is not None and since.store == head.store else None
    found = db.execute(_NEWEST) if after is None else db.execute(f"{_NEWEST} WHERE newest.plan > ?", (after,))
    return head, rows_alike("row", found)


def read_row(name: str, body: bytes) -> Row:
    """An endpoint's row out of its body."""
    return decoded("row", name, decode_row, body)


def _place(db: sqlite3.Connection, head: Head) -> int | None:
    """Where a head stands in the chain; None if it isn't in it (any more)."""
    if not head.nonce:
        return 0 if head.number == 0 else None
    found = db.execute("SELECT seq FROM plan WHERE nonce = ?", (head.nonce,)).fetchone()
    return found[0] if found else None


def encoded(rows: Sequence[Row]) -> list[tuple[str, int, int, bytes]]:
    """Rows ready to be written: done before the lock is taken, since a large plan takes a while."""
    ordered = sorted(rows, key=lambda row: row.name)
    return [(row.name, row.generation.epoch, row.generation.number, encode(row)) for row in ordered]


def publish(db: sqlite3.Connection, plan: Plan, head: Head, rows: list[tuple[str, int, int, bytes]]) -> Head | None:
    """The compare-and-set: ``head``, once the rows and spent orders of ``plan`` are in; None if another came first."""
    if read_head(db) != plan.expected:
        return None
    place = db.execute(
        "INSERT INTO plan (number, nonce, inputs, rows, why) VALUES (?, ?, ?, ?, ?)",
        (head.number, head.nonce, head.inputs, len(rows), encode(plan.why)),
    ).lastrowid
    # Ids only rise: the highest belongs to a newest row, and those are never deleted.
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM row").fetchone()
    db.executemany(_INSERT, ((place, *row) for row in rows))
    db.execute("INSERT INTO spent SELECT newest.row FROM row JOIN newest USING (name) WHERE row.id > ?", (last,))
    db.execute("INSERT OR REPLACE INTO newest (name, row, plan) SELECT name, id, plan FROM row WHERE id > ?", (last,))
    _spend(db, plan.spends)
    db.execute("DELETE FROM plan WHERE rows = 0 AND seq <= ? - ?", (place, PLANS_KEPT))
    db.execute("UPDATE head SET number = ?, nonce = ?, inputs = ?", (head.number, head.nonce, head.inputs))
    return head


def _spend(db: sqlite3.Connection, orders: Sequence[str]) -> None:
    if not orders:
        return
    db.executemany("DELETE FROM waiting_order WHERE id = ?", ((order,) for order in orders))
    db.executemany("INSERT OR IGNORE INTO carried_out (id) VALUES (?)", ((order,) for order in orders))
    db.execute("DELETE FROM carried_out WHERE seq <= (SELECT max(seq) FROM carried_out) - ?", (CARRIED_OUT_KEPT,))


def rows_of(db: sqlite3.Connection, name: str) -> Sequence[Row]:
    """Every kept row of an endpoint, newest first."""
    found = db.execute(
        "SELECT row.body FROM row JOIN plan ON plan.seq = row.plan WHERE row.name = ? ORDER BY row.plan DESC", (name,)
    )
    return tuple(read_row(name, body) for (body,) in found)


def spent_rows(db: sqlite3.Connection, most: int, place: int) -> Sequence[tuple[Row, int, Generation]]:
    """Rows that have ``place`` or more newer ones, oldest first, each with that number and the newest's generation."""
    found = db.execute(
        "SELECT row.name, row.body, top.epoch, top.number,"
        " (SELECT count(*) FROM row AS later WHERE later.name = row.name AND later.plan > row.plan) AS place"
        " FROM spent JOIN row ON row.id = spent.row JOIN plan ON plan.seq = row.plan"
        " JOIN newest ON newest.name = row.name JOIN row AS top ON top.id = newest.row"
        " WHERE place >= ? ORDER BY spent.row LIMIT ?",
        (place, most),
    )
    made = []
    for name, body, epoch, number, its_place in found:
        checked("row", name, (epoch, number), (int, int))
        made.append((read_row(name, body), its_place, Generation(epoch, number)))
    return tuple(made)


def delete_row(db: sqlite3.Connection, name: str, generation: Generation, nonce: str) -> bool:
    """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
    found = db.execute(
        "SELECT row.id, row.plan FROM row JOIN plan ON plan.seq = row.plan JOIN spent ON spent.row = row.id"
        " WHERE row.name = ? AND row.epoch = ? AND row.number = ? AND plan.nonce = ?",
        (name, generation.epoch, generation.number, nonce),
    ).fetchone()
    if found is None:
        return False
    row, plan = found
    db.execute("DELETE FROM row WHERE id = ?", (row,))
    db.execute("DELETE FROM spent WHERE row = ?", (row,))
    db.execute("UPDATE plan SET rows = rows - 1 WHERE seq = ?", (plan,))
    return True
