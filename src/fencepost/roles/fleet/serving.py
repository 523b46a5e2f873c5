"""The fleet's rows as load balancers go by them: which instances are placed, on what hosts, with what network state.

While the store is away the rows as read last stand. Another store's are read from the start, and say nothing yet of
what it hasn't heard of.
"""

import logging

from fencepost.core.capacity.rows import HostRow, InstanceRow, Kind, NetworkRow, ShardRow
from fencepost.core.capacity.shards import closed
from fencepost.core.traffic.launched import FleetRows, retold
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
        self._life = life
        self._since = dict.fromkeys(READ, 0)
        self._instances: dict[str, InstanceRow] = {}
        self._hosts: dict[str, HostRow] = {}
        self._holders: dict[str, str] = {}
        self._placed: dict[str, dict[str, InstanceRow]] = {}
        self._networks: dict[str, NetworkRow] = {}

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
        if lives != {self._life}:
            self._begin(pages[-1].life)
            pages = [await self.store.rows(kind, None, 0) for kind in READ]
            if {page.life for page in pages} != {self._life}:
                self._begin("")
                return
        for kind, page in zip(READ, pages, strict=True):
            self._since[kind] = page.snapshot
            for found in page.rows:
                match found.row:
                    case InstanceRow() as row:
                        self._take_instance(row)
                    case HostRow() as row:
                        self._take_host(row)
                    case NetworkRow() as row:
                        self._networks[row.id] = row
        self.rows = FleetRows(self._life, self._instances, self._hosts, self._networks, self._holders, self._placed)

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
        return self.problem is None and page.life == self._life and retold(pool, self.rows)

    def _take_instance(self, row: InstanceRow) -> None:
        """An instance's row, and, while it is placed, its place among its pool's."""
        before, self._instances[row.instance] = self._instances.get(row.instance), row
        if before is not None:
            self._placed.get(before.pool, {}).pop(row.instance, None)
        if row.state == "placed":
            self._placed.setdefault(row.pool, {})[row.instance] = row

    def _take_host(self, row: HostRow) -> None:
        """A host's row, and where its attempts are: nobody need look through all hosts for one of them."""
        before, self._hosts[row.host] = self._hosts.get(row.host), row
        for id_ in before.set.ids - row.set.ids if before is not None else ():
            if self._holders.get(id_) == row.host:
                del self._holders[id_]
        self._holders.update(dict.fromkeys(row.set.ids, row.host))
