"""A shard of a fleet whose hosts all hold leases and have answered, and its manager, without sockets."""

import asyncio
from collections.abc import Awaitable, Callable

from fencepost.core.capacity.fleet_store import Change, Versioned
from fencepost.core.capacity.lease_calls import HostsRead, ShardRead, ShardWritten, Tick, lease_settings
from fencepost.core.capacity.placement import PlacementSettings
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.instant import SECOND
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.calibrated import UNCALIBRATED, settings_from
from fencepost.roles.fleet.host_manager import HostManager, now
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.fleet.placer import Placer
from fencepost.roles.fleet.telling import Teller
from fencepost.roles.fleet.wire import Wire
from fencepost.roles.loop import Condition
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

R = 10 * SECOND
KEY = b"k" * 32


async def soon(_: int) -> None:
    await asyncio.sleep(0.01)


def rows_of(count: int, at: str = "127.0.0.1:9") -> list[HostRow]:
    names = [f"h{n:04}" for n in range(count)]
    return [HostRow(name, "a", at, 4, (), 1, 7, "held", "life-1", 5, 6, reported=True) for name in names]


def fleet(count: int, at: str = "127.0.0.1:9") -> FleetStorePort:
    """A store with so many hosts that hold leases, in a shard that "m" owns."""
    held = ReferenceRows("life-1")
    held.commit(None, [(Change(row, 0),) for row in rows_of(count, at)])
    held.commit(None, [(Change(ShardRow(1, 1, "m", 1, open="life-1"), 0),)])
    return ReferenceFleet(held, soon)


def owning(store: FleetStorePort, count: int, expect: int = 0) -> HostManager:
    """A manager that has read its hosts, all of which answered."""
    settings = lease_settings("m", 1, 1, R, expect)
    admission = settings_from(UNCALIBRATED, settings)
    manager = HostManager(settings, admission, store, Questions(Wire(KEY), Condition()), Condition())
    leases, at = manager.leases, now()
    row = ShardRow(1, 1, "m", 1, open="life-1")
    leases.on(Tick(), at)
    leases.on(ShardRead("life-1", None), at)
    leases.on(ShardRead("life-1", None), at)
    leases.on(ShardWritten(row), at)
    manager.core.book.life, manager.core.book.epoch = "life-1", 1
    for place, each in enumerate(rows_of(count)):
        manager.hands.table.put(Versioned(each, place + 1))
    facts = manager.hands.table.facts(range(count), "life-1")
    leases.on(HostsRead("life-1", count, facts), at)
    leases.hosts.seen[:] = at
    leases.hosts.fresh[:] = True
    manager.admission.grow(count)
    return manager


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await work()

    asyncio.run(asyncio.wait_for(whole(), 60))


def told(manager: HostManager, store: FleetStorePort) -> Teller:
    return Teller(manager, Placer(PlacementSettings(), store, manager, Condition()))
