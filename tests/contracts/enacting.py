"""An enactor as its role runs it (decider, hands, adapter, SQLite store, local file), in the test's own event loop.

Between it and the server stands a relay that counts what is asked and can turn questions away.
"""

import asyncio
import struct
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import dns.message
import dns.opcode
from dns_scene import DOMAIN, OWNER
from patience import patient
from relay import Relay
from servers import KEY_NAME, KEY_SECRET, Served

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING, content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.room import Room
from fencepost.core.zone import Live
from fencepost.ports import DnsPort, PortError
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Condition, drive

WITHIN_S = 20.0
TurnAway = Callable[[bytes], int | None]
"""Given a question over TCP: the response code to answer in the server's stead, or None to pass it on."""


class Door(Relay):
    """A relay that may turn questions away, as a provider does that limits its callers."""

    def __init__(self, upstream: int) -> None:
        super().__init__(upstream)
        self.turn_away: TurnAway = lambda _message: None
        self.turned_away = 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", self.upstream, limit=1 << 20)
        answers = asyncio.ensure_future(self._answers(there, writer))
        try:
            while True:
                size = await reader.readexactly(2)
                message = await reader.readexactly(struct.unpack(">H", size)[0])
                rcode = self.turn_away(message)
                if rcode is not None:
                    self.turned_away += 1
                    answer = message[:2] + bytes((message[2] | 0x80, rcode)) + bytes(8)
                    writer.write(struct.pack(">H", len(answer)) + answer)
                    continue
                self.asked_tcp.append(message)
                to.write(size + message)
        except (EOFError, OSError):
            pass
        finally:
            answers.cancel()
            writer.close()
            to.close()

    def updates(self) -> list[bytes]:
        """The UPDATE messages that were passed on."""
        return [message for message in self.asked_tcp if is_update(message)]

    def touched(self) -> set[str]:
        """Every endpoint that an UPDATE passed on would change."""
        return {name for message in self.updates() for name in changed_by(message)}


def is_update(message: bytes) -> bool:
    """Whether a message is an UPDATE (RFC 2136 section 2.2)."""
    return message[2] >> 3 & 15 == dns.opcode.UPDATE


def changed_by(message: bytes) -> set[str]:
    """The endpoints that an UPDATE would change: by their own names or their markers'."""
    found = dns.message.from_wire(message, keyring=False)
    return {str(rrset.name).rstrip(".").removeprefix("_fencepost.") for rrset in found.sections[2]}


class Recorded(Condition):
    """A role's condition that remembers each failure, in order, also those that are over."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[PortError] = []

    def failed(self, call: str, error: PortError) -> bool:
        """As the role's."""
        self.failures.append(error)
        return super().failed(call, error)


class Acting:
    """A store, and enactors made as they are asked for, each on a port of its own."""

    def __init__(
        self,
        folder: Path,
        port: Callable[[], DnsPort],
        *,
        batch: int = 200,
        at_once: int = 1,
        room: Room | None = None,
    ) -> None:
        """``room`` is what one transaction holds: a provider's own, or as many endpoints as a batch leaves to each."""
        self.folder = folder
        self.port = port
        self.room = room if room is not None else Room(endpoints=batch // at_once)
        self.batch = batch
        self.at_once = at_once
        self.store = SqliteStore.open(folder / "store.db", create=True)
        self.condition = Recorded()
        self.hands: list[EnactorHands] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self.store.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def publish(self, rows: Mapping[str, Collection[str]]) -> None:
        """A plan: these addresses for these names; a name without any is withdrawn."""
        head = await self.store.head()
        number = head.number + 1
        made = []
        for name, addresses in rows.items():
            if addresses:
                value = content(addresses, 30)
                families = ("4" if value.a else "") + ("6" if value.aaaa else "")
                made.append(Row.of(name, Generation(0, number), value, families=families))
            else:
                hold = Hold("withdraw", 7)
                made.append(Row.of(name, Generation(7, number), NOTHING, hold, families="4"))
        assert await self.store.publish(Plan(head, number, 0, tuple(made))) is not None

    def enactor(self) -> EnactorHands:
        """A new enactor's hands, with nothing read yet and an empty local file."""
        dns = self.port()
        self._stack.push_async_callback(dns.close)
        file = LocalFile(self.folder / f"{len(self.hands)}.known")
        self._stack.callback(file.close)
        name = f"enactor/{len(self.hands)}"
        settings = EnactorSettings(name, OWNER, batch=self.batch, room=self.room, at_once=self.at_once)
        self.hands.append(EnactorHands(settings, DOMAIN, dns, self.store, file))
        return self.hands[-1]

    async def run(self, hands: EnactorHands, until: Callable[[], bool], within_s: float = WITHIN_S) -> None:
        """Let an enactor work until something holds, and has nothing left unsettled but findings; then end it."""
        decider = DnsEnactor(hands.settings, hands.settings.batch)
        task = asyncio.ensure_future(drive(decider, hands, self.condition))
        try:
            async with asyncio.timeout(patient(within_s)):
                while not until():
                    if task.done():
                        await task
                    await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settle(self, hands: EnactorHands | None = None) -> EnactorHands:
        """Run an enactor (a new one) until it knows the newest rows and nothing is left to do."""
        found, newest = hands or self.enactor(), await self.store.head()
        await self.run(found, lambda: found.head == newest and not len(found.dirty))
        return found


class Enacting(Acting):
    """The same on a server, with a door before it."""

    def __init__(self, served: Served, folder: Path, *, batch: int = 200, at_once: int = 1) -> None:
        super().__init__(folder, self._through_the_door, batch=batch, at_once=at_once)
        self.served = served
        self.timeout = 5 * SECOND
        self.door = Door(served.port)

    async def __aenter__(self) -> Self:
        await self.door.start()
        self._stack.push_async_callback(self.door.stop)
        return await super().__aenter__()

    def _through_the_door(self) -> Rfc2136Dns:
        return Rfc2136Dns(
            Rfc2136Settings(("127.0.0.1", self.door.port), DOMAIN, KEY_NAME, KEY_SECRET, OWNER, timeout=self.timeout)
        )


def stands(hands: EnactorHands, name: str, addresses: Collection[str], number: int) -> bool:
    """Whether an endpoint stands as a row says: its addresses, and a marker of that number, written once."""
    live: Live = hands.dns.live(name)
    return (
        isinstance(live.marker, Marker)
        and (live.marker.generation.number, live.marker.writes) == (number, 1)
        and {*live.a, *live.aaaa} == set(addresses)
        and live.verified()
    )
