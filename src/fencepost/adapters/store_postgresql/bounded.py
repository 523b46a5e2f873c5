"""A connection to the server whose waits end.

psycopg's own waiting has no end. Ours gives up when nothing has come or gone for ``SILENCE_S``, a little longer than
the server itself lets a statement run: so a server that is stopped, or a network that drops everything, ends as an
error, and the connection is closed, since an answer could still come on it.
"""

import math
import select
import threading
import time
from typing import NoReturn, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

T = TypeVar("T")
SILENCE_S = 10.0
LOOK_EACH_S = 0.25
TOO_SLOW = "the database is too slow: one call has taken too long"


class StuckError(psycopg.OperationalError):
    """The server has said nothing for too long; the connection was given up."""


class BoundedConnection(psycopg.Connection[TupleRow]):
    """A connection whose waits end: after ``patience_s`` without a byte, at ``deadline``, when ``given_up`` is set."""

    given_up: threading.Event | None = None
    patience_s: float = SILENCE_S
    deadline: float = math.inf

    def wait(self, gen: PQGen[T], interval: float = LOOK_EACH_S, timeout: float | None = None) -> T:
        """Run one exchange with the server. Raises ``StuckError`` if it falls silent; the connection is closed then."""
        silence_s = self.patience_s if timeout is None else timeout
        poll, now = select.poll(), time.monotonic()
        until = now + silence_s
        if now >= self.deadline:
            self._give_up(TOO_SLOW)
        try:
            poll.register(self.pgconn.socket, _EVENTS[next(gen)])
            while True:
                found = poll.poll(interval * 1000)
                if found:
                    poll.modify(self.pgconn.socket, _EVENTS[gen.send(_ready(found[0][1]))])
                    until = time.monotonic() + silence_s
                else:
                    gen.send(waiting.Ready.NONE)
                now = time.monotonic()
                if now >= until or (self.given_up is not None and self.given_up.is_set()):
                    self._give_up(f"the database has said nothing for {silence_s:.0f} s")
                if now >= self.deadline:
                    self._give_up(TOO_SLOW)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # the generator's own result

    def _give_up(self, why: str) -> NoReturn:
        self.pgconn.finish()
        raise StuckError(why)


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
