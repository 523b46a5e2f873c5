"""Which process holds a port of this machine, as far as /proc tells (proc(5): /proc/net/tcp and its like).

Several may hold the same port at different addresses: all of loopback, 127.0.0.0/8, is this machine. So the address
counts too. In the way of a place is who holds just that, or the port at every address; and whoever has it anywhere is
in the way of one that asks for every address.

Awkward truth: of another user's process only root sees which sockets it has, and a socket at every IPv6 address is
taken for one at every IPv4 address too, which /proc doesn't tell.
"""

import contextlib
import ipaddress
import os
import socket
import sys
from pathlib import Path

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

STREAM, DATAGRAM = ("tcp", "tcp6"), ("udp", "udp6")
"""The tables of /proc/net for each kind of socket."""
LISTENS = "0A"


def port_holder(
    host: str, port: int, tables: tuple[str, ...] = STREAM + DATAGRAM, proc: Path = Path("/proc")
) -> tuple[int, str] | None:
    """The process in the way of listening there: its pid and name. None if nobody is, or it can't be told."""
    wanted = addresses_of(host)
    exact, wide = set[str](), set[str]()
    for table in tables:
        with contextlib.suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                at, _, number = fields[1].rpartition(":")
                if int(number, 16) != port or (table in STREAM and fields[3] != LISTENS):
                    continue
                held = address_in(at)
                if held in wanted:
                    exact.add(f"socket:[{fields[9]}]")
                elif any(covers(held, each) or covers(each, held) for each in wanted):
                    wide.add(f"socket:[{fields[9]}]")
    return who_has(exact, proc) or who_has(wide, proc)


def covers(every: Address, one: Address) -> bool:
    """Whether ``every`` stands for all addresses, such as ``one``: :: for IPv4 as well, 0.0.0.0 for IPv4 alone."""
    return every.is_unspecified and (every.version == 6 or one.version == 4)


def addresses_of(host: str) -> frozenset[Address]:
    """The addresses that a host's name stands for here; none if it stands for nothing."""
    try:
        return frozenset({plain(ipaddress.ip_address(host.partition("%")[0]))})
    except ValueError:
        with contextlib.suppress(OSError):
            found = {str(place[0]) for *_, place in socket.getaddrinfo(host, None)}
            return frozenset(plain(ipaddress.ip_address(each.partition("%")[0])) for each in found)
    return frozenset()


def address_in(text: str) -> Address:
    """An address as /proc/net writes it: each 32 bits as a number in the machine's own byte order."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    return plain(ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words)))


def plain(address: Address) -> Address:
    """An IPv4 address that is written as an IPv6 one, as itself."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def who_has(sockets: set[str], proc: Path) -> tuple[int, str] | None:
    """The process with the lowest pid that has one of these sockets open."""
    for process in sorted(proc.glob("[0-9]*"), key=lambda path: int(path.name)) if sockets else ():
        with contextlib.suppress(OSError):
            for fd in (process / "fd").iterdir():
                with contextlib.suppress(OSError):  # closed just now
                    if os.readlink(fd) in sockets:
                        return int(process.name), (process / "comm").read_text().strip()
    return None
