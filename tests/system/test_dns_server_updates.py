"""Dynamic updates to the embedded DNS server: each form of RFC 2136 and its response code, signatures (RFC 8945)."""

import socket
import time
from collections.abc import Iterator

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.tsig
import dns.update
import pytest
from dns.rdtypes.ANY.TXT import TXT
from dns_server_running import DOMAIN, HERE, KEY, SECRET, Running, new_update, running, settings_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def server(tmp_path) -> Iterator[Running]:  # type: ignore[no-untyped-def]
    with running(settings_in(tmp_path, domains=("example.test", "sub.example.test"))) as found:
        update = new_update()
        update.add("api", 30, "A", "192.0.2.1", "192.0.2.2")
        update.add("_fencepost.api", 30, "TXT", '"first"')
        update.add("alias", 30, "CNAME", "Api")
        assert found.update(update) == "NOERROR"
        yield found


PREREQUISITES = [
    ("name in use", lambda u: u.present("api"), "NOERROR"),
    ("name in use", lambda u: u.present("nope"), "NXDOMAIN"),
    ("name not in use", lambda u: u.absent("nope"), "NOERROR"),
    ("name not in use", lambda u: u.absent("api"), "YXDOMAIN"),
    ("set exists", lambda u: u.present("api", "A"), "NOERROR"),
    ("set exists", lambda u: u.present("api", "AAAA"), "NXRRSET"),
    ("set does not exist", lambda u: u.absent("api", "AAAA"), "NOERROR"),
    ("set does not exist", lambda u: u.absent("api", "A"), "YXRRSET"),
    ("exact set", lambda u: u.present("api", "A", "192.0.2.2", "192.0.2.1"), "NOERROR"),
    ("exact set, too few", lambda u: u.present("api", "A", "192.0.2.1"), "NXRRSET"),
    ("exact set, too many", lambda u: u.present("api", "A", "192.0.2.1", "192.0.2.2", "192.0.2.3"), "NXRRSET"),
    ("exact set, other", lambda u: u.present("api", "A", "192.0.2.1", "192.0.2.9"), "NXRRSET"),
    ("exact set, no such name", lambda u: u.present("nope", "A", "192.0.2.1"), "NXRRSET"),
    ("exact set, names compare without case", lambda u: u.present("alias", "CNAME", "aPI"), "NOERROR"),
    ("exact text, case counts", lambda u: u.present("_fencepost.api", "TXT", '"First"'), "NXRRSET"),
    ("outside the domain", lambda u: u.present(dns.name.from_text("example.org.")), "NOTZONE"),
    ("in a longer domain of ours", lambda u: u.present("x.sub"), "NOTZONE"),
]


@pytest.mark.parametrize(("form", "require", "wanted"), PREREQUISITES, ids=[f"{p[0]}: {p[2]}" for p in PREREQUISITES])
def test_each_prerequisite_holds_or_refuses_the_whole_update(server: Running, form: str, require, wanted: str) -> None:  # type: ignore[no-untyped-def]
    """RFC 2136 section 2.4: a prerequisite that fails refuses the update whole, with its own response code."""
    before = server.serial()
    update = new_update()
    update.present("api", "A")
    require(update)
    update.delete("api")
    update.add("made", 30, "A", "192.0.2.9")
    assert server.update(update) == wanted
    changed = wanted == "NOERROR"
    assert server.serial() == before + changed
    assert bool(server.values(f"made.{DOMAIN}")) is changed
    assert bool(server.values(f"api.{DOMAIN}")) is not changed


def test_the_fence_holds_of_two_writers_who_read_the_same_the_second_is_refused(server: Running) -> None:
    """October 2025 incident: the late writer's prerequisites no longer hold, so nothing of its plan is applied."""

    def plan(marker: str, *addresses: str) -> dns.update.UpdateMessage:
        update = new_update()
        update.present("_fencepost.api", "TXT", '"first"')
        update.present("api", "A", "192.0.2.1", "192.0.2.2")
        update.absent("api", "AAAA")
        update.replace("_fencepost.api", 30, "TXT", marker)
        update.replace("api", 30, "A", *addresses)
        return update

    assert server.update(plan('"newer"', "192.0.2.3")) == "NOERROR"
    assert server.update(plan('"older"', "192.0.2.4")) == "NXRRSET"
    assert server.values(f"api.{DOMAIN}") == ["192.0.2.3"]
    assert server.values(f"_fencepost.api.{DOMAIN}", "TXT") == ['"newer"']


def test_two_writers_add_different_values_to_one_name_and_neither_is_lost(server: Running) -> None:
    """lego #1351, cert-manager #4504: additions to one TXT set are joined."""
    for value in ('"one"', '"two"'):
        update = new_update()
        update.add("_acme-challenge", 60, "TXT", value)
        assert server.update(update) == "NOERROR"
    assert server.values(f"_acme-challenge.{DOMAIN}", "TXT") == ['"one"', '"two"']


def test_an_alias_beside_other_data_is_ignored_with_noerror_and_shows_when_read_back(server: Running) -> None:
    """RFC 2136 section 3.4.2.2, as tried on BIND: NOERROR, and nothing changed; so writers have to read back."""
    before = server.serial()
    update = new_update()
    update.add("api", 30, "CNAME", "www.example.org.")
    assert server.update(update) == "NOERROR"
    other = new_update()
    other.add("alias", 30, "A", "192.0.2.9")
    assert server.update(other) == "NOERROR"
    assert server.serial() == before
    assert server.values(f"api.{DOMAIN}", "CNAME") == []
    assert server.values(f"alias.{DOMAIN}", "CNAME") == ["api.example.test."]


def test_an_alias_replaces_an_alias(server: Running) -> None:
    """RFC 2136 section 3.4.2.2: a second CNAME takes the first one's place."""
    update = new_update()
    update.add("alias", 30, "CNAME", "www.example.org.")
    assert server.update(update) == "NOERROR"
    assert server.values(f"alias.{DOMAIN}", "CNAME") == ["www.example.org."]


def test_the_apex_keeps_its_soa_and_its_last_ns(server: Running) -> None:
    """RFC 2136 section 3.4.2.3 and 3.4.2.4: deleting either is ignored; another NS may come and go."""
    update = new_update()
    update.delete("@")
    update.delete("@", "SOA")
    update.delete("@", "NS")
    update.delete("@", "NS", "ns")
    assert server.update(update) == "NOERROR"
    assert server.values(DOMAIN, "NS") == ["ns.example.test."]
    assert server.serial() == 2
    swap = new_update()
    swap.add("@", 300, "NS", "ns2.example.org.")
    swap.delete("@", "NS", "NS")
    assert server.update(swap) == "NOERROR"
    assert server.values(DOMAIN, "NS") == ["ns2.example.org."]


def test_the_serial_rises_with_each_change_and_only_then(server: Running) -> None:
    """RFC 2136 section 3.6, RFC 1982: an update that changes nothing moves nothing; a higher SOA is taken as it is."""
    same = new_update()
    same.replace("api", 30, "A", "192.0.2.2", "192.0.2.1")
    assert server.update(same) == "NOERROR"
    assert server.serial() == 2
    ttl = new_update()
    ttl.replace("api", 31, "A", "192.0.2.2", "192.0.2.1")
    assert server.update(ttl) == "NOERROR"
    assert server.serial() == 3
    soa = "ns hostmaster {} 3600 60 604800 5"
    half, last = 0x7FFFFFFF, 0xFFFFFFFE
    for serial, wanted in ((2, 3), (0xFFFFFFFF, 3), (half, half), (5, half), (last, last)):
        update = new_update()
        update.add("@", 300, "SOA", soa.format(serial))
        assert server.update(update) == "NOERROR"
        assert server.serial() == wanted, serial
    for number, wanted in ((1, 0xFFFFFFFF), (2, 1), (3, 2)):
        more = new_update()
        more.add("more", 30, "A", f"192.0.2.{number}")
        assert server.update(more) == "NOERROR"
        assert server.serial() == wanted


@pytest.mark.parametrize(("name", "rtype", "rdclass", "ttl", "data", "wanted"), [
    ("api", "A", "IN", 30, b"\1\2\3", "FORMERR"),
    ("api", "A", "NONE", 1, b"\xc0\0\2\1", "FORMERR"),
    ("api", "A", "ANY", 0, b"\xc0\0\2\1", "FORMERR"),
    ("api", "ANY", "IN", 30, b"\1", "FORMERR"),
    ("api", "ANY", "NONE", 0, b"", "FORMERR"),
    ("api", "AXFR", "ANY", 0, b"", "FORMERR"),
    ("api", "TXT", "IN", 30, b"\5abc", "FORMERR"),
    ("api", "SRV", "IN", 30, b"\0\1\0\1\0\1\x03ab", "FORMERR"),
    ("api", "A", "CH", 30, b"\1\2\3\4", "FORMERR"),
    ("api", "DNAME", "IN", 30, b"\1a\0", "REFUSED"),
    ("elsewhere.org.", "A", "IN", 30, b"\1\2\3\4", "NOTZONE"),
    ("www.sub", "A", "IN", 30, b"\1\2\3\4", "NOTZONE"),
])  # fmt: skip
def test_an_update_with_one_bad_record_changes_nothing(
    server: Running, name: str, rtype: str, rdclass: str, ttl: int, data: bytes, wanted: str
) -> None:
    """RFC 2136 section 3.4.1: all is checked before anything is changed."""
    update = new_update()
    update.add("before", 30, "A", "192.0.2.9")
    wire = bytearray(_unsigned(update))
    owner = dns.name.from_text(name, dns.name.from_text(DOMAIN)).to_wire()
    assert owner is not None
    wire += owner + int(dns.rdatatype.from_text(rtype)).to_bytes(2, "big")
    wire += int(dns.rdataclass.from_text(rdclass)).to_bytes(2, "big") + ttl.to_bytes(4, "big")
    wire += len(data).to_bytes(2, "big") + data
    wire[8:10] = (int.from_bytes(wire[8:10], "big") + 1).to_bytes(2, "big")
    assert _raw(server, _sign(bytes(wire))) == wanted
    assert server.values(f"before.{DOMAIN}") == []


def _unsigned(update: dns.update.UpdateMessage) -> bytes:
    plain = dns.update.UpdateMessage(update.zone[0].name)
    plain.update = update.update
    return bytes(plain.to_wire())


def _sign(wire: bytes, *, at: int | None = None, key: dns.tsig.Key = KEY) -> bytes:
    """A message with our own signature, made at a time (seconds), for messages dnspython wouldn't make."""
    from fencepost.roles.dns_server.signatures import Signer

    signer = Signer(key, b"", int.from_bytes(wire[:2], "big"))
    return signer.sign(wire, int(time.time()) if at is None else at)


def _raw(server: Running, wire: bytes) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(wire, (HERE, server.port))
        return dns.rcode.to_text(dns.rcode.Rcode(sock.recv(4096)[3] & 15))


def test_an_update_is_for_a_domain_we_have_and_names_its_soa(server: Running) -> None:
    """RFC 2136 section 3.1: NOTAUTH for other domains and names within ours, FORMERR for a zone type but SOA."""
    for zone in ("example.org.", "api.example.test."):
        update = new_update(zone)
        update.add("x", 30, "A", "192.0.2.1")
        assert server.update(update) == "NOTAUTH"
    update = new_update()
    wire = bytearray(_unsigned(update))
    wire[-3] = 1
    assert _raw(server, _sign(bytes(wire))) == "FORMERR"


def test_no_update_without_a_signature(server: Running) -> None:
    """RFC 3007: REFUSED, and counted."""
    update = new_update(key=None)
    update.add("x", 30, "A", "192.0.2.1")
    assert server.update(update) == "REFUSED"
    assert server.server.counters.updates["REFUSED"] == 1


def test_bad_signatures_are_told_apart(server: Running) -> None:
    """RFC 8945 section 5.2: BADKEY, BADSIG unsigned, each NOTAUTH in the header."""
    wrong_key = dns.tsig.Key("stranger.", SECRET, "hmac-sha256.")
    wrong_algorithm = dns.tsig.Key("writer.", SECRET, "hmac-sha512.")
    wrong_secret = dns.tsig.Key("writer.", b"x" * 32, "hmac-sha256.")
    bad_key, bad_signature = dns.tsig.PeerBadKey, dns.tsig.PeerBadSignature
    for key, error in ((wrong_key, bad_key), (wrong_algorithm, bad_key), (wrong_secret, bad_signature)):
        update = new_update(key=key)
        update.add("x", 30, "A", "192.0.2.1")
        with pytest.raises(error):
            server.update(update)
    assert server.server.counters.signatures == {"BADKEY": 2, "BADSIG": 1}
    assert server.values(f"x.{DOMAIN}") == []


def test_a_clock_too_far_off_gets_badtime_with_our_time_signed(server: Running) -> None:
    """RFC 8945 section 5.2.3: the reply is signed and carries the server's time in the other data."""
    wire = _sign(_unsigned(new_update()), at=int(time.time()) - 1_000)
    request = dns.message.from_wire(wire, keyring=False)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(wire, (HERE, server.port))
        reply = dns.message.from_wire(sock.recv(4096), keyring=False)
    assert reply.rcode() == dns.rcode.NOTAUTH
    assert reply.tsig is not None
    data = reply.tsig[0]
    assert data.error == dns.rcode.BADTIME
    assert abs(int.from_bytes(data.other, "big") - time.time()) < 60
    assert data.time_signed == request.tsig[0].time_signed  # type: ignore[index]
    assert len(data.mac) == 32
    assert server.server.counters.signatures == {"BADTIME": 1}


def test_signed_replies_check_at_the_client_and_a_signed_query_sees_all(server: Running) -> None:
    """RFC 8945 section 5.3: dnspython verifies every reply's signature, over UDP and TCP, for queries too."""
    for tcp in (False, True):
        query = dns.message.make_query(f"api.{DOMAIN}", "A")
        query.use_tsig(KEY)
        answer = server.send(query, tcp=tcp)
        assert answer.had_tsig
        assert [str(r) for r in answer.answer[0]] == ["192.0.2.1", "192.0.2.2"]


def test_a_signature_must_be_the_last_record(server: Running) -> None:
    """RFC 8945 section 5.1: FORMERR otherwise, also for two."""
    wire = _sign(_unsigned(new_update()))
    twice = _sign(wire)
    assert _raw(server, twice) == "FORMERR"


TEXTS = st.lists(st.text(st.characters(min_codepoint=1, max_codepoint=126), max_size=255), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_any_text_comes_back_as_it_was_written(server: Running, texts: list[str]) -> None:
    """DNSControl #2854, #2435: quotes, backslashes and several strings round trip, and can be required exactly."""
    strings = [text.encode() for text in texts]
    data = TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings)
    update = new_update()
    update.replace("text", 30, data)
    assert server.update(update, tcp=True) == "NOERROR"
    (found,) = server.ask(f"text.{DOMAIN}", "TXT", tcp=True).answer
    assert found[0].strings == tuple(strings)
    again = new_update()
    again.present("text", data)
    assert server.update(again, tcp=True) == "NOERROR"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_updates_leave_what_a_plain_model_says(server: Running, data: st.DataObject) -> None:
    """RFC 2136 section 3.4.2 against a dictionary of sets, for names and types without special rules."""
    names, addresses = ("m1", "m2", "x.m2"), [f"203.0.113.{n}" for n in range(4)]
    clear = new_update()
    for name in names:
        clear.delete(name)
    assert server.update(clear) == "NOERROR"
    model: dict[str, set[str]] = {name: set() for name in names}
    for _ in range(data.draw(st.integers(1, 4))):
        update = new_update()
        for _ in range(data.draw(st.integers(1, 5))):
            name = data.draw(st.sampled_from(names))
            value = data.draw(st.sampled_from(addresses))
            move = data.draw(st.sampled_from(["add", "delete", "delete set", "delete name", "replace"]))
            if move == "add":
                update.add(name, 30, "A", value)
                model[name].add(value)
            elif move == "delete":
                update.delete(name, "A", value)
                model[name].discard(value)
            elif move == "replace":
                update.replace(name, 30, "A", value)
                model[name] = {value}
            else:
                update.delete(name, *(["A"] if move == "delete set" else []))
                model[name].clear()
        assert server.update(update) == "NOERROR"
        for name in names:
            assert server.values(f"{name}.{DOMAIN}") == sorted(model[name])
        assert (server.ask(f"m2.{DOMAIN}").rcode() == dns.rcode.NXDOMAIN) == (not model["m2"] and not model["x.m2"])
