"""What a network manager's process is made of."""

from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.assembly.fleet_key import draw_fleet_key, fleet_key
from fencepost.assembly.stores import fleet_store, open_store
from fencepost.ports import Misconfigured
from fencepost.roles import heartbeat
from fencepost.roles.loop import Condition
from fencepost.settings import Region

NAME = "network-manager"


def network_manager_main(region: Region) -> Callable[[], Coroutine[Any, Any, None]]:
    """The network manager; it follows the configuration row, so that a reload reaches it.

    Makes the fleet's key if nobody has. Raises ``Misconfigured`` for a region without a fleet.
    """
    if region.fleet is None:
        hint = "write [fleet] there, on a line of its own"
        raise Misconfigured("this region has no fleet", where=region.path, hint=hint)
    secret = region.fleet.key

    async def main() -> None:
        import asyncio

        from fencepost.roles.fleet.network_manager import run_network_manager
        from fencepost.roles.fleet.wire import Wire

        condition, store, rows = Condition(), open_store(region), fleet_store(region)
        await draw_fleet_key(secret, region.path, rows)
        wire = Wire(fleet_key(secret))
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeat.beat(NAME, store, condition))
            group.create_task(run_network_manager(rows, store, wire, condition))

    return main
