"""Zone transfers and notices of the embedded DNS server, and real secondaries that follow it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.exception
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.xfr
import dns.zone
import pytest
from dns_server_running import DOMAIN, HERE, KEY, Running, new_update, running, settings_in
from free_ports import free_port
from patience import Patience, patient
from secondaries import KNOTD, NAMED, bind, knot


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(settings_in(tmp_path, transfer=(HERE,))) as found:
        yield found


def put(server: Running, name: str, *addresses: str) -> None:
    """Replace a name's addresses; none deletes it."""
    update = new_update()
    if addresses:
        update.replace(name, 30, "A", *addresses)
    else:
        update.delete(name)
    assert server.update(update, tcp=True) == "NOERROR"


def fetch(server: Running, zone: dns.zone.Zone, *, ixfr: bool = False, signed: bool = False, udp: bool = False) -> None:
    """Transfer into a zone of dnspython's, which checks the stream and the signatures by itself."""
    query = dns.xfr.make_query(zone, use_edns=0)[0] if ixfr else dns.message.make_query(DOMAIN, "AXFR")
    if signed:
        query.use_tsig(KEY)
    mode = dns.query.UDPMode.ONLY if udp else dns.query.UDPMode.NEVER
    dns.query.inbound_xfr(HERE, zone, query, port=server.port, timeout=5, lifetime=20, udp_mode=mode)


def names(zone: dns.zone.Zone) -> dict[str, list[str]]:
    """All records as text, by name and type."""
    return {
        f"{name} {dns.rdatatype.to_text(found.rdtype)} {found.ttl}": sorted(map(str, found))
        for name, node in zone.items()  # type: ignore[no-untyped-call]
        for found in node
    }


@pytest.mark.parametrize("signed", [False, True])
def test_a_whole_transfer_has_every_record_in_several_signed_messages(server: Running, signed: bool) -> None:
    """RFC 5936 section 2.2, RFC 8945 section 5.3.1: 3,000 records, more than one message, each signature good."""
    for start in range(0, 1_500, 500):
        update = new_update()
        for index in range(start, start + 500):
            update.add(f"host{index}", 30, "A", "192.0.2.1", f"198.51.100.{index % 250}")
        assert server.update(update, tcp=True) == "NOERROR"
    zone = dns.zone.Zone(DOMAIN)
    fetch(server, zone, signed=signed)
    found = names(zone)
    assert len(found) == 1_500 + 3
    assert found["host7 A 30"] == ["192.0.2.1", "198.51.100.7"]
    assert server.server.counters.transfers == {"axfr": 1}


@pytest.mark.parametrize("udp", [False, True])
def test_what_changed_since_a_serial_is_sent_alone(server: Running, udp: bool) -> None:
    """RFC 1995: a client that has an older serial gets the differences, over UDP too, and ends with the same zone."""
    put(server, "one", "192.0.2.1", "192.0.2.2")
    put(server, "two", "192.0.2.3")
    zone = dns.zone.Zone(DOMAIN)
    fetch(server, zone)
    put(server, "one", "192.0.2.2", "192.0.2.9")
    put(server, "two")
    put(server, "three", "192.0.2.4")
    for signed in (False, True):
        copy = dns.zone.Zone(DOMAIN)
        with copy.writer(replacement=True) as writer:
            for name, node in zone.items():  # type: ignore[no-untyped-call]
                for found in node:
                    writer.replace(name, found)
        fetch(server, copy, ixfr=True, signed=signed, udp=udp)
        whole = dns.zone.Zone(DOMAIN)
        fetch(server, whole)
        assert names(copy) == names(whole)
        assert names(copy)["one A 30"] == ["192.0.2.2", "192.0.2.9"]
    assert server.server.counters.transfers["ixfr"] == 2


def ixfr(server: Running, serial: int, *, tcp: bool = True) -> dns.message.Message:
    """The first message that answers an IXFR request, its records one by one."""
    query = dns.message.make_query(DOMAIN, "IXFR")
    query.authority.append(dns.rrset.from_text(DOMAIN, 0, "IN", "SOA", f". . {serial} 0 0 0 0"))
    send = dns.query.tcp if tcp else dns.query.udp
    return send(query, HERE, timeout=5, port=server.port, one_rr_per_rrset=True)


def test_a_client_that_is_current_gets_the_soa_alone(server: Running) -> None:
    """RFC 1995 section 2: also one that claims to be ahead."""
    for serial in (1, 2, 0x7FFFFFFF):
        answer = ixfr(server, serial)
        assert [found.rdtype for found in answer.answer] == [dns.rdatatype.SOA]


def test_a_client_older_than_the_journal_gets_everything(server: Running) -> None:
    """RFC 1995 section 4: the answer is then that of a whole transfer; over UDP the SOA alone says "use TCP"."""
    put(server, "one", "192.0.2.1")
    whole = ixfr(server, 0xFFFFFF00)
    assert {found.rdtype for found in whole.answer} >= {dns.rdatatype.NS, dns.rdatatype.A}
    udp = ixfr(server, 0xFFFFFF00, tcp=False)
    assert [found.rdtype for found in udp.answer] == [dns.rdatatype.SOA]


def test_differences_too_big_for_udp_say_so_by_the_soa_alone(server: Running) -> None:
    """RFC 1995 section 2."""
    put(server, "many", *(f"192.0.2.{n}" for n in range(100)))
    answer = ixfr(server, 1, tcp=False)
    assert [found.rdtype for found in answer.answer] == [dns.rdatatype.SOA]
    answer = ixfr(server, 1)
    assert sum(found.rdtype == dns.rdatatype.A for found in answer.answer) == 100


def test_the_journal_outlives_a_restart_and_forgets_its_oldest(tmp_path: Path) -> None:
    """1,000 changes are kept: one more and the first serial gets everything, the second still the differences."""
    from fencepost.roles.dns_server import file

    where = settings_in(tmp_path, transfer=(HERE,))
    limit, file.JOURNAL_CHANGES = file.JOURNAL_CHANGES, 5
    try:
        with running(where) as server:
            for number in range(6):
                put(server, "one", f"192.0.2.{number}")
        with running(where) as server:
            assert server.serial() == 7
            answer = ixfr(server, 2)
            assert len(answer.answer) == 2 + 5 * 4  # each: old SOA, one gone, new SOA, one come
            assert server.server.counters.transfers == {"ixfr": 1}
            ixfr(server, 1)
            assert server.server.counters.transfers == {"ixfr": 1, "axfr": 1}
    finally:
        file.JOURNAL_CHANGES = limit


def test_transfers_are_refused_to_strangers_and_over_udp(tmp_path: Path) -> None:
    """By default nobody may transfer without a key; AXFR over UDP does not exist (RFC 5936 section 4.2)."""
    with running(settings_in(tmp_path)) as server:
        assert server.ask(DOMAIN, "AXFR", tcp=True).rcode() == dns.rcode.REFUSED
        assert ixfr(server, 1).rcode() == dns.rcode.REFUSED
        assert server.server.counters.transfers == {"refused": 2}
        zone = dns.zone.Zone(DOMAIN)
        fetch(server, zone, signed=True)
        assert "@ SOA 300" in names(zone)
        query = dns.message.make_query(DOMAIN, "AXFR")
        query.use_tsig(KEY)
        wire = query.to_wire()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.sendto(wire, (HERE, server.port))
            assert sock.recv(512)[3] & 15 == dns.rcode.FORMERR
        assert server.ask(f"x.{DOMAIN}", "AXFR", tcp=True).rcode() == dns.rcode.NOTAUTH


def test_a_transfer_shows_one_version_whatever_changes_meanwhile(server: Running) -> None:
    """The promise never_torn: every pair in the transfer is of one update, and the first and last SOA agree."""
    from fencepost.roles.dns_server.transfers import whole

    put(server, "a", "192.0.2.1")
    put(server, "b", "192.0.2.1")
    contents = next(iter(server.server.domains.values()))
    records = server.call(lambda: whole(contents))
    first = [next(records), next(records)]
    update = new_update()
    update.replace("a", 30, "A", "192.0.2.2")
    update.delete("b")
    update.add("c", 30, "A", "192.0.2.2")
    assert server.update(update) == "NOERROR"
    rest = list(records)
    assert rest[-1] == first[0]
    assert not any(record.endswith(b"\xc0\0\2\2") for record in rest)
    assert sum(record.endswith(b"\xc0\0\2\1") for record in first + rest) == 2


class Listener:
    """A socket that takes notices, and answers them when told to.

    What was answered may have been sent again before the answer came: that is passed over.
    """

    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((HERE, 0))
        self.sock.settimeout(patient(5))
        self.address = f"{HERE}:{self.sock.getsockname()[1]}"
        self.answered: set[bytes] = set()

    def take(self, *, answer: bool = True) -> dns.message.Message:
        """The next notice."""
        wire, peer = self.sock.recvfrom(512)
        while wire[:2] in self.answered:
            wire, peer = self.sock.recvfrom(512)
        if answer:
            self.answered.add(wire[:2])
            self.sock.sendto(wire[:2] + bytes((wire[2] | 0x80,)) + wire[3:], peer)
        return dns.message.from_wire(wire)


def test_each_change_is_told_at_once_and_again_until_it_is_answered(tmp_path: Path) -> None:
    """RFC 1996 section 3: a NOTIFY with the new SOA, the same one again when no answer comes, the list changeable."""
    follower, late = Listener(), Listener()
    with running(settings_in(tmp_path, notify=(follower.address,), notify_wait_s=0.05)) as server:
        assert follower.take().opcode() == dns.opcode.NOTIFY  # told once at the start
        put(server, "one", "192.0.2.1")
        first = follower.take(answer=False)
        again = follower.take()
        assert (first.id, first.flags & dns.flags.AA) == (again.id, dns.flags.AA)
        assert first.answer[0][0].serial == 2
        server.call(lambda: server.server.set_notify((late.address,)))
        assert late.take().answer[0][0].serial == 2  # who is new is told at once
        put(server, "one", "192.0.2.2")
        assert late.take().answer[0][0].serial == 3
        assert server.server.counters.notifies["sent"] >= 4
        follower.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            follower.take()


def test_a_follower_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """RFC 1996 section 3.6: a bounded number of tries; a later change starts anew."""
    deaf = Listener()
    with running(settings_in(tmp_path, notify=(deaf.address,), notify_wait_s=0.01, notify_retries=3)) as server:
        for _ in range(3):
            deaf.take(answer=False)
        _eventually(lambda: server.server.counters.notifies.get("given_up") == 1)
        put(server, "one", "192.0.2.1")
        assert deaf.take().answer[0][0].serial == 2


def _eventually(true: Callable[[], bool], patience_s: float = 20) -> None:
    patience = Patience(patience_s)
    while not true():
        assert not patience.over(), "it didn't come"
        time.sleep(0.02)


@pytest.mark.parametrize(("program", "configure"), [
    pytest.param(NAMED, bind, id="BIND", marks=pytest.mark.skipif(NAMED is None, reason="no named here")),
    pytest.param(KNOTD, knot, id="Knot", marks=pytest.mark.skipif(KNOTD is None, reason="no knotd here")),
])  # fmt: skip
def test_a_real_secondary_follows(
    tmp_path: Path, program: str, configure: Callable[[Path, int, int], list[str]]
) -> None:
    """BIND and Knot take the domain whole, then each change by NOTIFY and IXFR, all of it signed."""
    port = free_port()
    where = tmp_path / "secondary"
    where.mkdir()
    with running(settings_in(tmp_path, notify=(f"{HERE}:{port}",), notify_wait_s=0.2)) as server:
        put(server, "api", "192.0.2.1", "192.0.2.2")
        with (where / "log").open("wb") as log:
            secondary = subprocess.Popen(configure(where, server.port, port), stdout=log, stderr=log, cwd=where)
        try:
            _eventually(lambda: _asked(port, "api") == ["192.0.2.1", "192.0.2.2"])
            for last in (3, 4, 5):
                put(server, "api", f"192.0.2.{last}", "192.0.2.2")
                put(server, f"new{last}", "192.0.2.9")
                _eventually(lambda wanted=f"192.0.2.{last}": _asked(port, "api") == ["192.0.2.2", wanted])  # type: ignore[misc]
            put(server, "new3")
            _eventually(lambda: _asked(port, "new3") is None)
            assert server.server.counters.transfers["axfr"] == 1
            assert server.server.counters.transfers["ixfr"] >= 3
            assert server.server.counters.signatures == {}
        except AssertionError as error:
            raise AssertionError((where / "log").read_text(errors="replace")[-3_000:]) from error
        finally:
            os.kill(secondary.pid, signal.SIGTERM)
            secondary.wait(patient(20))


def _asked(port: int, name: str) -> list[str] | None:
    """What a server says a name's addresses are; [] while it doesn't answer, None if there is no such name."""
    try:
        answer = dns.query.udp(dns.message.make_query(f"{name}.{DOMAIN}", "A"), HERE, timeout=1, port=port)
    except (dns.exception.DNSException, OSError):
        return []
    if answer.rcode() == dns.rcode.NXDOMAIN:
        return None
    return sorted(str(rdata) for found in answer.answer for rdata in found)
