"""One open connection, as queries see it: statements, and telling whoever waits."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import psycopg
from psycopg import pq

from fencepost.adapters.store_postgresql.address import Address
from fencepost.adapters.store_postgresql.bounded import BoundedConnection

LONG_S = 600.0
Params: TypeAlias = Sequence[object] | Mapping[str, object] | None


class Session:
    """A connection in autocommit mode, and the address it leads to."""

    def __init__(self, connection: BoundedConnection, address: Address) -> None:
        self.connection = connection
        self.address = address
        self._cursor = connection.cursor(binary=True)
        self._patience_s = connection.patience_s

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

    def commit(self) -> None:
        """End the transaction. Raises ``psycopg.Error`` if it isn't committed, or that isn't known."""
        self.execute("COMMIT")
        if self._cursor.statusmessage != "COMMIT":
            raise psycopg.OperationalError(f"the transaction was undone ({self._cursor.statusmessage})")

    def begin_long(self) -> None:
        """Begin a transaction that may go over every row, once: neither side's limit on a statement ends it."""
        self._patience_s, self.connection.patience_s = self.connection.patience_s, LONG_S
        self.execute("BEGIN")
        self.execute("SET LOCAL statement_timeout = 0")

    def commit_long(self) -> None:
        """End such a transaction, as :meth:`commit` does."""
        self.commit()
        self.connection.patience_s = self._patience_s
