"""Whether a place can be listened on, and by whom not: asked before a start, and told by a role that goes without."""

import errno
import os
import socket
from pathlib import Path

from fencepost.ports import Misconfigured


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
                by = holder(port)
                return f"{host}:{port} is taken{f', by {by}' if by else ''}"
    return ""


def holder(port: int) -> str:
    """The process that listens on a port, as far as /proc tells: "pid 4711 (named)"; "" if it doesn't."""
    inodes = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            listens = fields[3] == "0A" or table.startswith("udp")
            if listens and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if any(os.readlink(fd) in inodes for fd in (folder / "fd").iterdir()):
                return f"pid {folder.name} ({(folder / 'comm').read_text().strip()})"
        except OSError:
            continue
    return ""
