"""The API: it answers whatever is down, shows to all, and is told something only by who holds the token."""

import asyncio
import http.client
import itertools
import json
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.record_set import content
from fencepost.core.store import Head, Order, Plan, Row
from fencepost.core.traffic.membership import Member, Membership, OverrideKind, State
from fencepost.core.zone import Live
from fencepost.ports import HistoryRow, Inputs, Misconfigured, Unavailable
from fencepost.roles import configuration, overrides
from fencepost.roles.api import run_api
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status import decode
from fencepost.roles.status.listening import holder, listen, read_token
from fencepost.roles.status.rejected import clear_rejected, put_rejected
from fencepost.settings import Region, load
from fencepost.settings.schema import HostPort, Secret
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

SAMPLE = Path(__file__).parents[2] / "src/fencepost/dev/sample.toml"
NAME = "api.example.test"
VALUE = content(["127.0.1.1", "127.0.1.2"], 5)


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


class Store(ReferenceStore):
    """A store that can be taken away, or made to hang."""

    def __init__(self) -> None:
        numbers = itertools.count()
        super().__init__("beef" * 8, lambda: f"{next(numbers):08x}", pause)
        self.gone = False
        self.hangs = False

    async def inputs(self) -> Inputs:
        if self.gone:
            raise Unavailable("the store file is gone", where="demo.db", hint="start the planner")
        if self.hangs:
            await asyncio.Event().wait()
        return await super().inputs()


class Dns(ReferenceDns):
    """A provider that can be taken away."""

    gone = False

    async def read(self) -> Collection[str]:
        if self.gone:
            raise Unavailable("no answer within 2 s", where="127.0.0.1:5300")
        return await super().read()

    def names(self) -> Iterable[str]:
        return super().names()


class World:
    """A region's store and DNS with one endpoint live, and an API on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sample = load(SAMPLE, {})
        api = structs.replace(sample.api, listen=HostPort("127.0.0.1", 0), token=Secret(str(folder / "api.token")))
        nowhere = structs.replace(sample.dns, listen=HostPort("127.0.0.1", 1))
        self.region: Region = structs.replace(sample, api=api, dns=nowhere)
        self.store = Store()
        self.domain = ReferenceDomain("example.test")
        self.dns = Dns(self.domain, pause)
        self.port = 0

    async def fill(self) -> None:
        await configuration.put(self.store, self.region)
        members = tuple(Member(key, "a", State.IN, 1, healthy=True, served=True) for key in VALUE.a)
        await self.store.put_membership("web", 0, msgspec.json.encode(Membership("web", 1, members=members)))
        row = Row.of(NAME, Generation(0, 1), VALUE, families="4")
        snapshot = (await self.store.inputs()).snapshot
        head = await self.store.publish(Plan(await self.store.head(), 1, snapshot, (row,)))
        assert isinstance(head, Head)
        self.domain.set(Live(NAME, Marker.of("demo", head.mark, row.generation, VALUE, None, 1), VALUE.a, (), 5))
        await self.store.note([HistoryRow("fenced", NAME, "enactor/a", "plan 20, live is 21", time.time_ns())])

    def listens(self, place: HostPort, ready: asyncio.Event) -> None:
        self.port = place.port
        ready.set()

    def run(self, work: Callable[["World"], Awaitable[None]], *, store: bool = True) -> None:
        """Do ``work`` while the API serves."""

        async def serving() -> None:
            await self.fill()
            ready = asyncio.Event()
            task = asyncio.create_task(
                run_api(
                    self.region,
                    self.store if store else None,
                    {"example.test": self.dns},
                    self.folder,
                    ready=lambda place: self.listens(place, ready),
                )
            )
            try:
                await ready.wait()
                await work(self)
            finally:
                task.cancel()
                await asyncio.wait([task])

        asyncio.run(asyncio.wait_for(serving(), 30))

    async def call(
        self, path: str, method: str = "GET", body: bytes | None = None, token: str | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request."""

        def calling() -> tuple[int, bytes, dict[str, str]]:
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
            link.request(method, path, body, {"authorization": f"Bearer {token}"} if token is not None else {})
            reply = link.getresponse()
            found = reply.status, reply.read(), {key.lower(): value for key, value in reply.getheaders()}
            link.close()
            return found

        return await asyncio.to_thread(calling)

    async def json(self, path: str) -> Any:
        status, body, _ = await self.call(path)
        assert status == 200, body
        return json.loads(body)

    def token(self) -> str:
        return (self.folder / "api.token").read_text().strip()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_serves_document_schema_history_metrics_and_page(world: World) -> None:
    """Everything there is to look at, without a token."""

    async def looking(world: World) -> None:
        document = await world.json("/status")
        assert (document["schema"], document["source"], document["plan"]) == ("fencepost.status/1", "api", 1)
        assert document["endpoints"][0]["addresses"] == list(VALUE.a)
        assert document["endpoints"][0]["as_planned"] is True
        assert document["fenced"] == 1
        assert (await world.json("/status/schema"))["$id"] == "fencepost.status/1"
        history = await world.json("/history?most=5")
        assert [(line["kind"], line["on"]) for line in history["rows"]] == [("fenced", NAME)]
        assert (await world.json(f"/history?after={history['rows'][0]['id']}"))["rows"] == []
        assert (await world.json("/history?since=2100-01-01T00:00:00Z"))["rows"] == []
        assert (await world.call("/history?since=soon"))[0] == 422
        status, metrics, headers = await world.call("/metrics")
        assert status == 200
        assert headers["content-type"].startswith("text/plain")
        lines = metrics.decode().splitlines()
        assert f'fencepost_generation{{endpoint="{NAME}"}} 1.0' in lines
        assert "fencepost_fenced_total 1.0" in lines
        assert 'fencepost_targets{pool="web",state="in"} 2.0' in lines
        assert not any(line.startswith('fencepost_generation{endpoint="www') for line in lines), "unknown is left out"
        assert (await world.call("/healthz"))[:2] == (200, b"ok\n")
        assert (await world.call("/nothing"))[0] == 404

    world.run(looking)


def test_the_page_needs_nothing_from_elsewhere_and_escapes_what_it_shows(world: World) -> None:
    """Readable in an outage: one document, no other host named, and nobody's reason becomes markup."""
    nasty = StoredOverride("o1", OverrideKind.KEEP, "web", "127.0.1.1", by="<script>x</script>", reason="a & b")

    async def looking(world: World) -> None:
        await world.store.put_override("o1", overrides.encode(nasty))
        await asyncio.sleep(0.35)
        status, body, headers = await world.call("/")
        page = body.decode()
        assert status == 200
        assert "<script>x" not in page
        assert "&lt;script&gt;x&lt;/script&gt;" in page
        assert "a &amp; b" in page
        assert not re.search(r"(?:src|href)\s*=|https?:", page)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert NAME in page
        assert "prefers-color-scheme: dark" in page

    world.run(looking)


def test_it_answers_while_the_store_is_away(world: World) -> None:
    """Looking commands work in the outage: what was last known, its age, and what DNS says now."""

    async def looking(world: World) -> None:
        await world.json("/status")
        world.store.gone = True
        await asyncio.sleep(0.35)
        world.domain.set(Live(NAME, world.domain.lives[NAME].marker, (), (), 0))
        document = await world.json("/status")
        assert document["source"] == "dns"
        assert document["endpoints"][0]["addresses"] == [], "DNS as it is now"
        assert document["pools"][0]["in"] == 2, "pools as last known"
        assert document["ages"]["store_s"] > 0
        assert {"store-unavailable", "empty-now"} <= {problem["id"] for problem in document["problems"]}
        status, body, _ = await world.call("/orders", "POST", msgspec.json.encode(ORDER), world.token())
        assert status in (202, 503), body

    world.run(looking)


def test_it_answers_while_the_store_hangs(world: World) -> None:
    """A store that neither answers nor fails holds up nobody: the last document comes, aged, within its patience."""

    async def looking(world: World) -> None:
        first = await world.json("/status")
        world.store.hangs = True
        await asyncio.sleep(0.35)
        began = time.monotonic()
        document = await world.json("/status")
        assert time.monotonic() - began < 8
        assert document["at"] > first["at"]
        assert document["ages"]["store_s"] >= 0.3
        assert (await world.call("/healthz"))[0] == 200

    world.run(looking)


def test_it_answers_while_dns_is_away(world: World) -> None:
    """The provider is down: what is planned is known, what stands is as last read, and the problem is named."""

    async def looking(world: World) -> None:
        await world.json("/status")
        world.dns.gone = True
        await asyncio.sleep(0.35)
        document = await world.json("/status")
        assert document["source"] == "api"
        assert document["endpoints"][0]["generation"] == 1
        assert "dns-unavailable" in {problem["id"] for problem in document["problems"]}
        assert document["promises"]["never_empty"]["held"] is None, "the observer gets no answer, so it claims nothing"
        assert document["observed"]["looks"] == 0

    world.run(looking)


def test_without_a_store_it_shows_what_dns_says(world: World) -> None:
    """An API started while the store can't be opened is of use all the same."""

    async def looking(world: World) -> None:
        document = await world.json("/status")
        assert (document["source"], document["plan"]) == ("dns", None)
        assert document["endpoints"][0]["generation"] == 1
        assert (await world.call("/history"))[0] == 503

    world.run(looking, store=False)


ORDER = Order("o-1", "withdraw", "API.example.test.", by="ops", reason="moved away")


def test_a_change_takes_the_token(world: World) -> None:
    """No token, another token, or the right one; the token's file is its user's alone."""

    async def telling(world: World) -> None:
        body = msgspec.json.encode(ORDER)
        for token in (None, "", "x" * 43, world.token() + "x"):
            status, answer, headers = await world.call("/orders", "POST", body, token)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert json.loads(answer)["error"]["kind"] == "Refused"
        assert (await world.store.inputs()).orders == ()
        status, answer, _ = await world.call("/orders", "POST", body, world.token())
        assert (status, json.loads(answer)) == (202, {"accepted": "o-1", "on": NAME})
        assert [order.name for order in (await world.store.inputs()).orders] == [NAME], "in its one form"
        [row] = [row for row in await world.store.history() if row.kind == "operator"]
        assert (row.on, row.by, row.text) == (NAME, "ops", "withdraw: moved away")
        assert (await world.call("/orders"))[0] == 405
        assert os.stat(world.folder / "api.token").st_mode & 0o777 == 0o600

    world.run(telling)


BAD_ORDERS = [
    structs.replace(ORDER, name="other.example.test"),
    structs.replace(ORDER, name="not a name!"),
    structs.replace(ORDER, by=""),
    structs.replace(ORDER, reason=" "),
    structs.replace(ORDER, id=""),
    structs.replace(ORDER, kind="rollback"),
    structs.replace(ORDER, kind="adopt"),
    structs.replace(ORDER, kind="adopt", adopt="none"),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, a=("garbage",))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, a=("0.0.0.0",))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, weights=(1, 999))),
    structs.replace(ORDER, kind="rollback", content=structs.replace(VALUE, ttl=-1)),
    structs.replace(ORDER, kind="rollback", content=content(["::1"], 5)),
    structs.replace(ORDER, until_s=1),
    structs.replace(ORDER, until_s=2**33),
    structs.replace(ORDER, kind="release"),
    structs.replace(ORDER, kind="release", hold=1),
    structs.replace(ORDER, kind="release", hold=10**18),
    structs.replace(ORDER, reason="\x1b[2Jboo"),
    structs.replace(ORDER, reason="x" * 501),
]
WORD = StoredOverride("w-1", OverrideKind.DRAIN, "web", "127.0.1.1", by="ops", reason="disk")
BAD_WORDS = [
    structs.replace(WORD, pool="wbe"),
    structs.replace(WORD, target="192.0.2.1"),
    structs.replace(WORD, target="", zone="z"),
    structs.replace(WORD, until=1),
    structs.replace(WORD, by=""),
    structs.replace(WORD, until=10**19),
    structs.replace(WORD, zone="a"),
    structs.replace(WORD, target="", pool=""),
    structs.replace(WORD, target=""),
    structs.replace(WORD, target="", pool="", what=OverrideKind.OBSERVE),
    structs.replace(WORD, by="ops\nnote"),
    structs.replace(WORD, id="\u202e"),
]


def test_nonsense_is_refused_with_a_reason(world: World) -> None:
    """Unknown names, no author, no reason, a rollback to nothing, an end in the past, too much, not JSON."""

    async def telling(world: World) -> None:
        bodies = [("/orders", msgspec.json.encode(order)) for order in BAD_ORDERS]
        bodies += [("/overrides", msgspec.json.encode(word)) for word in BAD_WORDS]
        bodies += [("/orders", b"{"), ("/overrides", b"[]"), ("/orders", b" " * 70_000)]
        for path, body in bodies:
            status, answer, _ = await world.call(path, "POST", body, world.token())
            assert status == 422, body
            error = json.loads(answer)["error"]
            assert all(error[part] for part in ("what", "where", "hint")), error
        inputs = await world.store.inputs()
        assert (inputs.orders, inputs.overrides) == ((), {})

    world.run(telling)


def test_an_override_is_placed_and_shown(world: World) -> None:
    """A drain by POST stands in the store and in the next document."""

    async def telling(world: World) -> None:
        status, _, _ = await world.call("/overrides", "POST", msgspec.json.encode(WORD), world.token())
        assert status == 202
        stored = overrides.decode((await world.store.inputs()).overrides["w-1"])
        assert stored.placed_at > 0
        await asyncio.sleep(0.35)
        [shown] = decode((await world.call("/status"))[1]).overrides
        assert (shown.what, shown.on, shown.by, shown.reason) == ("drain", "127.0.1.1", "ops", "disk")
        assert shown.until is None

    world.run(telling)


def test_a_listing_is_stored_in_order_and_a_release_up_to_what_stands(world: World) -> None:
    """The fence compares digests, so one set has one form; a release of holds to come would end each of them."""
    held = Hold("rollback", 1_700_000_000)
    row = Row.of(NAME, Generation(held.id, 2), VALUE, held, families="4")

    async def telling(world: World) -> None:
        listed = structs.replace(VALUE, a=("127.0.1.2", "127.0.1.1", "127.0.1.2"))
        order = structs.replace(ORDER, kind="rollback", content=listed)
        assert (await world.call("/orders", "POST", msgspec.json.encode(order), world.token()))[0] == 202
        assert [order.content for order in (await world.store.inputs()).orders] == [VALUE]
        head = await world.store.head()
        assert await world.store.publish(Plan(head, 2, (await world.store.inputs()).snapshot, (row,)))
        await asyncio.sleep(0.35)
        over = structs.replace(ORDER, id="o-2", kind="release", hold=held.id + 1)
        status, answer, _ = await world.call("/orders", "POST", msgspec.json.encode(over), world.token())
        assert status == 422
        assert f"what stands is the rollback {held.id}" in json.loads(answer)["error"]["what"]
        release = structs.replace(over, hold=held.id)
        assert (await world.call("/orders", "POST", msgspec.json.encode(release), world.token()))[0] == 202

    world.run(telling)


def test_a_word_about_a_whole_pool_or_region_takes_its_name(world: World) -> None:
    """As on the command line: what empties a pool, or stops all removals, isn't one slip away."""

    async def telling(world: World) -> None:
        whole = {"id": "w-2", "what": "observe", "by": "ops", "reason": "a look", "confirmed": world.region.name}
        assert (await world.call("/overrides", "POST", json.dumps(whole).encode(), world.token()))[0] == 202
        stored = overrides.decode((await world.store.inputs()).overrides["w-2"])
        assert (stored.on, stored.what) == ("the region", OverrideKind.OBSERVE)
        pool = whole | {"id": "w-3", "what": "drain", "pool": "web"}
        assert (await world.call("/overrides", "POST", json.dumps(pool).encode(), world.token()))[0] == 422
        pool["confirmed"] = "web"
        assert (await world.call("/overrides", "POST", json.dumps(pool).encode(), world.token()))[0] == 202

    world.run(telling)


ASKED = [
    "after=1" + "0" * 24,
    "since=" + "9" * 26,
    "since=0001-01-01T00:00:00Z",
    "since=0001-01-01",
    "since=9999-99-99",
]
ASKED += ["since=%C2%B2", "most=1e9", "after=%D9%A3", "since=9999-12-31T23:59:59-23:59", "after=", "most=" + "9" * 5000]


def test_a_history_beyond_all_numbers_is_refused(world: World) -> None:
    """SQLite counts in 64 bits, calendars from year 1 to 9999; neither is a defect of ours when it is passed."""

    async def asking(world: World) -> None:
        for query in ASKED:
            status, answer, _ = await world.call(f"/history?{query}")
            assert status == 422, query
            assert json.loads(answer)["error"]["where"] == query.partition("=")[0]
        assert (await world.call("/history?after=-1&most=-5&since=2020-01-01T00:00:00Z"))[0] == 200

    world.run(asking)


def test_a_refused_configuration_is_shown_until_one_is_loaded(world: World) -> None:
    """Who reloads writes the finding; status leads with it."""

    async def telling(world: World) -> None:
        await put_rejected(world.store, 'region.toml:3: unknown key "nmae"', time.time_ns())
        await asyncio.sleep(0.35)
        assert (await world.json("/status"))["config"]["rejected_at"] is not None
        await clear_rejected(world.store)
        await asyncio.sleep(0.35)
        assert (await world.json("/status"))["config"]["rejected_at"] is None

    world.run(telling)


def test_a_port_that_is_taken_is_refused_with_its_holder() -> None:
    """A bare "address in use" helps nobody; the process that has it does."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=rf"the port is taken, by \S.* \({os.getpid()}\)"):
            listen(HostPort("127.0.0.1", port))
        assert f"({os.getpid()})" in holder(port)
    assert holder(port) == ""
    with pytest.raises(Misconfigured, match="no place to listen"):
        listen(HostPort("no.such.name.invalid", 80))


def test_a_token_others_can_read_is_refused(world: World) -> None:
    """A secret that others can read is none."""
    assert read_token(world.region) == read_token(world.region) == world.token()
    (world.folder / "api.token").chmod(0o644)
    with pytest.raises(Misconfigured, match="can be read or changed by others"):
        read_token(world.region)
