"""The DNS contract on Google Cloud DNS, played by a strict stand-in of its API; its fence, and its reading."""

import asyncio

import pytest
from cloud_dns_fake import error, keyed, record
from cloud_dns_stage import CloudStage
from dns_contract import DnsContract
from dns_scene import DOMAIN, change, standing
from dns_service_contract import DnsServicesRefused

from fencepost.adapters import dns_cloud_dns
from fencepost.adapters.dns_presentation import quoted
from fencepost.core.fence import Marker
from fencepost.core.names import marker_name
from fencepost.core.zone import Live
from fencepost.ports import Unavailable

NAME = "api.example.test"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and pause shortly."""
    monkeypatch.setattr(dns_cloud_dns, "POLL_S", 0.02)
    monkeypatch.setattr("fencepost.adapters.https.PAUSE_MIN_S", 0.001)


@pytest.fixture
def stage() -> CloudStage:
    """A stand-in of its own."""
    return CloudStage()


class TestCloudDnsServices(DnsServicesRefused):
    """SRV records, on the stand-in of Cloud DNS."""


class TestCloudDns(DnsContract):
    """The suite, on the stand-in."""


@pytest.fixture
def direct() -> CloudStage:
    """A stand-in of its own, without any network."""
    return CloudStage(direct=True)


def test_provider_itself_refuses(stage: CloudStage) -> None:
    """A stale write is sent and refused by Cloud DNS, with its own words (external-dns #467); so is a second create."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        one, two = stage.port(), stage.port()
        await one.read()
        await two.read()
        held, other = change(two.live(NAME), 2, "192.0.2.2"), change(Live("new.example.test"), 1, "192.0.2.1")
        assert await one.commit((change(one.live(NAME), 3, "192.0.2.3"),))
        assert await one.commit((other,))
        assert one.last_refusal == ""
        assert not await two.commit((held,))
        assert two.last_refusal == "412 conditionNotMet: Precondition not met for 'entity.change.deletions[0]'"
        assert not await two.commit((other,))
        assert "409 alreadyExists" in two.last_refusal
        await stage.hand(Live("new.example.test"))
        assert not await two.commit((change(one.live("new.example.test"), 2, "192.0.2.2"),))
        assert "404 notFound" in two.last_refusal
        assert "(TXT)' does not exist" in two.last_refusal

    stage.run(act)


def test_race_of_a_hundred(direct: CloudStage) -> None:
    """100 writers, each having seen the same, 100 times: one write each time, and it stands whole."""

    async def act() -> None:
        ports = [direct.port() for _ in range(100)]
        for number in range(1, 101):
            await asyncio.gather(*(port.read() for port in ports))
            wishes = [change(port.live(NAME), number, f"192.0.2.{at}") for at, port in enumerate(ports)]
            before = len(direct.fake.changes)
            done = await asyncio.gather(*(port.commit((wish,)) for port, wish in zip(ports, wishes, strict=True)))
            assert sum(done) == 1
            assert len(direct.fake.changes) == before + 1
            await ports[0].read()
            assert ports[0].live(NAME) == standing(NAME, number, f"192.0.2.{done.index(True)}")

    direct.run(act)


def test_writers_of_different_endpoints_all_come_through(direct: CloudStage) -> None:
    """They meet at the serial: who loses only that writes again, at once, and nothing is written twice."""

    async def act() -> None:
        names = [f"e{at}.example.test" for at in range(6)]
        ports = [direct.port() for _ in names]
        for port in ports:
            await port.read()
        before = len(direct.fake.changes)
        wishes = [change(Live(name), 1, "192.0.2.1") for name in names]
        done = await asyncio.gather(*(port.commit((wish,)) for port, wish in zip(ports, wishes, strict=True)))
        assert all(done)
        assert len(direct.fake.changes) == before + len(names)
        assert direct.fake.sets[f"{DOMAIN}.", "SOA"]["rrdatas"][0].split()[2] == str(1 + len(names))
        assert sum(method == "POST" for method, _ in direct.fake.asked) > len(names)

    direct.run(act)


@pytest.mark.parametrize(("polite", "outcome"), [(True, False), (False, True)])
def test_family_added_in_the_last_moment(direct: CloudStage, polite: bool, outcome: bool) -> None:
    """An AAAA put beside our A just before our change: refused if its writer moved the serial on; else seen next."""

    async def act() -> None:
        await direct.hand(standing(NAME, 1, "192.0.2.1"))
        port = direct.port()
        await port.read()

        def meanwhile() -> None:
            direct.fake.before_write = lambda: None
            come, gone = [record(f"{NAME}.", "AAAA", 30, "2001:db8::7")], []
            if polite:
                soa = direct.fake.sets[f"{DOMAIN}.", "SOA"]
                gone, value = [keyed(soa)], soa["rrdatas"][0].replace(" 1 ", " 2 ")
                come.append(record(f"{DOMAIN}.", "SOA", soa["ttl"], value))
            direct.fake.write(gone, come)

        direct.fake.before_write = meanwhile
        assert await port.commit((change(port.live(NAME), 2, "192.0.2.2"),)) is outcome
        await port.read()
        assert port.live(NAME).aaaa == ("2001:db8::7",)
        assert port.live(NAME).a == (("192.0.2.2",) if outcome else ("192.0.2.1",))
        if not outcome:
            assert "412 conditionNotMet" in port.last_refusal, "the serial gave it away"

    direct.run(act)


def test_reading_costs(direct: CloudStage) -> None:
    """Warm, a read is one request; after a change one; after many, a page of them; never the whole list again."""

    async def act() -> None:
        port = direct.port()
        await port.read()
        for hands, requests in ((0, 1), (1, 1), (5, 2), (150, 4)):
            for at in range(hands):
                await direct.hand(standing(f"h{at}.example.test", at + 1, "192.0.2.1"))
            direct.fake.asked.clear()
            assert len(await port.read()) == hands
            assert direct.fake.asked == [("GET", "changes")] * requests
            await direct.hand(*(Live(f"h{at}.example.test") for at in range(hands)))
            await port.read()

    direct.run(act)


def test_whole_is_listed_again(direct: CloudStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a change list doesn't show is found in time, and after a refusal that the mirror can't explain."""

    async def act() -> None:
        await direct.hand(standing(NAME, 1, "192.0.2.1"), standing("other.example.test", 1, "192.0.2.1"))
        port = direct.port()
        await port.read()
        direct.fake.sets[f"{NAME}.", "A"] = record(f"{NAME}.", "A", 30, "192.0.2.9")  # by resourceRecordSets.patch
        assert not await port.read()
        assert not await port.commit((change(port.live(NAME), 2, "192.0.2.2"),))
        assert list(await port.read()) == [NAME]
        assert port.live(NAME).a == ("192.0.2.9",)
        direct.fake.sets[f"{NAME}.", "A"] = record(f"{NAME}.", "A", 30, "192.0.2.8")
        monkeypatch.setattr(dns_cloud_dns, "RELIST_S", 0.0)
        assert list(await port.read()) == [NAME]
        assert port.live(NAME).a == ("192.0.2.8",)

    direct.run(act)


def test_pages_and_a_listing_that_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pages are one domain; a page refused midway changes nothing in the mirror (external-dns #2071)."""
    stage = CloudStage(direct=True, page=7)

    async def act() -> None:
        lives = [standing(f"n{at}.example.test", 1, "192.0.2.1", "2001:db8::1") for at in range(40)]
        await stage.hand(*lives)
        port = stage.port()
        assert {live.name for live in lives} == set(await port.read())
        assert [port.live(live.name) for live in lives] == lives
        monkeypatch.setattr(dns_cloud_dns, "RELIST_S", 0.0)
        asked = iter(range(100))
        stage.fake.disturb = lambda _method, path: (
            (503, error(503, "backendError", "Backend Error")) if path.endswith("rrsets") and next(asked) == 3 else None
        )
        with pytest.raises(Unavailable, match="503 backendError"):
            await port.read()
        assert [port.live(live.name) for live in lives] == lives
        assert not await port.read()

    stage.run(act)


def test_what_changes_while_the_whole_is_listed_is_known_at_once() -> None:
    """A set on a page that has been read already changes before the last page: the list of changes tells of it."""
    stage = CloudStage(direct=True, page=7)
    lives = [standing(f"n{at}.example.test", 1, "192.0.2.1") for at in range(20)]
    newer = standing("n0.example.test", 2, "192.0.2.2")
    asked = iter(range(100))

    def meanwhile(_method: str, path: str) -> None:
        if path.endswith("rrsets") and next(asked) == 4:
            at = f"{marker_name(newer.name)}."
            assert isinstance(newer.marker, Marker)
            come = [record(f"{newer.name}.", "A", 30, *newer.a), record(at, "TXT", 300, quoted(newer.marker.encode()))]
            stage.fake.write([(f"{newer.name}.", "A"), (at, "TXT")], come)

    async def act() -> None:
        await stage.hand(*lives)
        stage.fake.disturb = meanwhile
        port = stage.port()
        await port.read()
        assert next(asked) > 5, "pages came after it"
        assert port.live(newer.name) == newer
        assert [port.live(live.name) for live in lives[1:]] == lives[1:]

    stage.run(act)
