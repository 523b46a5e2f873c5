"""The fleet rows' contract, kept by SQLite."""

from pathlib import Path

import pytest
from fleet_store import FleetStoreContract, Make

from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore


class TestSqlite(FleetStoreContract):
    """The rows in the store's file."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        """The same new file each time."""
        return lambda: SqliteFleetStore.open(tmp_path / "region.db", create=True)
