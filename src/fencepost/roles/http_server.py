"""HTTP on a listening socket, for callers of whom some never finish their question, or never read their answer.

uvicorn ends a connection that idles between two requests, and no other: one that stops in the midst of a header, a
body or an answer is held for ever, and so many of them use up the process's files. So each connection has a time for
what it is at, and there are so many places; at the limit the address that holds most of them gives up the one that has
waited longest. A caller with a whole question has its answer long before that.
"""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)


class Limits(Struct, frozen=True):
    """How many connections there may be, and how long each may take: for a question's header, and from then until its
    answer is read whole. Seconds."""

    connections: int = 128
    header_s: float = 5.0
    exchange_s: float = 60.0
    look_s: float = 0.5


class Visit(Struct):
    """A connection: who it is, the request that it is at (None: before the first) and since when."""

    source: str
    cycle: Any
    complete: bool
    since: float


class Visits:
    """The connections of a server, and what becomes of those that take too long."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.known: dict[Any, Visit] = {}

    def came(self, protocol: Any) -> None:
        """A connection was made: for it, another may have to go."""
        if len(self.known) >= self.limits.connections:
            self.look()
            held = Counter(visit.source for visit in self.known.values())
            worst = min(self.known, key=lambda each: (-held[self.known[each].source], self.known[each].since))
            self.end(worst)
        source = protocol.client[0] if protocol.client else ""
        self.known[protocol] = Visit(source, None, False, asyncio.get_running_loop().time())

    def left(self, protocol: Any) -> None:
        """A connection has ended."""
        self.known.pop(protocol, None)

    def end(self, protocol: Any) -> None:
        """End a connection at once: who doesn't read wouldn't take what is still to be sent either."""
        self.left(protocol)
        protocol.transport.abort()

    def look(self) -> None:
        """End each connection whose time is over."""
        now = asyncio.get_running_loop().time()
        for protocol, visit in list(self.known.items()):
            cycle = protocol.cycle
            complete = cycle is not None and cycle.response_complete and not protocol.transport.get_write_buffer_size()
            if cycle is not visit.cycle or complete is not visit.complete:
                visit.cycle, visit.complete, visit.since = cycle, complete, now
            asks = cycle is None or complete
            if now - visit.since > (self.limits.header_s if asks else self.limits.exchange_s):
                self.end(protocol)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(self.limits.look_s)
            self.look()


def watched(base: Any, visits: Visits) -> Any:
    """A protocol class of uvicorn's whose connections are known to ``visits``."""

    class Watched(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            visits.came(self)

        def connection_lost(self, exc: Exception | None) -> None:
            visits.left(self)
            super().connection_lost(exc)

    return Watched


class Forgiving:
    """An application whose callers may leave before they have said all: nobody is there to be answered then."""

    def __init__(self, app: "Starlette") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request."""
        from starlette.requests import ClientDisconnect

        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            log.debug("a caller left in the midst of %s %s", scope.get("method"), scope.get("path"))


async def serve(app: "Starlette", listening: socket.socket, limits: Limits | None = None) -> None:
    """Serve HTTP on a listening socket, until cancelled. Signals stay the process's own business."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    visits = Visits(limits or Limits())
    config = uvicorn.Config(
        Forgiving(app),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    config.load()
    config.http_protocol_class = watched(config.http_protocol_class, visits)
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    looking = asyncio.create_task(visits.run())
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(serving, 3)
        raise
    finally:
        looking.cancel()
