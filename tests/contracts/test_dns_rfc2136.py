"""What only the RFC 2136 adapter does: signatures, refusals in words, broken transfers, lost answers, NOTIFY."""

import asyncio
from collections.abc import Iterator

import dns.message
import dns.query
import dns.tsigkeyring
import dns.update
import msgspec
import pytest
from dns_scene import DOMAIN, change, marker, standing
from dns_stages import ServerStage
from free_ports import free_port
from relay import Relay, Spoil
from servers import KEY_NAME, KEY_SECRET, Served, bind

from fencepost.adapters import dns_update
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.zone import Change, Live
from fencepost.ports import Misconfigured, Refused, Unavailable

NAME = "api.example.test"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A BIND that puts each record of a transfer into a message of its own."""
    with bind(tmp_path_factory.mktemp("bind"), options="transfer-format one-answer;") as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


def at(stage: ServerStage, **changes: object) -> Rfc2136Dns:
    """A port whose settings differ."""
    return Rfc2136Dns(msgspec.structs.replace(stage.settings(), **changes))


def test_name_that_is_no_host_name(stage: ServerStage) -> None:
    """BIND refuses an address at a name with an underscore (check-names); the rest of the batch is written without."""

    async def act() -> None:
        port = stage.port()
        await stage.hand(Live(NAME))
        await port.read()
        good, bad = change(port.live(NAME), 1, "192.0.2.1"), change(Live("a_b.example.test"), 1, "192.0.2.1")
        with pytest.raises(Refused):
            await port.commit((good, bad))
        with pytest.raises(Misconfigured) as caught:
            await port.commit((bad,))
        assert "check-names" in caught.value.hint
        assert await port.commit((good,))

    stage.run(act)


def test_nobody_there(stage: ServerStage) -> None:
    """No server: unavailable, for reads, writes and while waiting; the key's secret is in no text."""

    async def act() -> None:
        port = at(stage, server=("127.0.0.1", free_port()), timeout=SECOND // 5)
        for call in (port.read(), port.commit((change(Live(NAME), 1, "192.0.2.1"),))):
            with pytest.raises(Unavailable) as caught:
                await call
            assert KEY_SECRET not in f"{caught.value!s}{caught.value.hint}"
        await port.wait(SECOND // 50)
        await port.close()

    stage.run(act)
    assert KEY_SECRET not in repr(stage.settings())
    with pytest.raises(Misconfigured):
        at(stage, key_secret="not base64!")
    with pytest.raises(Misconfigured):
        at(stage, key_algorithm="hmac-rot13")


def spoilt(count: int, kind: str) -> Spoil:
    """Spoil the answer of that number."""

    def spoil(at: int, message: bytes) -> bytes | None:
        if at != count:
            return message
        if kind == "cut":
            return None
        if kind == "half":
            return message[: len(message) // 2]
        if kind == "refused":
            return message[:3] + bytes((message[3] & 0xF0 | 5,)) + message[4:]
        if kind == "bare-refused":
            return message[:3] + bytes((message[3] & 0xF0 | 5,)) + bytes(8)
        if kind == "flipped":
            return message[:-1] + bytes((message[-1] ^ 1,))
        return message[:2] + message[2:4] + bytes(8)  # nothing in it, not even a signature

    return spoil


@pytest.mark.parametrize("kind", ["cut", "half", "refused", "bare-refused", "flipped", "bare"])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_spoilt_transfer_changes_nothing(stage: ServerStage, kind: str, count: int) -> None:
    """A transfer cut off or refused midway isn't a smaller domain (external-dns #2071); the next one works."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        relay = await Relay(stage.served.port).start()
        port, fresh = at(stage, server=("127.0.0.1", relay.port)), at(stage, server=("127.0.0.1", relay.port))
        try:
            await port.read()
            names, serial = set(port.names()), port.serial
            await stage.hand(standing(NAME, 2, "192.0.2.2"))
            port._session.close()  # answers are counted from a connection's start
            relay.spoil = spoilt(count, kind)
            for reader, old in ((fresh, Live(NAME)), (port, standing(NAME, 1, "192.0.2.1"))):
                before = reader.serial
                with pytest.raises((Unavailable, Misconfigured)):
                    await reader._transfer(whole=True)
                assert reader.live(NAME) == old
                assert reader.serial == before
            assert set(port.names()) == names
            assert port.serial == serial
            relay.spoil = lambda _count, message: message
            assert list(await port.read()) == [NAME]
            assert port.live(NAME) == standing(NAME, 2, "192.0.2.2")
        finally:
            await port.close()
            await fresh.close()
            await relay.stop()

    stage.run(act)


@pytest.mark.parametrize("kind", ["cut", "half", "flipped", "bare"])
def test_lost_answer_is_unknown_and_never_sent_again(stage: ServerStage, kind: str) -> None:
    """An update whose answer is lost or can't be trusted: unavailable, sent once; the next read finds it written."""

    async def act() -> None:
        await stage.hand(Live(NAME))
        relay = await Relay(stage.served.port).start()
        port = at(stage, server=("127.0.0.1", relay.port))
        try:
            await port.read()
            port._session.close()
            relay.spoil, before = spoilt(0, kind), len(relay.asked_tcp)
            with pytest.raises(Unavailable) as caught:
                await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
            assert caught.value.where == f"UPDATE of {DOMAIN}: {NAME}, gen none -> 1"
            assert len(relay.asked_tcp) == before + 1
            relay.spoil = lambda _count, message: message
            assert list(await port.read()) == [NAME]
            assert port.live(NAME) == standing(NAME, 1, "192.0.2.1")
        finally:
            await port.close()
            await relay.stop()

    stage.run(act)


def test_only_what_changed_is_read(stage: ServerStage) -> None:
    """Warm, a read is one UDP question; after a change one incremental transfer (RFC 1995), never the whole."""

    async def act() -> None:
        await stage.hand(Live(NAME))
        relay = await Relay(stage.served.port).start()
        port = at(stage, server=("127.0.0.1", relay.port))
        try:
            await port.read()
            relay.asked_udp, relay.asked_tcp = 0, []
            await port.read()
            await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
            await port.read()
            await stage.hand(standing(NAME, 2, "192.0.2.2"))
            await port.read()
            asked = [dns.message.from_wire(message, keyring=False) for message in relay.asked_tcp]
            kinds = [message.question[0].rdtype.name for message in asked]
            assert kinds == ["SOA", "IXFR", "IXFR"]  # an update names its domain as a SOA question
            assert relay.asked_udp == 3
        finally:
            await port.close()
            await relay.stop()

    stage.run(act)


@pytest.mark.parametrize("kind", ["half", "refused", "bare-refused", "flipped", "bare"])
def test_forged_datagram_is_not_believed(stage: ServerStage, kind: str) -> None:
    """A datagram that says REFUSED, or isn't signed well: the serial is asked for again over TCP, and read."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        relay = await Relay(stage.served.port).start()
        port = at(stage, server=("127.0.0.1", relay.port))
        try:
            await port.read()
            relay.spoil_udp, relay.asked_tcp = spoilt(0, kind), []
            assert not await port.read()
            assert len(relay.asked_tcp) == 1
        finally:
            await port.close()
            await relay.stop()

    stage.run(act)


def test_addition_left_out_by_bind_is_found(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """BIND answers NOERROR to an address added beside a CNAME and adds none: read back, told, never taken for done."""

    async def act() -> None:
        await stage.hand(Live(NAME))
        port = stage.port()
        await port.read()
        held = change(port.live(NAME), 1, "192.0.2.1")
        await stage.hand(Live(NAME, other=("CNAME",)))
        monkeypatch.setattr(dns_update, "_requirements", lambda *_: (b"", 0))
        monkeypatch.setattr(dns_update, "_owners", lambda labels, _at: owners_in_full(labels))
        with pytest.raises(Unavailable, match=NAME) as caught:
            await port.commit((held,))
        assert "a CNAME record stands at this name" in caught.value.hint
        assert port.live(NAME) == Live(NAME, held.marker, other=("CNAME",))
        await stage.hand(Live(NAME))

    stage.run(act)


def owners_in_full(labels: str) -> tuple[bytes, bytes, bytes]:
    """Names that point only at the domain, since no prerequisite was there to write them first."""
    own = bytes((len(labels),)) + labels.encode() + b"\xc0\x0c"
    return b"\x0a_fencepost" + own, b"\x0a_fencepost" + own, own


def test_too_big_is_refused_with_the_numbers(stage: ServerStage) -> None:
    """64 KiB a message: an endpoint too big alone, or a batch too big, is refused before anything is sent."""

    async def act() -> None:
        port = stage.port()
        await port.read()
        serial = port.serial
        value = content([f"10.{index >> 8}.{index & 255}.1" for index in range(5000)], 30)
        big = Change(NAME, Live(NAME), marker(1, value), value, "4")
        with pytest.raises(Refused, match=rf"{NAME} is too big .* 0 addresses now and 5000 then.* 65,535") as caught:
            await port.commit((big,))
        assert "more endpoints" in caught.value.hint
        with pytest.raises(Refused, match=r"update of 400 endpoints takes .* bytes"):
            await port.commit(tuple(change(Live(f"e{n}.{DOMAIN}"), 1, "192.0.2.1", "192.0.2.2") for n in range(400)))
        assert not await port.read()
        assert port.serial == serial

    stage.run(act)


def test_families_with_different_ttls_are_seen(stage: ServerStage) -> None:
    """A and AAAA with different TTLs: the one that isn't as published is shown, so that the drift is healed."""

    async def act() -> None:
        good = standing(NAME, 1, "192.0.2.1", "2001:db8::1", ttl=30)
        for four, six in ((30, 300), (300, 30)):
            await stage.hand(Live(NAME, good.marker, good.a, (), four), Live("x.example.test"))
            await stage.hand(good)
            port = stage.port()
            await port.read()
            await _set_ttl(stage, four, six)
            await port.read()
            assert port.live(NAME).ttl == 300
            again = stage.port()
            await again.read()
            assert again.live(NAME) == port.live(NAME)
            assert await port.commit((change(port.live(NAME), 2, "192.0.2.1", "2001:db8::1", ttl=30),))
            await again.read()
            assert again.live(NAME) == port.live(NAME) == standing(NAME, 2, "192.0.2.1", "2001:db8::1", ttl=30)

    stage.run(act)


async def _set_ttl(stage: ServerStage, four: int, six: int) -> None:
    keyring = dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET})
    update = dns.update.UpdateMessage(DOMAIN, keyring=keyring)
    update.replace(f"{NAME}.", four, "A", "192.0.2.1")
    update.replace(f"{NAME}.", six, "AAAA", "2001:db8::1")
    await asyncio.to_thread(dns.query.tcp, update, "127.0.0.1", 10, stage.served.port)
