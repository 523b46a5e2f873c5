"""DNS over UDP and TCP on one address, in front of `answers`."""

import asyncio
import errno
import random
import struct

from fencepost.dev.route53.account import Account
from fencepost.dev.route53.answers import answer

PORT_TRIES = 20
"""A port that is free for TCP may be somebody's for UDP."""


class NameServer(asyncio.DatagramProtocol):
    """Answers for an account's zones; `chance` draws weighted sets."""

    def __init__(self, account: Account, chance: random.Random | None = None) -> None:
        self._account = account
        self._chance = chance or random.Random()  # noqa: S311 - a draw by weight, no secret
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on both; port 0 is any that is free for both. Raises OSError."""
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                await self._listen(host, port)
                return
            except OSError as error:
                if port or error.errno != errno.EADDRINUSE or not tries_left:
                    raise

    async def _listen(self, host: str, port: int) -> None:
        self._tcp = await asyncio.start_server(self._connected, host, port)
        self.port = self._tcp.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        try:
            self._udp, _ = await loop.create_datagram_endpoint(lambda: self, (host, self.port))
        except OSError:
            self._tcp.close()
            raise

    async def stop(self) -> None:
        """Stop listening."""
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()
            for writer in self._connections:
                writer.close()
            await self._tcp.wait_closed()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a question."""
        found = answer(self._account, data, self._chance, udp=True)
        if found is not None and self._udp is not None:
            self._udp.sendto(found, addr)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                found = answer(self._account, await reader.readexactly(length), self._chance, udp=False)
                if found is None:
                    break
                writer.write(struct.pack("!H", len(found)) + found)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            self._connections.discard(writer)
            writer.close()
