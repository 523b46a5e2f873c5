"""100,000 endpoints: what planner and enactor cost cold, warm, for 200 changes and for one; against 1,000 endpoints.

    python -m bench.many_names [endpoints ...]

The store is the SQLite file, the server the embedded one, in a process of its own; CPU seconds are those of the
process that is measured (planner or enactor), which is forked for each figure and does nothing else.
"""

import asyncio
import json
import os
import resource
import signal
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import tell
from fencepost import assembly
from fencepost.core.effects import Wake
from fencepost.core.events import Event, Woke
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.ports import StorePort
from fencepost.roles import configuration
from fencepost.roles.domains import Domains
from fencepost.roles.enactor import EnactorHands
from fencepost.roles.local_file import LocalFile
from fencepost.roles.loop import Performer
from fencepost.roles.planner import PlannerHands
from fencepost.roles.process import fork
from fencepost.settings import Region, load

Pool = Mapping[str, tuple[str, ...]]
"""Addresses by zone."""

SIX: Pool = {"a": ("127.0.1.1", "127.0.1.2"), "b": ("127.0.2.1", "127.0.2.2"), "c": ("127.0.3.1", "127.0.3.2")}


def region_of(folder: Path, endpoints: int, ttl: int = 30, *, provider: str = "", targets: Pool = SIX) -> Region:
    """A region of so many endpoints in one pool, and its folder, which a start would make.

    ``provider`` is how [dns] names it; the embedded server by default.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = folder / "region.toml"
    if path.exists():
        port = int(path.read_text().partition("# port ")[2].split()[0])
    provider = provider or f'provider = "embedded"\nlisten = "127.0.0.1:{port}"\ntransfer = ["127.0.0.1"]\n'
    pool = "".join(f"{zone} = {json.dumps(addresses)}\n" for zone, addresses in targets.items())
    head = (
        f'# port {port}\n[region]\nname = "bench"\n'
        f'[dns]\ndomain = "example.test"\nttl = "{ttl}s"\n{provider}'
        f'[pool.web]\nprobe = "http://:5302/"\n[pool.web.targets]\n{pool}'
    )
    path.write_text(
        head + "".join(f'[[endpoint]]\nname = "e{n:06}.example.test"\npool = "web"\n' for n in range(endpoints))
    )
    region = load(str(path))
    assembly.state_folder(region).mkdir(parents=True, exist_ok=True)
    return region


async def until_idle(decider: Any, hands: Performer) -> None:
    """Run a decider until it would sleep."""
    event: Event = Woke()
    while True:
        answer: Event | None = None
        for effect in decider.on(event, time.time_ns()):
            if isinstance(effect, Wake):
                if isinstance(hands, PlannerHands):
                    hands.set_aside()
                return
            answer = await hands.perform(effect)
        assert answer is not None
        event = answer


async def prepare(region: Region, targets: Pool = SIX) -> None:
    """The configuration and the membership row, as roles would have written them."""
    store = assembly.open_store(region, create=True)
    await configuration.put(store, region)
    if (await store.membership("web"))[0] == 0:
        members = tuple(Member(key, zone, State.IN, 1) for zone, keys in targets.items() for key in keys)
        await store.put_membership("web", 0, msgspec.json.encode(Membership("web", version=1, members=members)))
    await store.close()


class Planning:
    """A planner, without its process."""

    def __init__(self, region: Region, store: StorePort) -> None:
        self.dns = assembly.open_dns(region)
        settings = PlannerSettings("planner", region.owner)
        self.hands = PlannerHands(settings, Domains(dict(self.dns)), store)
        self.decider = DnsPlanner(settings)

    async def idle(self) -> None:
        """One pass or more, until there is nothing to plan."""
        await until_idle(self.decider, self.hands)


class Enacting:
    """An enactor, without its process."""

    def __init__(self, region: Region, store: StorePort, file: Path, zone: str = "a") -> None:
        self.dns = assembly.open_dns(region)
        settings = assembly.enactor_settings(region, zone)
        self.hands = EnactorHands(settings, "example.test", self.dns["example.test"], store, LocalFile(file))
        self.decider = DnsEnactor(settings, settings.batch, settings.cursor)

    async def idle(self) -> None:
        """One pass or more, until there is nothing to write."""
        await until_idle(self.decider, self.hands)


def measured(name: str, folder: Path, work: Callable[[], Coroutine[Any, Any, dict[str, float]]]) -> dict[str, float]:
    """Run in a process of its own; its figures."""
    out = folder / "figures.json"

    async def main() -> None:
        out.write_text(json.dumps(await work()))

    pid = fork(name, main, folder)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (folder / f"{name}.log").read_text()[-2000:]
    return json.loads(out.read_text())  # type: ignore[no-any-return]


async def cpu(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    await work()
    return time.process_time() - began


def peak_mb() -> float:
    """This process's peak memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bench(endpoints: int) -> dict[str, float]:
    """Every figure for one size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        region = region_of(folder, endpoints)
        assembly.make_tsig_key(region)
        server = fork("dns", assembly.dns_main(region), folder)
        try:
            until_listening(region)
            asyncio.run(prepare(region))
            return run(region, folder, endpoints)
        finally:
            os.kill(server, signal.SIGTERM)
            os.waitpid(server, 0)


def until_listening(region: Region) -> None:
    """Wait for the server."""
    listen = region.dns.listen
    assert listen is not None
    for _ in range(200):
        try:
            socket.create_connection((listen.host, listen.port), 1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError("the server doesn't listen")


def run(region: Region, folder: Path, endpoints: int) -> dict[str, float]:
    """Fill, then cold, warm, 200 changes, one change."""
    figures: dict[str, float] = {}

    async def plan_first() -> dict[str, float]:
        store = assembly.open_store(region)
        return {"planner: first plan, CPU s": await cpu(Planning(region, store).idle), "planner: peak MB": peak_mb()}

    async def fill() -> dict[str, float]:
        store = assembly.open_store(region)
        began = time.monotonic()
        spent = await cpu(Enacting(region, store, folder / "fill.known").idle)
        return {"enactor: first fill, CPU s": spent, "enactor: first fill, s": time.monotonic() - began}

    async def cold() -> dict[str, float]:
        store = assembly.open_store(region)
        enacting = Enacting(region, store, folder / "cold.known")
        spent = await cpu(enacting.idle)
        peak = peak_mb()
        await enacting.idle()  # lets go of what the cold start had to look at
        warm = statistics.median([await cpu(enacting.idle) for _ in range(9)])
        results = {
            "enactor: cold read and compare, CPU s": spent,
            "enactor: cold, peak MB": peak,
            "enactor: warm pass, CPU ms": warm * 1e3,
        }
        planning = Planning(region, store)
        await planning.idle()
        results |= await changes(planning, enacting, min(200, endpoints), 61, "200 changes")
        ones = [await changes(planning, enacting, 1, 70 + n, "one change") for n in range(9)]
        results |= {name: statistics.median(one[name] for one in ones) for name in ones[0]}
        return results

    async def changes(planning: Planning, enacting: Enacting, count: int, ttl: int, words: str) -> dict[str, float]:
        store = planning.hands.store
        loaded = configuration.decode((await store.inputs()).config)
        assert loaded is not None
        await planning.idle()
        # The planner is told of a change through its own mirrors: what is measured is the pass, not a file's loading.
        names = [endpoint.name for endpoint in loaded.region.endpoints[:count]]
        for each in names:
            planning.hands.endpoints[each] = msgspec.structs.replace(planning.hands.endpoints[each], ttl_s=ttl)
        planning.hands.dirty.update(names)
        planned = await cpu(planning.idle)
        enacted = await cpu(enacting.idle)
        live = enacting.hands.dns.live(names[-1])
        assert live.ttl == ttl, live
        return {f"planner: {words}, CPU ms": planned * 1e3, f"enactor: {words}, CPU ms": enacted * 1e3}

    for name, work in (("plan", plan_first), ("fill", fill), ("cold", cold)):
        figures |= measured(name, folder, work)
        with sqlite3.connect(
            region.store.path
        ) as db:  # as the planner's process does in a region, in a thread of its own
            db.execute("pragma wal_checkpoint(truncate)")
    return figures


def main() -> None:
    """Print the figures, a column for each size."""
    sizes = [int(word) for word in sys.argv[1:]] or [1_000, 100_000]
    columns = {size: bench(size) for size in sizes}
    for name in columns[sizes[0]]:
        for size in sizes:
            tell(f"{size:,} names: {name}", columns[size][name], "")
    if len(sizes) > 1:
        one = {
            size: sum(columns[size][f"{role}: one change, CPU ms"] for role in ("planner", "enactor")) for size in sizes
        }
        words = "CPU ms of planner and enactor"
        tell(f"one change, {sizes[-1]:,} names ÷ {sizes[0]:,} names", one[sizes[-1]] / one[sizes[0]], "×", words)


if __name__ == "__main__":
    main()
