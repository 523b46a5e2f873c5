"""From the decision that a target is dead until no DNS answer holds its address: a real region with 1,000 targets.

    python -m bench.death_to_gone [trials] [targets]

One process serves every target on an address of its own (127.1.x.y, one listening socket each); a target dies when
its socket is closed: the next probe is refused. Everything else is what `fencepost up` runs: three checkers, load
balancer, planner, three enactors, embedded DNS server and API. One pool, one endpoint that holds all 1,000 addresses.
One target dies every half second, each trial another one; none comes back. Settings that differ from the defaults:
none of the limits (20 % may be out: 200; the budget is 10 %: 100 targets) except `rate = "60%/min"`, so that a slow
machine finds the budget full. Probes are each 10 s, three failures take a target out: detection takes 20 to 30 s and
is told apart.

The decision is the time in the membership row's move. An address is gone when the endpoint's marker over UDP says a
generation whose row doesn't hold it: marker and addresses change in one transaction. It is asked 250 times a second,
and all the while the endpoint itself, whose answers hold as many addresses as a message takes, another window of the
circle each time: one that holds an address which was gone before it was asked ends the benchmark as broken.
"""

import asyncio
import contextlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import dns.message
import dns.rdatatype
import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "system"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "cli"))

from callers import ask, marker_in
from regions import RunningRegion

from bench.figures import tell
from fencepost.core.fence import NEVER
from fencepost.core.store import Row
from fencepost.core.traffic.membership import SERVING, Membership
from fencepost.ports import StorePort

NAME = "api.example.test"
EVERY_S = 0.5
ASK_EVERY_S = 0.004
DETECTED_WITHIN_S = 60.0


def address(index: int) -> str:
    """The n-th target's."""
    return f"127.1.{1 + index // 250}.{1 + index % 250}"


async def serve(port: int, targets: int) -> None:
    """The process of the targets: an address a line on stdin dies."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"

    class Target(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, _: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(answer)
            self.transport.close()

    loop = asyncio.get_running_loop()
    servers = {each: await loop.create_server(Target, each, port) for each in map(address, range(targets))}
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        servers.pop(line.decode().strip()).close()


class Watch(threading.Thread):
    """Asks over UDP: which generation stands since when, and which addresses are answered when."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.end = threading.Event()
        self.generations: list[tuple[int, object]] = []
        self.answered: dict[str, int] = {}
        self.answers = 0

    def run(self) -> None:
        """Until the end."""
        import socket

        with socket.socket(type=socket.SOCK_DGRAM) as link:
            link.connect(("127.0.0.1", self.port))
            link.settimeout(1.0)
            generation: object = NEVER
            while not self.end.wait(ASK_EVERY_S):
                marker = marker_in(ask(link, NAME, "TXT"))
                if marker is not None and marker.generation != generation:
                    generation = marker.generation
                    self.generations.append((time.time_ns(), generation))
                asked = time.time_ns()
                answer = ask(link, NAME, "A")
                for rrset in answer.answer if answer is not None else ():
                    if rrset.rdtype == dns.rdatatype.A:
                        self.answers += 1
                        self.answered.update(dict.fromkeys((rdata.address for rdata in rrset), asked))


class Followed(msgspec.Struct):
    """What the store said: each address's decision, and since which generation it isn't in the plan."""

    decided: dict[str, int] = {}
    planned: dict[str, Row] = {}


def follow(region: RunningRegion, seen: Followed) -> None:
    """Read the newest membership row and plan row, a few times a second."""

    async def read(store: StorePort) -> tuple[bytes, list[Row]]:
        return (await store.membership("web"))[1], list(await store.rows_of(NAME))

    body, rows = region.with_store(read)
    for move in msgspec.json.decode(body, type=Membership).moves:
        if move.before in SERVING and move.after not in SERVING:
            seen.decided.setdefault(move.key, move.at)
    for row in sorted(rows, key=lambda each: each.generation):
        for key in seen.decided.keys() - set(row.content.a):
            seen.planned.setdefault(key, row)


def region_text(targets: int) -> str:
    """The pool's targets, a third in each zone."""
    lines = []
    for place, zone in enumerate("abc"):
        keys = ", ".join(f'"{address(index)}"' for index in range(place, targets, 3))
        lines.append(f"{zone} = [{keys}]")
    return "\n".join(lines)


def edit(text: str, targets: int) -> str:
    """One endpoint, so many targets, the default interval."""
    head, _, tail = text.partition("[pool.web.targets]")
    endpoint = tail.partition("[[endpoint]]")[2].partition("[[endpoint]]")[0]
    head = head.replace('interval = "200ms"', 'interval = "10s"').replace('timeout = "100ms"', 'timeout = "2s"')
    head = head.replace('ttl = "5s"', 'ttl = "30s"').replace('gather = "1s"', 'gather = "30s"')
    return (
        f'{head}[pool.web.targets]\n{region_text(targets)}\n[pool.web.safety]\nrate = "60%/min"\n[[endpoint]]{endpoint}'
    )


def measure(region: RunningRegion, farm: "subprocess.Popen[str]", trials: int, targets: int) -> None:
    """Let targets die, and print when each was decided on and gone."""
    assert farm.stdin is not None
    order = random.Random(1).sample([address(index) for index in range(targets)], trials)
    watch, seen, died = Watch(region.dns_port), Followed(), dict[str, int]()
    watch.start()
    for key in order:
        farm.stdin.write(f"{key}\n")
        farm.stdin.flush()
        died[key] = time.time_ns()
        time.sleep(EVERY_S)
        follow(region, seen)
    limit = time.monotonic() + DETECTED_WITHIN_S
    while len(seen.planned) < trials and time.monotonic() < limit:
        time.sleep(0.3)
        follow(region, seen)
    time.sleep(3.0)  # every window of the circle is asked for several times
    watch.end.set()
    watch.join()
    gone = {}
    for key, row in seen.planned.items():
        gone[key] = next((at for at, generation in watch.generations if generation >= row.generation), 0)  # type: ignore[operator]
    report(watch, seen, died, {key: at for key, at in gone.items() if at}, trials)


def report(watch: Watch, seen: Followed, died: dict[str, int], gone: dict[str, int], trials: int) -> None:
    """The figures; AssertionError if an address was answered after it was gone, or a trial has no end."""
    assert len(gone) == trials, f"{trials - len(gone)} of {trials} were not taken out"
    for key, at in gone.items():
        assert watch.answered.get(key, 0) <= at, (
            f"{key} was answered {(watch.answered[key] - at) / 1e6:.0f} ms after it was gone"
        )
    took = sorted((at - seen.decided[key]) / 1e6 for key, at in gone.items())
    found = sorted((seen.decided[key] - died[key]) / 1e9 for key in gone)
    tell("decision to gone, median", statistics.median(took), "ms", f"{trials} trials")
    tell("decision to gone, p99", took[-(-len(took) * 99 // 100) - 1], "ms", f"{len(watch.generations)} plans seen")
    tell("decision to gone, longest", took[-1], "ms")
    planned = [(row.made_at - seen.decided[key]) / 1e6 for key, row in seen.planned.items() if row.made_at]
    tell("of that, decision to plan, median", statistics.median(planned), "ms")
    tell("death to decision, median", statistics.median(found), "s", "interval 10 s, fall 3")
    tell("death to decision, longest", found[-1], "s")
    tell("answers judged meanwhile", watch.answers, "", "none held an address that was gone")


def main() -> None:
    """Start targets and region, measure, end them."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    targets = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        region = RunningRegion(Path(folder), edit=lambda text: edit(text, targets), targets=False)
        command = [sys.executable, "-m", "bench.death_to_gone", "serve", str(region.target_port), str(targets)]
        farm = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(farm.terminate)
        assert farm.stdout is not None
        assert farm.stdout.readline() == "ready\n"
        stack.callback(region.stop)
        region.start()
        region.until(lambda: healthy(region) == targets, 60, "every target is judged healthy")
        measure(region, farm, trials, targets)


def healthy(region: RunningRegion) -> int:
    """How many targets the checkers found healthy."""

    async def read(store: StorePort) -> bytes:
        return (await store.membership("web"))[1]

    row = msgspec.json.decode(region.with_store(read), type=Membership)
    return sum(member.healthy is True for member in row.members)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
