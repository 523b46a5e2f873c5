"""The DNS contract on PowerDNS, by the RFC 2136 adapter, and where PowerDNS is otherwise than BIND and Knot.

Its database backends give no incremental transfers: a question for one is answered with the whole domain. So the
contract runs twice, the second time with each write verified by asking for the names it wrote.
"""

import socket
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import dns.asyncquery
import dns.message
import dns.opcode
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import msgspec
import pytest
from dns_contract import DnsContract
from dns_scene import DOMAIN, change, standing
from dns_service_contract import DnsServiceContract
from dns_stages import ServerStage
from relay import Relay
from servers import KEY_NAME, KEY_SECRET, READER, Served, powerdns

from fencepost.adapters import dns_rfc2136
from fencepost.adapters.dns_notify import Ear, Listener
from fencepost.adapters.dns_signature import Signer, Unverified
from fencepost.adapters.dns_wire import name_to_wire
from fencepost.core.zone import Live
from fencepost.ports import Refused, Unavailable

NAME = f"api.{DOMAIN}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One PowerDNS for the module."""
    with powerdns(tmp_path_factory.mktemp("powerdns")) as running:
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestPowerDns(DnsContract):
    """The suite, on PowerDNS."""


class TestPowerDnsServices(DnsServiceContract):
    """SRV records beside endpoints, on PowerDNS."""


class TestPowerDnsAskedOneByOne(DnsContract):
    """The suite once more; what a write left behind is never read as a whole, unless it withdraws."""

    @pytest.fixture(autouse=True)
    def one_by_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As if each domain were large."""
        monkeypatch.setattr(dns_rfc2136, "LOOK_UP_WORTH", -1)


def kinds(relay: Relay) -> list[str]:
    """What was asked over TCP."""
    found = [dns.message.from_wire(message, keyring=False) for message in relay.asked_tcp]
    return [
        "UPDATE" if message.opcode() == dns.opcode.UPDATE else dns.rdatatype.to_text(message.question[0].rdtype)
        for message in found
    ]


def test_a_write_in_a_large_domain_costs_no_whole_read(stage: ServerStage) -> None:
    """The names written are asked for, and the serial: it rose by one, so the mirror is up to date. What another
    writes, before or after, is never missed: then the whole is read."""

    async def act() -> None:
        many = [standing(f"many{n}.{DOMAIN}", 1, "192.0.2.1") for n in range(80)]
        await stage.hand(*many)
        relay = await Relay(stage.served.port).start()
        stage.served = msgspec.structs.replace(stage.served, port=relay.port)
        port, other = stage.port(), stage.port()
        try:
            await port.read()
            assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))  # learns what the server gives
            relay.asked_tcp.clear()
            assert await port.commit((change(port.live(NAME), 2, "192.0.2.2", "2001:db8::2"),))
            assert await port.read() == (NAME,)
            assert not await port.read()
            assert kinds(relay) == ["UPDATE", "TXT", "A", "AAAA"]
            assert port.live(NAME) == standing(NAME, 2, "192.0.2.2", "2001:db8::2")

            await other.read()
            assert await other.commit((change(other.live(many[3].name), 2, "192.0.2.3"),))
            relay.asked_tcp.clear()
            assert await port.commit((change(port.live(NAME), 3, "192.0.2.3"),))
            assert set(await port.read()) == {NAME, many[3].name}
            assert kinds(relay) == ["UPDATE", "TXT", "A", "AAAA", "IXFR"]
            assert port.live(many[3].name) == standing(many[3].name, 2, "192.0.2.3")
        finally:
            await relay.stop()
            stage.served = msgspec.structs.replace(stage.served, port=relay.upstream)
            await stage.hand(*(Live(live.name) for live in many))

    stage.run(act)


def test_an_addition_left_out_is_found_by_asking_too(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked one by one, a name at which the server wrote nothing isn't taken for done."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port = stage.port()
        await port.read()
        assert await port.commit((change(port.live(NAME), 2, "192.0.2.2"),))
        monkeypatch.setattr(dns_rfc2136, "LOOK_UP_WORTH", -1)

        async def lies(messages: Iterable[object]) -> list[int]:
            return [0 for _ in messages]

        monkeypatch.setattr(port._session, "updates", lies)
        with pytest.raises(Refused, match="wrote nothing"):
            await port.commit((change(port.live(NAME), 3, "192.0.2.3"),))
        assert port.live(NAME) == standing(NAME, 2, "192.0.2.2")

    stage.run(act)


def test_below_a_delegation_the_whole_is_read(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name below an NS record answers with a referral: that says nothing of what was written, so all is read."""

    async def delegate(*, there: bool) -> None:
        update = dns.update.UpdateMessage(DOMAIN, keyring=dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET}))
        update.delete(f"cut.{DOMAIN}.", "NS")
        if there:
            update.add(f"cut.{DOMAIN}.", 60, "NS", f"ns.{DOMAIN}.")
        assert (await dns.asyncquery.tcp(update, "127.0.0.1", 10, stage.served.port)).rcode() == 0

    async def act() -> None:
        name = f"www.cut.{DOMAIN}"
        await delegate(there=True)
        monkeypatch.setattr(dns_rfc2136, "LOOK_UP_WORTH", -1)
        try:
            port = stage.port()
            await port.read()
            for number in (1, 2):
                assert await port.commit((change(port.live(name), number, "192.0.2.1"),))
                assert port.live(name) == standing(name, number, "192.0.2.1")
        finally:
            await stage.hand(Live(name))
            await delegate(there=False)

    stage.run(act)


def test_a_locked_database_is_an_unknown_outcome_and_passes(stage: ServerStage) -> None:
    """While its SQLite database is locked, by its own notifier even, PowerDNS answers SERVFAIL to an UPDATE. That is
    "read again", nothing was written, and the next try goes through."""
    path = Path(stage.served.directory) / "pdns.sqlite3"

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port = stage.port()
        await port.read()
        held = change(port.live(NAME), 2, "192.0.2.2")
        with sqlite3.connect(path, isolation_level=None) as db:
            db.execute("begin immediate")
            with pytest.raises(Unavailable, match="SERVFAIL") as caught:
                await port.commit((held,))
            assert not caught.value.unchanged
            db.execute("rollback")
        db.close()
        assert not await port.read()
        assert port.live(NAME) == standing(NAME, 1, "192.0.2.1")
        assert await port.commit((held,))

    stage.run(act)


def test_a_serial_by_the_clock_hides_changes_and_the_fence_holds(tmp_path: Path) -> None:
    """SOA-EDIT-DNSUPDATE = EPOCH gives two changes within a second one serial (so the documents say INCREASE). What a
    reader misses so it can't overwrite: the write is refused, and then the whole domain is read."""
    with powerdns(tmp_path, meta={"SOA-EDIT-DNSUPDATE": ("EPOCH",)}) as running:
        stage = ServerStage(running)

        async def act() -> None:
            reader = stage.port()
            for number in range(10, 100):
                await stage.hand(standing(NAME, number, f"192.0.2.{number}"))
                if not await reader.read():
                    break  # it came within the same second as the one before
            assert reader.live(NAME) == standing(NAME, number - 1, f"192.0.2.{number - 1}"), "missed"
            assert not await reader.commit((change(reader.live(NAME), number + 1, "192.0.2.1"),))
            assert await reader.read() == (NAME,)
            assert reader.live(NAME) == standing(NAME, number, f"192.0.2.{number}")

        stage.run(act)


@pytest.mark.parametrize(("keys", "taken"), [((KEY_NAME, READER), True), ((READER, KEY_NAME), False)])
def test_notify_is_signed_with_the_first_key_that_may_transfer(
    tmp_path: Path, keys: tuple[str, ...], taken: bool
) -> None:
    """PowerDNS signs its NOTIFY with the first TSIG-ALLOW-AXFR key (``send-signed-notify``). If that isn't ours it
    isn't taken, and the change is seen when the serial is asked for, each second."""
    with (
        powerdns(tmp_path, meta={"TSIG-ALLOW-AXFR": keys}) as running,
        socket.socket(type=socket.SOCK_DGRAM) as told,
    ):
        told.bind(("127.0.0.1", running.notify_port))
        told.settimeout(30)
        stage = ServerStage(running)
        stage.run(lambda: stage.hand(standing(NAME, 1, "192.0.2.1")))
        wire = told.recv(4096)
        message = dns.message.from_wire(wire, keyring=False)
        assert message.opcode() == dns.opcode.NOTIFY
        assert str(message.keyname).rstrip(".") == keys[0]
        ours = Ear(("127.0.0.1", 0))
        signer = Signer(KEY_NAME, "hmac-sha256", KEY_SECRET)
        ours.listeners[name_to_wire(DOMAIN)] = Listener(ours, name_to_wire(DOMAIN), signer)
        if taken:
            assert ours.heard(wire)[:2] == wire[:2]
        else:
            with pytest.raises(Unverified):
                ours.heard(wire)
