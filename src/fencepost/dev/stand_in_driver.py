"""The driver of a sample's hosts: their instances are started and ended by the supervisor, which outlives any agent.

It runs what the region's file says, so far as that is our own stand-in for a target: ``… -m fencepost.dev.target
{address} {port}``, at an address of its host. Anything else is refused: a sample is no place to run a program.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Collection, Sequence

from fencepost.core.capacity.command import filled
from fencepost.core.capacity.messages import Instance, NetworkState
from fencepost.dev.stand_in_hosts import PACKET_BYTES, PROGRAM, StandInHost, drain, tell
from fencepost.ports import Refused, Unavailable

ANSWER_S = 3.0
CAUSES_KEPT = 20
POLITE_S = 5.0
"""So long after SIGTERM comes SIGKILL."""


class StandInDriver:
    """See :class:`~fencepost.ports.fleet.Driver`. ``end`` is the agent's end of its line to the supervisor."""

    def __init__(self, host: StandInHost, port: int, end: socket.socket) -> None:
        self.host = host
        self.port = port
        self.end = end
        self.attempts: set[str] = set()
        self.causes: dict[str, str] = {}
        self._told: Callable[[str], None] = lambda _: None
        self._answer: asyncio.Future[list[str]] | None = None
        self._stopping: dict[str, asyncio.Event] = {}
        drain(end)
        asyncio.get_running_loop().add_reader(end.fileno(), self._readable)

    def on_end(self, told: Callable[[str], None]) -> None:
        """Have ``told`` called when an instance ends by itself."""
        self._told = told

    async def running(self) -> Collection[str]:
        """The attempts that run. Raises ``Unavailable``."""
        self.attempts = set((await self._ask("running"))[1:])
        return tuple(self.attempts)

    async def start(self, instance: Instance) -> None:
        """Start it. Raises ``Refused`` for what isn't our stand-in at this host's address, or ``Unavailable``."""
        command, address = filled(instance), instance.address
        if command[1:] != (*PROGRAM, address, str(self.port)) or address not in self.host.addresses:
            hint = (
                f'the sample\'s own:  command = ["python3", "{PROGRAM[0]}", "{PROGRAM[1]}", "{{address}}", "{{port}}"]'
            )
            raise Refused("hosts of a sample run stand-ins for its targets only", where=instance.id, hint=hint)
        self.attempts.add(instance.id)
        answer = await self._ask("start", instance.id, address)
        if answer[0] != "started":
            self.attempts.discard(instance.id)
            raise Refused("the supervisor can't start it", where=instance.id, hint="see what `fencepost up` shows")

    async def stop(self, id: str) -> None:  # noqa: A002  the port's word
        """End it, in the end by SIGKILL. Raises ``Unavailable``."""
        if id not in self.attempts:
            return
        gone = self._stopping.setdefault(id, asyncio.Event())
        try:
            for word in ("stop", "kill"):
                tell(self.end, word, id)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLITE_S):
                        await gone.wait()
                    return
        finally:
            self._stopping.pop(id, None)
        raise Unavailable("doesn't end, even by SIGKILL", where=id)

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Nothing stands between loopback addresses."""

    def _readable(self) -> None:
        try:
            said = json.loads(self.end.recv(PACKET_BYTES))
        except (OSError, ValueError):
            return
        if said[0] == "ended":
            self._ended(said[1], said[2])
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(said)

    def cause(self, id: str) -> str:  # noqa: A002  the port's word
        """How an attempt ended, "" if that isn't known."""
        return self.causes.get(id, "")

    def _ended(self, id_: str, how: str) -> None:
        if id_ not in self.attempts:
            return
        self.attempts.discard(id_)
        self.causes[id_] = how
        for old in list(self.causes)[:-CAUSES_KEPT]:
            del self.causes[old]
        if id_ in self._stopping:
            self._stopping[id_].set()
        else:
            self._told(id_)

    async def _ask(self, *words: str) -> list[str]:
        self._answer = asyncio.get_running_loop().create_future()
        tell(self.end, *words)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._answer
        except TimeoutError:
            raise Unavailable("the supervisor doesn't answer", where=f"host {self.host.name}") from None
