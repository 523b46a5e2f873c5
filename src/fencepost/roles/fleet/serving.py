"""The fleet's rows as load balancers go by them: which instances are placed, on what hosts, with what network state.

While the store is away the rows as read last stand. Another store's are read from the start, and say nothing yet of
what it hasn't heard of.
"""

import logging

from fencepost.core.capacity.rows import Kind, ShardRow
from fencepost.core.capacity.shards import closed
from fencepost.core.traffic.fleet_rows import FleetRows
from fencepost.core.traffic.launched import retold
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort

log = logging.getLogger(__name__)

READ: tuple[Kind, ...] = ("network", "host", "instance")
"""In this order: a state that is acknowledged is never looked at beside a host's row from before."""


class ServingRows:
    """``rows`` as read last, at a cost that grows with what changed."""

    def __init__(self, store: FleetStorePort) -> None:
        self.store = store
        self.rows = FleetRows()
        self.problem: PortError | None = None
        self._begin("")

    def _begin(self, life: str) -> None:
        self._since = dict.fromkeys(READ, 0)
        self._kept = FleetRows(life)

    @property
    def current(self) -> bool:
        """Whether :attr:`rows` are what the store held when it was last asked."""
        return self.problem is None and self.rows.life == self._kept.life != ""

    async def read(self) -> FleetRows:
        """The rows as they are now, or as they were last if the store can't say; :attr:`problem` is why."""
        try:
            await self._read()
            self.problem = None
        except PortError as error:
            log.debug("fleet's rows: %s", error)
            self.problem = error
        return self.rows

    async def _read(self) -> None:
        pages = [await self.store.rows(kind, None, self._since[kind]) for kind in READ]
        lives = {page.life for page in pages}
        if lives != {self._kept.life}:
            self._begin(pages[-1].life)
            pages = [await self.store.rows(kind, None, 0) for kind in READ]
            if {page.life for page in pages} != {self._kept.life}:
                self._begin("")
                return
        for kind, page in zip(READ, pages, strict=True):
            self._since[kind] = page.snapshot
            for found in page.rows:
                self._kept.take(found.row)
        self.rows = self._kept

    async def heard(self, pool: str, shards: int) -> bool:
        """Whether all that hosts run of a pool is in :attr:`rows`, which are read anew; a new store says nothing yet.

        Each shard is open in this life of the store, so each host has told what it runs, or lapsed.
        """
        try:
            page = await self.store.rows("shard")
        except PortError as error:
            log.debug("shards' rows: %s", error)
            return False
        if closed((found.row for found in page.rows if isinstance(found.row, ShardRow)), shards, page.life):
            return False
        await self.read()
        return self.problem is None and page.life == self._kept.life and retold(pool, self.rows)
