"""The API: it answers whatever is down, shows to all, and is told something only by who holds the token."""

import asyncio
import json
import os
import re
import socket
import time
from pathlib import Path

import msgspec
import pytest
from api_running import NAME, ORDER, VALUE, World
from free_ports import free_port
from patience import patient

from fencepost.core.traffic.membership import OverrideKind
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured
from fencepost.roles import overrides
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.listening import listen, read_token
from fencepost.roles.status.port_holder import port_holder
from fencepost.roles.status.rejected import clear_rejected, put_rejected
from fencepost.settings.schema import HostPort, Secret


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
        await world.anew()
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
        world.domain.set(Live(NAME, world.domain.lives[NAME].marker, (), (), 0))
        await world.anew()
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
        assert time.monotonic() - began < patient(8)
        assert document["at"] > first["at"]
        assert document["ages"]["store_s"] >= 0.3
        assert (await world.call("/healthz"))[0] == 200

    world.run(looking)


def test_it_answers_while_dns_is_away(world: World) -> None:
    """The provider is down: what is planned is known, what stands is as last read, and the problem is named."""

    async def looking(world: World) -> None:
        await world.json("/status")
        world.dns.gone = True
        await world.anew()
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
        await world.anew()
        assert (await world.json("/status"))["config"]["rejected_at"] is not None
        await clear_rejected(world.store)
        await world.anew()
        assert (await world.json("/status"))["config"]["rejected_at"] is None

    world.run(telling)


def test_a_port_that_is_taken_is_refused_with_its_holder() -> None:
    """A bare "address in use" helps nobody; the process that has it does."""
    with socket.socket() as taken:
        port = free_port()  # none of the system's own range, or another may have it once it is closed
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(Misconfigured, match=rf"the port is taken, by \S.* \({os.getpid()}\)"):
            listen(HostPort("127.0.0.1", port))
    assert port_holder("127.0.0.1", port) is None
    with pytest.raises(Misconfigured, match="no place to listen"):
        listen(HostPort("no.such.name.invalid", 80))


def test_a_token_others_can_read_is_refused(world: World) -> None:
    """A secret that others can read is none."""
    assert read_token(world.region) == read_token(world.region) == world.token()
    (world.folder / "api.token").chmod(0o644)
    with pytest.raises(Misconfigured, match="can be read or changed by others"):
        read_token(world.region)


def test_a_token_is_not_made_where_its_folder_is_away(world: World) -> None:
    """Unmounted or moved: the folder isn't made anew, since the store may belong there too."""
    away = world.folder / "away"
    api = msgspec.structs.replace(world.region.api, token=Secret(file=str(away / "api.token")))
    with pytest.raises(Misconfigured, match=r"can't be made: [Nn]o such file"):
        read_token(msgspec.structs.replace(world.region, api=api))
    assert not away.exists()
