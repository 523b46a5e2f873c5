"""Route 53, what AWS never says: a captive portal's answers, a listing in circles, a spoilt cache of pages."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from dns_scene import change, standing
from route53_stage import CREDENTIALS, Route53Stage, server, stage

from fencepost.adapters.dns_route53 import Route53Dns, Route53Settings
from fencepost.adapters.dns_route53.names import unquote
from fencepost.core.instant import SECOND
from fencepost.core.zone import Live
from fencepost.ports import Unavailable

__all__ = ["server", "stage"]
NAME = "api.example.test"
SPACE = 'xmlns="https://route53.amazonaws.com/doc/2013-04-01/"'
PORTAL = "<html><body>Please sign in to this network.</body></html>"


def zones(*found: str) -> str:
    """What ListHostedZonesByName says."""
    inside = f"<HostedZones>{''.join(found)}</HostedZones>"
    return f"<ListHostedZonesByNameResponse {SPACE}>{inside}</ListHostedZonesByNameResponse>"


def listed(*sets: str, following: str = "", truncated: bool | None = None) -> str:
    """What ListResourceRecordSets says."""
    more = f"<NextRecordName>{following}</NextRecordName>" if following else ""
    cut = str(bool(following) if truncated is None else truncated).lower()
    return (
        f"<ListResourceRecordSetsResponse {SPACE}><ResourceRecordSets>{''.join(sets)}</ResourceRecordSets>"
        f"<IsTruncated>{cut}</IsTruncated>{more}</ListResourceRecordSetsResponse>"
    )


def a_set(name: str, ttl: str = "30", value: str = "<Value>192.0.2.1</Value>") -> str:
    """A record set."""
    records = f"<ResourceRecords><ResourceRecord>{value}</ResourceRecord></ResourceRecords>"
    return f"<ResourceRecordSet><Name>{name}</Name><Type>A</Type><TTL>{ttl}</TTL>{records}</ResourceRecordSet>"


ZONES = zones("<HostedZone><Id>/hostedzone/Z1</Id><Name>example.test.</Name></HostedZone>")
Answer = Callable[[str, str], str]
"""Of a request's method and path."""


def run(answer: Answer, act: Callable[[Route53Dns], asyncio.Future[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something with a port to a server that answers so, always with status 200."""
    for name, value in (CREDENTIALS | {"AWS_CONFIG_FILE": "/nowhere"}).items():
        monkeypatch.setenv(name, value)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            body = answer(*head.split()[:2]).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        finally:
            writer.close()

    async def work() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        port = Route53Dns(Route53Settings("example.test", "demo", requests=1000.0, endpoint=url, timeout=5 * SECOND))
        try:
            async with asyncio.timeout(20):
                await act(port)
        finally:
            await port.close()
            server.close()

    asyncio.run(work())


def lists(page: str) -> Answer:
    """The zone is found, and the listing is this."""
    return lambda _method, path: ZONES if "hostedzonesbyname" in path else page


@pytest.mark.parametrize(
    "answer",
    [
        lambda _method, _path: "",
        lambda _method, _path: PORTAL,
        lists(""),
        lists(PORTAL),
        lists(f"<ListResourceRecordSetsResponse {SPACE}/>"),
        lists(listed(a_set("a.example.test."), truncated=True)),
        lists(listed(a_set("a.example.test.", ttl="soon"))),
        lists(listed(a_set("a.example.test.", ttl="2147483648"))),
        lists(listed(a_set("a.example.test.", ttl="-1"))),
        lists(listed(a_set("a.example.test.", value=""))),
        lists(listed("<ResourceRecordSet><Type>A</Type></ResourceRecordSet>")),
        lists(listed("<ResourceRecordSet><Name>a.example.test.</Name></ResourceRecordSet>")),
        lambda _method, _path: zones("<HostedZone/>"),
    ],
)
def test_an_answer_that_is_none_is_no_answer(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A captive portal says 200 to everything, and botocore makes an empty answer of any XML that it doesn't know."""

    async def act(port: Route53Dns) -> None:
        with pytest.raises(Unavailable, match=r"makes no sense|doesn't say where it goes on"):
            await port.read()

    run(answer, act, monkeypatch)  # type: ignore[arg-type]


def test_a_write_that_a_portal_answers_is_not_taken_for_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outcome is unknown: the mirror doesn't have it, and it is looked up."""

    def answer(method: str, path: str) -> str:
        return PORTAL if method == "POST" else lists(listed())(method, path)

    async def act(port: Route53Dns) -> None:
        await port.read()
        with pytest.raises(Unavailable, match="makes no sense"):
            await port.commit((change(Live("api.example.test"), 1, "192.0.2.1"),))
        await port.read()
        assert port.live("api.example.test").empty

    run(answer, act, monkeypatch)  # type: ignore[arg-type]


def test_a_listing_that_goes_round_in_circles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a to b, and from b to a: found in the pages kept for other roles too, it would be walked without end."""

    def answer(_method: str, path: str) -> str:
        if "hostedzonesbyname" in path:
            return ZONES
        if "name=b" in path:
            return listed(a_set("b.example.test."), following="a.example.test.")
        return listed(a_set("a.example.test."), following="b.example.test.")

    async def act(port: Route53Dns) -> None:
        with pytest.raises(Unavailable, match="again and again"):
            await port.read()

    run(answer, act, monkeypatch)  # type: ignore[arg-type]


def test_a_long_text_takes_no_more_than_its_length() -> None:
    """A TXT value of a megabyte is read by runs, not by characters: that took a hundred times its size."""
    import tracemalloc

    value = '"' + "x" * 1_000_000 + '"'
    tracemalloc.start()
    assert unquote(value) == (b"x" * 1_000_000,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("body", ["garbage", '[{"owner":1}]', None])
def test_a_cache_that_another_version_wrote_stops_nothing(
    stage: Route53Stage, tmp_path: Path, body: str | None
) -> None:
    """The file outlives the role: one that ended on it would end again each time that it is started."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        first = stage.port(folder=tmp_path)
        await first.read()
        assert await first.commit((change(first.live(NAME), 2, "192.0.2.2"),))
        with sqlite3.connect(tmp_path / "route53.db") as db:
            db.execute("update pages set sets = ?", (body,))
            db.execute("update writes set sets = ?", (body,))
        db.close()
        second = stage.port(folder=tmp_path)
        await second.read()
        assert second.live(NAME) == standing(NAME, 2, "192.0.2.2")
        assert await second.commit((change(second.live(NAME), 3, "192.0.2.3"),))

    stage.run(act)


def test_a_page_of_tomorrow_is_not_taken_for_a_fresh_one(stage: Route53Stage, tmp_path: Path) -> None:
    """A clock that was a day ahead dated it, and has been set back: what it lists may be a day old."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        await stage.port(folder=tmp_path).read()
        with sqlite3.connect(tmp_path / "route53.db") as db:
            db.execute("update pages set asked = asked + ?", (86_400 * SECOND,))
        db.close()
        await stage.hand(standing(NAME, 2, "192.0.2.2"))
        later = stage.port(folder=tmp_path)
        await later.read()
        assert later.live(NAME) == standing(NAME, 2, "192.0.2.2")

    stage.run(act)
