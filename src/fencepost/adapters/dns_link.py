"""The way to one name server: a UDP socket for short questions, one TCP connection kept open for everything else.

A kept connection is used again only while it is young: servers close idle ones (BIND after 30 s, Knot after 10), and an
update sent into a closing connection has an unknown outcome, which costs a whole pass. An answer must carry the
question's id, and come from the server's address: the socket is connected, so the kernel drops others'.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from itertools import islice

from fencepost.adapters.dns_wire import Head
from fencepost.core.dns_numbers import MESSAGE_MAX, Malformed

IDLE_MAX_S = 5.0
"""A connection unused for longer is closed and opened anew."""

UDP_TRIES = 3

UNDER_WAY = 4
"""So many messages of one exchange wait for their answers at a time. The server then has the next one when it is done
with one, and yet what others ask it, a transfer say, doesn't wait behind many."""


class Connection:
    """One TCP connection: messages with their length before them (RFC 1035 section 4.2.2)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.used_at = 0.0

    def usable(self, now: float) -> bool:
        """Whether it may be used again: still open, and not idle for long."""
        return not self._reader.at_eof() and not self._writer.is_closing() and now - self.used_at < IDLE_MAX_S

    async def send(self, message: bytes) -> None:
        """Send one message. Raises ``OSError``."""
        self._writer.write(len(message).to_bytes(2, "big") + message)
        await self._writer.drain()

    def put(self, message: bytes) -> None:
        """Send one message without waiting for the other side to take it: for a few at once, since all are kept."""
        self._writer.write(len(message).to_bytes(2, "big") + message)

    async def receive(self) -> bytes:
        """The next message. Raises ``EOFError`` if the connection ends before its end, ``OSError``."""
        self._acknowledge()
        size = int.from_bytes(await self._reader.readexactly(2), "big")
        self._acknowledge()
        return await self._reader.readexactly(size)

    def _acknowledge(self) -> None:
        """Have what was received acknowledged at once, for as long as Linux will (tcp(7), TCP_QUICKACK).

        A server whose socket has Nagle's algorithm holds back the answer after this one until then: 40 ms.
        """
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def close(self) -> None:
        """Let go of it at once."""
        self._writer.transport.abort()


class _Datagrams(asyncio.DatagramProtocol):
    """Hands the awaited answer to whoever asked; everything else is dropped."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    def expect(self, message_id: int) -> asyncio.Future[bytes]:
        """A future for the answer with this id."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[message_id] = future
        return future

    def forget(self, message_id: int) -> None:
        """No longer wait for it."""
        self._waiting.pop(message_id, None)

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002  asyncio's signature
        """An answer, perhaps."""
        with contextlib.suppress(Malformed):
            head = Head(data)
            future = self._waiting.get(head.id)
            if head.reply and future is not None and not future.done():
                future.set_result(data)

    def error_received(self, exc: Exception) -> None:
        """The kernel's word that nobody listens there."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(exc)


class Link:
    """Sockets to one server, opened when first needed."""

    def __init__(self, server: tuple[str, int], timeout_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._connection: Connection | None = None
        self._datagrams: tuple[asyncio.DatagramTransport, _Datagrams] | None = None

    async def ask(self, message: bytes) -> bytes:
        """The answer to a short question over UDP, asked up to three times. Raises ``OSError`` or ``TimeoutError``."""
        loop = asyncio.get_running_loop()
        if self._datagrams is None or self._datagrams[0].is_closing():
            self._datagrams = await loop.create_datagram_endpoint(_Datagrams, remote_addr=self._server)
        transport, protocol = self._datagrams
        message_id = int.from_bytes(message[:2], "big")
        future = protocol.expect(message_id)
        try:
            for _ in range(UDP_TRIES):
                transport.sendto(message)
                done, _pending = await asyncio.wait((future,), timeout=self._timeout_s / UDP_TRIES)
                if done:
                    return future.result()
            raise TimeoutError
        finally:
            protocol.forget(message_id)
            future.cancel()

    async def connection(self) -> tuple[Connection, bool]:
        """A connection, and whether it was used before. Raises ``OSError`` or ``TimeoutError``."""
        if self._connection is not None:
            if self._connection.usable(asyncio.get_running_loop().time()):
                return self._connection, True
            self.drop()
        async with asyncio.timeout(self._timeout_s):
            reader, writer = await asyncio.open_connection(*self._server, limit=2 * MESSAGE_MAX)
        self._connection = Connection(reader, writer)
        return self._connection, False

    async def exchange(self, messages: Iterable[bytes], answers: dict[bytes, bytes]) -> None:
        """Messages over TCP, at most so many unanswered as :data:`UNDER_WAY`; their answers by id, in any order.

        Each is taken when it is sent. What came before a failure is among the answers. Raises ``OSError``,
        ``EOFError``, ``TimeoutError`` or :class:`~fencepost.core.dns_numbers.Malformed`.
        """
        connection, _ = await self.connection()
        wanted, waiting = set[bytes](), iter(messages)
        try:
            for message in islice(waiting, UNDER_WAY):
                connection.put(message)
                wanted.add(message[:2])
            while wanted:
                async with asyncio.timeout(self._timeout_s):
                    answer = await connection.receive()
                if answer[:2] not in wanted:
                    raise Malformed("it answers another question")
                for message in islice(waiting, 1):
                    connection.put(message)
                    wanted.add(message[:2])
                wanted.remove(answer[:2])
                answers[answer[:2]] = answer
            self.keep(connection)
        finally:
            if wanted:
                self.drop()

    def keep(self, connection: Connection) -> None:
        """A connection has done its work well and stands between messages."""
        connection.used_at = asyncio.get_running_loop().time()

    def drop(self) -> None:
        """Close the TCP connection, if there is one: what may still come over it is unknown."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close everything."""
        self.drop()
        if self._datagrams is not None:
            self._datagrams[0].close()
            self._datagrams = None
