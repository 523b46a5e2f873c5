"""One open connection, as queries see it: statements, transactions, and telling whoever waits."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import psycopg
from psycopg import pq

from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.bounded import BoundedConnection

EVERY_ROW_S = 600.0
"""What goes over every row, once in a store's life or so, may take as long."""
Params: TypeAlias = Sequence[object] | Mapping[str, object] | None


class Session:
    """A connection in autocommit mode, and the address it leads to."""

    def __init__(self, connection: BoundedConnection, address: Address) -> None:
        self.connection = connection
        self.address = address
        self._cursor = connection.cursor(binary=True)

    def execute(self, statement: str, params: Params = None) -> int:
        """Do one statement; how many rows it met."""
        return self._cursor.execute(statement.encode(), params).rowcount

    def one(self, statement: str, params: Params = None) -> tuple[Any, ...] | None:
        """The first row, or None."""
        return self._cursor.execute(statement.encode(), params).fetchone()

    def rows(self, statement: str, params: Params = None) -> list[tuple[Any, ...]]:
        """Every row."""
        return self._cursor.execute(statement.encode(), params).fetchall()

    def receive(self) -> set[str]:
        """Take in what the server has sent unasked: the channels on which something was told. Never waits."""
        connection, heard = self.connection.pgconn, set()
        connection.consume_input()
        while notice := connection.notifies():
            heard.add(notice.relname.decode())
        if connection.status != pq.ConnStatus.OK:
            raise psycopg.OperationalError("the database has closed the connection")
        return heard

    def notify_plans(self) -> None:
        """With this transaction's commit, wake those who wait for head and inputs."""
        self.execute("SELECT pg_notify(%s, '')", (self.address.plans,))

    def notify_fleet(self) -> None:
        """With this transaction's commit, wake those who wait for fleet rows."""
        self.execute("SELECT pg_notify(%s, '')", (self.address.fleet,))

    def commit(self) -> None:
        """End the transaction. Raises ``psycopg.Error`` if it isn't committed, or that isn't known."""
        self.execute("COMMIT")
        if self._cursor.statusmessage != "COMMIT":
            raise psycopg.OperationalError(f"the transaction was undone ({self._cursor.statusmessage})")

    @contextlib.contextmanager
    def transaction(self, most_s: float | None = None, begin: str = "BEGIN") -> Iterator[None]:
        """A transaction, committed at the end; an error leaves it to be undone. ``begin`` says of which sort.

        ``most_s`` is how long one statement of it may take on either side, where that is more than usual.
        """
        usual_s, left_s = self.connection.patience_s, self.connection.deadline - time.monotonic()
        self.execute(begin)
        try:
            if most_s is not None:
                self.connection.patience_s, self.connection.deadline = max(most_s, usual_s), math.inf
                self.execute(f"SET LOCAL statement_timeout = {int(most_s * 1000)}")
            yield
            self.commit()
        finally:
            self.connection.patience_s = usual_s
            if most_s is not None:
                self.connection.deadline = time.monotonic() + left_s
