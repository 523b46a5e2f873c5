"""An open SQLite store, and plans to publish in it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row


def row(name: str, number: int) -> Row:
    """A row as a planner makes it."""
    return Row.of(name, Generation(0, number), content(["192.0.2.1"], 30), families="4")


async def publish(store: SqliteStore, *names: str) -> Head:
    """Publish on whatever the head is."""
    head = await store.head()
    after = await store.publish(Plan(head, head.number + 1, 0, tuple(row(name, head.number + 1) for name in names)))
    assert after is not None
    return after


@contextlib.asynccontextmanager
async def opened(path: Path, *, create: bool = True, copying: bool = False) -> AsyncIterator[SqliteStore]:
    """An open store, closed at the end."""
    store = SqliteStore.open(path, create=create, checkpoints=copying)
    try:
        yield store
    finally:
        await store.close()
