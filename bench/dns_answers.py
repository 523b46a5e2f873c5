"""Answers per CPU second of the embedded DNS server, beside dnslib's server and Knot, measured with dnsperf.

    python -m bench.dns_answers             about a minute
    python -m bench.dns_answers update      updates, a transfer and memory, at 1,000 and 100,000 names

It prints, for each server, answers per second at full load,
answers per CPU second of the server's process, and latencies at half of our full load, at the same rate for each.
CPU seconds are read from /proc, so that a busy machine changes them little.

At half load an answer takes some 0.03 ms, and one in a hundred waits for a core: left to themselves on two cores, the
p99 is made of ten or twenty waits of 1 to 4 ms in 4 s, of dnsperf's threads as much as of the server. So three things
are seen to. dnsperf has one core and the server another, ahead of whatever else wants it (as far as this user may ask
for that; at full load dnsperf takes more than one, so there nothing is tied). dnsperf writes each latency into a file:
read by this process from a pipe, they kept it busy on the very cores that are measured. And the servers are asked in
turns, all answers of all turns counted, so that what else the machine does meets them alike.
"""

import asyncio
import contextlib
import gc
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import dns.tsig
import dns.update
import uvloop

from bench.figures import tell
from fencepost.roles.dns_server import DnsServer, DnsServerSettings
from fencepost.roles.dns_server.contents import Change, Node, RecordSet

HERE = "127.0.0.1"
DOMAIN = "example.test"
NAMES = 100
SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
SECONDS = 4
TURNS = 5
CORES = sorted(os.sched_getaffinity(0))
FIRST = ["chrt", "--rr", "10"] if os.geteuid() == 0 else []
OF_SERVER = (*FIRST, "taskset", "--cpu-list", str(CORES[-1]))
OF_GENERATOR = ("taskset", "--cpu-list", str(CORES[0]))
MANY = 160  # endpoints in one update: what dnspython packs into 64 KiB


def free_port() -> int:
    """A port nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        return int(sock.getsockname()[1])


def zone_text(names: int) -> str:
    """The domain in master file form: two addresses a name."""
    lines = [f"$ORIGIN {DOMAIN}.", "@ 300 SOA ns hostmaster 1 3600 60 604800 5", "@ 300 NS ns", f"ns 300 A {HERE}"]
    for index in range(names):
        lines += [f"host{index} 30 A 192.0.2.{index % 250 + 1}", f"host{index} 30 A 198.51.100.{index % 250 + 1}"]
    return "\n".join(lines) + "\n"


def endpoint_update(start: int, stop: int, generation: int, *, first: bool = False) -> bytes:
    """One signed update of endpoints, each with marker and addresses, fenced as an enactor's is."""
    update = dns.update.UpdateMessage(DOMAIN)
    for index in range(start, stop):
        name, marker = f"host{index}", f"_fencepost.host{index}"
        addresses = [f"192.0.2.{index % 250 + 1}", f"198.51.100.{index % 250 + 1}"]
        if first:
            update.absent(marker)
        else:
            update.present(marker, "TXT", marker_text(generation - 1))
            update.present(name, "A", *addresses)
            update.absent(name, "AAAA")
            update.delete(marker, "TXT")
            update.delete(name, "A")
            update.delete(name, "AAAA")
        update.add(marker, 30, "TXT", marker_text(generation))
        update.add(name, 30, "A", *addresses)
    update.use_tsig(dns.tsig.Key("writer.", SECRET, "hmac-sha256."))
    return bytes(update.to_wire(max_size=65535))


def marker_text(generation: int) -> str:
    """A marker as long as ours are."""
    return f'"fencepost=1 owner=demo store=a1b2 gen={generation} epoch=0 digest=0123456789abcdef writes={generation}"'


async def send(port: int, wire: bytes) -> float:
    """Send one update over TCP; seconds until it was answered NOERROR."""
    reader, writer = await asyncio.open_connection(HERE, port)
    start = time.perf_counter()
    writer.write(len(wire).to_bytes(2, "big") + wire)
    reply = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    took = time.perf_counter() - start
    writer.close()
    assert reply[3] & 15 == 0, reply[3] & 15
    return took


def _settings(path: Path, port: int) -> DnsServerSettings:
    return DnsServerSettings((DOMAIN,), str(path / "domain.db"), f"{HERE}:{port}", {"writer": ("hmac-sha256", SECRET)})


def serve_ours(path: Path, port: int) -> None:
    """Our server, for ever."""

    async def main() -> None:
        server = DnsServer(_settings(path, port))
        await server.start()
        await send(server.port, endpoint_update(0, NAMES, 1, first=True))
        gc.collect()
        gc.freeze()  # as the role does
        print("ready", flush=True)
        await asyncio.Event().wait()

    uvloop.run(main())


def serve_dnslib(port: int) -> None:
    """dnslib's own server with its zone resolver, for ever."""
    from dnslib.server import BaseResolver, DNSLogger, DNSServer
    from dnslib.zoneresolver import ZoneResolver

    resolver: BaseResolver = ZoneResolver(zone_text(NAMES))
    server = DNSServer(resolver, port=port, address=HERE, logger=DNSLogger("-request,-reply,-truncated,-error"))
    print("ready", flush=True)
    server.start()


@contextlib.contextmanager
def process(kind: str, path: Path, port: int, under: Sequence[str] = ()) -> Iterator[int]:
    """A server as a process of its own, under a command that says where it runs; gives its id."""
    if kind == "knot":
        (path / "example.zone").write_text(zone_text(NAMES))
        (path / "knot.conf").write_text(
            f"server:\n    rundir: {path}\n    listen: {HERE}@{port}\n    udp-workers: 1\n    tcp-workers: 1\n"
            f"    background-workers: 1\ndatabase:\n    storage: {path}\n"
            f"zone:\n  - domain: {DOMAIN}\n    file: {path}/example.zone\n    storage: {path}\n"
        )
        command = ["/usr/sbin/knotd", "-c", str(path / "knot.conf")]
        found = subprocess.Popen([*under, *command], stdout=subprocess.DEVNULL, text=True)
        time.sleep(1.5)
    else:
        found = subprocess.Popen(
            [*under, sys.executable, "-m", "bench.dns_answers", "serve", kind, str(path), str(port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert found.stdout is not None
        found.stdout.readline()
    try:
        yield found.pid
    finally:
        found.send_signal(signal.SIGTERM)
        found.wait(10)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def dnsperf(port: int, queries: Path, *more: str, under: Sequence[str] = ()) -> tuple[float, float, str]:
    """Answers a second, share lost in percent, and the whole output, which lies beside the queries meanwhile."""
    path = queries.with_suffix(".out")
    with path.open("w") as file:
        wanted = ["-s", HERE, "-p", str(port), "-d", str(queries), "-l", str(SECONDS), "-c", "8", *more]
        subprocess.run([*under, "dnsperf", *wanted], stdout=file, check=True)
    out = path.read_text()
    rate = re.search(r"Queries per second:\s+([\d.]+)", out)
    lost = re.search(r"Queries lost:\s+\d+ \(([\d.]+)%\)", out)
    assert rate, out
    return float(rate[1]), float(lost[1]) if lost else 0.0, out


def latencies(port: int, queries: Path, rate: float) -> list[float]:
    """The latency of each answer in ms at a steady rate, in order of size."""
    _, _, out = dnsperf(port, queries, "-v", "-Q", str(int(rate)), under=OF_GENERATOR)
    seen = sorted(float(found) * 1000 for found in re.findall(r"^> NOERROR \S+ \S+ ([\d.]+)", out, re.MULTILINE))
    assert seen, out
    return seen


def full_load(kind: str, path: Path, queries: Path) -> tuple[float, float]:
    """Answers a second and answers per CPU second, as many questions under way as dnsperf wants."""
    port = free_port()
    with process(kind, path, port) as pid:
        before = cpu_seconds(pid)
        rate, lost, _ = dnsperf(port, queries)
        per_cpu = rate * SECONDS / (cpu_seconds(pid) - before)
    tell(f"{kind}: answers a second, full load", rate, "/s", f"lost {lost:.1f} %")
    tell(f"{kind}: answers per CPU second", per_cpu, "/s")
    return rate, per_cpu


def half_load(kinds: list[str], path: Path, queries: Path, rate: float) -> dict[str, float]:
    """Each server's 99th percentile in ms at the same rate, asked in turns while the others stand idle."""
    turns: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    with contextlib.ExitStack() as stack:
        ports = {kind: free_port() for kind in kinds}
        for kind in kinds:
            stack.enter_context(process(kind, path / kind, ports[kind], OF_SERVER))
        for _ in range(TURNS):
            for kind in kinds:
                turns[kind].append(latencies(ports[kind], queries, rate))
    slowest = {}
    for kind in kinds:
        every = sorted(each for turn in turns[kind] for each in turn)
        slowest[kind] = every[len(every) * 99 // 100]
        alone = " ".join(f"{turn[len(turn) * 99 // 100]:.2f}" for turn in turns[kind])
        tell(f"{kind}: p50 at half load", every[len(every) // 2], "ms", f"at {rate:,.0f}/s")
        tell(f"{kind}: p99 at half load", slowest[kind], "ms", f"each turn alone: {alone}")
    return slowest


def compare(kinds: list[str]) -> None:
    """The table."""
    with tempfile.TemporaryDirectory() as text:
        path = Path(text)
        queries = path / "queries"
        queries.write_text("".join(f"host{index}.{DOMAIN} A\n" for index in range(NAMES)))
        for kind in kinds:
            (path / kind).mkdir()
        full = {kind: full_load(kind, path / kind, queries) for kind in kinds}
        if "dnslib" in full:
            tell("ours ÷ dnslib", full["ours"][1] / full["dnslib"][1], "×", "answers per CPU second")
        for kind in kinds:
            shutil.rmtree(path / kind)
            (path / kind).mkdir()
        slowest = half_load([kind for kind in kinds if kind != "dnslib"], path, queries, full["ours"][0] / 2)
        if "knot" in slowest:
            tell("p99 at half load, ours ÷ Knot", slowest["ours"] / slowest["knot"], "×")


async def fill(path: Path, names: int) -> None:
    """A file with so many names, two addresses and a marker each."""
    server = DnsServer(_settings(path, 0))
    (apex,) = (b"\x07example\x04test\0",)
    await server.start()
    strings = marker_text(1).strip('"').encode()
    marker = (RecordSet(16, 30, (bytes((len(strings),)) + strings,)),)
    for start in range(0, names, 10_000):
        nodes: dict[bytes, Node] = {}
        for index in range(start, min(names, start + 10_000)):
            label = f"host{index}".encode()
            owner = bytes((len(label),)) + label + apex
            last = index % 250 + 1
            nodes[owner] = (RecordSet(1, 30, (bytes((192, 0, 2, last)), bytes((198, 51, 100, last)))),)
            nodes[b"\x0a_fencepost" + owner] = marker
        contents = server.domains[apex]
        soa = (contents.soa.rdatas[0],)
        await server.handler.commit(contents, Change(contents.serial, contents.serial, nodes, soa, soa))
    await server.stop()


async def measure(path: Path, names: int) -> None:
    """One line of figures for a file made by :func:`fill`."""
    begun = time.perf_counter()
    server = DnsServer(_settings(path, 0))
    await server.start()
    ready = time.perf_counter() - begun
    gc.collect()
    gc.freeze()  # as the role does
    memory = resident_mib()
    many, one = [], []
    for generation in range(2, 7):
        many.append(await send(server.port, endpoint_update(0, MANY, generation)))
    for generation in range(2, 22):
        one.append(await send(server.port, endpoint_update(300, 301, generation)))
    size = len(endpoint_update(0, MANY, 7))
    begun = time.perf_counter()
    proc = await asyncio.create_subprocess_exec(
        "dig", f"@{HERE}", "-p", str(server.port), DOMAIN, "AXFR", "-y", f"hmac-sha256:writer:{SECRET}",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stalls = await _stalls(proc)
    print(
        f"{names:7} names: ready in {ready:.2f} s, {memory:.0f} MiB; {MANY} endpoints ({size} bytes) in"
        f" {sorted(many)[2] * 1000:.1f} ms, one in {sorted(one)[10] * 1000:.2f} ms;"
        f" AXFR by dig {time.perf_counter() - begun:.2f} s, longest stall {stalls * 1000:.1f} ms",
        flush=True,
    )
    await server.stop()


def updates() -> None:
    """One change, many endpoints in one message, memory and a transfer, in a small domain and in a large one."""

    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as text:
        for names in (1_000, 100_000):
            path = Path(text) / str(names)
            path.mkdir()
            for work in (fill, measure):
                child = os.fork()
                if child == 0:
                    try:
                        uvloop.run(work(path, names))
                        os._exit(0)
                    except BaseException:
                        traceback.print_exc()
                        os._exit(1)
                os.waitpid(child, 0)


async def _stalls(proc: asyncio.subprocess.Process) -> float:
    """The longest time that the loop took no turn while a transfer ran, in seconds."""
    assert proc.stdout is not None
    draining = asyncio.create_task(proc.stdout.read())
    longest, last = 0.0, time.perf_counter()
    while not draining.done():
        await asyncio.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def resident_mib() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def main() -> None:
    """Pick what to run."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        kind, path, port = arguments[1], Path(arguments[2]), int(arguments[3])
        serve_ours(path, port) if kind == "ours" else serve_dnslib(port)
        return
    if arguments[:1] == ["update"]:
        updates()
        return
    compare(["ours", "dnslib", *(["knot"] if shutil.which("knotd", path="/usr/sbin:/usr/bin") else [])])


if __name__ == "__main__":
    main()
