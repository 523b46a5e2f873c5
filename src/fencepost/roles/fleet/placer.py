"""A manager's placing: reads what changed, decides, writes under the shard's claim, and again, while it owns."""

import asyncio
import logging
import time
from collections.abc import Sequence

from msgspec import Struct, structs

from fencepost.core.capacity.clearing import ENDED_KEPT
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.network_state import ready
from fencepost.core.capacity.packed_hosts import PackedHosts
from fencepost.core.capacity.placement import Placement, PlacementSettings
from fencepost.core.capacity.rows import HostRow, InstanceRow, Kind, NetworkRow, ShardRow
from fencepost.core.capacity.told_by_hosts import ToldByHosts
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.changes import look
from fencepost.roles.fleet.host_manager import HostManager, now
from fencepost.roles.fleet.paging import pages
from fencepost.roles.loop import Condition, first_of

log = logging.getLogger(__name__)

KINDS: tuple[Kind, ...] = ("shard", "host", "instance", "network")
IDLE_S = 1.0
FORGET_S = 60.0
AT_ONCE = 2000
"""So many rows are taken up before other tasks get their turn."""
REST_S = 0.02
"""What comes within this time is decided about at once."""


class Table(Struct):
    """The rows that a manager keeps anyway, of its own hosts; see :class:`~.packed_hosts.Shared`."""

    manager: HostManager

    def name(self, host: str) -> str | None:
        """The name as it keeps it."""
        return self.manager.hands.table.name(host)

    def packed(self, host: str, revision: int) -> bytes | None:
        """The row as it keeps it, if that is this one."""
        return self.manager.hands.table.packed(host, revision)


class Placer:
    """One shard's placing."""

    def __init__(
        self, settings: PlacementSettings, store: FleetStorePort, manager: HostManager, condition: Condition
    ) -> None:
        self.settings = settings
        self.store = store
        self.manager = manager
        self.condition = condition
        self.placement = Placement(settings, "")
        self.network: dict[str, NetworkRow] = {}
        self.since: dict[Kind, int] = {}
        self.serving: frozenset[str] = frozenset()

    def lingers(self, linger: Duration) -> None:
        """How long what nobody waits for any more stays where it was, from now on."""
        self.settings = self.placement.settings = structs.replace(self.settings, linger=linger)

    @property
    def moving(self) -> bool:
        """Whether some instance's old attempt goes on until its new one serves."""
        return bool(self.placement.moving)

    def serve(self, ids: frozenset[str]) -> None:
        """These attempts are in service, as their pools' rows say; or their addresses, where a file lists those."""
        if ids != self.serving:
            self.serving = ids
            self.manager.news.set()

    async def run(self) -> None:
        """Place until cancelled."""
        while True:
            await self.news()
            if not self.manager.leases.acting:
                self.placement = Placement(self.settings, "")
                self.condition.succeeded("placing")  # it is another's, or waits for what is told by itself
                continue
            try:
                await self.turns()
            except PortError as error:
                if self.condition.failed("placing", error):
                    log.warning("placing: %s", error.in_full)
                await asyncio.sleep(IDLE_S)
            else:
                if self.condition.succeeded("placing"):
                    log.info("placing works again")

    async def forget(self) -> None:
        """Let go of instances that ended and whose rows are gone, each minute until cancelled.

        Nobody tells of rows that are deleted. So the store is asked about those old enough to be, and an instance is
        forgotten only if its row isn't there: while it is, it says that what a host still has of it is to be stopped.
        """
        while True:
            await asyncio.sleep(FORGET_S)
            try:
                await self.forget_once()
            except PortError as error:
                log.debug("what ended isn't forgotten: %s", error)

    async def forget_once(self) -> None:
        """The same, once. Raises a ``PortError``."""
        placement, since = self.placement, time.time_ns() - ENDED_KEPT
        rows = [at.row for at in placement.instances.values() if isinstance(at.row, InstanceRow)]
        old = [row.instance for row in rows if row.state == "ended" and row.ended_at < since]
        there = await look(self.store, "instance", old)
        gone = frozenset(old) - there.keys()
        for name in gone if placement is self.placement else ():
            placement.deleted(name)
        for id_ in [id_ for id_ in self.network if id_.rpartition(".")[0] in gone]:
            del self.network[id_]

    async def turns(self) -> None:
        """As many as there is something to do in."""
        more = True
        while more:
            more = await self.turn()

    async def news(self) -> None:
        """Wait until rows changed, or a host told something that matters to placing."""
        self.manager.news.clear()
        await first_of(self.store.wait(int(IDLE_S * SECOND)), self.manager.news.wait())
        await asyncio.sleep(REST_S)

    async def turn(self) -> bool:
        """One look and one commit; whether there may be more to do at once."""
        await self.read()
        for host in self.manager.told_down():
            self.placement.look[host] = None
        for host in self.manager.told_unable():
            self.placement.unable[host] = self.placement.look[host] = None
        groups = self.placement.decide(now(), time.time_ns(), self.is_ready)
        self.manager.leases.room = self.placement.room.free
        if not groups:
            return False
        written = await self.store.commit(self.manager.hands.claim(), groups)
        if written is None:
            return False
        self.placement.wrote(groups, written.snapshot, written.applied)
        return True

    async def read(self) -> None:
        """What changed; everything, in another life of the store."""
        for kind in KINDS:
            if kind == "host" and kind not in self.since:
                await self.begin_hosts()
            since = self.since.get(kind, 0)
            page = await self.store.rows(kind, None, since)
            if page.life != self.placement.life:
                self.begin(page.life)
                if since:
                    page = await self.store.rows(kind)
            await self.take(page.rows)
            self.since[kind] = page.snapshot

    def begin(self, life: str) -> None:
        """Nothing is known of this life of the store."""
        self.placement = Placement(self.settings, life, PackedHosts(Table(self.manager)))
        self.placement.told = ToldByHosts(self.manager.core)
        self.network.clear()
        self.since.clear()

    async def begin_hosts(self) -> None:
        """Take what the manager has read of its own hosts, and read those of other shards, some at a time."""
        hands, placement = self.manager.hands, self.placement
        table, since = hands.table, hands.since
        if hands.life != placement.life or not since:
            return
        for number in range(len(table)):
            placement.host(Versioned(table.row(number), table.revisions[number]))
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        for shard in range(1, self.settings.of + 1):
            if shard != self.settings.shard:
                async for page in pages(self.store, "host", shard):
                    if page.life != placement.life:
                        return
                    await self.take(page.rows)
        if placement is self.placement and table is hands.table:
            self.since["host"] = since

    async def take(self, rows: Sequence[Versioned]) -> None:
        """Rows as they are now; other tasks get their turn between."""
        for at in range(0, len(rows), AT_ONCE):
            self.take_some(rows[at : at + AT_ONCE])
            if len(rows) > AT_ONCE:
                await asyncio.sleep(0)

    def take_some(self, rows: Sequence[Versioned]) -> None:
        """The same, at once."""
        for at in rows:
            match at.row:
                case ShardRow() as row:
                    self.placement.shard(row)
                case HostRow():
                    self.placement.host(at)
                case NetworkRow() as row:
                    self.network[row.id] = row
                case _:
                    self.placement.instance(at)

    def is_ready(self, id_: str) -> bool:
        """Whether an attempt serves and the one before it doesn't any more, so that that one may be stopped.

        That its network state is acknowledged isn't enough: its pool lets it in once it has been there for a while and
        passed its probes. Were the old one stopped before, callers would have neither. And an old one that still serves
        would be answered after it was stopped.
        """
        if not self.acknowledged(id_):
            return False
        row = self.placement.instance_row(id_.rpartition(".")[0])
        if row is None or row.id != id_:
            return False
        return self.serves(id_, row.address) and not self.serves(row.old[1], self.old_address(row))

    def serves(self, id_: str, address: str) -> bool:
        """Whether a pool has an attempt in service, under its own name or as a listed address."""
        return id_ in self.serving or address in self.serving

    def old_address(self, row: InstanceRow) -> str:
        """Where an instance's old attempt is, as its host's row says."""
        host = self.placement.host_row(row.old[0])
        here = host.set.instances if host is not None else ()
        return next((each.address for each in here if each.id == row.old[1]), "")

    def acknowledged(self, id_: str) -> bool:
        """Whether an attempt's host has its network state."""
        row = self.network.get(id_)
        host = self.placement.host_row(row.host) if row is not None else None
        return row is not None and host is not None and ready(row, host, self.placement.life)
