"""All rows of a kind, some at a time: as objects a million hosts are a gigabyte, and nobody needs them all at once."""

from collections.abc import AsyncIterator

from fencepost.core.capacity.rows import Kind
from fencepost.ports.fleet import FleetStorePort, Page, PagedFleetStorePort

A_PAGE = 10_000
"""So many rows are read, and unpacked before other tasks get their turn."""


async def pages(store: FleetStorePort, kind: Kind, shard: int | None, most: int = A_PAGE) -> AsyncIterator[Page]:
    """Each row that is there at the first page's snapshot comes, once, as it was then or became since; at most ``most``
    a page.

    What is newer than that snapshot is read after it as ever, though some of it came here. Pages may be of different
    lives: the reader begins again. A store that can't give some gives all. Raises a ``PortError``.
    """
    if not isinstance(store, PagedFleetStorePort):
        yield await store.rows(kind, shard)
        return
    after = ""
    while True:
        page = await store.some_rows(kind, shard, after, most)
        yield page
        if len(page.rows) < most:
            return
        after = page.rows[-1].row.key
