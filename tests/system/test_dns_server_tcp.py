"""TCP at the embedded DNS server (RFC 7766): many questions a connection, and who holds one holds up nobody."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import dns.message
import dns.query
import dns.rcode
import dns.zone
import pytest
from dns_server_running import DOMAIN, HERE, KEY, Running, new_update, running, settings_in
from patience import Patience


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    where = settings_in(tmp_path, tcp_idle_s=0.4, tcp_message_s=0.3, tcp_connections_max=8)
    with running(where) as found:
        yield found


def connect(server: Running) -> socket.socket:
    """A connection."""
    sock = socket.create_connection((HERE, server.port), timeout=5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def framed(name: str = DOMAIN, rtype: str = "SOA") -> bytes:
    """One query as TCP carries it."""
    wire = dns.message.make_query(name, rtype).to_wire()
    return struct.pack("!H", len(wire)) + wire


def take(sock: socket.socket) -> dns.message.Message:
    """One answer."""
    (size,) = struct.unpack("!H", exactly(sock, 2))
    return dns.message.from_wire(exactly(sock, size))


def exactly(sock: socket.socket, size: int) -> bytes:
    """So many bytes, or EOFError."""
    got = b""
    while len(got) < size:
        part = sock.recv(size - len(got))
        if not part:
            raise EOFError
        got += part
    return got


def test_several_questions_on_one_connection_also_sent_at_once_and_in_pieces(tmp_path: Path) -> None:
    """RFC 7766 sections 6.2.1 and 8: reuse, pipelining, and lengths and messages split anywhere."""
    with running(settings_in(tmp_path)) as server, connect(server) as sock:
        sock.sendall(framed() * 3)
        assert [take(sock).rcode() for _ in range(3)] == [dns.rcode.NOERROR] * 3
        for byte in framed():
            sock.sendall(bytes((byte,)))
        assert take(sock).rcode() == dns.rcode.NOERROR
        sock.sendall(framed(f"nope.{DOMAIN}"))
        assert take(sock).rcode() == dns.rcode.NXDOMAIN
        assert server.server.counters.connections == 1


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    """RFC 7766 section 6.2.3."""
    with running(settings_in(tmp_path, tcp_idle_s=1.0)) as server, connect(server) as sock:
        sock.sendall(framed())
        take(sock)
        with pytest.raises((EOFError, ConnectionResetError)):
            take(sock)


def test_a_message_that_trickles_is_cut_off(server: Running) -> None:
    """Slowloris: the whole message is due within its time, however often a byte comes."""
    with connect(server) as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        sock.settimeout(0.05)
        sock.sendall(struct.pack("!H", 60_000))
        for _ in range(200):
            sock.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                if sock.recv(1) == b"":
                    break
        else:
            pytest.fail("it was never cut off")
    assert server.server.counters.connections_closed_early == 1


def test_many_silent_connections_do_not_lock_others_out(server: Running) -> None:
    """At the limit the connection idle longest makes room, so the newest always gets its answer."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(30)]
        assert server.ask(DOMAIN, "SOA", tcp=True).rcode() == dns.rcode.NOERROR
        assert len(server.server.connections) <= 8
        with pytest.raises((EOFError, ConnectionResetError)):
            take(silent[0])


def signed() -> bytes:
    """One query signed with the server's key, as TCP carries it."""
    query = dns.message.make_query(DOMAIN, "SOA")
    query.use_tsig(KEY)
    wire = query.to_wire()
    return struct.pack("!H", len(wire)) + wire


def ask_signed(sock: socket.socket) -> bool:
    """A signed question on a connection; whether it was answered."""
    try:
        sock.sendall(signed())
        return len(exactly(sock, struct.unpack("!H", exactly(sock, 2))[0])) > 12
    except (OSError, EOFError):
        return False


class Flood:
    """Clients that ask without end and never read; who is cut off comes again at once."""

    def __init__(self, port: int, count: int) -> None:
        self.port = port
        self.over = threading.Event()
        self.cut_off = 0
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(10)

    def ask(self) -> None:
        questions = framed() * 100
        while not self.over.is_set():
            with contextlib.suppress(OSError), socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                sock.settimeout(0.2)
                sock.connect((HERE, self.port))
                while not self.over.is_set():
                    with contextlib.suppress(TimeoutError):
                        sock.sendall(questions)
            self.cut_off += 1


def test_clients_that_ask_without_end_and_never_read_lock_nobody_out(tmp_path: Path) -> None:
    """With the places full of them enactors got no transfer, and an emptied endpoint stayed empty until they left."""
    with running(settings_in(tmp_path, tcp_connections_max=8)) as server, connect(server) as kept:
        assert ask_signed(kept)
        with Flood(server.port, 16) as flood:
            while flood.cut_off < 8:  # the places are taken, and given up
                time.sleep(0.01)
            for _ in range(20):
                look(server, kept)


def look(server: Running, kept: socket.socket) -> None:
    """Who has signed, who comes to sign and who comes without a key are all answered."""
    assert ask_signed(kept), "a connection that has signed keeps its place"
    with connect(server) as new:
        assert ask_signed(new), "who comes with our key finds one"
    assert server.ask(DOMAIN, "SOA", tcp=True).rcode() == dns.rcode.NOERROR
    assert len(server.server.connections) <= 8


def test_who_has_our_key_keeps_its_place_and_the_address_with_most_places_gives_one_up(tmp_path: Path) -> None:
    """A secondary at another address must not suffer for the many of one."""
    with (
        running(settings_in(tmp_path, tcp_connections_max=8)) as server,
        connect(server) as writer,
        contextlib.ExitStack() as stack,
    ):
        assert ask_signed(writer)
        other = stack.enter_context(socket.create_connection((HERE, server.port), 5, ("127.0.0.2", 0)))
        for _ in range(30):
            stack.enter_context(connect(server))
        other.sendall(framed())
        assert take(other).rcode() == dns.rcode.NOERROR
        assert ask_signed(writer)


def test_who_sends_many_questions_ahead_waits_its_turn(tmp_path: Path) -> None:
    """RFC 7766 section 6.2.1.1: else one client's thousand questions come before another's one."""
    with running(settings_in(tmp_path)) as server, connect(server) as many, connect(server) as one:
        for sock in (many, one):
            sock.sendall(framed())
            take(sock)
        order: list[int] = []
        handler = server.server.handler
        now = handler.now

        def seen(message: bytes, *rest: Any, **more: Any) -> Any:
            order.append(len(message))
            return now(message, *rest, **more)

        handler.now = seen  # type: ignore[method-assign]
        name = f"one-question.{DOMAIN}"
        held = threading.Event()
        server.loop.call_soon_threadsafe(held.wait, 5)
        many.sendall(framed() * 400)
        one.sendall(framed(name))
        held.set()
        assert take(one).rcode() == dns.rcode.NXDOMAIN
        assert order.index(len(framed(name)) - 2) < 20


def test_transfers_left_unread_keep_no_writer_waiting(tmp_path: Path) -> None:
    """Few whole transfers run at a time; those of the listed addresses have no claim on those of our key."""
    with running(settings_in(tmp_path, tcp_idle_s=60.0, transfer=(HERE,))) as server, contextlib.ExitStack() as stack:
        for start in range(10):
            update = new_update()
            for index in range(200):
                update.add(f"host{start}-{index}", 30, "TXT", f'"{"x" * 250}"')
            assert server.update(update, tcp=True) == "NOERROR"
        for _ in range(12):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((HERE, server.port))
            sock.sendall(framed(DOMAIN, "AXFR") * 30)  # more than any socket buffers
        before = -1
        while before != (sent := server.server.counters.transfers.get("axfr", 0)):  # until their buffers are full
            before = sent
            time.sleep(0.3)
        query = dns.message.make_query(DOMAIN, "AXFR")
        query.use_tsig(KEY)
        zone = dns.zone.Zone(DOMAIN)
        dns.query.inbound_xfr(HERE, zone, query, port=server.port, timeout=10, lifetime=20)
        assert len(zone.nodes) > 2000


@pytest.mark.parametrize("junk", [b"\0\0", b"\0\5hello", b"\xff\xff" + b"z" * 65_535, b"\0\x0c" + b"\xff" * 12])
def test_junk_ends_or_is_answered_and_the_server_goes_on(server: Running, junk: bytes) -> None:
    """A length too short for a header ends the connection; replies are dropped; nothing else happens."""
    with connect(server) as sock, contextlib.suppress(ConnectionResetError, BrokenPipeError, EOFError, TimeoutError):
        sock.sendall(junk)
        sock.settimeout(0.2)
        sock.recv(100)
    assert server.ask(DOMAIN, "SOA", tcp=True).rcode() == dns.rcode.NOERROR
    assert server.server.counters.errors == 0


def test_a_client_that_stops_reading_a_transfer_is_cut_off(tmp_path: Path) -> None:
    """Its connection ends at the time-out; meanwhile and afterwards others are answered."""
    where = settings_in(tmp_path, tcp_idle_s=1.0, transfer=(HERE,))
    with running(where) as server:
        for start in range(30):
            update = new_update()
            for index in range(200):
                update.add(f"host{start}-{index}", 30, "TXT", f'"{"x" * 250}"')
            assert server.update(update, tcp=True) == "NOERROR"
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((HERE, server.port))
            for _ in range(20):  # 20 transfers of 1.7 MB: more than any socket buffers
                sock.sendall(framed(DOMAIN, "AXFR"))
            patience = Patience(20)
            while not server.server.counters.connections_closed_early:
                assert not patience.over(), "it is never cut off"
                assert server.ask(f"host1-1.{DOMAIN}", "TXT", tcp=True).rcode() == dns.rcode.NOERROR
                time.sleep(0.02)
        assert server.server.counters.connections_closed_early == 1


def test_a_connection_reset_at_once_is_no_fault(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    """A canary probe connects and resets: by the time it is served nobody can be asked who it was."""
    for _ in range(50):
        sock = socket.create_connection((HERE, server.port), timeout=5)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    assert server.ask(DOMAIN, "SOA", tcp=True).rcode() == dns.rcode.NOERROR
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert server.server.counters.errors == 0


def test_transfers_asked_for_ahead_and_left_unread_are_no_fault_when_their_client_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A client may close at any time (RFC 7766 section 6.2.4): it counts as closed early, and nothing is logged."""
    where = settings_in(tmp_path, transfer=(HERE,))
    with running(where) as server, contextlib.ExitStack() as stack:
        update = new_update()
        for index in range(100):
            update.add(f"host{index}", 30, "TXT", f'"{"x" * 250}"')
        assert server.update(update, tcp=True) == "NOERROR"
        for _ in range(20):
            sock = stack.enter_context(socket.create_connection((HERE, server.port), timeout=5))
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                for _ in range(20):
                    sock.send(framed(DOMAIN, "AXFR") * 100)
        before = -1
        while before != (sent := server.server.counters.transfers.get("axfr", 0)):  # until their buffers are full
            before = sent
            time.sleep(0.2)
        stack.close()
        patience = Patience(20)
        while len(server.server.connections):
            assert not patience.over(), "not all have ended"
            time.sleep(0.02)
        assert server.server.counters.connections_closed_early == 20
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
