"""The DNS contract on a domain that BIND signs (DNSSEC): RRSIG, NSEC, DNSKEY, CDS and the rest are passed over.

``dnssec-policy default`` signs each change as it is written, and signs anew before signatures run out: the serial then
rises although nobody wrote.
"""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import dns.asyncquery
import dns.message
import dns.query
import dns.rdatatype
import dns.tsigkeyring
import pytest
from dns_contract import DnsContract
from dns_scene import DOMAIN, change, standing
from dns_stages import ServerStage
from free_ports import free_port
from servers import KEY_NAME, KEY_SECRET, Served, bind

from fencepost.core.instant import MILLISECOND
from fencepost.core.zone import Live

NAME = f"api.{DOMAIN}"
ADDED = {"DNSKEY", "NSEC", "RRSIG"}
SIGNED = "dnssec-policy default; inline-signing no;"


@pytest.fixture(scope="module")
def control() -> int:
    """A port for rndc."""
    return free_port()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, control: int) -> Iterator[Served]:
    """One BIND for the module, whose domain is signed."""
    listens = f'inet 127.0.0.1 port {control} allow {{ 127.0.0.1; }} keys {{ "{KEY_NAME}"; }};'
    with bind(tmp_path_factory.mktemp("signed"), extra=SIGNED, controls=listens) as running:
        deadline = time.monotonic() + 30
        while not records(running).keys() >= ADDED:  # it answers before it has signed
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield running


@pytest.fixture
def stage(served: Served) -> ServerStage:
    """Ports on that server."""
    return ServerStage(served)


class TestSigned(DnsContract):
    """The suite, on a signed domain."""


def records(served: Served) -> dict[str, int]:
    """How many records of each type a transfer holds."""
    found: dict[str, int] = {}
    keyring = dns.tsigkeyring.from_text({KEY_NAME: KEY_SECRET})
    for message in dns.query.xfr("127.0.0.1", DOMAIN, port=served.port, keyring=keyring):
        for rrset in message.answer:
            kind = dns.rdatatype.to_text(rrset.rdtype)
            found[kind] = found.get(kind, 0) + len(rrset)
    return found


def test_what_dnssec_adds_is_passed_over(stage: ServerStage) -> None:
    """DNSSEC's records stand in the transfer; the mirror holds endpoints alone, and answers come signed."""

    async def act() -> None:
        port, other = stage.port(), stage.port()
        await stage.hand(Live(NAME))
        await port.read()
        assert {"ns.example.test", "mail.example.test"} <= set(port._mirror.lives)
        assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        assert await port.commit((change(port.live(NAME), 2, "192.0.2.2"),))
        await other.read()
        assert other.live(NAME) == port.live(NAME) == standing(NAME, 2, "192.0.2.2")
        found = await asyncio.to_thread(records, stage.served)
        assert ADDED | {"SOA"} <= found.keys()
        answer = await dns.asyncquery.tcp(
            dns.message.make_query(NAME, "A", want_dnssec=True), "127.0.0.1", 10, stage.served.port
        )
        assert any(rrset.rdtype == dns.rdatatype.RRSIG for rrset in answer.answer)

    stage.run(act)


def rndc(served: Served, control: int, *words: str) -> str:
    """Tell BIND something."""
    program = shutil.which("rndc", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        pytest.skip("rndc is not installed (Debian: apt-get install bind9)")
    config = Path(served.directory) / "rndc.conf"
    config.write_text(
        f'key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{KEY_SECRET}"; }};\n'
        f'options {{ default-key "{KEY_NAME}"; default-server 127.0.0.1; default-port {control}; }};\n'
    )
    done = subprocess.run([program, "-c", str(config), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_serial_rises_without_a_change(stage: ServerStage, control: int) -> None:
    """BIND signs anew with a new key: the serial rises, a read says that no endpoint changed, and a write that was made
    before isn't refused for it. An exact requirement on records, not on the serial, is what makes that so."""

    async def act() -> None:
        await stage.hand(standing(NAME, 1, "192.0.2.1"))
        port = stage.port()
        await port.read()
        before = port.serial
        held = change(port.live(NAME), 2, "192.0.2.2")
        keys = rndc(stage.served, control, "dnssec", "-status", DOMAIN)
        tag = keys.partition("key: ")[2].split()[0]
        rndc(stage.served, control, "dnssec", "-rollover", "-key", tag, DOMAIN)
        rndc(stage.served, control, "sign", DOMAIN)
        for _ in range(200):
            assert not await port.read()
            if port.serial != before:
                break
            await port.wait(50 * MILLISECOND)
        assert port.serial > before
        assert await port.commit((held,))
        await port.read()
        assert port.live(NAME) == standing(NAME, 2, "192.0.2.2")

    stage.run(act)
