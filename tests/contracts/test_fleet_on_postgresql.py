"""The fleet rows' contract, kept by PostgreSQL."""

import itertools
from collections.abc import Iterator

import pytest
from fleet_store import FleetStoreContract, Make
from postgresql import Server, postgresql

from fencepost.adapters.store_postgresql.fleet import PostgresqlFleetStore


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file."""
    with postgresql() as running:
        yield running


_schemas = (f"fleet_{n}" for n in itertools.count())


class TestPostgresql(FleetStoreContract):
    """The rows in a database."""

    @pytest.fixture
    def make(self, server: Server) -> Make:
        """The same new schema each time."""
        dsn = server.dsn("postgres", options=f"-c search_path={next(_schemas)}")
        return lambda: PostgresqlFleetStore.open(dsn, create=True)
