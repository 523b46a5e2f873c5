"""A checker with real probers and sample targets on loopback, for tests; its store is a dictionary that can be away."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from patience import Patience

from fencepost.adapters.probe import MS, Prober, ProbeResult, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_kinds import open_prober
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import Beat, CheckerReport, Suspicion, Verdict
from fencepost.dev.target import Sickness, TargetProtocol, TargetSettings
from fencepost.ports import PortError
from fencepost.roles.checker import CheckedPool, CheckerRole, CheckerSettings

PATIENCE_S = 40.0
"""How long a test waits for what must come; nothing is decided by it unless it never comes."""

HEALTH = HealthSettings(interval_ns=300 * MS, timeout_ns=240 * MS, rise=3)


class MemoryStore:
    """What a checker asks of a store, and everything that was ever written, in order."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[bytes]] = defaultdict(lambda: [b"", b""])
        self.written: list[CheckerReport | Beat] = []
        self.fails: PortError | None = None

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        del sequence
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        self.rows[zone, pool][0] = body
        self.written.append(msgspec.json.decode(body, type=CheckerReport))

    async def beat_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        del sequence
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        self.rows[zone, pool][1] = body
        self.written.append(msgspec.json.decode(body, type=Beat))

    async def reports(self, pool: str) -> Sequence[tuple[str, bytes, bytes]]:
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        return [(zone, body, beat) for (zone, its_pool), (body, beat) in self.rows.items() if its_pool == pool]

    def report(self, zone: str = "a", pool: str = "web") -> CheckerReport | None:
        body = self.rows[zone, pool][0]
        return msgspec.json.decode(body, type=CheckerReport) if body else None

    def verdict(self, key: str, pool: str = "web") -> Verdict:
        report = self.report(pool=pool)
        return next((each for each in report.verdicts if each.key == key), Verdict(key)) if report else Verdict(key)

    @property
    def suspicions(self) -> set[Suspicion | None]:
        return {each.suspect for each in self.written}


async def until(enough: Callable[[], object]) -> None:
    """Wait for what must come."""
    patience = Patience(PATIENCE_S)
    while not enough():
        assert not patience.over(), "never came"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def target_at(address: str = "127.0.0.1") -> AsyncIterator[tuple[Sickness, int]]:
    """A sample target in this process."""
    sickness = Sickness(None)
    settings = TargetSettings(address)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: TargetProtocol(settings, sickness), address, 0)
    try:
        yield sickness, server.sockets[0].getsockname()[1]
    finally:
        server.close()


def pool_of(ports: dict[str, int], name: str = "web", health: HealthSettings = HEALTH) -> CheckedPool:
    """A pool of targets on loopback, each at its own port."""
    probe = ProbeSettings(path="/healthz", interval_ns=health.interval_ns, timeout_ns=health.timeout_ns)
    return CheckedPool(name, health, probe, tuple(ProbeTarget(key, "127.0.0.1", port) for key, port in ports.items()))


def canary_at(port: int) -> Callable[[Callable[[list[ProbeResult]], None]], Prober]:
    """What assembly makes of `canary = ["tcp://127.0.0.1:PORT"]`: twice an interval."""

    def opened(on_results: Callable[[list[ProbeResult]], None]) -> Prober:
        settings = ProbeSettings("tcp", port, interval_ns=HEALTH.interval_ns // 2, timeout_ns=HEALTH.interval_ns // 3)
        prober = open_prober(settings, on_results, salt="a")
        prober.set_targets([ProbeTarget("canary", "127.0.0.1")])
        return prober

    return opened


@asynccontextmanager
async def checking(
    store: MemoryStore, *pools: CheckedPool, canaries: Sequence[int] = (), zone: str = "a"
) -> AsyncIterator[CheckerRole]:
    """A running checker of the zone."""
    settings = CheckerSettings(zone, pools, health_address="127.0.0.1")
    opener = partial(open_prober, salt=zone)
    role = CheckerRole(settings, open_prober=opener, store=store, open_canaries=[canary_at(port) for port in canaries])
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(role.run(stop, ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield role
    finally:
        stop.set()
        await running
        await waiting
