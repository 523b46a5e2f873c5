"""Which store a region has. Adapters are imported only when chosen."""

import os
from pathlib import Path

from fencepost.ports import Misconfigured, StorePort
from fencepost.ports.fleet import RestorableFleetStorePort
from fencepost.settings import Region
from fencepost.settings.secret import read_secret


def open_store(region: Region, *, create: bool = False) -> StorePort:
    """The region's store; one that can't be used raises from its calls, not here.

    ``create`` is for the planner alone: it makes the store where there is none, and keeps an SQLite file's log short.
    Raises ``Misconfigured`` for a secret that isn't where the settings say.
    """
    kind = region.store.kind
    if kind == "postgresql":
        from fencepost.adapters.store_postgresql import PostgresqlStore

        return PostgresqlStore.open(dsn(region), create=create)
    if kind == "dynamodb":
        from fencepost.adapters.store_dynamodb import DynamoDbStore

        return DynamoDbStore.open(region.store.table, region.store.aws_region, create=create)
    from fencepost.adapters.store_sqlite import SqliteStore

    return SqliteStore.open(Path(region.store.path), create=create, checkpoints=create)


def fleet_store(region: Region, *, create: bool = False) -> RestorableFleetStorePort:
    """The fleet's rows in the region's store; one that can't be used raises from its calls, not here.

    ``create`` as in :func:`open_store`. Raises ``Misconfigured`` for a secret that isn't where the settings say.
    """
    kind = region.store.kind
    if kind == "postgresql":
        from fencepost.adapters.store_postgresql.fleet import PostgresqlFleetStore

        return PostgresqlFleetStore.open(dsn(region), create=create)
    if kind == "dynamodb":
        from fencepost.adapters.store_dynamodb.fleet import DynamoDbFleetStore

        return DynamoDbFleetStore.open(region.store.table, region.store.aws_region, create=create)
    from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore

    return SqliteFleetStore.open(Path(region.store.path), create=create)


def import_store(region: Region) -> None:
    """Import the store's adapter, so that forked roles have it already."""
    if region.store.kind == "postgresql":
        import fencepost.adapters.store_postgresql
    elif region.store.kind == "dynamodb":
        import fencepost.adapters.store_dynamodb
    else:
        import fencepost.adapters.store_sqlite  # noqa: F401  loading it is all that is wanted


def dsn(region: Region) -> str:
    """How PostgreSQL is reached. Raises ``Misconfigured``; the text itself, a secret, is in no error."""
    if region.store.dsn is None:
        raise Misconfigured(
            "no dsn is given", where=region.path, hint='write dsn = { env = "FENCEPOST_DSN" } in [store]'
        )
    try:
        return read_secret(region.store.dsn, os.environ)
    except ValueError as error:
        raise Misconfigured(f"dsn: {error}", where=region.path, hint="see [store] dsn") from None
