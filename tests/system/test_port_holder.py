"""Who is in the way of a place to listen: by address and port, on real sockets and on a /proc that was made up.

Two regions of stand-ins on one machine have the same port at many addresses of 127.0.0.0/8, and the
refusal once named the process at another address.
"""

import os
import socket
import sys
from pathlib import Path

import pytest

from fencepost.assembly.ports_in_use import taken, taken_by
from fencepost.roles.status.port_holder import DATAGRAM, STREAM, address_in, port_holder

PORT = 5302
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def made_up(folder: Path, sockets: dict[int, tuple[str, str, str]]) -> Path:
    """A /proc in which each pid has one socket: its table, its place as proc(5) writes it, its state."""
    (folder / "net").mkdir()
    for pid, (table, place, state) in sockets.items():
        net = folder / "net" / table
        before = net.read_text() if net.exists() else HEAD
        net.write_text(
            f"{before}   0: {place} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {pid}00 1\n"
        )
        (folder / str(pid) / "fd").mkdir(parents=True)
        (folder / str(pid) / "fd" / "3").symlink_to(f"socket:[{pid}00]")
        (folder / str(pid) / "comm").write_text(f"p{pid}\n")
    return folder


def word(address: str) -> str:
    """An IPv4 address as /proc/net has it, on this machine."""
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}"


def place(address: str) -> str:
    """A place as /proc/net has it."""
    return f"{word(address)}:{PORT:04X}"


@pytest.mark.parametrize("other", ["127.0.1.12", "127.0.1.1", "127.0.1.22"])
def test_who_has_the_port_at_another_address_is_not_named(tmp_path: Path, other: str) -> None:
    """127.0.1.2:5302 was said to be taken by pid 450, which had 127.0.1.12:5302; the lower pid came first."""
    proc = made_up(tmp_path, {450: ("tcp", place(other), "0A"), 451: ("tcp", place("127.0.1.2"), "0A")})
    assert port_holder("127.0.1.2", PORT, proc=proc) == (451, "p451")
    assert port_holder(other, PORT, proc=proc) == (450, "p450")
    assert port_holder("127.0.1.3", PORT, proc=proc) is None
    assert port_holder("127.0.1.2", PORT + 1, proc=proc) is None


@pytest.mark.parametrize(("table", "anywhere"), [("tcp", "0" * 8), ("tcp6", "0" * 32)])
def test_every_address_is_in_the_way_of_each_and_each_of_every(tmp_path: Path, table: str, anywhere: str) -> None:
    """A wildcard conflicts with any address of its port (bind(2): EADDRINUSE), but who has just that is named first."""
    some = {7: (table, f"{anywhere}:{PORT:04X}", "0A"), 9: ("tcp", place("127.0.1.2"), "0A")}
    proc = made_up(tmp_path, some)
    assert port_holder("127.0.1.9", PORT, proc=proc) == (7, "p7")
    assert port_holder("127.0.1.2", PORT, proc=proc) == (9, "p9")
    assert port_holder("::1", PORT, proc=proc) == (None if table == "tcp" else (7, "p7")), "0.0.0.0 is IPv4 alone"
    assert port_holder("0.0.0.0" if table == "tcp" else "::", PORT, proc=proc) == (7, "p7")


def test_a_connection_and_another_kind_of_socket_are_in_nobodys_way(tmp_path: Path) -> None:
    """TCP and UDP have ports of their own, and an established connection (01) doesn't listen."""
    proc = made_up(tmp_path, {5: ("udp", place("127.0.1.2"), "07"), 6: ("tcp", place("127.0.1.2"), "01")})
    assert port_holder("127.0.1.2", PORT, STREAM, proc) is None
    assert port_holder("127.0.1.2", PORT, DATAGRAM, proc) == (5, "p5")


def test_an_ipv4_address_within_ipv6_is_itself() -> None:
    """A socket for both families shows 127.0.1.2 as ::ffff:127.0.1.2 (ipv6(7))."""
    mapped = "0" * 16 + f"{int.from_bytes(bytes([0, 0, 255, 255]), sys.byteorder):08X}" + word("127.0.1.2")
    assert str(address_in(mapped)) == "127.0.1.2"


def test_the_refusal_names_the_process_at_that_address() -> None:
    """The same on real sockets: one port at two addresses of loopback, one of them ours, one nobody's."""
    with socket.socket() as held:
        held.bind(("127.0.1.2", 0))
        held.listen()
        port = held.getsockname()[1]
        assert f"127.0.1.2:{port} is taken, by pid {os.getpid()} (" in taken_by("127.0.1.2", port, "a test")
        found = taken("127.0.1.2", port, "a test")
        assert found is not None
        assert found.pid == os.getpid()
        assert taken_by("127.0.1.12", port, "a test") == ""
        assert port_holder("127.0.1.12", port) is None
        assert f"by pid {os.getpid()} (" in taken_by("0.0.0.0", port, "a test")
