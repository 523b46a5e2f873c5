"""Which server the store was made on: a store that comes back elsewhere, or from the past, counts as lost.

A replica that lagged and was promoted holds an older head under the same identity: a writer could publish a number that
has already been published with another content, and readers would take the old end of the chain for the new one. So the
store's row names where it was founded: the cluster (``system_identifier``), the cluster's timeline, the database and
the table itself. Each promotion and each recovery to a point in time starts a new timeline (PostgreSQL manual,
"Continuous Archiving", section on timelines); a dump read back makes new tables. They are looked at when a connection
is opened, before anything is read through it; while one is open none of them can change, since a promotion ends no
recovery of a server that we would talk to (it is refused as a replica), and a restore ends connections.

The first one to see another origin founds the store anew, under the head's lock: another identity, and empty, as a new
store is. What a lagging replica still holds is no better than nothing: configuration and membership may be from before
a reload or a removal, an order may have been carried out, a drain resumed or replaced; and all of it is found elsewhere
(the planner's copy, DNS, the enactors' memories). What went is kept in the table ``former`` for a person to look at,
and history stays. So do the fleet's rows, under a new life: what a lease row says counts as unknown then, and each host
is asked what it runs before anything is placed anew; whom somebody has asked for is found nowhere else.

Awkward truth: the timeline can't tell whether the replica lagged, so a failover that lost nothing counts as a loss,
too. That costs a pass, never a record. And a disk image set back to an older day looks like a crash: same timeline,
same identity. Such a store is taken at its word.
"""

import logging
import secrets

from fencepost.adapters.store_postgresql.session import EVERY_ROW_S, Session

log = logging.getLogger(__name__)
IDENTITY_BYTES = 8
# The timeline that is written now. That of pg_control_checkpoint() is the old one until the next checkpoint.
_HERE = (
    "SELECT concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),"
    " (SELECT oid FROM pg_database WHERE datname = current_database()), 'head'::regclass::oid) FROM pg_control_system()"
)
_KEPT = """
INSERT INTO former
SELECT %(store)s, 'row', name, body FROM (SELECT name, body FROM plan_row ORDER BY id) AS oldest_first
UNION ALL SELECT %(store)s, 'config', '', body FROM config
UNION ALL SELECT %(store)s, 'membership', pool, body FROM membership
UNION ALL SELECT %(store)s, 'override', name, body FROM override
UNION ALL SELECT %(store)s, 'order', id, body FROM waiting_order
"""
_EMPTIED = (
    "plan_row", "plan", "newest", "spent", "config", "membership", "override", "override_origin", "put_back",
    "waiting_order", "carried_out", "report", "enacted", "finding",
)  # fmt: skip


def here(session: Session) -> str:
    """Cluster, timeline, database and table, as of now."""
    found = session.one(_HERE)
    assert found is not None  # it is one row always  # noqa: S101
    return str(found[0])


def check(session: Session) -> None:
    """Found the store anew if it wasn't made here. To be called for each new connection, before it is used."""
    origin = here(session)
    found = session.one("SELECT origin FROM head")
    if found is not None and found[0] == origin:
        return
    with session.transaction(EVERY_ROW_S):
        found = session.one("SELECT store, origin FROM head FOR UPDATE")
        if found is not None and found[1] != origin:
            _found_anew(session, found[0], f"{found[1]} is now {origin}", origin)


def begin_new_life(session: Session) -> None:
    """Let every lease of the fleet count as unknown from now on; within a transaction."""
    session.execute("UPDATE fleet SET life = %s, snapshot = snapshot + 1", (secrets.token_hex(IDENTITY_BYTES),))
    session.notify_fleet()


def _found_anew(session: Session, store: str, moved: str, origin: str) -> None:
    new = secrets.token_hex(IDENTITY_BYTES)
    while new[:4] == store[:4]:  # markers carry these four digits
        new = secrets.token_hex(IDENTITY_BYTES)
    session.execute("DELETE FROM former")
    session.execute(_KEPT, {"store": store})
    for table in _EMPTIED:
        session.execute(f"DELETE FROM {table}")  # noqa: S608  names of our own
    session.execute(
        "UPDATE head SET store = %s, number = 0, nonce = '', inputs = 0, snapshot = 0, origin = %s", (new, origin)
    )
    begin_new_life(session)
    text = f"the database was promoted or restored ({moved}): store {store[:4]} counts as lost"
    session.execute(
        "INSERT INTO history (at, kind, subject, role, text)"
        " VALUES ((extract(epoch FROM clock_timestamp()) * 1000000000)::bigint, 'finding', 'store', %s, %s)",
        (f"store {new[:4]}", text),
    )
    session.notify_plans()
    log.warning("%s: %s; it is %s from now on", session.address.where, text, new[:4])
