"""The stand-in as a server: HTTP in front of an account, with a gate before it and faults around it."""

import asyncio
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from fencepost.dev.route53 import http, keeping
from fencepost.dev.route53.account import Account, HostedZone
from fencepost.dev.route53.documents import document, element, text
from fencepost.dev.route53.faults import Faults
from fencepost.dev.route53.gate import Gate
from fencepost.dev.route53.http import Reply, Request
from fencepost.dev.route53.names import canonical
from fencepost.dev.route53.operations import ACTIONS, CHANGING, route
from fencepost.dev.route53.refusals import ApiError
from fencepost.dev.route53.settings import Route53Settings

if TYPE_CHECKING:
    from fencepost.dev.route53.name_server import NameServer

NANOSECONDS = 1_000_000_000
STARTS_WITHIN_S = 10.0
CALLS_MOST = 100_000
"""How many of the latest calls are remembered."""
log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Route53Server:
    """A Route 53 stand-in on loopback; `account`, `faults` and `gate` may be looked at and changed while it runs."""

    def __init__(self, settings: Route53Settings | None = None) -> None:
        self.settings = settings or Route53Settings()
        self.account = Account(insync_ns=int(self.settings.insync_s * NANOSECONDS))
        self.gate = Gate(self.settings)
        self.faults = Faults()
        self.calls: deque[str] = deque(maxlen=CALLS_MOST)
        self.port = 0
        self.dns_port = 0
        self._host = self.settings.listen.rpartition(":")[0]
        self._data = Path(self.settings.data) if self.settings.data else None
        self._names: NameServer | None = None
        self._stopped = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """What AWS_ENDPOINT_URL_ROUTE_53 is set to."""
        return f"http://{self._host}:{self.port}"

    async def start(self) -> None:
        """Listen. Raises OSError if it can't there, or can't keep its file; ValueError for a `data` file of another."""
        self._loop = asyncio.get_running_loop()
        if self._data is not None:
            keeping.read(self.account, self._data)
        port = int(self.settings.listen.rpartition(":")[2])
        self._server = await asyncio.start_server(self._connected, self._host.strip("[]"), port)
        try:
            self.port = self._server.sockets[0].getsockname()[1]
            for name in self.settings.zones:
                self._ensure(name)
            self._keep()  # not sooner: the file may be that of one which listens there
            await self._answer_dns()
        except (OSError, ValueError):
            await self.stop()
            raise

    async def _answer_dns(self) -> None:
        if self.settings.dns is None:
            return
        from fencepost.dev.route53.name_server import NameServer  # dnspython takes a while to load

        host, _, port = self.settings.dns.rpartition(":")
        self._names = NameServer(self.account)
        await self._names.start(host.strip("[]"), int(port))
        self.dns_port = self._names.port

    async def stop(self) -> None:
        """Stop listening and close what is open."""
        self._stopped.set()
        if self._names is not None:
            await self._names.stop()
        if self._server is not None:
            self._server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()

    async def ended(self) -> None:
        """Wait until it is stopped."""
        await self._stopped.wait()

    def create_zone(self, name: str) -> str:
        """A hosted zone's id; made if there is none of that name. From any thread."""
        return self.within(lambda: self._ensure(name)).id

    def within(self, ask: Callable[[], Answer]) -> Answer:
        """What `ask` answers, called between two requests. From any thread."""
        loop = self._loop
        if loop is None or _running_loop() is loop:
            return ask()

        async def asked() -> Answer:
            return ask()

        return asyncio.run_coroutine_threadsafe(asked(), loop).result(STARTS_WITHIN_S)

    def _ensure(self, name: str) -> HostedZone:
        wanted = canonical(name)
        for zone in self.account.zones.values():
            if zone.name == wanted:
                return zone
        zone = self.account.create(wanted, f"fencepost-dev {wanted}")
        self._keep()
        return zone

    def _keep(self) -> None:
        if self._data is not None:
            keeping.write(self.account, self._data)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._connections.add(task)
        try:
            await http.serve(self._answer, reader, writer)
        except asyncio.CancelledError:
            writer.close()
        finally:
            self._connections.discard(task)

    async def _answer(self, request: Request) -> Reply:
        request_id = str(uuid.uuid4())
        try:
            action, parts = route(request)
            self.calls.append(action)
            self.gate.check(action, request.headers, time.monotonic_ns())
            reply = await self._through_faults(action, request, parts)
            return msgspec.structs.replace(reply, request_id=request_id)
        except ApiError as refusal:
            return _refused(refusal, request_id)
        except Exception:
            log.exception("a defect in the Route 53 stand-in, at %s %s", request.method, request.path)
            return _refused(ApiError("InternalFailure", "a defect in the stand-in", 500), request_id)

    async def _through_faults(self, action: str, request: Request, parts: tuple[str, ...]) -> Reply:
        fault = self.faults.next(action)
        if fault is None:
            return await self._done(action, request, parts)
        if fault.kind == "error":
            raise ApiError(fault.code, fault.message, fault.status)
        if fault.kind == "drop":
            return Reply(ending="lost")
        if fault.kind == "delay":
            await asyncio.sleep(fault.delay_s)
        reply = await self._done(action, request, parts)
        if fault.kind == "late":
            await asyncio.sleep(fault.delay_s)
        return msgspec.structs.replace(reply, ending=fault.kind) if fault.kind in ("lost", "cut") else reply

    async def _done(self, action: str, request: Request, parts: tuple[str, ...]) -> Reply:
        if action != "ChangeResourceRecordSets" or not self.settings.batch_s:
            return self._at_once(action, request, parts)
        zone = self.account.zone(parts[0])
        if zone.busy:
            busy = "The request was rejected because Route 53 was still processing a prior request."
            raise ApiError("PriorRequestNotComplete", busy)
        zone.busy = True
        try:
            await asyncio.sleep(self.settings.batch_s)
            return self._at_once(action, request, parts)
        finally:
            zone.busy = False

    def _at_once(self, action: str, request: Request, parts: tuple[str, ...]) -> Reply:
        reply = ACTIONS[action](self.account, request, parts, time.time_ns())
        if action in CHANGING:
            self._keep()
        return reply


def _refused(refusal: ApiError, request_id: str) -> Reply:
    kind = text("Type", "Receiver" if refusal.receiver else "Sender")
    error = element("Error", kind, text("Code", refusal.code), text("Message", refusal.message))
    body = document("ErrorResponse", error, text("RequestId", request_id))
    return Reply(refusal.status, body, request_id=request_id)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextmanager
def running(settings: Route53Settings | None = None) -> Iterator[Route53Server]:
    """A stand-in in a thread of its own, ended with the block. Raises what `start` does."""
    server, loop = Route53Server(settings), asyncio.new_event_loop()
    stop, ready, failed = asyncio.Event(), threading.Event(), list[Exception]()

    async def serve() -> None:
        try:
            await server.start()
        except (OSError, ValueError) as error:
            failed.append(error)
            return
        finally:
            ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="route53", daemon=True)
    thread.start()
    try:
        if not ready.wait(STARTS_WITHIN_S):
            raise TimeoutError("the Route 53 stand-in didn't start")
        if failed:
            raise failed[0]
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(STARTS_WITHIN_S)
        loop.close()
