"""Hostile messages to the embedded DNS server: mutated good ones of every kind, and noise.

Nothing may escape the handler, no reply may be longer than the client's size allows or answer a reply, memory must not
grow, and the server must answer as before. Seeded, so that a failure comes again.
"""

import asyncio
import gc
import random
import socket
import struct
import tracemalloc
from pathlib import Path

import dns.edns
import dns.message
import dns.opcode
import dns.rcode
import dns.rrset
import dns.update
import pytest
from dns_server_running import DOMAIN, HERE, KEY, Running, new_update, running, settings_in

from fencepost.core.dns_numbers import Malformed
from fencepost.roles.dns_server.handler import Handler, Later
from fencepost.roles.dns_server.request import read_request
from fencepost.roles.dns_server.wire import read_name

PACKETS = 100_000
SOCKET_PACKETS = 4_000


def good_messages() -> list[bytes]:
    """One of each kind that the server knows, signed and not."""
    update = new_update(key=None)
    update.present("api", "A", "192.0.2.1")
    update.absent("nope")
    update.present("_fencepost.api", "TXT", '"x"')
    update.delete("api", "A")
    update.add("api", 30, "A", "192.0.2.1")
    update.add("mail", 30, "MX", "10 mail")
    update.add("srv", 30, "SRV", "1 2 3 api")
    update.add("@", 30, "SOA", "ns hostmaster 9 1 1 1 1")
    signed = new_update()
    signed.delete("nothing-here")
    ixfr = dns.message.make_query(DOMAIN, "IXFR")
    ixfr.authority.append(dns.rrset.from_text(DOMAIN, 0, "IN", "SOA", "a.b. c.d. 1 2 3 4 5"))
    notify = dns.message.make_query(DOMAIN, "SOA")
    notify.set_opcode(dns.opcode.NOTIFY)
    signed_query = dns.message.make_query(f"api.{DOMAIN}", "A")
    signed_query.use_tsig(KEY)
    cookie = dns.edns.GenericOption("COOKIE", b"12345678")
    queries = [
        dns.message.make_query(f"api.{DOMAIN}", "A"),
        dns.message.make_query(f"API.{DOMAIN}", "ANY", use_edns=0, payload=1232, options=[cookie]),
        dns.message.make_query(f"x.wild.{DOMAIN}", "TXT", want_dnssec=True),
        dns.message.make_query(f"alias.{DOMAIN}", "AAAA", use_edns=1),
        dns.message.make_query(DOMAIN, "AXFR"),
    ]
    made = [*queries, update, signed, ixfr, notify, signed_query]
    return [message.to_wire() for message in made] + [dns.message.make_response(queries[0]).to_wire()]


def mutate(rng: random.Random, good: list[bytes]) -> bytes:
    """A good message with something wrong in it, or noise."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.randbytes(rng.randrange(0, 80))
    wire = bytearray(rng.choice(good))
    if kind == 1:
        return bytes(wire[: rng.randrange(len(wire) + 1)])
    if kind == 2:
        return bytes(wire) + rng.randbytes(rng.randrange(1, 40))
    if kind == 3:  # counts that lie
        at = rng.choice((4, 6, 8, 10))
        wire[at : at + 2] = struct.pack("!H", rng.choice((0, 1, 2, 3, 255, 65_535)))
    elif kind == 4:  # pointers anywhere
        at = rng.randrange(12, len(wire) - 1)
        wire[at : at + 2] = struct.pack("!H", 0xC000 | rng.randrange(len(wire) + 4))
    elif kind == 5:
        other = rng.choice(good)
        cut = rng.randrange(len(wire))
        return bytes(wire[:cut]) + other[rng.randrange(len(other)) :]
    elif kind == 6 and len(wire) > 17:  # another opcode, type or class
        wire[2] = rng.randrange(256) & 0x7F
        wire[rng.randrange(12, len(wire))] = rng.randrange(256)
    else:
        for _ in range(rng.randrange(1, 6)):
            wire[rng.randrange(len(wire))] = rng.randrange(256)
    return bytes(wire)


async def feed(handler: Handler, messages: list[bytes]) -> int:
    """Give the handler each message, over UDP and TCP in turn; check each reply. Gives how many it answered."""
    answered = 0
    for number, message in enumerate(messages):
        tcp = number % 4 == 0
        reply = handler.now(message, HERE, tcp=tcp)
        if isinstance(reply, Later):
            parts = [part async for part in handler.later(reply)]
            assert parts
        else:
            parts = [] if reply is None else [reply]
        for part in parts:
            answered += 1
            assert len(message) >= 12
            assert not message[2] & 0x80, "a reply was answered"
            assert part[:2] == message[:2]
            assert part[2] & 0x80
            assert len(part) <= (65_535 if tcp else 1_232)
            if part[3] & 15 == dns.rcode.FORMERR and part[5] == 0:
                assert len(part) <= len(message)
        if number % 500 == 0:
            await asyncio.sleep(0)
    return answered


def prepare(server: Running) -> None:
    """Some records to be asked for."""
    update = new_update()
    update.add("api", 30, "A", *(f"192.0.2.{n}" for n in range(1, 60)))
    update.add("*.wild", 30, "TXT", '"star"')
    update.add("alias", 30, "CNAME", "api")
    assert server.update(update) == "NOERROR"


def test_a_hundred_thousand_hostile_messages_change_nothing(tmp_path: Path) -> None:
    """RFC 1035 section 7.3 and CVEs of a dozen parsers: loops, lies about lengths, signatures out of place."""
    rng = random.Random(20251019)
    with running(settings_in(tmp_path, transfer=(HERE,))) as server:
        prepare(server)
        good = good_messages()
        handler, counters = server.server.handler, server.server.counters
        serial = server.serial()
        answered = 0
        for turn in range(10):
            batch = [mutate(rng, good) for _ in range(PACKETS // 10)]
            if turn == 9:
                gc.collect()
                tracemalloc.start()
            answered += server.do(feed(handler, batch))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert grown < 1 << 20
        assert answered > PACKETS // 3
        assert counters.errors == 0
        assert counters.malformed > PACKETS // 10
        assert server.serial() == serial
        assert len(server.values(f"alias.{DOMAIN}", "A")) > 10
        assert set(counters.updates) <= {"NOERROR", "FORMERR", "REFUSED", "NOTAUTH", "NOTZONE", "NXRRSET"}


def test_every_message_cut_at_every_byte_is_told_malformed(tmp_path: Path) -> None:
    """Each good message at each of its lengths, and at each of its bytes a pointer (RFC 1035 section 4.1.4) instead of
    what stood there, cut within it or after it: nothing of it is a fault of ours, and no log fills."""
    with running(settings_in(tmp_path, transfer=(HERE,))) as server:
        prepare(server)
        counters = server.server.counters
        cut = [wire[:size] for wire in good_messages() for size in range(len(wire))]
        server.do(feed(server.server.handler, cut))
        assert counters.errors == 0
        before = counters.malformed
        pointed = [
            wire[:at] + pointer
            for wire in good_messages()
            for at in range(12, len(wire))
            for pointer in (b"\xc0", b"\xc0\0", b"\xc0\x0c", b"\xc0\0\0\1\0\1", b"\xc0\x0c\0\1\0\1", b"\x3f", b"\xff")
        ]
        server.do(feed(server.server.handler, pointed))
        assert counters.errors == 0
        assert counters.malformed - before > len(pointed) * 3 // 4


@pytest.mark.parametrize("question", ["c0", "c000", "c00c", "c00000010001", "c00c00010001", "0161c0", "3f", ""])
def test_a_question_that_is_a_pointer_or_cut_short_is_malformed(question: str) -> None:
    """A question is the first name in a message: there is nothing before it to point at."""
    message = bytes.fromhex("000100000001000000000000" + question)
    with pytest.raises(Malformed):
        read_request(message, tcp=False, source=HERE)


def test_random_names_do_not_fill_the_memory(tmp_path: Path) -> None:
    """A random-subdomain flood (and one under a wildcard, and one of odd EDNS sizes) is answered and forgotten."""
    rng = random.Random(3)

    def flood(count: int) -> list[bytes]:
        names = [f"{rng.randbytes(8).hex()}.{rng.choice(('', 'wild.'))}{DOMAIN}" for _ in range(count)]
        queries = [dns.message.make_query(name, "TXT") for name in names]
        template = dns.message.make_query(f"api.{DOMAIN}", "A", use_edns=0, payload=1232).to_wire()
        odd = [template[:-8] + struct.pack("!H", rng.randrange(65_536)) + template[-6:] for _ in range(count)]
        return [query.to_wire() for query in queries] + odd

    with running(settings_in(tmp_path)) as server:
        prepare(server)
        handler = server.server.handler
        server.do(feed(handler, flood(500)))
        kept = len(handler._kept.by_key)
        batch = flood(3_000)
        gc.collect()
        tracemalloc.start()
        server.do(feed(handler, batch))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert kept <= 500
        assert grown < 8 << 20
        assert handler._kept._bytes <= (16 << 20) + 10_000


def test_hostile_messages_through_the_socket_and_then_a_good_one(tmp_path: Path) -> None:
    """The same through UDP and TCP: the server goes on, and counts."""
    rng = random.Random(99)
    with running(settings_in(tmp_path)) as server:
        prepare(server)
        good = good_messages()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for number in range(SOCKET_PACKETS):
                sock.sendto(mutate(rng, good) or b"x", (HERE, server.port))
                if number % 100 == 0:
                    assert len(server.values(f"alias.{DOMAIN}", "A")) > 10
        for _ in range(100):
            with socket.create_connection((HERE, server.port), timeout=5) as sock:
                wire = mutate(rng, good)
                sock.sendall(struct.pack("!H", len(wire)) + wire)
        assert len(server.values(f"alias.{DOMAIN}", "A")) > 10
        assert server.ask(DOMAIN, "SOA", tcp=True).rcode() == dns.rcode.NOERROR
        counters = server.server.counters
        assert counters.errors == 0
        assert counters.malformed > 0
        assert counters.dropped > 0


def test_a_message_of_nothing_but_pointers_is_read_in_bounded_time() -> None:
    """RFC 1035 section 4.1.4: 4,000 pointers that chase each other backwards cost a bounded number of steps each."""
    message = bytearray(dns.update.UpdateMessage(DOMAIN).to_wire())
    start = len(message)
    message += b"\xc0\x0c" * 4_000
    for at in range(start + 2, len(message), 2):
        message[at : at + 2] = struct.pack("!H", 0xC000 | (at - 2))
    hops = 0

    class Counting(bytes):
        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            nonlocal hops
            hops += 1
            return bytes.__getitem__(self, index)

    counted = Counting(bytes(message))
    for at in range(start, len(message), 2):
        try:
            read_name(counted, at, {})
        except Malformed:
            continue
    assert hops < 4_000 * 2 * 130 + 4_000 * 40
