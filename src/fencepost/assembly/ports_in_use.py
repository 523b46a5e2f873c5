"""Whether a place can be listened on, and by whom not: asked before a start, and told by a role that goes without."""

import errno
import socket
from typing import NamedTuple

from fencepost.ports import Misconfigured
from fencepost.roles.status.port_holder import DATAGRAM, STREAM, port_holder


class Taken(NamedTuple):
    """Why a place can't be listened on, in words, and the pid of who has it: 0 where nobody does, or isn't known."""

    why: str
    pid: int = 0


def taken_by(host: str, port: int, what: str, *, udp: bool = False) -> str:
    """Why a place can't be listened on, "" if it can. Raises ``Misconfigured`` if it is no address of this machine."""
    found = taken(host, port, what, udp=udp)
    return found.why if found is not None else ""


def taken(host: str, port: int, what: str, *, udp: bool = False) -> Taken | None:
    """Why a place can't be listened on, and who has it; None if it can. Raises as :func:`taken_by` does."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM) if udp else (socket.SOCK_STREAM,):
        try:
            families = socket.getaddrinfo(host, port, type=kind)
        except OSError as error:
            raise Misconfigured(f"{host} is no address of this machine ({error.strerror})", where=what) from None
        family, _, _, _, place = families[0]
        with socket.socket(family, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    return Taken(f"{host}:{port} can't be listened on: {error.strerror}")
                by = port_holder(str(place[0]), port, STREAM if kind == socket.SOCK_STREAM else DATAGRAM)
                words = f", by {in_words(by)}" if by is not None else ""
                return Taken(f"{host}:{port} is taken{words}", by[0] if by is not None else 0)
    return None


def in_words(found: tuple[int, str]) -> str:
    """A process that listens at a place, its pid and name: "pid 4711 (named)"."""
    return f"pid {found[0]} ({found[1]})"
