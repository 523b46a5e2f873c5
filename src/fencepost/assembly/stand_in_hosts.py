"""What a sample's hosts are made of: an agent a host, and its instance, which the supervisor has on call."""

from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.assembly.agents import AgentOptions, agent_main
from fencepost.assembly.fleet_key import fleet_key, make_fleet_key
from fencepost.assembly.places import state_folder
from fencepost.core.instant import SECOND
from fencepost.dev.stand_in_hosts import HostCalls, StandInHost, stand_in_hosts
from fencepost.roles.status.listening import read_token
from fencepost.settings import Region
from fencepost.settings.schema import HostPort

Main = Callable[[], Coroutine[Any, Any, None]]

AGAIN = 60 * SECOND
"""How long an instance that ended stays away in a sample: else a plain ``kill`` would show nothing."""


def agents_of(region: Region, calls: HostCalls) -> dict[str, Main]:
    """The agents of a sample's hosts, by name. Makes key and token if nobody has. Raises ``Misconfigured``."""
    if region.fleet is None or not calls.lines:
        return {}
    make_fleet_key(region.fleet.key)
    return {f"agent/{name}": stand_in_agent(region, calls, line.host) for name, line in calls.lines.items()}


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
        room=1,
        addresses=(host.address,),
        renew=fleet.renew_ns,
    )
    launch = region.pool(host.pool).launch
    port = launch.port if launch is not None else 0

    async def main() -> None:
        from fencepost.dev.stand_in_driver import StandInDriver

        await agent_main(options, lambda: StandInDriver(host, port, calls.lines[host.name].agent))()

    return main


__all__ = ["AGAIN", "HostCalls", "agents_of", "stand_in_hosts"]
