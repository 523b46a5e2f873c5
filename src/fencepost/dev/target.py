"""The sample region's target: something to probe, to kill, and to make sick.

One process a target, so that `kill` does to the sample what a crash does to a real host. It answers

    /healthz                  200, or sick (below)
    /capacity                 200 and a number, 0 to 255 (DNS weights), or sick
    /fail?for=5s&how=status   sick for so long; how: status (503), redirect (302), reset, silent (never answers).
                              `for=0s` heals. From loopback only: a stand-in must not be a hole in a machine.
    any other                 200 and its own address, so that a caller sees who answered

and it is sick too while the file `fail_file` exists (its content says how; empty is status): that outlives a restart.

It uses asyncio Protocols and nothing else, so that a target forked from a parent that has imported asyncio costs a
few hundred kilobytes of its own. It speaks just enough HTTP to be probed and to answer curl: GET, one request a
connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from fencepost.settings.units import duration_ns

REQUEST_MAX_BYTES = 8 * 1024
WAYS = ("status", "silent", "reset", "redirect")
"""How a target can be sick."""


class TargetSettings(msgspec.Struct, frozen=True):
    """Where a target listens (port 0: any free one), what capacity it claims, and the file that makes it sick."""

    address: str = "127.0.0.1"
    port: int = 0
    capacity: int = 100
    fail_file: str | None = None


class Sickness:
    """Whether the target is sick, and how; asked at each request."""

    def __init__(self, fail_file: str | None) -> None:
        self._file = Path(fail_file) if fail_file else None
        self._until_ns = 0
        self._how = "status"

    def fall_ill(self, for_ns: int, how: str) -> None:
        """Be sick for `for_ns` from now; 0 heals."""
        self._until_ns = time.monotonic_ns() + for_ns if for_ns else 0
        self._how = how

    def now(self) -> str | None:
        """One of `WAYS`, or None when well."""
        if self._until_ns > time.monotonic_ns():
            return self._how
        if self._file is None:
            return None
        try:
            how = self._file.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        return how if how in WAYS else "status"


def answer(status: str, body: str, extra: str = "") -> bytes:
    """A whole HTTP/1.1 response."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{extra}"
    )
    return f"{head}\r\n{body}".encode("ascii")


class TargetProtocol(asyncio.Protocol):
    """One connection: one request, one answer, closed."""

    def __init__(self, settings: TargetSettings, sickness: Sickness) -> None:
        self._settings = settings
        self._sickness = sickness
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once the head is whole; its body, if any, isn't read."""
        self._got += data
        if b"\r\n\r\n" in self._got:
            method, _, rest = self._got.partition(b"\r\n")[0].decode("latin-1").partition(" ")
            self._got = b""
            self._answer(method, rest.partition(" ")[0])
        elif len(self._got) > REQUEST_MAX_BYTES:
            self._transport.abort()

    def _answer(self, method: str, target: str) -> None:
        path, query = urlsplit(target).path, urlsplit(target).query
        if method not in ("GET", "HEAD"):
            self._say(answer("405 Method Not Allowed", "GET only\n"))
        elif path == "/fail":
            self._say(self._fall_ill(query))
        else:
            how = self._sickness.now()
            if how is None:
                self._say(self._well(path))
            elif how == "status":
                self._say(answer("503 Service Unavailable", "sick\n"))
            elif how == "redirect":
                self._say(answer("302 Found", "", "Location: http://192.0.2.1/\r\n"))
            elif how == "reset":
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            # silent: say nothing; the caller's timeout ends it

    def _well(self, path: str) -> bytes:
        if path == "/healthz":
            return answer("200 OK", "ok\n")
        if path == "/capacity":
            return answer("200 OK", f"{self._settings.capacity}\n")
        return answer("200 OK", f"{self._settings.address}\n")

    def _fall_ill(self, query: str) -> bytes:
        peer = self._transport.get_extra_info("peername")
        if not ipaddress.ip_address(peer[0]).is_loopback:
            return answer("403 Forbidden", "from loopback only\n")
        asked = parse_qs(query)
        how = asked.get("how", ["status"])[-1]
        if how not in WAYS:
            return answer("400 Bad Request", f"how is one of {', '.join(WAYS)}\n")
        try:
            self._sickness.fall_ill(duration_ns(asked.get("for", ["60s"])[-1]), how)
        except ValueError as error:
            return answer("400 Bad Request", f"{error}\n")
        return answer("200 OK", f"sick: {self._sickness.now() or 'no'}\n")

    def _say(self, response: bytes) -> None:
        self._transport.write(response)
        self._transport.close()


async def run(settings: TargetSettings, *, ready: Callable[[int], None] | None = None) -> None:
    """Serve until cancelled; `ready` is told the port. Raises OSError if it can't listen there."""
    sickness = Sickness(settings.fail_file)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: TargetProtocol(settings, sickness), settings.address, settings.port, backlog=1024
    )
    async with server:
        if ready is not None:
            ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()


def main(arguments: Sequence[str]) -> None:
    """`python -m fencepost.dev.target [ADDRESS [PORT [CAPACITY [FAIL_FILE]]]]`; prints its port. SIGTERM ends it at
    once.
    """
    address, port, capacity, fail_file = (*arguments, *("127.0.0.1", "0", "100", "")[len(arguments) :])
    settings = TargetSettings(address, int(port), int(capacity), fail_file or None)

    def ready(listening: int) -> None:
        sys.stdout.write(f"{listening}\n")
        sys.stdout.flush()

    asyncio.run(run(settings, ready=ready))


if __name__ == "__main__":
    main(sys.argv[1:])
