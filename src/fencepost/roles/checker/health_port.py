"""Where a checker can be asked whether it lives: the other zones' checkers use it as their canary, and so may people.

It answers 200 as long as the event loop answers at all. It doesn't say "unwell" when the checker suspects itself: a
canary is about the network in between, and doubt that spread from checker to checker could silence all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

REQUEST_MAX_BYTES = 8 * 1024


class HealthPort(asyncio.Protocol):
    """One connection: whatever is asked, the same answer, closed."""

    def __init__(self, say: Callable[[], str]) -> None:
        self._say = say
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request; a canary that only connects is content by now."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once the head is whole."""
        self._got += data
        if b"\r\n\r\n" in self._got:
            body = self._say().encode()
            fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            self._transport.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode() + body)
            self._transport.close()
        elif len(self._got) > REQUEST_MAX_BYTES:
            self._transport.abort()


async def open_health_port(address: str, port: int, say: Callable[[], str]) -> asyncio.Server:
    """Listen; `say` gives the body of each answer. Raises OSError if the port is taken."""
    return await asyncio.get_running_loop().create_server(lambda: HealthPort(say), address, port, backlog=128)
