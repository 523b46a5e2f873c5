"""What is observed and told, and decides nothing by itself. Each function is one statement, or runs in a transaction.

None of it raises the input snapshot. It is committed without waiting for the disk (``synchronous_commit`` off, for this
one transaction), so a crash of the server may lose the last second of it; the next full commit carries it along.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import starmap

import msgspec

from fencepost.adapters.store_bodies import decoded
from fencepost.adapters.store_postgresql.plans import encode
from fencepost.adapters.store_postgresql.session import Session
from fencepost.core.fence import Generation
from fencepost.core.instant import Instant
from fencepost.ports import Beat, Enacted, HistoryRow

HISTORY_KEPT = 100_000
"""So many lines of history are kept."""
_TELL = ") SELECT pg_notify(%s, ''), set_config('synchronous_commit', 'off', true)"

_decode_beat = msgspec.json.Decoder(Beat).decode
_decode_findings = msgspec.json.Decoder(dict[str, tuple[str, str]]).decode


def _tell(session: Session, statement: str, params: Sequence[object]) -> None:
    """One statement, its commit and waking who waits for it, in one message to the server."""
    session.execute(f"WITH done AS ({statement}{_TELL}", (*params, session.address.told))


def put_report(session: Session, zone: str, pool: str, sequence: int, body: bytes) -> None:
    """A checker's report, in place of its last."""
    _tell(
        session,
        "INSERT INTO report VALUES (%s, %s, %s, %b, '')"
        " ON CONFLICT (pool, zone) DO UPDATE SET sequence = excluded.sequence, body = excluded.body",
        (pool, zone, sequence, body),
    )


def beat_report(session: Session, zone: str, pool: str, sequence: int, body: bytes) -> None:
    """A checker's heartbeat, in place of its last; the report stays."""
    _tell(
        session,
        "INSERT INTO report VALUES (%s, %s, %s, '', %b) ON CONFLICT (pool, zone) DO UPDATE SET beat = excluded.beat",
        (pool, zone, sequence, body),
    )


def reports(session: Session, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
    """Each checker's (zone, report, heartbeat), b"" for what it hasn't sent yet."""
    found = session.rows("SELECT zone, body, beat FROM report WHERE pool = %s ORDER BY zone", (pool,))
    return tuple((zone, body, beat) for zone, body, beat in found)


def note_enacted(session: Session, enacted: Sequence[Enacted]) -> None:
    """Remember who enacted what; a late note about an older generation changes nothing."""
    last: dict[str, Enacted] = {}
    for one in enacted:
        known = last.get(one.name)
        if known is None or (one.generation, one.at) >= (known.generation, known.at):
            last[one.name] = one
    # In the order of their names, so that two enactors never wait for each other.
    ordered = [last[name] for name in sorted(last)]
    _tell(
        session,
        "INSERT INTO enacted SELECT * FROM"
        " unnest(%b::text[], %b::bigint[], %b::bigint[], %b::text[], %b::bigint[], %b::bigint[])"
        " ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, number = excluded.number, role = excluded.role,"
        " at = excluded.at, writes = excluded.writes WHERE (excluded.epoch, excluded.number, excluded.at)"
        " >= (enacted.epoch, enacted.number, enacted.at)",
        (
            [one.name for one in ordered],
            [one.generation.epoch for one in ordered],
            [one.generation.number for one in ordered],
            [one.by for one in ordered],
            [one.at for one in ordered],
            [one.writes for one in ordered],
        ),
    )


def enacted(session: Session, names: Collection[str] | None) -> Mapping[str, Enacted]:
    """The last enactment of each endpoint, or of these."""
    query = "SELECT name, epoch, number, role, at, writes FROM enacted"
    found = session.rows(query) if names is None else session.rows(f"{query} WHERE name = ANY(%s)", (list(names),))
    return {
        name: Enacted(name, Generation(epoch, number), by, at, writes) for name, epoch, number, by, at, writes in found
    }


def put_findings(session: Session, by: str, found: Mapping[str, tuple[str, str]]) -> None:
    """A role's findings, in place of its last."""
    if found:
        _tell(
            session,
            "INSERT INTO finding VALUES (%s, %b) ON CONFLICT (role) DO UPDATE SET body = excluded.body",
            (by, encode(dict(found))),
        )
    else:
        _tell(session, "DELETE FROM finding WHERE role = %s", (by,))


def findings(session: Session) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Each role's findings; a role that has none isn't named."""
    found = session.rows("SELECT role, body FROM finding ORDER BY role")
    return {by: decoded("finding", by, _decode_findings, body) for by, body in found}


def note(session: Session, rows: Sequence[HistoryRow]) -> None:
    """Append to the history, and forget what is too old.

    One writer after the other: who follows the history asks for what came after the last id it saw, and an id that
    becomes visible after a higher one would never be told.
    """
    session.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (f"fencepost {session.address.schema}",))
    session.execute(
        "INSERT INTO history (at, kind, subject, role, text)"
        " SELECT * FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[])",
        (
            [row.at for row in rows],
            [row.kind for row in rows],
            [row.on for row in rows],
            [row.by for row in rows],
            [row.text.replace("\0", "\ufffd") for row in rows],  # the one character that text can't hold
        ),
    )
    _tell(session, "DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - %s", (HISTORY_KEPT,))


def history(session: Session, after: int, since: Instant, most: int) -> Sequence[HistoryRow]:
    """The newest ``most`` lines after an id and at or after a time, oldest first."""
    found = session.rows(
        "SELECT kind, subject, role, text, at, id FROM history WHERE id > %s AND at >= %s ORDER BY id DESC LIMIT %s",
        (after, since, max(0, most)),
    )
    return tuple(starmap(HistoryRow, reversed(found)))


def beat(session: Session, one: Beat) -> None:
    """A role's sign of life, in place of its last."""
    _tell(
        session,
        "INSERT INTO beat VALUES (%s, %b) ON CONFLICT (role) DO UPDATE SET body = excluded.body",
        (one.role, encode(one)),
    )


def beats(session: Session) -> Sequence[Beat]:
    """Each role's last sign of life."""
    found = session.rows("SELECT role, body FROM beat ORDER BY role")
    return tuple(decoded("beat", role, _decode_beat, body) for role, body in found)
