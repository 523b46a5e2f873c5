"""The transfer walker and the update packer on bytes alone, against dnspython's reading and writing of the same."""

import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.update
import pytest
from dns_agreement import NAMES, lives, wish
from dns_scene import DOMAIN
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.adapters.dns_mirror import Mirror, OutOfStep
from fencepost.adapters.dns_transfer import Transfer
from fencepost.adapters.dns_update import pack_update
from fencepost.adapters.dns_wire import Head, read_records, run_data, skip_question
from fencepost.core.dns_numbers import Malformed, join_strings
from fencepost.core.fence import Marker
from fencepost.core.names import marker_name
from fencepost.core.zone import Live

Record = tuple[str, int, str, bytes]
"""Owner, TTL, type, data on the wire (here: names in it uncompressed)."""

DOMAINS = st.tuples(*map(lives, NAMES))


def records_of(live: Live) -> list[Record]:
    """An endpoint's records."""
    found: list[Record] = []
    for address in live.a:
        found.append((live.name, live.ttl, "A", dns.rdata.from_text("IN", "A", address).to_wire() or b""))
    for address in live.aaaa:
        found.append((live.name, live.ttl, "AAAA", dns.rdata.from_text("IN", "AAAA", address).to_wire() or b""))
    if live.marker is not None:
        raw = (live.marker.encode(),) if isinstance(live.marker, Marker) else live.marker.raw
        found += [(marker_name(live.name), 60, "TXT", join_strings(strings)) for strings in raw]
    return found


def soa(serial: int) -> Record:
    """The SOA record of a version."""
    data = dns.rdata.from_text("IN", "SOA", f"ns.{DOMAIN}. admin.{DOMAIN}. {serial} 1 1 1 1").to_wire()
    return DOMAIN, 60, "SOA", data or b""


def messages(records: list[Record], size: int) -> list[bytes]:
    """The records in messages of ``size`` records, names compressed by dnspython."""
    found = []
    for at in range(0, len(records), size):
        reply = dns.message.QueryMessage(id=7)
        reply.flags |= dns.flags.QR
        for owner, ttl, rtype, data in records[at : at + size]:
            kind = dns.rdatatype.from_text(rtype)
            rdata = dns.rdata.from_wire(dns.rdataclass.IN, kind, data, 0, len(data))
            reply.answer.append(dns.rrset.from_rdata(dns.name.from_text(owner), ttl, rdata))
        found.append(reply.to_wire())
    return found


def feed(transfer: Transfer, stream: list[bytes], *, runs: bool = True) -> bool:
    """Feed a stream; whether it was complete, exactly at its end. ``runs``: as the adapter reads it."""
    done = False
    for message in stream:
        head = Head(message)
        known: dict[int, bytes] = {}
        at = skip_question(message, head.counts[0], known)
        found, _ = read_records(message, at, head.counts[1], known, runs=runs)
        done = transfer.feed(message, found, known)
    return done


def whole(domain: tuple[Live, ...], serial: int, size: int = 3) -> Mirror:
    """The mirror of a domain, read as a whole."""
    transfer = Transfer(Mirror(DOMAIN, "eu-1"), whole=True)
    inner = [record for live in domain for record in records_of(live)]
    assert feed(transfer, messages([soa(serial), *inner, soa(serial)], size))
    return transfer.finish()[0]


def expected(domain: tuple[Live, ...]) -> dict[str, Live]:
    """What a mirror of it holds."""
    return {live.name: live for live in domain if live.marker is not None or not live.empty}


@given(DOMAINS, st.integers(1, 9), st.booleans())
@settings(max_examples=60, deadline=None)
def test_whole_transfer(domain: tuple[Live, ...], size: int, backwards: bool) -> None:
    """Whatever the order of records and the cuts between messages, the mirror holds the domain."""
    transfer = Transfer(Mirror(DOMAIN, "eu-1"), whole=True)
    inner = [record for live in domain for record in records_of(live)]
    if backwards:
        inner.reverse()
    assert feed(transfer, messages([soa(5), *inner, soa(5)], size))
    mirror, changed = transfer.finish()
    assert mirror.lives == expected(domain)
    assert set(changed) == set(mirror.lives)
    assert mirror.serial == 5


@given(DOMAINS, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_runs_change_nothing(domain: tuple[Live, ...], size: int) -> None:
    """Addresses taken a set at a time are those taken one by one, and no byte after them is lost."""
    for message in messages([soa(5), *[record for live in domain for record in records_of(live)], soa(5)], size):
        head, taken = Head(message), []
        for runs in (False, True):
            known: dict[int, bytes] = {}
            found, end = read_records(message, skip_question(message, 0, known), head.counts[1], known, runs=runs)
            assert end == len(message)
            apart = []
            for record in found:
                many = record[1] in (1, 28)
                data = run_data(message, record) if many else (message[record[3] : record[4]],)
                apart += [(*record[:3], each) for each in data]
            taken.append(apart)
        assert taken[0] == taken[1]


def test_a_wrong_length_is_no_run() -> None:
    """An address of 20 bytes isn't two: the length on the wire counts."""
    owner = b"\x01a\x00"
    message = bytes(12) + owner + b"\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x14" + bytes(20)
    (record,), _ = read_records(message, 12, 1, {}, runs=True)
    with pytest.raises(Malformed):
        run_data(message, record)


@given(DOMAINS, DOMAINS, st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_incremental_is_whole(old: tuple[Live, ...], new: tuple[Live, ...], size: int) -> None:
    """What an incremental transfer leads to is what a whole one of the new version gives; it names what changed."""
    before = [record for live in old for record in records_of(live)]
    after = [record for live in new for record in records_of(live)]
    gone = [record for record in before if record not in after]
    come = [record for record in after if record not in before]
    mirror = whole(old, 1)
    transfer = Transfer(mirror, whole=False)
    assert feed(transfer, messages([soa(2), soa(1), *gone, soa(2), *come, soa(2)], size))
    assert mirror.lives == expected(old)  # nothing is touched before the end
    result, changed = transfer.finish()
    assert result.lives == whole(new, 2).lives == expected(new)
    assert set(changed) == {one.name for one, two in zip(old, new, strict=True) if one != two}


@given(DOMAINS, st.data())
@settings(max_examples=60, deadline=None)
def test_cut_off_is_never_complete(domain: tuple[Live, ...], data: st.DataObject) -> None:
    """No beginning of a transfer is taken for all of it, whole or incremental (external-dns #2071).

    Nor are the first versions of several for the newest (RFC 1995 section 4).
    """
    inner = [record for live in domain for record in records_of(live)]
    several = [soa(5), soa(1), soa(3), *inner, soa(3), *inner, soa(5), *inner, soa(5)]
    for stream, base in (
        ([soa(5), *inner, soa(5)], Mirror(DOMAIN, "eu-1")),
        ([soa(5), soa(1), soa(5), *inner, soa(5)], whole((), 1)),
        (several, whole((), 1)),
    ):
        cut = data.draw(st.integers(1, len(stream) - 1))
        if stream is several and data.draw(st.booleans()):
            cut = 4 + len(inner)  # where the first version ends
        transfer = Transfer(base, whole=base.serial < 0)
        assert not feed(transfer, messages(stream[:cut], 1))


@given(DOMAINS, st.data())
@settings(max_examples=150, deadline=None)
def test_spoilt_bytes(domain: tuple[Live, ...], data: st.DataObject) -> None:
    """Bytes changed or cut anywhere: another domain, or a complaint, and no other exception; never for ever."""
    inner = [record for live in domain for record in records_of(live)]
    (message,) = messages([soa(5), *inner, soa(5)], 1000)
    spoilt = bytearray(message[: data.draw(st.integers(0, len(message)))] if data.draw(st.booleans()) else message)
    for _ in range(data.draw(st.integers(1, 4))):
        if spoilt:
            spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    for base in (Mirror(DOMAIN, "eu-1"), whole(domain, 1)):
        try:
            transfer = Transfer(base, whole=base.serial < 0)
            if feed(transfer, [bytes(spoilt)]):
                transfer.finish()
        except (Malformed, OutOfStep):
            pass


@pytest.mark.parametrize("pointer", [0, 11, 12, 20, 40, 0x3FFF])
def test_pointers_go_backward(pointer: int) -> None:
    """A name that points at itself, forward or into the header is no name (RFC 1035 section 4.1.4)."""
    head = bytes((0, 7, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0))
    message = head + (0xC000 | pointer).to_bytes(2, "big") + b"\0\1\0\1\0\0\0\1\0\4\1\2\3\4"
    with pytest.raises(Malformed):
        read_records(message, 12, 1, {})


@pytest.mark.parametrize(("said", "taken"), [(0, 0), (1, 1), (2**31 - 1, 2**31 - 1), (2**31, 0), (2**32 - 1, 0)])
def test_a_ttl_has_31_bits(said: int, taken: int) -> None:
    """RFC 2181 section 8: with the most significant bit set it is treated as if the entire value was zero."""
    head = bytes((0, 7, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0))
    message = head + b"\1a\0\0\1\0\1" + said.to_bytes(4, "big") + b"\0\4\1\2\3\4"
    ((_, _, ttl, *_),), _ = read_records(message, 12, 1, {})
    assert ttl == taken


@given(DOMAINS, st.lists(st.lists(st.sampled_from(("192.0.2.1", "192.0.2.7", "2001:db8::1")), unique=True), min_size=3))
@settings(max_examples=60, deadline=None)
def test_update_as_dnspython_reads_it(domain: tuple[Live, ...], sets: list[list[str]]) -> None:
    """The packed update, read by dnspython: prerequisites by value or absence, whole sets replaced, nothing else."""
    batch = tuple(wish(live, 4, tuple(sets[index])) for index, live in enumerate(domain))
    packed = pack_update(9, DOMAIN, batch)
    message = dns.message.from_wire(packed)
    assert isinstance(message, dns.update.UpdateMessage)
    assert message.zone[0].name.to_text() == f"{DOMAIN}."
    required = {
        (found.name.to_text(), found.rdtype.name, rdata.to_wire()) for found in message.prerequisite for rdata in found
    }
    absent = {(found.name.to_text(), found.rdtype.name) for found in message.prerequisite if not len(found)}
    assert required == {(f"{owner}.", rtype, data) for live in domain for owner, _, rtype, data in records_of(live)}
    for live in domain:
        assert ((f"{live.name}.", "A") in absent) is (not live.a)
        assert ((f"{live.name}.", "AAAA") in absent) is (not live.aaaa)
        assert ((f"{live.name}.", "CNAME") in absent) is live.empty
        assert ((f"{marker_name(live.name)}.", "TXT") in absent) is (live.marker is None)
    cleared = {(found.name.to_text(), found.rdtype.name) for found in message.update if found.deleting}
    added = {
        (found.name.to_text(), found.rdtype.name, rdata.to_wire())
        for found in message.update
        for rdata in found
        if not found.deleting
    }
    for one in batch:
        assert ((f"{marker_name(one.name)}.", "TXT") in cleared) is (one.seen.marker is not None)
        assert (f"{marker_name(one.name)}.", "TXT", join_strings(one.marker.encode())) in added
        for rtype, old, new in (("A", one.seen.a, one.content.a), ("AAAA", one.seen.aaaa, one.content.aaaa)):
            changed = old != new or (bool(new) and one.seen.ttl != one.content.ttl)
            assert ((f"{one.name}.", rtype) in cleared) is (changed and bool(old))
            sent = {data for owner, kind, data in added if (owner, kind) == (f"{one.name}.", rtype)}
            assert len(sent) == (len(new) if changed else 0)
