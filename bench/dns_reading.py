"""What reading and writing a domain costs: cold and warm reads of many endpoints, and the packing of 200 updates.

    python -m bench.dns_reading [endpoints] [server]

``server`` is bind (default), knot or powerdns; the domain holds, for each endpoint, a marker and two A records. CPU is
this process's own; memory is its peak, measured in a process that does nothing else (the server is another process).
"""

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

from servers import DOMAIN, KEY_NAME, KEY_SECRET, ZONE, Served, bind, knot, powerdns

from fencepost.adapters.dns_rfc2136 import Rfc2136Dns, Rfc2136Settings
from fencepost.adapters.dns_signature import Signer
from fencepost.adapters.dns_update import pack_update
from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import Content, content
from fencepost.core.zone import Change, Live


def write_zone(path: Path, endpoints: int) -> str:
    """A zone file; markers are well formed and match their records."""
    with path.open("w") as file:
        file.write(ZONE)
        for index in range(endpoints):
            value = Content((f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}", "192.0.2.1"), (), (), 30)
            marker = Marker.of("eu-1", "ab12", Generation(0, index + 1), value, None, 1).encode()[0].decode()
            file.write(f"e{index:06} 30 IN A {value.a[0]}\n 30 IN A {value.a[1]}\n")
            file.write(f'_fencepost.e{index:06} 60 IN TXT "{marker}"\n')
    return path.read_text()


async def longest_block(stop: asyncio.Event) -> float:
    """The longest time, in seconds, that the event loop was away."""
    longest, last = 0.0, time.perf_counter()
    while not stop.is_set():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def pack_many(count: int) -> None:
    """CPU of packing and signing one update of so many endpoints, the best of 20."""
    old, new = content(["192.0.2.1"], 30), content(["192.0.2.2"], 30)
    batch = []
    for index in range(count):
        name = f"e{index:03}.{DOMAIN}"
        live = Live(name, Marker.of("eu-1", "ab12", Generation(0, 1), old, None, 1), old.a, old.aaaa, 30)
        batch.append(Change(name, live, Marker.of("eu-1", "ab12", Generation(0, 2), new, None, 2), new, "4"))
    signer, best = Signer(KEY_NAME, "hmac-sha256", KEY_SECRET), 1.0
    for _ in range(20):
        start = time.process_time()
        signed, _mac = signer.sign(pack_update(1, DOMAIN, tuple(batch)))
        best = min(best, time.process_time() - start)
    print(f"update of {count} endpoints: {len(signed):,} bytes, packed and signed in {best * 1000:.2f} ms CPU")


async def read_many(served: Served, endpoints: int) -> None:
    """Cold, warm and incremental reads."""
    settings = Rfc2136Settings(("127.0.0.1", served.port), DOMAIN, KEY_NAME, KEY_SECRET, "eu-1", timeout=30 * SECOND)
    port, other = Rfc2136Dns(settings), Rfc2136Dns(settings)
    started, cpu = time.perf_counter(), time.process_time()
    assert len(await port.read()) >= endpoints
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"cold read of {endpoints:,} endpoints: {used:.2f} s CPU, {wall:.2f} s, peak {peak:.0f} MB")
    started = time.perf_counter()
    for _ in range(200):
        assert not await port.read()
    print(f"warm read: {(time.perf_counter() - started) * 5:.2f} ms")
    started = time.perf_counter()
    count = sum(1 for _ in port.names())
    print(f"names(): {count:,} in {(time.perf_counter() - started) * 1000:.1f} ms")
    await other.read()
    stop = asyncio.Event()
    blocked = asyncio.ensure_future(longest_block(stop))
    third = Rfc2136Dns(settings)
    await third.read()
    stop.set()
    print(f"longest block of the event loop in a cold read: {await blocked * 1000:.0f} ms")
    # The first write learns whether the server gives incremental transfers.
    learns = port.live("mail." + DOMAIN)
    value = content(["192.0.2.9"], 30)
    assert await port.commit(
        (Change(learns.name, learns, Marker.of("eu-1", "ab12", Generation(1, 1), value, None, 1), value, "4"),)
    )
    await other.read()
    await port.read()
    batch = []
    for index in range(100):
        live = port.live(f"e{index:06}.{DOMAIN}")
        value = content(["192.0.2.2", "192.0.2.3"], 30)
        batch.append(Change(live.name, live, Marker.of("eu-1", "ab12", Generation(9, 1), value, None, 2), value, "4"))
    started, cpu = time.perf_counter(), time.process_time()
    assert await port.commit(tuple(batch))
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    print(f"write of 100 endpoints, read back: {used * 1000:.1f} ms CPU, {wall * 1000:.1f} ms")
    started, cpu = time.perf_counter(), time.process_time()
    assert len(await other.read()) == 100
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    print(f"read of what changed: {used * 1000:.1f} ms CPU, {wall * 1000:.1f} ms")
    for one in (port, other, third):
        await one.close()


def main() -> None:
    """Run it all."""
    endpoints = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    server = {"bind": bind, "knot": knot, "powerdns": powerdns}[sys.argv[2] if len(sys.argv) > 2 else "bind"]
    pack_many(200)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        zone = write_zone(directory / "made", endpoints)
        with server(directory, zone=zone) as served:
            del zone
            asyncio.run(read_many(served, endpoints))


if __name__ == "__main__":
    main()
