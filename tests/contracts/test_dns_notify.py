"""NOTIFY (RFC 1996): it ends a wait at once, is answered properly, and a forged one costs one question at most."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator

import dns.flags
import dns.message
import dns.opcode
import dns.tsigkeyring
import msgspec
import pytest
from dns_scene import DOMAIN, standing
from dns_stages import ServerStage
from relay import Relay
from servers import KEY_NAME, KEY_SECRET, Served, bind, embedded, knot, powerdns

from fencepost.adapters import dns_rfc2136
from fencepost.adapters.dns_notify import LOOKS_APART_S
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.core.zone import Live

NAME = "told.example.test"
KEYRING = dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET})


@pytest.fixture(scope="module", params=[bind, knot, powerdns, embedded], ids=["bind", "knot", "powerdns", "embedded"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that sends NOTIFY to one port."""
    make: Callable[..., object] = request.param
    with make(tmp_path_factory.mktemp("notify")) as running:  # type: ignore[attr-defined]
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


def listening(stage: ServerStage, *, port: int = 0, server: int = 0) -> Rfc2136Dns:
    """A port that listens there, and asks that server."""
    settings = stage.settings()
    return Rfc2136Dns(
        msgspec.structs.replace(settings, notify=("127.0.0.1", port), server=("127.0.0.1", server or stage.served.port))
    )


def test_notify_ends_a_wait(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for the serial only each hour, a wait still ends when the server says that something changed."""
    monkeypatch.setattr(dns_rfc2136, "POLL_S", 3600.0)

    async def act() -> None:
        port = listening(stage, port=stage.served.notify_port)
        try:
            assert port.notify_address is None
            assert await port.listen() == port.notify_address == ("127.0.0.1", stage.served.notify_port)
            await stage.hand(Live(NAME))
            await port.read()
            for number in (1, 2):
                waiting = asyncio.ensure_future(port.wait(3600 * SECOND))
                await asyncio.sleep(0)
                await stage.hand(standing(NAME, number, "192.0.2.1"))
                await asyncio.wait_for(waiting, 30)
                assert list(await port.read()) == [NAME]
        finally:
            await port.close()

    stage.run(act)


def notify(*, key: bool) -> dns.message.Message:
    """A NOTIFY about the domain."""
    message = dns.message.make_query(DOMAIN, "SOA")
    message.set_opcode(dns.opcode.NOTIFY)
    message.flags = dns.opcode.to_flags(dns.opcode.NOTIFY) | dns.flags.AA
    if key:
        message.use_tsig(KEYRING)
    return message


async def exchange(address: tuple[str, int], wire: bytes, *, answered: bool = True) -> bytes:
    """Send a datagram and take its answer."""
    loop = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.connect(address)
        await loop.sock_sendall(sender, wire)
        return await asyncio.wait_for(loop.sock_recv(sender, 4096), 10) if answered else b""


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize("key", [False, True], ids=["plain", "signed"])
def test_notify_is_answered(stage: ServerStage, key: bool, tcp: bool) -> None:
    """RFC 1996 section 4.7: the same id, opcode and question, QR and AA, no error; signed if it was (RFC 8945)."""

    async def act() -> None:
        port = listening(stage)
        try:
            sent = notify(key=key)
            wire = sent.to_wire()
            if tcp:
                reader, writer = await asyncio.open_connection(*await port.listen())
                writer.write(len(wire).to_bytes(2, "big") + wire)
                reply = (await reader.read())[2:]
                writer.close()
            else:
                reply = await exchange(await port.listen(), wire)
            answer = dns.message.from_wire(reply, keyring=KEYRING, request_mac=sent.mac if key else b"")
            assert (answer.id, answer.opcode(), answer.rcode()) == (sent.id, dns.opcode.NOTIFY, 0)
            assert answer.question == sent.question
            assert answer.flags & dns.flags.QR
            assert answer.flags & dns.flags.AA
            assert answer.had_tsig is key
        finally:
            await port.close()

    stage.run(act)


def test_forged_notify_costs_one_question(stage: ServerStage) -> None:
    """Hundreds of NOTIFY messages from anybody: the wait goes on, and the server is asked at most 20 times a second."""

    async def act() -> None:
        relay = await Relay(stage.served.port).start()
        port = listening(stage, server=relay.port)
        try:
            await port.read()
            address = await port.listen()
            relay.asked_udp, started = 0, time.monotonic()
            waiting = asyncio.ensure_future(port.wait(400 * MILLISECOND))
            bad = notify(key=True).to_wire()
            junk = (b"", b"\0", notify(key=False).to_wire()[:20], bad[:-1] + bytes((bad[-1] ^ 1,)), bytes(4096))
            while not waiting.done():
                await exchange(address, notify(key=False).to_wire())
                for message in junk:
                    await exchange(address, message, answered=False)
            await waiting
            assert 0 < relay.asked_udp <= (time.monotonic() - started) / LOOKS_APART_S + 2
            assert not await port.read()
        finally:
            await port.close()
            await relay.stop()

    stage.run(act)


def test_wrong_messages_get_no_answer(stage: ServerStage) -> None:
    """A query, a reply, another domain, a bad signature: no answer, so that nobody can be hit by way of us."""

    async def act() -> None:
        port = listening(stage)
        try:
            address = await port.listen()
            other = notify(key=False).to_wire().replace(b"\x07example", b"\x07exampla")
            bad = notify(key=True).to_wire()
            for wire in (
                dns.message.make_query(DOMAIN, "SOA").to_wire(),
                dns.message.make_response(notify(key=False)).to_wire(),
                other,
                bad[:-3] + bytes((bad[-3] ^ 1,)) + bad[-2:],
            ):
                with socket.socket(type=socket.SOCK_DGRAM) as sender:
                    sender.setblocking(False)
                    sender.connect(address)
                    sender.send(wire)
                    sender.send(notify(key=False).to_wire())
                    first = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sender, 4096), 10)
                    assert dns.message.from_wire(first).question[0].name.to_text() == f"{DOMAIN}."
                    assert first[:2] != wire[:2]
        finally:
            await port.close()

    stage.run(act)
