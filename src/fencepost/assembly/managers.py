"""What the managers of host leases are made of: one for each shard."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import structs

from fencepost.assembly.fleet_key import draw_fleet_key, fleet_key
from fencepost.assembly.stores import fleet_store, open_store
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import Misconfigured
from fencepost.roles import heartbeat
from fencepost.roles.loop import Condition
from fencepost.settings import Region
from fencepost.settings.schema import Fleet

Main = Callable[[], Coroutine[Any, Any, None]]
SETTLE = 5 * SECOND
"""What is down when a manager begins is taken for ended with its host, not for failing by itself."""


def fleet_of(region: Region) -> Fleet:
    """A region's fleet. Raises ``Misconfigured`` where there is none."""
    if region.fleet is None:
        raise Misconfigured("this region has no [fleet]", hint="write [fleet] into its file; an empty table will do")
    return region.fleet


def host_manager_main(region: Region, shard: int, again: Duration | None = None) -> Main:
    """The manager of one shard's host leases, which places instances too.

    With ``again`` an instance that ended by itself is tried again where it was, each time after so long.
    """

    async def main() -> None:
        from fencepost.core.capacity.lease_calls import lease_settings
        from fencepost.core.capacity.placement import PlacementSettings
        from fencepost.roles.fleet.calibrated import admission_settings
        from fencepost.roles.fleet.following import Following, linger_of, listed_of
        from fencepost.roles.fleet.host_manager import HostManager, draw_owner
        from fencepost.roles.fleet.manager_questions import Questions
        from fencepost.roles.fleet.placer import Placer
        from fencepost.roles.fleet.telling import Teller
        from fencepost.roles.fleet.wire import Wire

        fleet, condition = fleet_of(region), Condition()
        store, rows = open_store(region), fleet_store(region)
        await draw_fleet_key(fleet.key, region.path, rows)
        settings = lease_settings(draw_owner(), shard, fleet.shards, fleet.renew_ns)
        admission = await admission_settings(rows, settings)
        questions = Questions(Wire(fleet_key(fleet.key)), condition)
        manager = HostManager(settings, admission, rows, questions, condition)
        manager.lists(listed_of(region, shard))
        placing = PlacementSettings(shard, fleet.shards, linger=linger_of(region), settle=SETTLE)
        if again is not None:
            placing = structs.replace(placing, again=again, longest=again, elsewhere=False)
        placer = Placer(placing, rows, manager, condition)
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat(manager.called, store, condition))
            group.create_task(manager.run())
            group.create_task(placer.run())
            group.create_task(placer.forget())
            group.create_task(Following(store, rows, manager, placer).run())
            group.create_task(Teller(manager, placer).run())

    return main
