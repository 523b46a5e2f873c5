"""Plans and their rows: the queries. Each function runs inside a transaction, or is one statement.

*The compare-and-set.* ``publish`` first takes the row lock of the one head row (``SELECT ... FOR UPDATE``), and only
then compares. Whoever changes head or inputs takes it first, so those transactions follow each other. At READ COMMITTED
each statement after it sees all that was committed before the lock was given, and the lock is let go after the commit
is on disk and visible; so what was read under it is the newest there is until we commit. SERIALIZABLE would add only
failures to retry. ``delete_row`` needs no lock on the head: it takes only rows that aren't the newest, and no row ever
becomes the newest again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from fencepost.adapters.store_bodies import UnreadableError, decode_row, decoded, rows_alike
from fencepost.adapters.store_postgresql.session import Session
from fencepost.core.fence import Generation
from fencepost.core.store import Head, Plan, Row

PLANS_KEPT = 10_000
"""Plans without any row left are remembered so far back; a reader that is further behind is given every row."""
CARRIED_OUT_KEPT = 10_000
"""So many orders that were carried out are remembered, so that one put again by a retry isn't done again."""

encode = msgspec.json.encode
_HEAD = "SELECT store, number, nonce, inputs, snapshot FROM head"
_WALK = "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true)"
_NEWEST = "SELECT plan_row.name, plan_row.body FROM newest JOIN plan_row ON plan_row.id = newest.row"
# One statement sees one state of the tables: `was` still finds the rows that `now` replaces.
_ADD_ROWS = """
WITH added AS (
    INSERT INTO plan_row (plan, name, epoch, number, body)
    SELECT %s, * FROM unnest(%b::text[], %b::bigint[], %b::bigint[], %b::bytea[])
    RETURNING id, name, plan
), was AS (
    INSERT INTO spent SELECT newest.row FROM newest JOIN added USING (name)
), now AS (
    INSERT INTO newest (name, row, plan) SELECT name, id, plan FROM added
    ON CONFLICT (name) DO UPDATE SET row = excluded.row, plan = excluded.plan
)
SELECT 1
"""
_DELETE_ROW = """
WITH gone AS (
    DELETE FROM plan_row USING plan, spent
    WHERE plan_row.name = %s AND plan_row.epoch = %s AND plan_row.number = %s AND plan.seq = plan_row.plan
        AND plan.nonce = %s AND spent.row = plan_row.id
    RETURNING plan_row.id, plan_row.plan
), unspent AS (
    DELETE FROM spent USING gone WHERE spent.row = gone.id
)
UPDATE plan SET rows = rows - 1 FROM gone WHERE plan.seq = gone.plan
"""
_SPENT = """
SELECT plan_row.name, plan_row.body, place.newer, top.epoch, top.number
FROM spent JOIN plan_row ON plan_row.id = spent.row
    JOIN newest ON newest.name = plan_row.name JOIN plan_row AS top ON top.id = newest.row
    CROSS JOIN LATERAL (
        SELECT count(*) AS newer FROM plan_row AS later WHERE later.name = plan_row.name AND later.plan > plan_row.plan
    ) AS place
WHERE place.newer >= %s ORDER BY spent.row LIMIT %s
"""


def head_and_snapshot(session: Session) -> tuple[Head, int]:
    """The newest plan, and the input snapshot counter; :class:`UnreadableError` if there is neither."""
    return _head(session.one(_HEAD))


def locked_head(session: Session) -> tuple[Head, int]:
    """The same, and nobody else changes head or inputs until this transaction ends."""
    return _head(session.one(f"{_HEAD} FOR UPDATE"))


def _head(found: tuple[str, int, str, int, int] | None) -> tuple[Head, int]:
    if found is None:
        raise UnreadableError("head", 1, "there is none")
    return Head(*found[:4]), found[4]


def read_head(session: Session) -> Head:
    """The newest plan."""
    return head_and_snapshot(session)[0]


def newest_rows(session: Session, since: Head | None) -> tuple[Head, Sequence[tuple[str, bytes]]]:
    """The head, and name and body of each endpoint's newest row that a plan after ``since`` made.

    Of all if it isn't ours. Reads the index on ``newest.plan``, so it costs what changed.
    """
    head = read_head(session)
    if since == head:
        return head, ()
    after = _place(session, since) if since is not None and since.store == head.store else None
    if after is not None:
        return head, session.rows(f"{_NEWEST} WHERE newest.plan > %s", (after,))
    session.execute(_WALK)  # every row is wanted: until the end of this transaction
    return head, session.rows(_NEWEST)


def read_rows(found: Iterable[tuple[str, bytes]]) -> tuple[Row, ...]:
    """Endpoints' rows out of their bodies."""
    return rows_alike("plan_row", found)


def _place(session: Session, head: Head) -> int | None:
    """Where a head stands in the chain; None if it isn't in it (any more)."""
    if not head.nonce:
        return 0 if head.number == 0 else None
    found = session.one("SELECT seq FROM plan WHERE nonce = %s", (head.nonce,))
    return found[0] if found else None


class Encoded(msgspec.Struct, frozen=True):
    """A plan's rows as columns, ready to be written: made before the lock is taken, since that takes a while."""

    names: list[str]
    epochs: list[int]
    numbers: list[int]
    bodies: list[bytes]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Encoded":
        """These rows."""
        ordered = sorted(rows, key=lambda row: row.name)
        return cls(
            [row.name for row in ordered],
            [row.generation.epoch for row in ordered],
            [row.generation.number for row in ordered],
            [encode(row) for row in ordered],
        )


def publish(session: Session, plan: Plan, head: Head, rows: Encoded) -> Head | None:
    """The compare-and-set: ``head``, once the rows and spent orders of ``plan`` are in; None if another came first."""
    if locked_head(session)[0] != plan.expected:
        return None
    placed = session.one(
        "INSERT INTO plan (number, nonce, inputs, rows, why) VALUES (%s, %s, %s, %s, %b) RETURNING seq",
        (head.number, head.nonce, head.inputs, len(rows.names), encode(plan.why)),
    )
    assert placed is not None  # an insertion returns its row  # noqa: S101
    if rows.names:
        session.execute(_ADD_ROWS, (placed[0], rows.names, rows.epochs, rows.numbers, rows.bodies))
    _spend(session, plan.spends)
    session.execute("DELETE FROM plan WHERE rows = 0 AND seq <= %s", (placed[0] - PLANS_KEPT,))
    session.execute("UPDATE head SET number = %s, nonce = %s, inputs = %s", (head.number, head.nonce, head.inputs))
    session.notify_plans()
    return head


def _spend(session: Session, orders: Sequence[str]) -> None:
    if not orders:
        return
    session.execute("DELETE FROM waiting_order WHERE id = ANY(%s)", (list(orders),))
    session.execute("INSERT INTO carried_out (id) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (list(orders),))
    session.execute("DELETE FROM carried_out WHERE seq <= (SELECT max(seq) FROM carried_out) - %s", (CARRIED_OUT_KEPT,))


def rows_of(session: Session, name: str) -> Sequence[tuple[str, bytes]]:
    """Name and body of every kept row of an endpoint, newest first."""
    return session.rows("SELECT name, body FROM plan_row WHERE name = %s ORDER BY plan DESC", (name,))


def spent_rows(session: Session, most: int, place: int) -> Sequence[tuple[Row, int, Generation]]:
    """Rows that have ``place`` or more newer ones, oldest first, each with that number and the newest's generation."""
    return tuple(
        (decoded("plan_row", name, decode_row, body), newer, Generation(epoch, number))
        for name, body, newer, epoch, number in session.rows(_SPENT, (place, most))
    )


def delete_row(session: Session, name: str, generation: Generation, nonce: str) -> bool:
    """Delete one row if it has this nonce and isn't its endpoint's newest; whether it did."""
    return session.execute(_DELETE_ROW, (name, generation.epoch, generation.number, nonce)) > 0
