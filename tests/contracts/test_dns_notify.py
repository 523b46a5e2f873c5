"""NOTIFY (RFC 1996): it ends a wait at once, is answered properly, and a forged one costs one question at most."""

import asyncio
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

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

from fencepost import assembly
from fencepost.adapters import dns_rfc2136
from fencepost.adapters.dns_notify import LOOKS_APART_S, Ear
from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.cli.up_start import refuse_clashes
from fencepost.core.fence import Generation
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured
from fencepost.settings import Region, load

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


@pytest.mark.parametrize("key", [False, True], ids=["plain", "signed"])
def test_domains_share_a_place(key: bool) -> None:
    """A primary is told one address for all domains of a process: NOTIFY wakes the one that it is about, no other."""

    async def act() -> None:
        ear = Ear(("127.0.0.1", 0))
        domains = (DOMAIN, "example.org")
        ports = [
            Rfc2136Dns(Rfc2136Settings(("127.0.0.1", 9), domain, KEY_NAME, KEY_SECRET, "demo"), ear)
            for domain in domains
        ]
        places = {await port.listen() for port in ports}
        assert len(places) == 1
        for at, domain in enumerate(domains):
            await exchange(next(iter(places)), notify(domain, key=key).to_wire())
            heard = [port._listener._heard.is_set() for port in ports]
            assert heard == [number == at for number in range(2)]
            ports[at]._listener._heard.clear()
        await ports[0].close()
        await exchange(next(iter(places)), notify("example.org", key=key).to_wire())
        assert ports[1]._listener._heard.is_set()
        await ports[1].close()
        assert ear.address is None

    asyncio.run(act())


REGION = """
[region]
name = "demo"
[dns]
provider = "rfc2136"
domain = "example.test"
server = "127.0.0.1:{server}"
key = {{ file = "tsig.key" }}
notify = {{ a = "127.0.0.1:{notify}" }}
[pool.web]
probe = "http://:80/"
[pool.web.targets]
a = ["192.0.2.1", "192.0.2.2"]
[[endpoint]]
name = "told.example.test"
pool = "web"
"""


@pytest.fixture
def region(served: Served, tmp_path: Path) -> Region:
    """A region on that server whose file says where NOTIFY is taken."""
    key = tmp_path / "tsig.key"
    key.write_text(f'key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{KEY_SECRET}"; }};\n')
    key.chmod(0o600)
    file = tmp_path / "region.toml"
    file.write_text(REGION.format(server=served.port, notify=served.notify_port))
    return load(file)


async def enacting(region: Region, stage: ServerStage, act: Callable[[Rfc2136Dns], Awaitable[None]]) -> None:
    """A zone's enactor, as ``fencepost run`` makes it, while that is done; its plan is one endpoint's two addresses."""
    store = assembly.open_store(region, create=True)
    head = await store.head()
    row = Row.of(NAME, Generation(0, 9), content(["192.0.2.1", "192.0.2.2"], 30), families="4")
    assert await store.publish(Plan(head, 9, 0, (row,))) is not None
    reader = stage.port()
    task = asyncio.ensure_future(assembly.enactor_main(region, "a")())
    try:
        await asyncio.wait_for(stands(reader), 30)
        await act(reader)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await reader.close()
        await store.close()


async def stands(reader: Rfc2136Dns) -> None:
    """Until the endpoint has its addresses."""
    while True:
        await reader.read()
        if reader.live(NAME).a == ("192.0.2.1", "192.0.2.2"):
            return
        await asyncio.sleep(0.05)


def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but NOTIFY wakes an enactor: the serial is asked for each hour, and no pass comes by itself."""
    monkeypatch.setattr(dns_rfc2136, "POLL_S", 3600.0)
    own = assembly.enactor_settings
    monkeypatch.setattr(
        assembly, "enactor_settings", lambda *args: msgspec.structs.replace(own(*args), idle=3600 * SECOND)
    )


@pytest.mark.parametrize("served", [bind, knot, powerdns], ids=["bind", "knot", "powerdns"], indirect=True)
def test_an_enactor_is_woken_at_the_place_its_file_gives(
    region: Region, stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BIND, Knot and PowerDNS tell it of another writer's emptying, and it heals; it looks at no other time."""
    rarely(monkeypatch)

    async def act() -> None:
        async def empty(reader: Rfc2136Dns) -> None:
            for _ in range(2):
                await stage.hand(Live(NAME))
                await asyncio.wait_for(stands(reader), 30)

        await stage.hand(Live(NAME))
        await enacting(region, stage, empty)

    stage.run(act)


@pytest.mark.parametrize("served", [bind, knot, powerdns], ids=["bind", "knot", "powerdns"], indirect=True)
def test_an_enactor_whose_place_is_taken_goes_on_by_asking(
    region: Region, stage: ServerStage, caplog: pytest.LogCaptureFixture
) -> None:
    """It says by whom, asks for the serial each second, and heals as before: no port is worth a dead enactor."""

    async def act() -> None:
        async def empty(reader: Rfc2136Dns) -> None:
            await stage.hand(Live(NAME))
            await asyncio.wait_for(stands(reader), 30)

        await stage.hand(Live(NAME))
        with socket.socket(type=socket.SOCK_DGRAM) as taker:
            taker.bind(("127.0.0.1", stage.served.notify_port))
            await enacting(region, stage, empty)
        told = f"127.0.0.1:{stage.served.notify_port} is taken, by pid {os.getpid()} "
        assert told in caplog.text
        with pytest.raises(Misconfigured, match=re.escape(told)):
            await asyncio.to_thread(refuse_clashes_while_taken, region, stage.served.notify_port)

    stage.run(act)


def refuse_clashes_while_taken(region: Region, port: int) -> None:
    """What ``fencepost up`` says of a place that another process has."""
    with socket.socket(type=socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", port))
        refuse_clashes(region, assembly.state_folder(region), with_targets=False)


def notify(domain: str = DOMAIN, *, key: bool) -> dns.message.Message:
    """A NOTIFY about a domain."""
    message = dns.message.make_query(domain, "SOA")
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
                good = notify(key=False)
                good.id = int.from_bytes(wire[:2], "big") ^ 1  # drawn, it would now and then be the other's
                with socket.socket(type=socket.SOCK_DGRAM) as sender:
                    sender.setblocking(False)
                    sender.connect(address)
                    sender.send(wire)
                    sender.send(good.to_wire())
                    first = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sender, 4096), 10)
                    assert dns.message.from_wire(first).question[0].name.to_text() == f"{DOMAIN}."
                    assert first[:2] == good.to_wire()[:2] != wire[:2]
        finally:
            await port.close()

    stage.run(act)
