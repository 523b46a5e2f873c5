"""The embedded DNS server against BIND: the same updates to both, the same response codes and the same records after.

BIND 9 has been tried by more people than have read the RFC. Where both agree over hundreds of random updates an enactor
can't tell them apart, which is what "BIND is one setting away" means.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import dns.zone
import pytest
from dns_server_running import DOMAIN, HERE, SECRET, Running, new_update, running, settings_in
from free_ports import free_port
from patience import patient
from secondaries import NAMED

UPDATES = 400
NAMES = ("a", "b", "x.b", "*.w", "y.w", "c", "@")
VALUES = {
    "A": ("192.0.2.1", "192.0.2.2", "192.0.2.3"),
    "AAAA": ("2001:db8::1", "2001:db8::2"),
    "TXT": ('"one"', '"One"', '"one" "two"', '""'),
    "CNAME": ("a", "B", "www.example.org."),
    "SRV": ("1 2 80 a", "1 2 80 A", "1 3 80 b"),
    "MX": ("10 a", "20 a"),
    "NS": ("ns", "ns2.example.org."),
    "CAA": ('0 issue "x"',),
}

pytestmark = pytest.mark.skipif(NAMED is None, reason="no named here")


@pytest.fixture(scope="module")
def bind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A BIND that is primary for the domain; gives its port."""
    path = tmp_path_factory.mktemp("bind")
    port = free_port()
    (path / "example.zone").write_text(
        f"$ORIGIN {DOMAIN}\n@ 300 SOA ns hostmaster 1 3600 60 604800 5\n@ 300 NS ns\nns 300 A {HERE}\n"
    )
    (path / "named.conf").write_text(f'''
key "writer" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
options {{ directory "{path}"; listen-on port {port} {{ {HERE}; }}; listen-on-v6 {{ none; }}; pid-file none;
    session-keyfile "{path}/session.key"; recursion no; notify no; check-names primary ignore; check-integrity no; }};
controls {{ }};
zone "example.test" {{ type primary; file "{path}/example.zone"; allow-update {{ key "writer"; }};
    allow-transfer {{ {HERE}; }}; check-wildcard no; }};
''')
    with (path / "log").open("wb") as log:
        named = subprocess.Popen([str(NAMED), "-g", "-n", "1", "-c", str(path / "named.conf")], stdout=log, stderr=log)
    try:
        for _ in range(400):
            try:
                dns.query.udp(dns.message.make_query(DOMAIN, "SOA"), HERE, timeout=0.2, port=port)
                break
            except (dns.exception.Timeout, OSError):
                time.sleep(0.02)
        else:
            pytest.fail((path / "log").read_text(errors="replace"))
        yield port
    finally:
        os.kill(named.pid, signal.SIGTERM)
        named.wait(patient(20))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(settings_in(tmp_path, transfer=(HERE,))) as found:
        yield found


def random_update(rng: random.Random) -> dns.update.UpdateMessage:
    """One update with up to two prerequisites and four changes, of every form."""
    update = new_update()

    def value() -> tuple[str, str]:
        rtype = rng.choice(list(VALUES))
        return rtype, rng.choice(VALUES[rtype])

    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        name, (rtype, text) = rng.choice(NAMES), value()
        form = rng.randrange(6)
        if form < 2:
            update.present(name, *((rtype,) if form else ()))
        elif form < 4:
            update.absent(name, *((rtype,) if form == 3 else ()))
        else:
            values = rng.sample(VALUES[rtype], rng.randrange(1, len(VALUES[rtype]) + 1))
            if rtype != "TXT":  # one spelling each: of two, BIND finds one too many
                values = list({value.lower(): value for value in values}.values())
            update.present(name, rtype, *values)
        del text
    for _ in range(rng.randrange(1, 5)):
        name, (rtype, text) = rng.choice(NAMES), value()
        if rtype == "NS" and name == "*.w":
            name = "b"  # a wildcard's NS has no meaning (RFC 4592 section 4.2): BIND ignores it, we refuse it
        form = rng.randrange(7)
        if form < 4:
            update.add(name, rng.choice((30, 30, 60)), rtype, text)
        elif form == 4:
            update.delete(name, rtype, text)
        elif form == 5:
            update.delete(name, rtype)
        else:
            update.delete(name)
    return update


def everything(port: int) -> set[str]:
    """Each record of the domain as text, the SOA left out, names in lower case."""
    zone = dns.zone.Zone(DOMAIN, relativize=False)
    dns.query.inbound_xfr(HERE, zone, port=port, timeout=5, lifetime=10)
    return {
        f"{str(name).lower()} {found.ttl} {dns.rdatatype.to_text(found.rdtype)} {_comparable(found.rdtype, str(rdata))}"
        for name, node in zone.items()  # type: ignore[no-untyped-call]
        for found in node
        if found.rdtype != dns.rdatatype.SOA
        for rdata in found
    }


def _comparable(rtype: dns.rdatatype.RdataType, text: str) -> str:
    """Names in data compare without case; which spelling is kept is the server's."""
    return text if rtype in (dns.rdatatype.TXT, dns.rdatatype.CAA) else text.lower()


def test_random_updates_end_the_same_at_bind_and_here(server: Running, bind: int) -> None:
    """RFC 2136 as BIND reads it: the same response code, the same records, and the serial moves when its does."""
    rng = random.Random(42)
    seen = dict[str, int]()
    for number in range(UPDATES):
        update = random_update(rng)
        before = server.serial()
        ours = server.update(update)
        theirs = dns.rcode.to_text(dns.query.udp(update, HERE, timeout=5, port=bind).rcode())
        assert ours == theirs, f"{number}: {ours} here, {theirs} at BIND\n{update}"
        seen[ours] = seen.get(ours, 0) + 1
        if ours == "NOERROR":
            assert everything(server.port) == everything(bind), f"{number}: {update}"
            assert (server.serial() != before) == _moved(bind), f"{number}: {update}"
    assert {"NOERROR", "NXRRSET", "YXRRSET", "NXDOMAIN", "YXDOMAIN"} <= set(seen), seen


_last: dict[int, int] = {}


def _moved(port: int) -> bool:
    """Whether a server's serial differs from what it was at the last call."""
    answer = dns.query.udp(dns.message.make_query(DOMAIN, "SOA"), HERE, timeout=5, port=port)
    serial = int(answer.answer[0][0].serial)
    before = _last.get(port, 1)
    _last[port] = serial
    return serial != before
