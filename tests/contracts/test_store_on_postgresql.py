"""The store's contract, kept by PostgreSQL; and any run of operations ends the same on it and on the reference."""

from collections.abc import Iterator

import pytest
from postgresql import Server, postgresql
from put_back import PutBackContract
from store import Make, StoreContract

from fencepost.adapters.store_postgresql import PostgresqlStore


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file."""
    with postgresql() as running:
        yield running


class TestPostgresql(StoreContract, PutBackContract):
    """The store in a database."""

    @pytest.fixture
    def make(self, server: Server) -> Make:
        """A new database."""
        return lambda: PostgresqlStore.open(server.dsn(server.database()), create=True)
