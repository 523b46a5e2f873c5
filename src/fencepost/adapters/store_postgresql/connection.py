"""A connection that no silent server can hold up, and the session it opens.

psycopg's own waiting has no end. Ours gives up when nothing has come or gone for ``SILENCE_S``, a little longer than
the server itself lets a statement run: so a server that is stopped, or a network that drops everything, ends as
Unavailable, and the connection is let go of, since an answer could still come on it.
"""

import logging
import select
import threading
import time
from typing import TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

from fencepost.adapters.store_postgresql import faults, founding, schema
from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.faults import StuckError
from fencepost.adapters.store_postgresql.session import Session

log = logging.getLogger(__name__)
T = TypeVar("T")
SILENCE_S = 10.0
LOOK_EACH_S = 0.25
LIMITS = {
    "statement_timeout": "8s",
    "lock_timeout": "4s",
    # A writer that is stopped or cut off in its transaction holds the head's lock: the server ends it.
    "idle_in_transaction_session_timeout": "5s",
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # With a generic plan the server would guess that a third of all rows is newer than any given plan, and walk all.
    "plan_cache_mode": "force_custom_plan",
}
_SET_UP = (
    f"SELECT {', '.join(f'''set_config('{name}', '{value}', false)''' for name, value in LIMITS.items())},"
    " set_config('search_path', %s, false),"
    # Off would show a plan to readers that a crash takes back. Anything stronger is the server's to say.
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false)"
)
_STATE = (
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, current_setting('fsync'),"
    " current_user"
)


class BoundedConnection(psycopg.Connection[TupleRow]):
    """A connection whose waits end: at ``SILENCE_S`` without a byte, or when ``given_up`` is set."""

    given_up: threading.Event | None = None

    def wait(self, gen: PQGen[T], interval: float = LOOK_EACH_S, timeout: float | None = None) -> T:
        """Run one exchange with the server. Raises ``StuckError`` if it falls silent; the connection is closed then."""
        silence_s = SILENCE_S if timeout is None else timeout
        poll, until = select.poll(), time.monotonic() + silence_s
        try:
            poll.register(self.pgconn.socket, _EVENTS[next(gen)])
            while True:
                found = poll.poll(interval * 1000)
                if found:
                    poll.modify(self.pgconn.socket, _EVENTS[gen.send(_ready(found[0][1]))])
                    until = time.monotonic() + silence_s
                    continue
                gen.send(waiting.Ready.NONE)
                if time.monotonic() >= until or (self.given_up is not None and self.given_up.is_set()):
                    self.pgconn.finish()
                    raise StuckError(f"the database has said nothing for {silence_s:.0f} s")
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # the generator's own result


_EVENTS = {
    waiting.Wait.R: select.POLLIN,
    waiting.Wait.W: select.POLLOUT,
    waiting.Wait.RW: select.POLLIN | select.POLLOUT,
}


def _ready(found: int) -> waiting.Ready:
    """What may be done now; an error or a hang-up is found out by reading."""
    if found & select.POLLIN:
        return waiting.Ready.RW if found & select.POLLOUT else waiting.Ready.R
    return waiting.Ready.W if found & select.POLLOUT else waiting.Ready.R


def connect(address: Address, *, create: bool, given_up: threading.Event) -> Session:
    """A session on the store that is there now: of this version, and founded on this server.

    With ``create`` the tables are made where there are none. Raises ``psycopg.Error`` or the port's exceptions.
    """
    if address.wrong is not None:
        raise address.wrong
    connection = BoundedConnection.connect(address.conninfo, autocommit=True)
    connection.given_up = given_up
    session = Session(connection, address)
    try:
        _set_up(session)
        schema.prepare(session, create=create)
        founding.check(session)
    except BaseException:
        connection.close()
        raise
    return session


def _set_up(session: Session) -> None:
    """Our limits, and whether this server can be written at all."""
    address = session.address
    session.execute(_SET_UP, (address.search_path,))
    state = session.one(_STATE)
    assert state is not None  # it is one row always  # noqa: S101
    read_only, fsync, user = state
    address.user = address.user or user
    if read_only:
        raise faults.replica(address)
    if fsync == "off":
        log.warning("%s: fsync is off: a power cut may take back what was published", address.where)
