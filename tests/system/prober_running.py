"""A prober and the servers it probes, for tests: in this process, on loopback, at free ports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

from free_ports import free_port
from patience import Patience

from fencepost.adapters.probe import MS, Prober, ProbeResult, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_kinds import open_prober
from fencepost.adapters.probe_schedule import phases

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

PATIENCE_S = 20.0
"""How long a test waits for what must come; nothing is decided by it unless it never comes."""

SOON = min(map(str, range(500)), key=lambda key: phases([key], "a", 10**9)[key])
"""A key whose first probe comes early in its interval, so that tests needn't wait for one."""


class Server(asyncio.Protocol):
    """Answers each connection with the bytes that `says` holds now; None is silence."""

    asked: list[bytes]
    says: bytes | None
    then_close: bool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        type(self).asked.append(data)
        if self.says is not None:
            self.transport.write(self.says)
        if self.then_close:
            self.transport.close()


@asynccontextmanager
async def serving(
    says: bytes | None, address: str = "127.0.0.1", *, port: int = 0, then_close: bool = False
) -> AsyncIterator[tuple[type[Server], int]]:
    """A server on a free port; its class can be told to say something else."""
    server_class = type("AServer", (Server,), {"asked": [], "says": says, "then_close": then_close})
    server = await asyncio.get_running_loop().create_server(server_class, address, port)
    try:
        yield server_class, server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Results(list[ProbeResult]):
    """Gathers results and lets a test wait for what it needs."""

    def of(self, key: str) -> list[ProbeResult]:
        return [result for result in self if result[0] == key]

    def known(self) -> list[ProbeResult]:
        """Those that say something of their target: a busy machine makes some late."""
        return [result for result in self if result[1] is not None]

    async def until(self, enough: Callable[[Results], object]) -> None:
        patience = Patience(PATIENCE_S)
        while not enough(self):
            assert not patience.over(), f"never came; results were {self[-10:]}"
            await asyncio.sleep(0.005)


@asynccontextmanager
async def probing(targets: Iterable[ProbeTarget], settings: ProbeSettings) -> AsyncIterator[tuple[Prober, Results]]:
    results = Results()
    prober = open_prober(settings, results.extend, salt="a")
    prober.set_targets(targets)
    prober.start()
    try:
        yield prober, results
    finally:
        prober.stop()


def quick(port: int = 1, **more: object) -> ProbeSettings:
    """Settings with short times."""
    return ProbeSettings(**{"port": port, "path": "/healthz", "interval_ns": 100 * MS, "timeout_ns": 60 * MS, **more})  # type: ignore[arg-type]


def patient(port: int = 1, **more: object) -> ProbeSettings:
    """Settings whose timeout is long enough that only silence runs into it, and a result comes soon all the same."""
    return quick(port, **{"interval_ns": 2_100 * MS, "timeout_ns": 2_000 * MS, **more})


@contextmanager
def listening(backlog: int = 64) -> Iterator[int]:
    """A port that accepts connections in the kernel only: nobody ever answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        yield listener.getsockname()[1]


def closed_port() -> int:
    """A port where nothing listens."""
    return free_port()
