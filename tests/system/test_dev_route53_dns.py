"""What the Route 53 stand-in answers over DNS for its zones."""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.resolver
import pytest
from free_ports import free_port
from route53_asked import DOMAIN, Asked, asked, record

from fencepost.dev.route53.account import Account
from fencepost.dev.route53.answers import answer
from fencepost.dev.route53.name_server import NameServer


@pytest.fixture(scope="module")
def zone() -> Iterator[Asked]:
    """A zone with a bit of everything, answered over DNS."""
    with asked(dns="127.0.0.1:0") as found:
        alias = {"HostedZoneId": found.zone_id, "DNSName": f"w.{DOMAIN}", "EvaluateTargetHealth": False}
        sets = [
            record("w", "A", "192.0.2.1", "192.0.2.2"),
            record("w", "AAAA", "2001:db8::1"),
            record("_s._tcp", "SRV", f"1 2 3 w.{DOMAIN}."),
            record("*.wild", "TXT", r'"a""b \"\101\""'),
            record("to.wild", "A", "192.0.2.3"),
            record("c", "CNAME", f"d.{DOMAIN}"),
            record("d", "CNAME", f"w.{DOMAIN}."),
            record("out", "CNAME", "elsewhere.example."),
            record("loop", "CNAME", f"loop.{DOMAIN}."),
            record("al", "A", ttl=None, AliasTarget=alias),
            record("away", "A", ttl=None, AliasTarget={**alias, "HostedZoneId": "Z2ELB", "DNSName": "elb.example."}),
            record("sub", "NS", f"ns.sub.{DOMAIN}."),
            record("ns.sub", "A", "192.0.2.53"),
            record("big", "TXT", *(f'"{number:0200}"' for number in range(20))),
            record("many", "A", "192.0.2.1", SetIdentifier="a", Weight=1),
            record("many", "A", "192.0.2.2", "192.0.2.3", SetIdentifier="b", Weight=3),
            record("many", "A", "192.0.2.4", SetIdentifier="c", Weight=0),
            record("none", "A", "192.0.2.1", SetIdentifier="a", Weight=0),
            record("none", "A", "192.0.2.2", SetIdentifier="b", Weight=0),
            record("fail", "A", "192.0.2.2", SetIdentifier="b", Failover="SECONDARY"),
            record("fail", "A", "192.0.2.1", SetIdentifier="p", Failover="PRIMARY"),
            *(record("mv", "A", f"192.0.2.{n}", SetIdentifier=f"{n}", MultiValueAnswer=True) for n in range(1, 11)),
            record("odd", "HTTPS", "this is no HTTPS record"),
        ]
        found.change(*(("CREATE", each) for each in sets))
        yield found


def ask(zone: Asked, name: str, kind: str, *, tcp: bool = False) -> dns.message.Message:
    """The answer to one question."""
    question = dns.message.make_query(f"{name}.{DOMAIN}." if name else f"{DOMAIN}.", kind)
    put = dns.query.tcp if tcp else dns.query.udp
    return put(question, "127.0.0.1", port=zone.server.dns_port, timeout=5)


def told(message: dns.message.Message) -> list[str]:
    """Name, type and data of each answer."""
    return sorted(
        f"{rrset.name.to_text().removesuffix(f'.{DOMAIN}.')} {dns.rdatatype.to_text(rrset.rdtype)} {rdata.to_text()}"
        for rrset in message.answer
        for rdata in rrset
    )


@pytest.mark.parametrize(
    ("name", "kind", "answers"),
    [
        ("w", "A", ["w A 192.0.2.1", "w A 192.0.2.2"]),
        ("w", "AAAA", ["w AAAA 2001:db8::1"]),
        ("W", "AAAA", ["W AAAA 2001:db8::1"]),
        ("_s._tcp", "SRV", [f"_s._tcp SRV 1 2 3 w.{DOMAIN}."]),
        ("any.thing.wild", "TXT", [r'any.thing.wild TXT "a" "b \"A\""']),
        ("c", "A", [f"c CNAME d.{DOMAIN}.", f"d CNAME w.{DOMAIN}.", "w A 192.0.2.1", "w A 192.0.2.2"]),
        ("c", "CNAME", [f"c CNAME d.{DOMAIN}."]),
        ("out", "A", ["out CNAME elsewhere.example."]),
        ("al", "A", ["al A 192.0.2.1", "al A 192.0.2.2"]),
        ("fail", "A", ["fail A 192.0.2.1"]),
    ],
)
@pytest.mark.parametrize("tcp", [False, True])
def test_what_is_there_is_answered(zone: Asked, name: str, kind: str, answers: list[str], tcp: bool) -> None:
    """With authority; CNAMEs are followed within the zone (RFC 1034 section 4.3.2), an alias within the account."""
    reply = ask(zone, name, kind, tcp=tcp)
    assert told(reply) == answers
    assert reply.flags & dns.flags.AA
    assert reply.rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("gone", "A", "NXDOMAIN"),
        ("w", "TXT", "NOERROR"),
        ("wild", "A", "NOERROR"),
        ("away", "A", "NOERROR"),
        ("_tcp", "A", "NOERROR"),
        ("x.to.wild", "TXT", "NXDOMAIN"),
    ],
)
def test_what_is_not_there_is_denied_with_the_soa(zone: Asked, name: str, kind: str, code: str) -> None:
    """RFC 2308; an empty non-terminal exists, and the closest encloser decides of a wildcard (RFC 4592)."""
    reply = ask(zone, name, kind)
    assert dns.rcode.to_text(reply.rcode()) == code
    assert not reply.answer
    assert [rrset.rdtype for rrset in reply.authority] == [dns.rdatatype.SOA]


def test_a_delegated_name_is_referred(zone: Asked) -> None:
    """RFC 1034 section 4.3.2: without authority, with the addresses that are there."""
    reply = ask(zone, "x.sub", "A")
    assert not reply.answer
    assert not reply.flags & dns.flags.AA
    assert [rrset.to_text() for rrset in reply.authority] == [f"sub.{DOMAIN}. 60 IN NS ns.sub.{DOMAIN}."]
    assert [rrset.to_text() for rrset in reply.additional] == [f"ns.sub.{DOMAIN}. 60 IN A 192.0.2.53"]


def test_other_names_transfers_and_updates_are_refused(zone: Asked) -> None:
    """As by Route 53; what can't be put on the wire fails alone."""
    outside = dns.message.make_query("elsewhere.example.", "A")
    port = zone.server.dns_port
    assert dns.query.udp(outside, "127.0.0.1", port=port, timeout=5).rcode() == dns.rcode.REFUSED
    assert ask(zone, "", "AXFR", tcp=True).rcode() == dns.rcode.REFUSED
    update = dns.message.make_query(f"{DOMAIN}.", "SOA")
    update.set_opcode(dns.opcode.UPDATE)
    assert dns.query.udp(update, "127.0.0.1", port=port, timeout=5).rcode() == dns.rcode.NOTIMP
    assert ask(zone, "odd", "HTTPS").rcode() == dns.rcode.SERVFAIL
    assert ask(zone, "loop", "A").rcode() == dns.rcode.NOERROR


def test_a_long_answer_is_cut_and_whole_over_tcp(zone: Asked) -> None:
    """RFC 2181 section 9."""
    short = ask(zone, "big", "TXT")
    assert short.flags & dns.flags.TC
    assert len(told(ask(zone, "big", "TXT", tcp=True))) == 20


def drawn(zone: Asked, name: str) -> Counter[tuple[str, ...]]:
    """How often each answer was given of 400, by a seeded draw."""
    chance = random.Random(1)
    wire = dns.message.make_query(f"{name}.{DOMAIN}.", "A").to_wire()
    found: Counter[tuple[str, ...]] = Counter()
    for _ in range(400):
        reply = answer(zone.server.account, wire, chance, udp=True)
        assert reply is not None
        found[tuple(told(dns.message.from_wire(reply)))] += 1
    return found


def test_one_weighted_set_is_answered_by_weight(zone: Asked) -> None:
    """Developer Guide, "Weighted routing": weight ÷ sum; 0 never, unless all are 0. The draw is seeded."""
    found = drawn(zone, "many")
    assert set(found) == {("many A 192.0.2.1",), ("many A 192.0.2.2", "many A 192.0.2.3")}
    assert 57 < found["many A 192.0.2.1",] < 143
    assert set(drawn(zone, "none")) == {("none A 192.0.2.1",), ("none A 192.0.2.2",)}


def test_up_to_eight_multivalue_sets_are_answered(zone: Asked) -> None:
    """Developer Guide, "Multivalue answer routing"."""
    found = drawn(zone, "mv")
    assert {len(answers) for answers in found} == {8}
    assert {each for answers in found for each in answers} == {f"mv A 192.0.2.{n}" for n in range(1, 11)}


def test_a_port_that_is_free_for_tcp_alone_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for any port was told that it is in use, once in some thousand starts. A named one is in use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        taken = free_port()  # for TCP too: one of the system's own range may be a connection's
        held.bind(("127.0.0.1", taken))
        listen, wanted = asyncio.start_server, [taken, taken, 0]

        async def first_there(connected: Any, host: str, port: int) -> asyncio.Server:
            return await listen(connected, host, port or wanted.pop(0))

        async def work() -> None:
            server = NameServer(Account())
            with pytest.raises(OSError, match="in use"):
                await server.start("127.0.0.1", taken)
            monkeypatch.setattr(asyncio, "start_server", first_there)
            await server.start("127.0.0.1", 0)
            assert server.port != taken
            assert not wanted
            await server.stop()

        asyncio.run(work())
