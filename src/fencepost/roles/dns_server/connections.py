"""TCP connections (RFC 7766): each one's questions in turn, and whose place is given up when all are taken.

The roles that heal ask over TCP, so whoever can fill the places could stop healing. Four things keep them from it:

- a connection on which our key has signed keeps its place as long as there are others;
- of the others the address with most of them gives one up: first one whose answers lie unread, then one that idles,
  then the oldest. So a newcomer has the time of all the places to show its key or to get its answer;
- answers that aren't read are held for one message and the system's buffer, and while they are, no more is answered;
- after each answer every other connection has its turn, however many questions are sent ahead.

Awkward truth: on one address (loopback, say) a client without a key that asks slowly shares the lot of whoever floods.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable

from fencepost.core.dns_numbers import HEADER_BYTES

from .counters import Counters
from .handler import Handler
from .settings import DnsServerSettings

STUCK_S = 0.5
"""Answers that lie so long unread are those of a client that doesn't read."""
IDLE_S = 1.0
"""A connection that says nothing for so long idles."""


class Connections:
    """The places for connections. ``clock`` is monotonic seconds."""

    def __init__(
        self, settings: DnsServerSettings, counters: Counters, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.counters = counters
        self.clock = clock
        self.handler: Handler
        self._open: dict[asyncio.Task[None], Connection] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection until it ends, or gives up its place."""
        self.counters.connections += 1
        peer = writer.get_extra_info("peername")
        if peer is None:  # reset before it could be asked who it is, as probes do
            self.counters.connections_closed_early += 1
            writer.transport.abort()
            return
        self._make_room()
        task = asyncio.current_task()
        assert task is not None  # start_server runs this as a task  # noqa: S101
        connection = Connection(self, reader, writer, peer[0])
        self._open[task] = connection
        try:
            await connection.serve()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            self.counters.connections_closed_early += 1
        except asyncio.CancelledError:
            self.counters.connections_closed_early += 1  # made room, or the server stops
        finally:
            self._open.pop(task, None)
            writer.transport.abort() if connection.broken else writer.close()

    def _make_room(self) -> None:
        if len(self._open) < self.settings.tcp_connections_max:
            return
        now = self.clock()
        others = {task: each for task, each in self._open.items() if not each.signed} or self._open
        held = Counter(each.source for each in others.values())
        task, connection = min(others.items(), key=lambda item: (-held[item[1].source], *item[1].rank(now)))
        connection.broken = True
        del self._open[task]  # at once, or the next one would pick it again
        task.cancel()

    def end(self) -> list[asyncio.Task[None]]:
        """End every connection; the tasks to wait for."""
        tasks = list(self._open)
        for task, connection in self._open.items():
            connection.broken = True
            task.cancel()
        return tasks


class Connection:
    """One TCP connection: questions answered in turn. ``signed`` once our key has signed one of them."""

    def __init__(
        self, all_of_them: Connections, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str
    ) -> None:
        self._all = all_of_them
        self._reader = reader
        self._writer = writer
        self.source = source
        self.signed = False
        self.broken = True
        self._opened = self._since = all_of_them.clock()
        self._waits_for = ""
        writer.transport.set_write_buffer_limits(high=0)  # what the system doesn't take is waited for, whole

    def rank(self, now: float) -> tuple[int, float]:
        """How well it keeps its place among those of its address; the least gives it up."""
        waits = now - self._since
        if self._waits_for == "reader" and waits >= STUCK_S:
            return 0, self._since
        if self._waits_for == "question" and waits >= IDLE_S:
            return 1, self._since
        return 2, self._opened

    async def serve(self) -> None:
        """Answer until the client leaves. Raises TimeoutError, OSError or IncompleteReadError if it is cut off."""
        settings, handler = self._all.settings, self._all.handler
        while True:
            self._now("question")
            async with asyncio.timeout(settings.tcp_idle_s):
                first = await self._reader.read(1)
            if not first:
                self.broken = False
                return
            async with asyncio.timeout(settings.tcp_message_s):
                size = first[0] << 8 | (await self._reader.readexactly(1))[0]
                message = await self._reader.readexactly(size)
            if size < HEADER_BYTES:
                self._all.counters.dropped += 1
                return
            self._now("")
            reply = handler.now(message, self.source, tcp=True, signed=self._has_signed)
            if isinstance(reply, bytes):
                await self._write(reply)
            elif reply is not None:
                async with contextlib.aclosing(handler.later(reply)) as parts:
                    async for part in parts:
                        await self._write(part)
            await asyncio.sleep(0)  # what is read ahead would be answered to the end before anybody else's turn

    def _has_signed(self) -> None:
        self.signed = True

    def _now(self, waits_for: str) -> None:
        self._waits_for, self._since = waits_for, self._all.clock()

    async def _write(self, reply: bytes) -> None:
        """One message out; a client that doesn't take it within the idle time-out is cut off."""
        if self._writer.transport.is_closing():  # uvloop raises RuntimeError for what is written then
            raise ConnectionResetError
        self._writer.write(len(reply).to_bytes(2, "big") + reply)
        self._now("reader")
        async with asyncio.timeout(self._all.settings.tcp_idle_s):
            await self._writer.drain()
        self._now("")
