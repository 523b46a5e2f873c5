"""What ``fencepost dev agents`` is made of: many hosts, a real agent's port, and a real agent's registration."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from fencepost.core.instant import Duration
from fencepost.settings.schema import HostPort

LOOK_S = 2.0
"""So often all are looked through for those that nobody asks any more: 10 ms for ten thousand."""
Main = Callable[[], Coroutine[Any, Any, None]]


class ManyOptions(Struct, frozen=True):
    """Many hosts; see :class:`~fencepost.assembly.agents.AgentOptions`. ``names`` gives each host's zone.

    ``renew`` is None where only the API knows it. ``deaf``, ``slow`` and ``servers`` are how they misbehave from the
    start, ``control`` a file that says it later. ``ready`` is told the port.
    """

    names: dict[str, str]
    folder: Path
    listen: HostPort
    key: bytes
    ready: Callable[[int], None]
    join: str = ""
    token: str = ""
    room: int = 4
    renew: Duration | None = None
    deaf: tuple[str, ...] = ()
    slow: str = ""
    servers: int = 64
    control: Path | None = None

    def __repr__(self) -> str:
        """Show neither key nor token."""
        return f"ManyOptions({len(self.names)} hosts)"


def many_main(options: ManyOptions) -> Main:
    """The process of many hosts."""

    async def main() -> None:
        from fencepost.dev.agent_control import Control, Wish
        from fencepost.dev.agent_memories import AgentMemories
        from fencepost.dev.agents import ManyHosts
        from fencepost.roles.fleet.agent_server import AgentServer
        from fencepost.roles.fleet.wire import Wire

        memories = AgentMemories(options.folder)
        hosts = ManyHosts(memories, options.names, options.room, 3 * (options.renew or 0))
        control = Control(hosts, Wish(options.deaf, options.slow, options.servers))
        server = AgentServer(Wire(options.key), hosts)
        try:
            port = await server.start(options.listen.host, options.listen.port)
            options.ready(port)
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(float("inf")))
                if options.control is not None:
                    group.create_task(control.watch(options.control))
                if options.join:
                    group.create_task(joining(options, hosts, port))
        finally:
            await server.stop()
            memories.close()

    return main


async def joining(options: ManyOptions, hosts: Any, port: int) -> None:
    """Register them all, and again those that nobody asks any more, until cancelled."""
    from fencepost.adapters.joining import Api
    from fencepost.core.instant import SECOND
    from fencepost.roles.fleet.registering import Hosted, Registrar, due_after

    renew = options.renew or 10 * SECOND
    host = options.listen.host
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    looked = float("-inf")

    def due() -> Sequence[Hosted]:
        nonlocal looked
        now = asyncio.get_running_loop().time()
        if now < looked + LOOK_S:
            return ()
        found = hosts.due(lambda name, times: due_after(renew, name, times))
        looked = looked if found else now
        return [Hosted(each.name, each.zone, place, hosts.room, each.addresses) for each in found]

    def renewed(told: Duration) -> None:
        nonlocal renew
        known = min(told, options.renew or told)
        if known != renew or not hosts.answering:
            renew = known
            hosts.lease_lasts(3 * renew)

    def registered(those: Sequence[Hosted]) -> None:
        now = asyncio.get_running_loop().time()
        for each in those:
            member = hosts.members[each.host]
            member.joined, member.joins = now, member.joins + 1

    await Registrar(f"{len(options.names)} hosts", Api(options.join, options.token).post, due, renewed).run(registered)
