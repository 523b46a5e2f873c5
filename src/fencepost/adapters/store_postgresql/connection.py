"""Opens a session: connects, sets our limits, and sees to it that the store is of this version and of this server."""

import logging
import math
import threading
import time

from fencepost.adapters.store_postgresql import faults, founding, schema
from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.bounded import BoundedConnection
from fencepost.adapters.store_postgresql.session import Session

log = logging.getLogger(__name__)
CALL_MOST_S = 15.0
"""So long all statements of a call may take together, on a server that answers slowly."""
LIMITS = {
    "statement_timeout": "8s",
    "lock_timeout": "4s",
    # A writer that is stopped or cut off in its transaction holds the head's lock: the server ends it.
    "idle_in_transaction_session_timeout": "5s",
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # Each query finds its few rows by an index. Left to guess, the server walks whole tables: with a plan kept for any
    # parameters it takes a third of all rows to be newer than a given one, and its statistics may be old or missing.
    # What it starts for large results (workers, compiled code) costs 10 ms and more where one row is wanted.
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_SET_UP = (
    "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS limits (name, value)"
    " UNION ALL SELECT set_config('search_path', %s, false)"
    # Off would show a plan to readers that a crash takes back. Anything stronger is the server's to say.
    " UNION ALL SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false)"
)
_STATE = (
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, current_setting('fsync'),"
    " current_user"
)


def connect(address: Address, *, create: bool, given_up: threading.Event) -> Session:
    """A session on the store that is there now: of this version, and founded on this server.

    With ``create`` the tables are made where there are none. Raises ``psycopg.Error`` or the port's exceptions.
    """
    if address.wrong is not None:
        raise address.wrong
    connection = BoundedConnection.connect(address.conninfo, autocommit=True)
    connection.given_up = given_up
    connection.deadline = time.monotonic() + CALL_MOST_S
    session = Session(connection, address)
    try:
        _set_up(session)
        schema.prepare(session, create=create)
        founding.check(session)
    except BaseException:
        connection.close()
        raise
    connection.deadline = math.inf
    return session


def _set_up(session: Session) -> None:
    """Our limits, and whether this server can be written at all."""
    address = session.address
    session.execute(_SET_UP, (list(LIMITS), list(LIMITS.values()), address.search_path))
    state = session.one(_STATE)
    assert state is not None  # it is one row always  # noqa: S101
    read_only, fsync, user = state
    address.user = address.user or user
    if read_only:
        raise faults.replica(address)
    if fsync == "off" and not address.warned:
        address.warned = True
        log.info("%s: fsync is off: a power cut may take back what was published", address.where)
