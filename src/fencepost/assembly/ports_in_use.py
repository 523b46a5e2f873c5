"""Whether a place can be listened on, and by whom not: asked before a start, and told by a role that goes without."""

import errno
import socket

from fencepost.ports import Misconfigured
from fencepost.roles.status.port_holder import DATAGRAM, STREAM, port_holder


def taken_by(host: str, port: int, what: str, *, udp: bool = False) -> str:
    """Why a place can't be listened on, "" if it can. Raises ``Misconfigured`` if it is no address of this machine."""
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
                    return f"{host}:{port} can't be listened on: {error.strerror}"
                by = holder(str(place[0]), port, STREAM if kind == socket.SOCK_STREAM else DATAGRAM)
                return f"{host}:{port} is taken{f', by {by}' if by else ''}"
    return ""


def holder(host: str, port: int, tables: tuple[str, ...] = STREAM + DATAGRAM) -> str:
    """The process that listens at a place, as far as /proc tells: "pid 4711 (named)"; "" if it doesn't."""
    found = port_holder(host, port, tables)
    return f"pid {found[0]} ({found[1]})" if found is not None else ""
