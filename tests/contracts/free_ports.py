"""Ports for servers that tests start: free now, and unlikely to be taken before the server has it.

A port that the system gives and takes back may be another's a moment later: it hands the same ones to every outgoing
connection. So these lie below the system's range (ip(7), ip_local_port_range begins at 32768), each worker of the test
run has its own, and one is given again only when all others were.
"""

import itertools
import os
import socket
from collections.abc import Iterator

FIRST, LAST, WORKERS = 10_000, 32_000, 8
SIZE = (LAST - FIRST) // WORKERS


def own_ports() -> Iterator[int]:
    """This worker's ports, beginning anywhere, so that two runs at once seldom meet."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw7").removeprefix("gw")
    first = FIRST + int(worker) % WORKERS * SIZE
    start = os.getpid() * 137 % SIZE
    return itertools.cycle([first + (start + each) % SIZE for each in range(SIZE)])


_ports = own_ports()


def free_port() -> int:
    """A port that is free for both TCP and UDP on 127.0.0.1, as of now."""
    for port in itertools.islice(_ports, SIZE):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free for both")


__all__ = ["free_port"]
