"""What an agent's process is made of."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec import Struct

from fencepost.core.instant import Duration
from fencepost.ports.fleet import Driver
from fencepost.settings.schema import HostPort

Main = Callable[[], Coroutine[Any, Any, None]]


class AgentOptions(Struct, frozen=True):
    """One host: its name, failure zone and folder, where it listens and what managers are told (``advertised``).

    ``join`` is the API's address, "" for none, and ``token`` what it asks for; ``room`` how many instances it takes,
    ``addresses`` what it can give them. ``renew`` is R as far as it is known here; ``driver`` is "process" or "none".
    """

    host: str
    zone: str
    folder: Path
    listen: HostPort
    advertised: str
    key: bytes
    join: str = ""
    token: str = ""
    room: int = 1
    addresses: tuple[str, ...] = ()
    renew: Duration | None = None
    driver: str = "process"

    def __repr__(self) -> str:
        """Show neither key nor token."""
        return f"AgentOptions({self.host!r})"


def driver_of(options: AgentOptions) -> Driver:
    """What its instances are run with."""
    if options.driver == "none":
        from fencepost.adapters.driver_none import NoDriver

        return NoDriver()
    from fencepost.adapters.driver_process import ProcessDriver

    given = {"INSTANCE_HOST": options.host, "INSTANCE_ZONE": options.zone}
    return ProcessDriver(options.folder, given)


def agent_main(options: AgentOptions, driver: Callable[[], Driver] | None = None) -> Main:
    """The agent of one host; ``driver`` makes another one than the options name."""

    async def main() -> None:
        from fencepost.roles.fleet.agent_role import AgentRole
        from fencepost.roles.fleet.registering import Hosted
        from fencepost.roles.fleet.wire import Wire

        post = None
        if options.join:
            from fencepost.adapters.joining import Api

            post = Api(options.join, options.token).post
        host = Hosted(options.host, options.zone, "", options.room, options.addresses)
        role = AgentRole(
            host, Wire(options.key), driver() if driver else driver_of(options), options.folder, options.renew
        )
        await role.run((options.listen.host, options.listen.port), options.advertised, post)

    return main
