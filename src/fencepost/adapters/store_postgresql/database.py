"""The store's one connection for calls: opened when needed, opened anew when it broke, each call bounded in time.

*Bounded.* The server ends a statement after 8 s and a wait for a lock after 4 s; a server that says nothing for 10 s is
let go of, a connection is made within 5 s (for each server in the dsn). After a failed attempt to connect the next ones
fail at once, for 0.1 s at first and 2 s in the end, so that a region of roles doesn't fall upon a server that starts.

*Again.* What surely was not done is done again: a transaction that the server undid for another's sake, and a call that
found its idle connection broken at its very first word. A write that may have been committed never is: its outcome is
unknown, and whoever asked reads again.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec
import psycopg

from fencepost.adapters.store_bodies import UnreadableError
from fencepost.adapters.store_postgresql import faults
from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.bounded import StuckError
from fencepost.adapters.store_postgresql.connection import CALL_MOST_S, connect
from fencepost.adapters.store_postgresql.inputs import Snapshot
from fencepost.adapters.store_postgresql.session import Session
from fencepost.ports import Misconfigured, PortError

T = TypeVar("T")
ATTEMPTS = 8
PAUSE_MOST_S = 0.05
BACK_OFF_LEAST_S = 0.1
BACK_OFF_MOST_S = 2.0
_HOLDER = """
SELECT pid, coalesce(nullif(application_name, ''), 'no name'), usename
FROM pg_stat_activity JOIN pg_locks AS held USING (pid)
WHERE held.relation IN ('head'::regclass, 'fleet'::regclass) AND held.granted AND pid <> pg_backend_pid()
    AND NOT EXISTS (SELECT 1 FROM pg_locks AS awaited WHERE awaited.pid = held.pid AND NOT awaited.granted)
ORDER BY backend_start LIMIT 1
"""


class Database:
    """The database. Blocking; to be used from one thread at a time. Opened after forking, never before."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self.address = address
        self.known: Snapshot | None = None
        """The inputs read last, as long as this connection lives: a disk image that was set back has the same identity
        and may count to the same snapshot, but it breaks connections."""
        self.given_up = threading.Event()
        self._create = create
        self._session: Session | None = None
        self._begun = False
        self._refusal: PortError | None = None
        self._back_off = 0.0
        self._not_before = 0.0

    def __repr__(self) -> str:
        return f"<database {self.address}>"

    def look(self, work: Callable[[Session], T]) -> T:
        """What one statement finds. Raises ``Unavailable`` or ``Misconfigured``."""
        return self._told(work, harmless=True)

    def read(self, work: Callable[[Session], T], *, most_s: float | None = None) -> T:
        """What ``work`` finds, all of it as of one moment; ``most_s``: one statement of it may take as long.

        Raises ``Unavailable`` or ``Misconfigured``.
        """

        def attempt(session: Session) -> T:
            with session.transaction(most_s, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"):
                return work(session)

        return self._told(attempt, harmless=True)

    def write(self, work: Callable[[Session], T], *, most_s: float | None = None) -> T:
        """Do ``work`` in one transaction; what it returns. ``most_s``: one statement of it may take as long.

        Raises ``Unavailable`` (the outcome is unknown), ``Misconfigured``, or ``Refused`` for what can't be stored.
        """

        def attempt(session: Session) -> T:
            with session.transaction(most_s):
                self._begun = True
                return work(session)

        return self._told(attempt, harmless=False)

    def tell(self, work: Callable[[Session], T]) -> T:
        """Do one statement that may be done twice. Raises as :meth:`write` does."""
        return self._told(work, harmless=True)

    def checked(self, work: Callable[[], T]) -> T:
        """What ``work`` makes of rows that were read. Raises ``Misconfigured`` for one that can't be."""
        try:
            return work()
        except UnreadableError as error:
            raise faults.damaged(self.address, str(error)) from error

    def close(self) -> None:
        """Let go of the connection; the next call would open it again."""
        session, self._session = self._session, None
        if session is not None:
            session.connection.close()

    def _told(self, attempt: Callable[[Session], T], *, harmless: bool) -> T:
        """Do it, and again what surely had no effect; every error as the port's."""
        for left in reversed(range(ATTEMPTS)):
            idle = self._session is not None
            self._begun = False
            session = self._ready()
            session.connection.deadline = time.monotonic() + CALL_MOST_S
            try:
                return attempt(session)
            except psycopg.Error as error:
                self._back_out(session)
                broken = self._session is None
                stuck = isinstance(error, StuckError)
                untouched = idle and broken and not stuck and (harmless or not self._begun)
                if not left or not (untouched or error.sqlstate in faults.AGAIN):
                    raise self._problem(error) from error
                if not broken:
                    time.sleep(random.uniform(0, PAUSE_MOST_S))  # noqa: S311  nothing secret about it
            except UnreadableError as error:
                self._back_out(session)
                raise faults.damaged(self.address, str(error)) from error
            except (msgspec.MsgspecError, ValueError, OverflowError) as error:
                self._back_out(session)
                raise faults.damaged(self.address, str(error)) from error
            except BaseException:
                self._back_out(session)
                raise
        raise AssertionError("the last attempt returns or raises")

    def _problem(self, error: psycopg.Error) -> PortError:
        """An error as the port's.

        Where a person has to mend something the next call connects anew: version and rights may be others then.
        """
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return faults.locked(self.address, self._holder())
        problem = faults.translated(error, self.address)
        if isinstance(problem, Misconfigured):
            self.close()
        return problem

    def _holder(self) -> tuple[int, str] | None:
        """Process and name of another session that holds the head's lock or the fleet's, as far as can be told."""
        with contextlib.suppress(psycopg.Error):
            found = self._session.one(_HOLDER) if self._session is not None else None
            return (found[0], f"{found[1]}, user {found[2]}") if found is not None else None
        return None

    def _ready(self) -> Session:
        """The session, to the server that is there now."""
        if self._session is not None:
            return self._session
        if self._refusal is not None and time.monotonic() < self._not_before:
            raise type(self._refusal)(self._refusal.what, where=self._refusal.where, hint=self._refusal.hint)
        try:
            self._session = connect(self.address, create=self._create, given_up=self.given_up)
        except psycopg.Error as error:
            raise self._later(faults.translated(error, self.address)) from error
        except UnreadableError as error:
            raise self._later(faults.damaged(self.address, str(error))) from error
        except PortError as error:
            self._later(error)
            raise
        self._refusal, self._back_off = None, 0.0
        self.known = None
        return self._session

    def _later(self, refusal: PortError) -> PortError:
        """Remember that connecting failed: it isn't tried again at once."""
        self._back_off = min(max(BACK_OFF_LEAST_S, self._back_off * 2), BACK_OFF_MOST_S)
        pause = self._back_off * random.uniform(0.5, 1)  # noqa: S311  nothing secret about it
        self._refusal, self._not_before = refusal, time.monotonic() + pause
        return refusal

    def _back_out(self, session: Session) -> None:
        """Undo what was begun. A connection on which that fails isn't trusted with more."""
        try:
            if session.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                session.execute("ROLLBACK")
        except psycopg.Error:
            self.close()
