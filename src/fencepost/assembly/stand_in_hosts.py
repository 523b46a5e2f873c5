"""What a sample's hosts are made of: their agents, all in one process, and what the supervisor has on call for them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.assembly.agents import AgentOptions, agent_main
from fencepost.assembly.fleet_key import fleet_key, make_fleet_key
from fencepost.assembly.places import state_folder
from fencepost.core.instant import SECOND
from fencepost.dev.stand_in_hosts import HostCalls, StandInHost, process_at, stand_in_hosts
from fencepost.roles.status.listening import read_token
from fencepost.settings import Region
from fencepost.settings.schema import HostPort

Main = Callable[[], Coroutine[Any, Any, None]]

AGAIN = 55 * SECOND
"""How long an instance that ended stays away in a sample: else a plain ``kill`` would show nothing. Its host tells of
that when it is asked next, within ten seconds, so that it is about a minute in all."""


def agents_of(region: Region, calls: HostCalls) -> dict[str, Main]:
    """The process of a sample's agents, by name. Makes the key if nobody has. Raises ``Misconfigured``."""
    if region.fleet is None or not calls.lines:
        return {}
    make_fleet_key(region.fleet.key, region.path)
    (state_folder(region) / "hosts").mkdir(exist_ok=True)  # at the start of the region: no agent makes it anew
    mains = [stand_in_agent(region, calls, line.host) for line in calls.lines.values()]

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for each in mains:
                group.create_task(each())

    return {"agents": main}


def stand_in_agent(region: Region, calls: HostCalls, host: StandInHost) -> Main:
    """One host's agent."""
    fleet = region.fleet
    assert fleet is not None  # who has hosts has a fleet  # noqa: S101
    options = AgentOptions(
        host=host.name,
        zone=host.zone,
        folder=state_folder(region) / "hosts" / host.name,
        listen=HostPort("127.0.0.1", 0),
        advertised="127.0.0.1",
        key=fleet_key(fleet.key),
        join=f"http://{region.api.listen}",
        token=read_token(region),
        room=len(host.addresses),
        addresses=host.addresses,
        renew=fleet.renew_ns,
    )

    async def main() -> None:
        from fencepost.dev.stand_in_driver import StandInDriver

        port = port_of(region, host)
        await agent_main(options, lambda: StandInDriver(host, port, calls.lines[host.name].agent))()

    return main


def instances_of(region: Region, hosts: tuple[StandInHost, ...]) -> dict[str, Main]:
    """Stand-ins for what hosts may run, a process an address."""
    from fencepost.dev import target

    found: dict[str, Main] = {}
    for host in hosts:
        for address in host.addresses:
            settings = target.TargetSettings(address, port_of(region, host))
            found[process_at(address)] = lambda settings=settings: target.run(settings)  # type: ignore[misc]
    return found


def port_of(region: Region, host: StandInHost) -> int:
    """Where its instances answer."""
    launch = region.pool(host.pool).launch
    return launch.port if launch is not None else 0


__all__ = ["AGAIN", "HostCalls", "agents_of", "instances_of", "stand_in_hosts"]
