"""What the embedded DNS server answers to queries, asked with dnspython and dig over real sockets."""

import asyncio
import gc
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dns.asyncquery
import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import pytest
from dns_server_running import DOMAIN, HERE, Running, new_update, running, settings_in
from free_ports import free_port

from fencepost.roles.dns_server import run

RECORDS = (
    ("api", "A", "192.0.2.1", "192.0.2.2", "192.0.2.3"),
    ("api", "AAAA", "2001:db8::1"),
    ("www", "CNAME", "api"),
    ("out", "CNAME", "www.example.org."),
    ("loop1", "CNAME", "loop2"),
    ("loop2", "CNAME", "loop1"),
    ("lost", "CNAME", "nowhere"),
    ("text", "TXT", '"a""b"', '"c\\"d\\\\e"'),
    ("_http._tcp", "SRV", "1 2 8080 api"),
    ("pay", "CAA", '0 issue "ca.example.net"'),
    ("deep.down.below", "A", "192.0.2.4"),
    ("*.wild", "A", "192.0.2.5"),
    ("*.wild", "TXT", '"star"'),
    ("x.sub.wild", "A", "192.0.2.6"),
    ("child", "NS", "ns.child", "ns.elsewhere.org."),
    ("ns.child", "A", "192.0.2.53"),
    ("big", "A", *(f"198.51.100.{n}" for n in range(100))),
    ("long", "TXT", *(f'"{n:03d}{"x" * 200}"' for n in range(20))),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(settings_in(tmp_path_factory.mktemp("dns"), domains=("example.test", "other.test"))) as found:
        update = new_update()
        for name, rtype, *values in RECORDS:
            update.add(name, 30, rtype, *values)
        assert found.update(update, tcp=True) == "NOERROR"
        yield found


@pytest.mark.parametrize(("name", "rtype", "wanted"), [
    ("api", "A", ["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
    ("api", "AAAA", ["2001:db8::1"]),
    ("text", "TXT", ['"a" "b"', '"c\\"d\\\\e"']),
    ("_http._tcp", "SRV", ["1 2 8080 api.example.test."]),
    ("pay", "CAA", ['0 issue "ca.example.net"']),
    ("@", "NS", ["ns.example.test."]),
    ("www", "A", ["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
    ("www", "CNAME", ["api.example.test."]),
    ("any.wild", "A", ["192.0.2.5"]),
    ("two.labels.wild", "A", ["192.0.2.5"]),
    ("any.wild", "TXT", ['"star"']),
])  # fmt: skip
def test_each_type_is_answered_over_udp_and_tcp_with_and_without_edns(
    server: Running, name: str, rtype: str, wanted: list[str]
) -> None:
    """RFC 1035 section 4 and RFC 4592: the records asked for, authoritative, by each way of asking."""
    full = DOMAIN if name == "@" else f"{name}.{DOMAIN}"
    for tcp in (False, True):
        for options in ({}, {"use_edns": True, "payload": 1232}, {"want_dnssec": True}):
            answer = server.ask(full, rtype, tcp=tcp, **options)
            assert answer.rcode() == dns.rcode.NOERROR
            assert answer.flags & dns.flags.AA
            assert (answer.edns == 0) == bool(options)
            found = [str(r) for s in answer.answer if s.rdtype == dns.rdatatype.from_text(rtype) for r in s]
            assert sorted(found) == wanted


def test_a_name_that_does_not_exist_gets_nxdomain_with_the_soa_and_a_short_ttl(server: Running) -> None:
    """RFC 2308 section 3: the SOA's TTL in the answer is the shorter of its own and its minimum field (5 s here)."""
    answer = server.ask(f"nope.{DOMAIN}")
    assert answer.rcode() == dns.rcode.NXDOMAIN
    (soa,) = answer.authority
    assert (soa.rdtype, soa.ttl, soa[0].minimum) == (dns.rdatatype.SOA, 5, 5)


@pytest.mark.parametrize("name", ["api", "down.below", "below", "sub.wild", "wild", "_tcp"])
def test_a_name_without_such_data_gets_nodata_also_between_other_names(server: Running, name: str) -> None:
    """RFC 2308 section 2.2 and RFC 8020: an empty name between others exists, so it is no NXDOMAIN."""
    answer = server.ask(f"{name}.{DOMAIN}", "SRV")
    assert (answer.rcode(), answer.answer, len(answer.authority)) == (dns.rcode.NOERROR, [], 1)


def test_a_wildcard_does_not_reach_below_a_name_that_exists(server: Running) -> None:
    """RFC 4592 section 2.2.1: sub.wild exists (as an empty name), so y.sub.wild isn't the wildcard's."""
    assert server.ask(f"y.sub.wild.{DOMAIN}").rcode() == dns.rcode.NXDOMAIN
    assert server.ask(f"y.wild.{DOMAIN}", "AAAA").rcode() == dns.rcode.NOERROR


def test_aliases_are_followed_within_the_domain_and_not_round_in_circles(server: Running) -> None:
    """RFC 1034 section 3.6.2; RFC 6604 section 3: the response code is that of the last name."""
    assert [s.rdtype for s in server.ask(f"out.{DOMAIN}").answer] == [dns.rdatatype.CNAME]
    assert len(server.ask(f"loop1.{DOMAIN}").answer) == 2
    lost = server.ask(f"lost.{DOMAIN}")
    assert (lost.rcode(), len(lost.answer), len(lost.authority)) == (dns.rcode.NXDOMAIN, 1, 1)


def test_a_delegated_name_is_referred_with_glue_and_without_authority(server: Running) -> None:
    """RFC 1034 section 4.3.2, step 3b: not ours to answer, so AA is clear; the address below the cut comes along."""
    answer = server.ask(f"a.b.child.{DOMAIN}")
    assert not answer.flags & dns.flags.AA
    assert [s.rdtype for s in answer.authority] == [dns.rdatatype.NS]
    assert [str(s.name) for s in answer.additional] == [f"ns.child.{DOMAIN}"]


def test_the_longest_domain_that_fits_answers_and_others_are_refused(server: Running) -> None:
    """RFC 1035 section 4.1.1: REFUSED for what we don't serve, for other classes too."""
    assert server.ask("other.test", "SOA").answer[0].name == dns.name.from_text("other.test")
    assert server.ask("example.org").rcode() == dns.rcode.REFUSED
    assert server.ask("notexample.test").rcode() == dns.rcode.REFUSED
    assert server.ask(".", "NS").rcode() == dns.rcode.REFUSED
    chaos = dns.message.make_query("version.bind", "TXT", rdclass=dns.rdataclass.CH)
    assert server.send(chaos).rcode() == dns.rcode.REFUSED
    any_class = dns.message.make_query(f"api.{DOMAIN}", "A", rdclass=dns.rdataclass.ANY)
    assert server.send(any_class).rcode() == dns.rcode.REFUSED


def test_the_question_comes_back_in_its_own_spelling(server: Running) -> None:
    """Draft "0x20": resolvers spell names at random and want the same back, from kept answers too."""
    rng = random.Random(7)
    for _ in range(20):
        spelt = "".join(rng.choice((c.lower(), c.upper())) for c in f"api.{DOMAIN}")
        answer = server.ask(spelt)
        assert str(answer.question[0].name) == spelt
        assert len(answer.answer[0]) == 3


def test_any_gets_one_record_set(server: Running) -> None:
    """RFC 8482 section 4.1: a subset, so that ANY is no lever for amplification."""
    assert len(server.ask(f"api.{DOMAIN}", "ANY", tcp=True).answer) == 1
    assert server.ask(f"nope.{DOMAIN}", "ANY").rcode() == dns.rcode.NXDOMAIN


def test_equal_addresses_take_turns_at_the_front(server: Running) -> None:
    """Clients mostly take the first address, so each gets its turn; nothing is left out."""
    firsts = set()
    for _ in range(6):
        answer = server.ask(f"api.{DOMAIN}").answer[0]
        firsts.add(str(answer[0]))
        assert len(answer) == 3
    assert len(firsts) == 3


@pytest.mark.parametrize(("payload", "limit"), [(None, 512), (0, 512), (700, 700), (1232, 1232), (4096, 1232)])
@pytest.mark.parametrize(("name", "rtype"), [("big", "A"), ("long", "TXT")])
def test_what_does_not_fit_is_cut_and_marked_so_and_comes_whole_over_tcp(
    server: Running, name: str, rtype: str, payload: int | None, limit: int
) -> None:
    """RFC 2181 section 9, RFC 6891 section 6.2: TC, never past the client's size (nor 1,232 bytes), at least 512."""
    options: dict[str, Any] = {} if payload is None else {"use_edns": True, "payload": payload}
    query = dns.message.make_query(f"{name}.{DOMAIN}", rtype, **options)
    for _ in range(3):
        answer = dns.query.udp(query, HERE, timeout=5, port=server.port)
        assert answer.flags & dns.flags.TC
        assert limit - 250 < len(answer.to_wire(max_size=65535)) <= limit
    whole = dns.query.tcp(query, HERE, timeout=5, port=server.port)
    assert not whole.flags & dns.flags.TC
    assert len(whole.answer[0]) == {"big": 100, "long": 20}[name]


def test_an_unknown_edns_version_gets_badvers_and_unknown_options_are_ignored(server: Running) -> None:
    """RFC 6891 sections 6.1.2 and 6.1.3; cookies (RFC 7873) are such an option here."""
    answer = server.ask(f"api.{DOMAIN}", use_edns=1)
    assert (answer.rcode(), answer.edns, answer.answer) == (dns.rcode.BADVERS, 0, [])
    cookie = dns.edns.GenericOption("COOKIE", b"12345678")
    answer = server.ask(f"api.{DOMAIN}", use_edns=0, options=[cookie])
    assert (answer.rcode(), len(answer.answer[0]), answer.options) == (dns.rcode.NOERROR, 3, ())


def test_unknown_opcodes_and_a_notify_are_answered_sensibly(server: Running) -> None:
    """NOTIMP by RFC 1035 section 4.1.1; a primary that is notified has nothing to do (RFC 1996 section 3)."""
    for opcode in (1, 2, 3, 6, 15):
        query = dns.message.make_query(f"api.{DOMAIN}", "A")
        query.set_opcode(dns.opcode.Opcode(opcode))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.sendto(query.to_wire(), (HERE, server.port))
            reply = sock.recv(512)
        assert (reply[:2], reply[3] & 15, reply[2] >> 3 & 15) == (query.to_wire()[:2], dns.rcode.NOTIMP, opcode)
    for name, wanted in ((DOMAIN, dns.rcode.NOERROR), ("example.org", dns.rcode.NOTAUTH)):
        notify = dns.message.make_query(name, "SOA")
        notify.set_opcode(dns.opcode.NOTIFY)
        assert server.send(notify).rcode() == wanted


def test_an_answer_is_made_anew_after_its_records_changed(server: Running) -> None:
    """Kept answers are dropped by what they were made from: the name, the alias's end, the serial, an empty name."""
    questions = [(f"new.{DOMAIN}", "A"), (f"alias.{DOMAIN}", "A"), (f"a.new.{DOMAIN}", "A"), (f"api.{DOMAIN}", "MX")]
    setup = new_update()
    setup.add("new", 30, "A", "192.0.2.7")
    setup.add("alias", 30, "CNAME", "new")
    assert server.update(setup) == "NOERROR"
    for name, rtype in questions * 2:
        server.ask(name, rtype)
    change = new_update()
    change.replace("new", 30, "A", "192.0.2.8")
    assert server.update(change) == "NOERROR"
    serial = server.serial()
    assert server.values(*questions[0]) == ["192.0.2.8"]
    assert server.values(*questions[1]) == ["192.0.2.8"]
    assert server.ask(*questions[3]).authority[0][0].serial == serial
    assert server.ask(*questions[2]).rcode() == dns.rcode.NXDOMAIN
    gone = new_update()
    gone.delete("new")
    gone.delete("alias")
    assert server.update(gone) == "NOERROR"
    assert server.ask(*questions[0]).rcode() == dns.rcode.NXDOMAIN


def test_dig_agrees(server: Running) -> None:
    """BIND's own client, with its cookie and its AD bit, takes the answer without a warning."""
    out = subprocess.run(
        ["dig", f"@{HERE}", "-p", str(server.port), f"www.{DOMAIN}", "A", "+norec"],
        capture_output=True, text=True, timeout=20, check=True,
    ).stdout  # fmt: skip
    assert "status: NOERROR" in out
    assert "flags: qr aa;" in out
    assert "WARNING" not in out
    assert out.count("192.0.2.") == 3


def test_the_longest_labels_and_names_are_written_and_answered(server: Running) -> None:
    """RFC 1035 section 2.3.4, external-dns #3757: a 63-byte label with its marker, a name of 255 bytes."""
    label = "x" * 63
    longest = f"{label}.{label}.{label}.{'y' * (253 - 3 * 64 - len('.example.test'))}"
    update = new_update()
    update.add(label, 30, "A", "192.0.2.7")
    update.add(f"_fencepost.{label}", 30, "TXT", '"marker"')
    update.add(longest, 30, "A", "192.0.2.8")
    assert server.update(update) == "NOERROR"
    assert len(dns.name.from_text(f"{longest}.{DOMAIN}").to_wire() or b"") == 255
    assert server.values(f"_fencepost.{label}.{DOMAIN}", "TXT") == ['"marker"']
    for tcp in (False, True):
        assert str(server.ask(f"{longest}.{DOMAIN}", tcp=tcp).answer[0][0]) == "192.0.2.8"


def test_run_serves_until_it_is_cancelled(tmp_path: Path) -> None:
    """What a role's process calls: it answers, and on cancellation gives port and file back."""

    async def main() -> None:
        port = free_port()
        where = settings_in(tmp_path, listen=f"{HERE}:{port}")
        for _ in range(2):
            task = asyncio.create_task(run(where))
            query = dns.message.make_query(DOMAIN, "SOA")
            for _ in range(100):
                try:
                    answer = await dns.asyncquery.udp(query, HERE, timeout=0.2, port=port)
                    break
                except (dns.exception.Timeout, OSError):
                    assert not task.done(), task.exception()
            assert answer.rcode() == dns.rcode.NOERROR
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    try:
        asyncio.run(main())
    finally:
        gc.unfreeze()
