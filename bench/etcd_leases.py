"""etcd's lease renewals (LeaseKeepAlive), from one client process, for a figure to stand beside ours.

etcd 3.4 (Debian's etcd-server) on loopback, one member. The client speaks to etcd's own JSON gateway over 64 persistent
connections, since no gRPC client is among what we install; so a part of the figure is the gateway's. etcd renews in the
leader's memory and writes nothing to disk, as our managers do; ours persist a checkpoint beside it.
"""

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

from free_ports import free_port

CONNECTIONS = 64
LEASES = 2_000
LASTS_S = 8.0


@contextlib.contextmanager
def etcd() -> Iterator[int]:
    """The client port of a new etcd, ended by its own process; nothing where etcd isn't installed."""
    client, peer = free_port(), free_port()
    at, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    with tempfile.TemporaryDirectory(prefix="fencepost-etcd-") as folder:
        words = ["--name", "one", "--data-dir", f"{folder}/data", "--listen-client-urls", at]
        words += ["--advertise-client-urls", at, "--listen-peer-urls", peers]
        words += ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"one={peers}"]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(["etcd", *words], stdout=log, stderr=log)
        try:
            yield client
        finally:
            process.terminate()
            process.wait(10)


class Connection:
    """One persistent HTTP connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def post(self, path: str, body: object) -> bytes:
        """The body of one answer; chunked, as the gateway streams."""
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        head_lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        assert b" 200 " in head_lines[0], head_lines[0]
        if b"transfer-encoding: chunked" not in head_lines:
            (length,) = [int(line.split(b":")[1]) for line in head_lines if line.startswith(b"content-length:")]
            return await self._reader.readexactly(length)
        answer = b""
        while size := int(await self._reader.readline(), 16):
            answer += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return answer


async def connected(port: int) -> Connection:
    """A connection, once etcd answers."""
    deadline = time.monotonic() + 20
    while True:
        try:
            connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
            await connection.post("/v3/maintenance/status", {})
        except (OSError, AssertionError, asyncio.IncompleteReadError):
            assert time.monotonic() < deadline, "etcd doesn't answer"
            await asyncio.sleep(0.1)
        else:
            return connection


async def renewals(port: int) -> float:
    """Renewals a second of one process."""
    connections = [await connected(port) for _ in range(CONNECTIONS)]
    leases: list[str] = []

    async def grant(at: int) -> None:
        for number in range(at + 1, LEASES + 1, CONNECTIONS):
            await connections[at].post("/v3/lease/grant", {"TTL": 600, "ID": number})
            leases.append(str(number))

    await asyncio.gather(*(grant(at) for at in range(CONNECTIONS)))
    end, done = time.monotonic() + LASTS_S, 0

    async def renew(at: int) -> None:
        nonlocal done
        while time.monotonic() < end:
            for lease in leases[at::CONNECTIONS]:
                answer = await connections[at].post("/v3/lease/keepalive", {"ID": lease})
                assert b'"TTL":"600"' in answer, answer
                done += 1

    began = time.monotonic()
    await asyncio.gather(*(renew(at) for at in range(CONNECTIONS)))
    return done / (time.monotonic() - began)


def measured() -> float | None:
    """Renewals a second, None where etcd isn't installed."""
    if shutil.which("etcd") is None:
        return None
    with etcd() as port:
        return asyncio.run(renewals(port))
