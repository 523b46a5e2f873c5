"""``fencepost run agent``: a host's agent, its port and its registration, in one process.

How long a stamp is worth something must never be longer here than the managers take it to be, or an order could be
obeyed after its host was given up. It comes from the region's file if the host has one, and the API says it at each
registration; the shorter counts, and is kept beside the memory. A host that knows neither answers nobody before it has
registered.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from fencepost.core.capacity.host import HostSettings
from fencepost.core.instant import SECOND, Duration
from fencepost.ports import PortError
from fencepost.ports.fleet import Driver
from fencepost.roles.fleet.agent import Agent
from fencepost.roles.fleet.agent_memory import MemoryFile
from fencepost.roles.fleet.agent_server import AgentServer
from fencepost.roles.fleet.registering import Hosted, Post, Registrar, due_after
from fencepost.roles.fleet.wire import Wire
from fencepost.roles.whole_file import replace_whole

log = logging.getLogger(__name__)

RENEWALS = 3
"""A lease lasts so many."""


class Rhythm:
    """How often this host is to be asked: what its file says or the API last said, whichever is shorter."""

    def __init__(self, folder: Path, own: Duration | None) -> None:
        self.path = folder / "renew"
        self.own = own
        self.told = self._read()

    @property
    def renew(self) -> Duration | None:
        """R; None if nobody has said it yet."""
        known = [each for each in (self.own, self.told) if each is not None]
        return min(known) if known else None

    def tell(self, renew: Duration) -> bool:
        """Take up what the API says; whether that is news."""
        if renew <= 0 or renew == self.told:
            return False
        self.told = renew
        try:
            replace_whole(self.path, str(renew).encode())
        except OSError as error:
            log.warning("%s can't be written: %s", self.path, error.strerror)
        return True

    def _read(self) -> Duration | None:
        try:
            text = self.path.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return None
        return int(text) if text.isdigit() and len(text) < 19 and int(text) > 0 else None


class AgentRole:
    """One host's agent as a process."""

    def __init__(self, host: Hosted, wire: Wire, driver: Driver, folder: Path, renew: Duration | None) -> None:
        """``host.at`` is what the API is told; "" until :meth:`run` knows it. Raises ``Misconfigured``."""
        self.host = host
        self.memory = MemoryFile(folder, host.host)
        self.rhythm = Rhythm(folder, renew)
        self.agent = Agent(HostSettings(host.host, fresh_for=self.lease), self.memory, driver)
        self.server = AgentServer(wire, self.agent)
        self.known = asyncio.Event()
        self.joined_at: float | None = None
        self.joins = 0
        self._heard = self._dropped = 0
        self._said = ""
        if self.rhythm.renew is not None:
            self.known.set()

    @property
    def lease(self) -> Duration:
        """3R; nothing while R isn't known."""
        return RENEWALS * (self.rhythm.renew or 0)

    async def run(self, listen: tuple[str, int], advertised: str, post: Post | None) -> None:
        """Serve until cancelled; ``advertised`` is the address that managers are to use."""
        try:
            port = await self.server.start(*listen)
            place = f"[{advertised}]:{port}" if ":" in advertised else f"{advertised}:{port}"
            self.host = replace(self.host, at=place)
            log.info("host %s (zone %s) at %s", self.host.host, self.host.zone, place)
            async with asyncio.TaskGroup() as group:
                if post is not None:
                    registrar = Registrar(f"host {self.host.host}", post, self.due, self.renewed, self.due_in)
                    group.create_task(registrar.run(self.registered))
                await self.known.wait()
                group.create_task(self.agent.run())
        finally:
            await self.server.stop()
            self.memory.close()

    def due(self) -> Sequence[Hosted]:
        """This host, if the API must be told of it."""
        return (replace(self.host, incarnation=self.incarnation()),) if self.due_in() <= 0 else ()

    def due_in(self) -> float:
        """In how many seconds the API must be told of it, if nobody asks meanwhile."""
        renew = self.rhythm.renew
        if self.joined_at is None or renew is None:
            return 0.0
        silent = asyncio.get_running_loop().time() - max(self.joined_at, self.agent.checked)
        return due_after(renew, self.host.host, self.joins) / SECOND - silent

    def incarnation(self) -> int:
        """Its memory's; 0 while it has none."""
        memory = self.agent.host.memory
        if memory is None:
            try:
                memory = self.memory.read()
            except PortError:
                return 0
        return memory.incarnation if memory is not None else 0

    def registered(self, _: Sequence[Hosted]) -> None:
        """The API knows this host."""
        self.joined_at = asyncio.get_running_loop().time()
        if self.joins:
            self.say_silence(self.server.heard - self._heard, self.server.wire.dropped - self._dropped)
        self._heard, self._dropped = self.server.heard, self.server.wire.dropped
        self.joins += 1

    def say_silence(self, heard: int, dropped: int) -> None:
        """Say once why nobody seems to ask this host: what came since it last registered tells apart two causes."""
        why = ""
        if dropped and not heard:
            why = "what comes isn't sealed with the key that is here: copy the region's fleet.key, and start it again"
        elif not heard:
            why = f"nothing comes to {self.host.at}: does a host-manager run, and can it reach that, by UDP and TCP?"
        if why and why != self._said:
            log.warning("host %s is registered, and isn't asked: %s", self.host.host, why)
        self._said = why

    def renewed(self, renew: Duration) -> None:
        """The API says how often hosts are asked."""
        if self.rhythm.tell(renew):
            self.agent.lease_lasts(self.lease)
        self.known.set()
