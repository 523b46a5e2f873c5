"""The API: status, history and metrics over HTTP, a page for people, and two guarded ways to say something.

To look, nobody is asked who he is; it listens on loopback by default. To change something takes the bearer token that
lies in a file only its user can read, made on the first start.

It must answer when it is needed most, so it depends on nothing while answering: a task gathers a document each second,
each source with a time limit of its own, and a request that finds the next one slow in coming gets the last, aged.
Callers who don't finish what they began give up their places (:mod:`~fencepost.roles.http_server`).
The observer runs beside it, in the same loop.

Awkward truth: whoever can reach the port reads the region's state, addresses and reasons included.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fencepost.core.store import Order
from fencepost.ports import DnsPort, HistoryRow, Misconfigured, PortError, Refused, StorePort, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles import overrides
from fencepost.roles.http_server import serve
from fencepost.roles.observer import Observer, ObserverSettings, Witness, run_observer
from fencepost.roles.status.document import Status, encode, instant, status_schema, when
from fencepost.roles.status.gather import Gatherer
from fencepost.roles.status.listening import listen, read_token
from fencepost.roles.status.processes import load_processes
from fencepost.roles.status.promise_watch import BROKEN, Broken
from fencepost.roles.told import Word, judged_order, judged_word
from fencepost.settings import Region
from fencepost.settings.schema import HostPort

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from fencepost.roles.fleet.requests import FleetApi

log = logging.getLogger(__name__)

EVERY_S = 1.0
REST = 10
"""A large region's document takes seconds to compose: gathering then rests ten times as long."""
FRESH_S = 0.3
"""A document finished this little ago is served as it is; else a newer one is waited for ..."""
PATIENCE_S = 1.0
"""... so long, and then the last one is served, aged."""
BODY_BYTES = 64 * 1024
HISTORY_MOST = 10_000
READ = "docs/operating/status.md describes what can be sent"


class Desk:
    """Keeps the newest document and gathers the next: one gathering at a time, shared by all who ask."""

    def __init__(self, gatherer: Gatherer, folder: Path) -> None:
        self.gatherer = gatherer
        self.folder = folder
        self.status: Status | None = None
        self._made = 0.0
        self._gathering: asyncio.Task[Status] | None = None

    async def refresh(self) -> Status:
        """Gather a document, or join the gathering under way."""
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.create_task(self._gather())
        return await asyncio.shield(self._gathering)

    async def _gather(self) -> Status:
        self.status = await self.gatherer.gather(load_processes(self.folder))
        self._made = asyncio.get_running_loop().time()
        return self.status

    @property
    def age_s(self) -> float:
        """How long ago the newest document was made."""
        return asyncio.get_running_loop().time() - self._made

    async def current(self) -> Status:
        """A document of now if it can be had soon, else the last one, aged."""
        if self.status is not None and self.age_s < max(FRESH_S, self.gatherer.composing_s):
            return self.status
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S if self.status is not None else None):
                return await self.refresh()
        return self.gatherer.aged(time.time_ns()) or await self.refresh()

    async def run(self) -> None:
        """See to it that no document is older than a second, until cancelled.

        One that a caller had gathered counts: the screen of ``up`` asks each second too, and two gatherings a second
        would be most of what an idle API costs.
        """
        while True:
            if self.status is None or self.age_s >= self.every_s:
                await self.refresh()
            await asyncio.sleep(max(self.every_s - self.age_s, 0.0))

    @property
    def every_s(self) -> float:
        """How old a document may become."""
        return max(EVERY_S, REST * self.gatherer.composing_s)


class Api:
    """What the requests are answered from. ``token`` is what changes ask for."""

    def __init__(self, region: Region, store: StorePort | None, desk: Desk, token: str) -> None:
        self.region = region
        self.store = store
        self.desk = desk
        self.token = token

    async def get_status(self, _: "Request") -> "Response":
        """``GET /status``: the document."""
        return answer(encode(await self.desk.current()))

    async def get_schema(self, _: "Request") -> "Response":
        """``GET /status/schema``: its JSON Schema."""
        return answer(msgspec.json.encode(status_schema()))

    async def get_page(self, _: "Request") -> "Response":
        """``GET /``: the document for people."""
        from fencepost.roles.status.page import POLICY, page

        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store"}
        return answer(page(await self.desk.current()).encode(), "text/html; charset=utf-8", headers=headers)

    async def get_metrics(self, _: "Request") -> "Response":
        """``GET /metrics``: for Prometheus."""
        from fencepost.roles.status.metrics import exposition

        return answer(exposition(await self.desk.current()), "text/plain; version=0.0.4; charset=utf-8")

    async def get_health(self, _: "Request") -> "Response":
        """``GET /healthz``: 200 while documents are being gathered, whatever they say of the region."""
        well = self.desk.status is not None and self.desk.age_s < 30
        return answer(b"ok\n" if well else b"no document for 30 s\n", "text/plain", 200 if well else 503)

    async def get_history(self, request: "Request") -> "Response":
        """``GET /history?after=ID&since=TIME&most=N``: oldest first; TIME is RFC 3339 or nanoseconds since 1970."""
        asked = request.query_params
        most = min(max(1, whole("most", asked.get("most", "1000"))), HISTORY_MOST)
        rows = await self._store().history(
            after=whole("after", asked.get("after", "0")), since=time_of(asked.get("since", "0")), most=most
        )
        lines = [
            {"id": row.id, "at": when(row.at), "kind": row.kind, "on": row.on, "by": row.by, "text": row.text}
            for row in rows
        ]
        return answer(msgspec.json.encode({"schema": "fencepost.history/1", "rows": lines}))

    async def post_order(self, request: "Request") -> "Response":
        """``POST /orders``: a person's order about an endpoint (JSON of ``Order``), left for the planner."""
        order = await self._told(request, Order)
        status = await self.desk.current()
        names = {endpoint.name for endpoint in status.endpoints}
        order = judged_order(order, names, self.desk.gatherer.last, time.time_ns())
        await self._store().put_order(order)
        return await self._done(order.id, order.name, order.by, f"{order.kind}: {order.reason}")

    async def post_override(self, request: "Request") -> "Response":
        """``POST /overrides``: a person's word about targets (JSON of ``Word``), replacing one of its id."""
        placed = judged_word(await self._told(request, Word), self.running(), time.time_ns())
        await self._store().put_override(placed.id, overrides.encode(placed))
        return await self._done(placed.id, placed.on, placed.by, f"{placed.what}: {placed.reason}")

    def running(self) -> Region:
        """The region as it was loaded last."""
        last = self.desk.gatherer.last
        return last.region if last is not None else self.region

    def _store(self) -> StorePort:
        if self.store is None:
            raise Unavailable("this API has no store", hint="start it with one")
        return self.store

    def allow(self, request: "Request") -> None:
        """Raise ``NotAllowed`` for whoever doesn't have the token."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            where = self.region.api.token.file or self.region.api.token.env
            raise NotAllowed("a change takes the token", hint=f"send it as a bearer token; it is in {where}")

    async def _told(self, request: "Request", kind: Any) -> Any:
        """The body, from who may tell us. Raises ``Refused``."""
        self.allow(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > BODY_BYTES:
                raise Refused(f"over {BODY_BYTES} bytes", where="body", hint=READ)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise Refused(
                f"not an {'order' if kind is Order else 'override'}: {error}", where="body", hint=READ
            ) from None

    async def _done(self, ident: str, on: str, by: str, text: str) -> "Response":
        await self.note(HistoryRow("operator", on, by, text, time.time_ns()))
        return answer(msgspec.json.encode({"accepted": ident, "on": on}), status=202)

    async def note(self, row: HistoryRow) -> None:
        """Write who did what into the history, and the log."""
        try:
            await self._store().note([row])
        except PortError as error:
            log.debug("history not stored: %s", error)
        log.info("%s %s by %s", row.on, row.text, row.by)


class NotAllowed(Refused):
    """The token is missing or another."""

    token = True


def whole(name: str, text: str) -> int:
    """A number that the store can count to, 64 bits with a sign. Raises ``Refused``."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or not -(2**63) <= int(text) < 2**63:
        what = f"{text[:40]!r} is no whole number of 64 bits"
        raise Refused(what, where=name, hint="after and most are numbers, since is a time")
    return int(text)


def time_of(text: str) -> int:
    """RFC 3339 or nanoseconds since 1970, as the latter. Raises ``Refused``."""
    if text.isdecimal():
        return whole("since", text)
    try:
        found = instant(text)
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found < 2**63:
        hint = "a time from 1970 on, such as 2026-01-31T12:00:00Z, or nanoseconds"
        raise Refused(f"{text[:40]!r} is no time here", where="since", hint=hint)
    return found


def answer(
    body: bytes, kind: str = "application/json", status: int = 200, headers: Mapping[str, str] | None = None
) -> "Response":
    """A response."""
    from starlette.responses import Response

    return Response(body, status, dict(headers or {"cache-control": "no-store"}), kind)


def failed(_: "Request", error: Exception) -> "Response":
    """A port's error as an answer: what, where, and what to do about it."""
    codes: dict[type[Exception], int] = {Refused: 422, Misconfigured: 500, Unavailable: 503, NotAllowed: 401}
    code = codes.get(type(error), 503)
    told = {"kind": type(error).__name__, "what": str(error), "where": "", "hint": ""}
    if isinstance(error, PortError):
        kind = "Refused" if isinstance(error, Refused) else type(error).__name__
        told = {"kind": kind, "what": error.what, "where": error.doing, "hint": error.advice}
    headers = {"www-authenticate": "Bearer"} if code == 401 else {"cache-control": "no-store"}
    return answer(msgspec.json.encode({"error": told}), status=code, headers=headers)


def application(api: Api, fleet: "FleetApi | None" = None) -> "Starlette":
    """The routes; the fleet's where there is one."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    def route(path: str, endpoint: Callable[["Request"], Awaitable["Response"]], method: str = "GET") -> Route:
        return Route(path, endpoint, methods=[method])

    return Starlette(
        routes=[
            route("/", api.get_page),
            route("/status", api.get_status),
            route("/status/schema", api.get_schema),
            route("/history", api.get_history),
            route("/metrics", api.get_metrics),
            route("/healthz", api.get_health),
            route("/orders", api.post_order, "POST"),
            route("/overrides", api.post_override, "POST"),
            *(fleet.routes() if fleet is not None else ()),
        ],
        exception_handlers={PortError: failed},
    )


async def run_api(
    region: Region,
    store: StorePort | None,
    dns: Mapping[str, DnsPort] | None,
    folder: Path,
    *,
    ready: Callable[[HostPort], None] | None = None,
    witness: Witness | None = None,
    observed: Mapping[str, DnsPort] | None = None,
    fleet: FleetStorePort | None = None,
) -> None:
    """Observe and serve, until cancelled. ``ready`` is told where it listens, once it does.

    ``dns`` are ports of its own, used by nobody else; ``witness`` and ``observed``, ports too, are the observer's: it
    reads them where no DNS server is named to be asked. Raises ``Misconfigured`` if the
    port is taken or the token can't be used.
    """
    token = read_token(region)
    listening = listen(region.api.listen)
    observer = Observer(
        observer_settings(region), witness=witness, ports=observed if region.dns.place is None else None
    )
    desk = Desk(Gatherer(region, store, dns, observer, via="api", folder=str(folder), fleet=fleet), folder)
    notes: asyncio.Queue[Broken] = asyncio.Queue(100)

    def tell(broken: Broken) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            notes.put_nowait(broken)

    try:
        await desk.refresh()
        async with asyncio.TaskGroup() as group:
            group.create_task(run_observer(observer, tell))
            group.create_task(desk.run())
            group.create_task(write_down(store, notes))
            api = Api(region, store, desk, token)
            requests = fleet_api(api, fleet)
            if requests is not None:
                group.create_task(requests.run())
            group.create_task(serve(application(api, requests), listening))
            if ready is not None:
                ready(HostPort(*listening.getsockname()[:2]))
    finally:
        listening.close()


def fleet_api(api: Api, store: FleetStorePort | None) -> "FleetApi | None":
    """The fleet's requests, where there is a fleet."""
    if store is None:
        return None
    from fencepost.roles.fleet.launching import Clocks
    from fencepost.roles.fleet.requests import FleetApi

    clocks = Clocks(time.time_ns, time.monotonic_ns, lambda: secrets.randbits(64))
    return FleetApi(api.running, store, api.allow, api.note, clocks)


async def write_down(store: StorePort | None, notes: "asyncio.Queue[Broken]") -> None:
    """Put each broken promise into the history, as soon as the store takes it."""
    while True:
        broken = await notes.get()
        row = HistoryRow("finding", broken.on, "observer", f"{broken.promise}{BROKEN}{broken.what}", broken.at)
        while store is not None:
            try:
                await store.note([row])
                break
            except PortError as error:
                log.debug("history not stored: %s", error)
                await asyncio.sleep(1)


def observer_settings(region: Region) -> ObserverSettings:
    """Whom the observer asks: the embedded server, or the one that the settings name; nobody, if they name none."""
    at = region.dns.place or HostPort("", 0)
    return ObserverSettings(at.host, at.port, region.owner, region.dns.domains)
