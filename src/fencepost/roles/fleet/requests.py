"""The fleet over HTTP, below ``/v1/fleet``: what there is, launches, and what a person says of hosts and instances.

Reading is free, as everywhere in the API; a change takes the token, a host making itself known too. Everything asked at
once is bounded: a body of half a megabyte, a thousand hosts or instances. Who comes too fast is told when to come back,
in whole seconds: what waits by what is done a second, and a part of that by chance, so that a thousand who were told at
once don't return at once (consul #9469).
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import structs

from fencepost.core.capacity.rows import HostRow, Word
from fencepost.core.instant import SECOND
from fencepost.core.jitter import jitter
from fencepost.core.orders import text_faults
from fencepost.ports import HistoryRow, PortError, Refused, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet import changes
from fencepost.roles.fleet.asking import listening
from fencepost.roles.fleet.launching import Clocks, Launch, Launcher
from fencepost.roles.fleet.refusals import LimitExceeded, Taken, status_of
from fencepost.roles.fleet.registering import PATH as HOSTS_PATH
from fencepost.roles.fleet.registering import Hosted
from fencepost.roles.fleet.view import View
from fencepost.roles.status.document import when
from fencepost.roles.told import refuse
from fencepost.settings import Region
from fencepost.settings.fleet import HOST_NAME, instance_addresses
from fencepost.settings.mistakes import advice
from fencepost.settings.units import NS, spoken
from fencepost.settings.values import UnfitError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

log = logging.getLogger(__name__)

T = TypeVar("T")
CLEAR_EVERY_S = 60.0
BODY_BYTES = 512 * 1024
MANY = 1000
ROOM_MOST = 10_000
RENEWALS = 3
"""A lease lasts so many."""
REGISTERING_MOST = 4000
"""Hosts that may be in the midst of being made known; more are told to come back."""
REGISTERED_A_SECOND = 2000
PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]{1,5})")
READ = "docs/operating/fleet.md describes what can be sent"


class Hosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts that make themselves known."""

    hosts: tuple[Hosted, ...]


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts or instances, by name, and who says something of them."""

    names: tuple[str, ...]
    by: str = ""
    reason: str = ""


class FleetApi:
    """The fleet's requests. ``allow`` raises for whoever may change nothing; ``note`` writes into the history."""

    def __init__(
        self,
        region: Callable[[], Region],
        store: FleetStorePort,
        allow: Callable[["Request"], None],
        note: Callable[[HistoryRow], Awaitable[None]],
        clocks: Clocks,
    ) -> None:
        self.region = region
        self.store = store
        self.allow = allow
        self.note = note
        self.clocks = clocks
        self.view = View(store, clocks.steady)
        self.launcher = Launcher(region, store, self.view, clocks)
        self.registering = 0

    def routes(self) -> list["Route"]:
        """Where they are."""
        from starlette.routing import Route

        def route(path: str, what: Callable[["Request"], Awaitable["Response"]], method: str) -> Route:
            return Route(path, told(what), methods=[method])

        words: dict[str, Word] = {"drain": "drain", "cordon": "cordon", "gone": "gone", "resume": ""}
        return [
            route(HOSTS_PATH, self.get_hosts, "GET"),
            route(HOSTS_PATH, self.post_hosts, "POST"),
            route("/v1/fleet/instances", self.get_instances, "GET"),
            route("/v1/fleet/launch", self.post_launch, "POST"),
            route("/v1/fleet/terminate", self.post_terminate, "POST"),
            route("/v1/fleet/forget", self.post_forget, "POST"),
            *(route(f"/v1/fleet/{name}", self.word(name, word), "POST") for name, word in words.items()),
        ]

    async def run(self) -> None:
        """Delete rows that nobody minds any more, each minute, until cancelled."""
        while True:
            await asyncio.sleep(CLEAR_EVERY_S)
            try:
                count = await self.view.clear(self.clocks.wall())
            except PortError as error:
                log.debug("rows of ended instances not cleared: %s", error)
            else:
                if count:
                    log.info("%d rows of ended instances and old launches cleared", count)

    # Looking.

    async def get_hosts(self, request: "Request") -> "Response":
        """``GET /v1/fleet/hosts?zone=Z&after=NAME&most=N``: by name."""
        await self.view.refresh()
        found = self.view.hosts(self.clocks.wall(), when, request.query_params.get("after", ""))
        rows = ((host.host, host) for host in found if fits(request, zone=host.zone))
        return page(request, "hosts", rows, calibrated=self.view.calibration is not None)

    async def get_instances(self, request: "Request") -> "Response":
        """``GET /v1/fleet/instances?pool=P&host=H&state=S&after=NAME&most=N``: by name."""
        await self.view.refresh()
        found = (
            (each.instance, each)
            for each in self.view.instances(when, request.query_params.get("after", ""))
            if fits(request, pool=each.pool, host=each.host, state=each.state)
        )
        return page(request, "instances", found)

    # Changing.

    async def post_hosts(self, request: "Request") -> "Response":
        """``POST /v1/fleet/hosts``: hosts as their agents say they are; each again whenever it likes."""
        self.allow(request)
        if self.registering >= REGISTERING_MOST:
            backlog = self.registering * SECOND // REGISTERED_A_SECOND
            who = request.client.host if request.client else ""
            after = backlog + jitter(max(backlog, SECOND), who, self.clocks.draw())
            raise LimitExceeded(f"request limit exceeded: {self.registering} hosts are being registered", after)
        asked = await body_of(request, Hosts)
        region = self.region()
        bounded("hosts", len(asked.hosts))
        listed = frozenset(region.fleet.hosts) if region.fleet is not None else frozenset[str]()
        since = self.clocks.wall()
        rows = [structs.replace(judged(host, region, listed), since=since) for host in asked.hosts]
        self.registering += len(rows)
        try:
            changed = await self.register(rows, {host.host: host.incarnation for host in asked.hosts})
        finally:
            self.registering -= len(rows)
        fleet = region.fleet
        renew_s = fleet.renew_ns / NS["s"] if fleet is not None else 0.0
        shards = fleet.shards if fleet is not None else 1
        return answer({"renew_s": renew_s, "shards": shards, "changed": changed})

    async def register(self, rows: Sequence[HostRow], incarnations: Mapping[str, int]) -> int:
        """Make hosts known; how many changed. Raises ``Taken`` for a name whose holder has answered lately.

        Who brings the host's memory along has moved, and is taken at once, unless there is still an agent where the
        host was: then one memory is there twice, and two agents would start the same attempts, each in its turn.
        """
        try:
            return await changes.register(self.store, rows)
        except changes.Elsewhere:
            await self.view.refresh()
        answered, silent = self.view.noted()
        found = ((new, self.view.host(new.host)) for new in rows)
        elsewhere = {
            new.host: row for new, row in found if row is not None and row.at != new.at and row.held(self.view.life)
        }
        moved = {name: row.at for name, row in elsewhere.items() if row.incarnation == incarnations[name]}
        there = await listening(set(moved.values()))
        for name, row in elsewhere.items():
            if name not in moved or moved[name] in there:
                self.refuse_taken(row, answered.get(name), silent=name in silent, copied=name in moved)
        return await changes.register(self.store, rows, {row.host for row in rows})

    def refuse_taken(self, row: HostRow, ago: int | None, *, silent: bool, copied: bool) -> None:
        """Raise ``Taken`` unless a host that holds its lease has been silent for a whole one.

        ``ago`` is how many seconds ago it was noted to answer, which is seldom, by clocks that never jump; ``silent``
        that it didn't since.
        ``copied``: whoever wants its name has its memory.
        """
        fleet = self.region().fleet
        lease = RENEWALS * (fleet.renew_ns if fleet is not None else 0)
        if silent and ago is not None and ago * SECOND > lease:
            return
        since = f" since {when(row.since)}" if row.since else ""
        # No number that changes from one try to the next: the agent says what hinders it once.
        heard = ", which has fallen silent" if silent else ", which answers" if ago is not None else ""
        copy = "; its memory was copied, and is here a second time" if copied else ""
        what = f"{row.host} is the name of the host at {row.at}{since}{heard}{copy}"
        hint = f"name this one otherwise (--host), or end the agent at {row.at}: the name is free once it has been"
        if copied:
            hint = f"end this one and remove its folder (--state), or, if the host moved, end the agent at {row.at}:"
            hint = f"{hint} the name is free at once, or if it is stuck once it has been"
        raise Taken(what, lease, where="hosts", hint=f"{hint} silent for a lease ({spoken(lease)})")

    async def post_launch(self, request: "Request") -> "Response":
        """``POST /v1/fleet/launch``: instances of a pool, once a key."""
        self.allow(request)
        ask = await body_of(request, Launch)
        again = " asked for again" if ask.key and self.launcher.view.launch(ask.key) is not None else ""
        launch = await self.launcher.launch(ask)
        said = f"launch of {len(launch.instances)}{again} (key {launch.name})"
        await self.told_by(ask.pool, ask.by, ask.reason, said)
        return answer({"schema": "fencepost.launch/1", "key": launch.name, "instances": launch.instances}, 202)

    async def post_terminate(self, request: "Request") -> "Response":
        """``POST /v1/fleet/terminate``: these instances are to end."""
        self.allow(request)
        asked = await body_of(request, Named)
        bounded("names", len(asked.names))
        rows = await changes.terminate(self.store, asked.names)
        await self.told_by(", ".join(asked.names[:3]), asked.by, asked.reason, f"terminate {len(rows)}")
        return answer({"instances": {name: row.state for name, row in sorted(rows.items())}}, 202)

    async def post_forget(self, request: "Request") -> "Response":
        """``POST /v1/fleet/forget``: these hosts leave the lists."""
        self.allow(request)
        asked = await body_of(request, Named)
        bounded("names", len(asked.names))
        rows = await changes.forget(self.store, asked.names)
        await self.told_by(", ".join(asked.names[:3]), asked.by, asked.reason, f"forget {len(rows)}")
        return answer({"hosts": sorted(rows)}, 202)

    def word(self, name: str, word: Word) -> Callable[["Request"], Awaitable["Response"]]:
        """``POST /v1/fleet/drain``, ``cordon``, ``gone`` or ``resume``: a person's word about hosts."""

        async def post_word(request: "Request") -> "Response":
            self.allow(request)
            asked = await body_of(request, Named)
            bounded("names", len(asked.names))
            rows = await changes.say(self.store, asked.names, word)
            await self.told_by(", ".join(asked.names[:3]), asked.by, asked.reason, f"{name} {len(rows)}")
            return answer({"hosts": {host: row.word for host, row in sorted(rows.items())}}, 202)

        return post_word

    async def told_by(self, on: str, by: str, reason: str, text: str) -> None:
        """Write who did what and why into the history."""
        said = f"fleet: {text}; reason: {reason}" if reason else f"fleet: {text}"
        await self.note(HistoryRow("operator", on[:200], by[:80] or "api", said[:700], time.time_ns()))


def judged(host: Hosted, region: Region, listed: frozenset[str]) -> HostRow:
    """A host as its row; ``listed`` are all that may be, if any are. Raises ``Refused``."""

    def unfit(what: str, hint: str) -> None:
        raise Refused(f"host {host.host[:80]!r} {what}", where="hosts", hint=hint)

    if not HOST_NAME.fullmatch(host.host):
        unfit("has a name that can't be used", "1 to 63 small letters, digits, hyphens and dots")
    if listed and host.host not in listed:
        near = advice(host.host, sorted(listed)) if len(listed) <= MANY else f"{len(listed)} are named"
        hint = f"{near}; or add it to hosts in [fleet] of {region.path}, and  fencepost reload"
        unfit("isn't one of the hosts that [fleet] names, and no others are taken", hint)
    if host.zone not in region.zones:
        unfit(f"is in zone {host.zone[:40]!r}, which is none of this region's", advice(host.zone, region.zones))
    place = PLACE.fullmatch(host.at)
    if place is None or not is_address(place[1] or place[2]) or not 1 <= int(place[3]) <= 65535:
        unfit(f"is at {host.at[:60]!r}", "an address and a port, like 192.0.2.1:7700")
    if not 0 <= host.room <= ROOM_MOST or len(host.addresses) > ROOM_MOST:
        unfit(f"has room for {host.room}", f"0 to {ROOM_MOST}, and as many addresses at most")
    addresses: tuple[str, ...] = ()
    try:
        addresses = instance_addresses(host.addresses)
    except UnfitError as error:
        unfit(f"gives an address that can't be: {error}", "addresses that callers can be given, each once")
    return HostRow(host.host, host.zone, host.at, host.room, addresses)


def is_address(text: str) -> bool:
    """Whether a text is one IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def bounded(what: str, count: int) -> None:
    """Raise ``Refused`` for nothing at all, or too much at once."""
    if not 1 <= count <= MANY:
        raise Refused(f"{count} at once; 1 to {MANY}", where=what, hint="ask in parts")


def fits(request: "Request", **fields: str) -> bool:
    """Whether something is asked for, by the query's parameters of these names."""
    return all(request.query_params.get(name, value) == value for name, value in fields.items())


def page(request: "Request", what: str, rows: Iterable[tuple[str, Any]], **also: bool) -> "Response":
    """The first so many rows; ``more`` is the name to go on after, "" at the end. Raises ``Refused``."""
    text = request.query_params.get("most", str(MANY))
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= 100_000:
        raise Refused(f"{text[:40]!r} is no number of rows", where="most", hint="1 to 100000")
    found = list(islice(rows, int(text) + 1))  # one more tells whether there are more
    shown = found[: int(text)]
    more = shown[-1][0] if len(shown) < len(found) else ""
    return answer({"schema": f"fencepost.{what}/1", what: [row for _, row in shown], "more": more, **also})


async def body_of(request: "Request", kind: type[T]) -> T:
    """The body. Raises ``Refused``."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES:
            raise Refused(f"over {BODY_BYTES} bytes", where="body", hint=READ)
    try:
        asked = msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"not what is asked for here: {error}", where="body", hint=READ) from None
    said = [fault for name in ("by", "reason") for fault in text_faults(name, getattr(asked, name, ""))]
    refuse(said, "plain text, in one line")
    return asked


def told(what: Callable[["Request"], Awaitable["Response"]]) -> Callable[["Request"], Awaitable["Response"]]:
    """A request whose refusal is said with the fleet's own kinds."""

    async def respond(request: "Request") -> "Response":
        try:
            return await what(request)
        except PortError as error:
            if getattr(error, "token", False):
                raise  # said as everywhere in the API
            return refusal(error)

    return respond


def refusal(error: PortError) -> "Response":
    """An error as an answer, with when to come back where that is known."""
    status, kind = status_of(error)
    said: dict[str, Any] = {"kind": kind, "what": error.what, "where": error.doing, "hint": error.advice}
    headers = {"cache-control": "no-store"}
    if isinstance(error, LimitExceeded):
        headers["retry-after"] = str(error.after_s)
        said["retry_after_s"] = error.after_s
    elif isinstance(error, Taken):
        headers["retry-after"] = str(error.after_s)
    elif type(error) is Unavailable:
        headers["retry-after"] = "1"
    return answer({"error": said}, status, headers)


def answer(document: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> "Response":
    """A document."""
    from starlette.responses import Response

    body = msgspec.json.encode(document)
    return Response(body, status, headers or {"cache-control": "no-store"}, "application/json")
