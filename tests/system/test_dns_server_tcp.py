"""TCP at the embedded DNS server (RFC 7766): many questions a connection, and who holds one holds up nobody."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.rcode
import pytest
from dns_server_running import DOMAIN, HERE, Running, new_update, running, settings_in


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


def test_several_questions_on_one_connection_also_sent_at_once_and_in_pieces(server: Running) -> None:
    """RFC 7766 sections 6.2.1 and 8: reuse, pipelining, and lengths and messages split anywhere."""
    with connect(server) as sock:
        sock.sendall(framed() * 3)
        assert [take(sock).rcode() for _ in range(3)] == [dns.rcode.NOERROR] * 3
        for byte in framed():
            sock.sendall(bytes((byte,)))
        assert take(sock).rcode() == dns.rcode.NOERROR
        sock.sendall(framed(f"nope.{DOMAIN}"))
        assert take(sock).rcode() == dns.rcode.NXDOMAIN
    assert server.server.counters.connections == 1


def test_an_idle_connection_is_closed(server: Running) -> None:
    """RFC 7766 section 6.2.3."""
    with connect(server) as sock:
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
        assert len(server.server._connections) <= 8
        with pytest.raises((EOFError, ConnectionResetError)):
            take(silent[0])


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
    where = settings_in(tmp_path, tcp_idle_s=0.3, transfer=(HERE,))
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
            for _ in range(200):
                assert server.ask(f"host1-1.{DOMAIN}", "TXT", tcp=True).rcode() == dns.rcode.NOERROR
                if server.server.counters.connections_closed_early:
                    break
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
