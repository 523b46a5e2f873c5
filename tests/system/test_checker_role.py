"""The checker role with real probers and sockets on loopback; the store is a dictionary that can be away."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.probe import MS, Prober, ProbeResult, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_kinds import open_prober
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import Beat, CheckerReport, Suspicion, Verdict
from fencepost.dev.target import Sickness, TargetProtocol, TargetSettings
from fencepost.ports import PortError, Refused, Unavailable
from fencepost.roles.checker import CheckedPool, CheckerRole, CheckerSettings
from fencepost.roles.checker.lag import SAMPLE_NS, WINDOW_SAMPLES, LagWindow
from fencepost.roles.checker.writer import ReportWriter

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


class InterruptedStore(MemoryStore):
    """Does something once in the middle of its first write."""

    then: Callable[[], None] | None = None

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        await super().put_report(zone, pool, sequence, body)
        then, self.then = self.then, None
        if then is not None:
            then()


async def until(enough: Callable[[], object]) -> None:
    """Wait for what must come."""
    deadline = time.monotonic() + PATIENCE_S
    while not enough():
        assert time.monotonic() < deadline, "never came"
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


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine under uvloop, as the checker does."""

    async def inner() -> None:
        await main()

    uvloop.run(inner())


def test_a_dead_target_is_found_and_its_cause_told() -> None:
    """Verdicts reach the store: the living healthy, the dead down with its cause; beats follow the body they name."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, live), target_at() as (sick, port):
            pool = pool_of({"live": live, "sick": port})
            async with checking(store, pool):
                await until(lambda: store.verdict("live").healthy and store.verdict("sick").healthy)
                sick.fall_ill(600 * 1_000 * MS, "status")
                await until(lambda: store.verdict("sick").healthy is False)
                assert store.verdict("sick").cause == "status 503"
                assert store.verdict("sick").failing_now
                assert store.verdict("live").healthy is True
        bodies = set()
        for each in store.written:
            if isinstance(each, CheckerReport):
                bodies.add(each.sequence)
            else:
                assert each.sequence in bodies
        numbers = [each.number for each in store.written if isinstance(each, Beat)]
        assert len(numbers) >= 2
        assert numbers == sorted(set(numbers))

    run(main)


def test_one_bad_answer_takes_nobody_down() -> None:
    """A single 404 is one failure of three: the target stays up (Envoy #7171)."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (sick, port), checking(store, pool_of({"t": port})) as role:
            await until(lambda: store.verdict("t").healthy)
            sick.fall_ill(600 * 1_000 * MS, "status")
            await until(lambda: store.verdict("t").failing_now)
            sick.fall_ill(0, "status")
            await until(lambda: not store.verdict("t").failing_now)
            assert store.verdict("t").healthy is True
            assert role.pools["web"].prober is not None

    run(main)


def test_a_checker_cut_off_from_its_canary_takes_nobody_down() -> None:
    """All targets and the canary vanish together: that is our network, so no verdict changes and no vote counts."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, canary), target_at() as (_, port):
            pool = pool_of({f"t{n}": port for n in range(6)})
            async with checking(store, pool, canaries=[canary]) as role:
                await until(lambda: store.verdict("t0").healthy and store.verdict("t0").counts)
                prober = role.pools["web"].prober
                assert prober is not None
                # The cut, as the prober sees it: nothing is where it was.
                nowhere = [ProbeTarget(target.key, "127.0.0.1", 1) for target in pool.targets]
                role._canaries[0].set_targets([ProbeTarget("canary", "127.0.0.1", 1)])
                await until(lambda: Suspicion.CANARY in store.suspicions)
                prober.set_targets(nowhere)
                sent = prober.sent  # type: ignore[attr-defined]
                await until(lambda: prober.sent >= sent + 6 * 5)  # type: ignore[attr-defined]
                report = store.report()
                assert report is not None
                assert report.suspect is Suspicion.CANARY
                assert [each.healthy for each in report.verdicts] == [True] * 6
                assert not any(each.counts for each in report.verdicts)
                prober.set_targets(pool.targets)
                role._canaries[0].set_targets([ProbeTarget("canary", "127.0.0.1", canary)])
                await until(lambda: store.verdict("t5").counts)
                assert store.verdict("t5").healthy is True

    run(main)


def test_one_living_canary_is_enough() -> None:
    """Of two canaries one is dead from the start: the checker votes all the same, or one death would silence all."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"t": port}), canaries=[1, port]):
            await until(lambda: store.verdict("t").counts)
        assert Suspicion.CANARY not in store.suspicions

    run(main)


def test_another_checkers_health_port_is_a_canary() -> None:
    """A checker's health port answers TCP and HTTP, and names its zone and its doubts."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"t": port}), zone="b") as other:
            assert other.health_port is not None
            async with checking(store, pool_of({"t": port}), canaries=[other.health_port]):
                await until(lambda: store.verdict("t").counts)
            reader, writer = await asyncio.open_connection("127.0.0.1", other.health_port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await reader.read()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.partition(b"\r\n\r\n")[2].startswith(b"checker b\n")
        assert Suspicion.CANARY not in store.suspicions

    run(main)


def stand_still(seconds: float) -> None:
    """Block the loop."""
    time.sleep(seconds)


def test_a_blocked_loop_takes_nobody_down() -> None:
    """The loop stands still, again and again, longer than the timeout: doubt, and nobody down (Envoy #36295)."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({f"t{n}": port for n in range(6)})) as role:
            await until(lambda: store.verdict("t0").counts)
            prober = role.pools["web"].prober
            assert isinstance(prober, Prober)
            for _ in range(3):
                sent = prober.sent
                await until(lambda sent=sent: prober.sent > sent)  # type: ignore[misc]
                stand_still(0.4)
            await until(lambda: Suspicion.LAG in store.suspicions)
            await until(lambda: store.verdict("t0").counts)
        downs = [
            v for each in store.written if isinstance(each, CheckerReport) for v in each.verdicts if v.healthy is False
        ]
        assert not downs

    run(main)


def test_no_descriptors_is_doubt_and_passes() -> None:
    """Out of descriptors a checker doubts itself, takes nobody down, and votes again afterwards (Consul #3886)."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"t": port})):
            await until(lambda: store.verdict("t").counts)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            held: list[int] = []
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
                with suppress(OSError):
                    while True:
                        held.append(os.open("/dev/null", os.O_RDONLY))
                await until(lambda: Suspicion.FILES in store.suspicions)
            finally:
                for descriptor in held:
                    os.close(descriptor)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await until(lambda: store.verdict("t").counts)
            assert store.verdict("t").healthy is True
        bodies = [each for each in store.written if isinstance(each, CheckerReport)]
        assert not [v for each in bodies for v in each.verdicts if v.healthy is False]

    run(main)


class ScriptedProber:
    """A prober that says what the test says."""

    files_ran_out_ns = 0

    def __init__(self, on_results: Callable[[list[ProbeResult]], None]) -> None:
        self.say = on_results

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def set_targets(self, targets: object) -> None:
        """Nothing to probe."""


def test_an_unknown_result_is_no_observation() -> None:
    """Results that say nothing of their target (no local port, no place in the lane) are counted and never judged."""

    async def main() -> None:
        probers: list[ScriptedProber] = []

        def opening(_: object, on_results: Callable[[list[ProbeResult]], None]) -> ScriptedProber:
            probers.append(ScriptedProber(on_results))
            return probers[-1]

        role = CheckerRole(CheckerSettings("a", (pool_of({"t": 1}),)), open_prober=opening, store=MemoryStore())
        await role.reload(role.settings)
        runner, say = role.pools["web"], probers[0].say
        for _ in range(HEALTH.rise):
            say([("t", True, "", MS, 40)])
        await until(lambda: runner.report and runner.report.verdicts[0].healthy)
        for _ in range(20):
            say([("t", None, "not sent: 2 probes in flight", 0, 40)])
        say([("t", False, "status 503", MS, 40)])
        await until(lambda: runner.report and runner.report.verdicts[0].failing_now)
        assert runner.unknown == 20
        assert runner.report is not None
        assert runner.report.verdicts[0].healthy is True
        assert runner.report.verdicts[0].capacity == 40
        runner.stop()

    run(main)


def test_a_restart_keeps_the_last_verdicts() -> None:
    """A new process starts from what the old one published: the dead stay dead, numbers go on (HAProxy #918)."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port):
            async with checking(store, pool_of({"live": port, "dead": 1})):
                await until(lambda: store.verdict("dead").healthy is False and store.verdict("live").healthy)
            before = store.report()
            assert before is not None
            first = len(store.written)
            async with checking(store, pool_of({"live": port, "dead": 1})):
                await until(lambda: len(store.written) > first)
        body, beat = (next(x for x in store.written[first:] if isinstance(x, kind)) for kind in (CheckerReport, Beat))
        assert isinstance(body, CheckerReport)
        assert isinstance(beat, Beat)
        assert body.sequence > before.sequence
        assert beat.number > max(each.number for each in store.written[:first] if isinstance(each, Beat))
        assert {each.key: each.healthy for each in body.verdicts} == {"live": True, "dead": False}

    run(main)


def test_the_store_may_be_away() -> None:
    """While the store is away probing goes on and nothing queues; on its return the newest body comes, then a beat."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (sick, port), checking(store, pool_of({"t": port})) as role:
            await until(lambda: store.verdict("t").healthy)
            store.fails = Unavailable("the disk is gone", where="test")
            sick.fall_ill(600 * 1_000 * MS, "status")
            runner = role.pools["web"]
            await until(lambda: runner.report is not None and runner.report.verdicts[0].healthy is False)
            await until(lambda: role.writer.problem is not None)
            written = len(store.written)
            store.fails = None
            await until(lambda: any(isinstance(each, Beat) for each in store.written[written:]))
            body = store.written[written]
            beat = next(each for each in store.written[written:] if isinstance(each, Beat))
            assert isinstance(body, CheckerReport)
            assert body.verdicts[0].healthy is False
            assert beat.sequence >= body.sequence
            assert role.writer.problem is None

    run(main)


def test_a_checker_waits_for_the_store_at_its_start() -> None:
    """Without its last verdicts a checker would forget who is dead, so it starts when the store answers."""

    async def main() -> None:
        store = MemoryStore()
        store.fails = Unavailable("not up yet")
        settings = CheckerSettings("a", (pool_of({"t": 1}),))
        role = CheckerRole(settings, open_prober=partial(open_prober, salt="a"), store=store)
        stop = asyncio.Event()
        running = asyncio.create_task(role.run(stop))
        await until(lambda: role.writer.problem is not None)
        assert not role.pools
        store.fails = None
        await until(lambda: role.pools)
        stop.set()
        await running

    run(main)


def test_several_pools_and_a_reload() -> None:
    """One process checks several pools; a reload adds, drops and changes targets without touching the rest."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port):
            web, api = pool_of({"one": port, "two": port}), pool_of({"x": port}, "api")
            async with checking(store, web, api) as role:
                await until(lambda: store.verdict("one").healthy and store.verdict("x", "api").healthy)
                kept = role.pools["web"].prober
                fresh = pool_of({"y": port}, "new")
                await role.reload(CheckerSettings("a", (pool_of({"two": port, "three": port}), fresh)))
                assert set(role.pools) == {"web", "new"}
                assert role.pools["web"].prober is kept
                await until(lambda: store.verdict("three").healthy and store.verdict("y", "new").healthy)
                report = store.report()
                assert report is not None
                assert [each.key for each in report.verdicts] == ["two", "three"]
                assert store.verdict("two").healthy is True
                slower = HealthSettings(interval_ns=400 * MS, timeout_ns=240 * MS)
                await role.reload(CheckerSettings("a", (pool_of({"two": port}, health=slower),)))
                assert role.pools["web"].prober is not kept
                assert role.pools["web"].report is not None
                assert role.pools["web"].report.verdicts[0].healthy is True
                assert isinstance(kept, Prober)
                assert kept.in_flight == 0

    run(main)


@given(st.integers(0, 10**10))
def test_one_stall_counts_for_its_whole_length(late_ns: int) -> None:
    """Lag is a percentile of time: a stall fills the window with as many late samples as fit into it."""
    window = LagWindow()
    for _ in range(WINDOW_SAMPLES):
        window.late_by(0)
    assert window.p99_ns == 0
    window.late_by(late_ns)
    length = min(late_ns, WINDOW_SAMPLES * SAMPLE_NS)
    # The p99 of 100 samples is the second largest: one sample's time below the stall's length.
    assert window.p99_ns == max(length - SAMPLE_NS, 0)


@given(st.lists(st.sampled_from(["body", "beat", "away", "back", "wait"]), max_size=30))
def test_a_beat_never_speaks_of_a_body_that_is_not_there(steps: list[str]) -> None:
    """Whatever comes while the store comes and goes: a beat is written only when its body, or a newer one, is."""

    async def main() -> None:
        store = MemoryStore()
        writer = ReportWriter(store)
        sequence = number = 0
        for step in steps:
            if step == "body" or not sequence:
                sequence += 1
                writer.report(CheckerReport("a", "web", sequence, None, ()))
            if step == "beat":
                number += 1
                writer.beat(Beat("a", "web", number, sequence))
            store.fails = {"away": Unavailable("away"), "back": None}.get(step, store.fails)
            if step == "wait":
                await writer.flush()
        store.fails = None
        await writer.flush()
        newest = 0
        for each in store.written:
            if isinstance(each, CheckerReport):
                assert each.sequence > newest
                newest = each.sequence
            else:
                assert each.sequence <= newest
        assert newest == sequence

    asyncio.run(main())


def test_a_body_that_comes_during_a_write_goes_before_its_beat() -> None:
    """While a body is being written a newer one and its beat come: the beat waits for the newer body."""

    async def main() -> None:
        writer = ReportWriter(store := InterruptedStore())

        def meanwhile() -> None:
            writer.report(CheckerReport("a", "web", 2, None, ()))
            writer.beat(Beat("a", "web", 1, 2))

        store.then = meanwhile
        writer.report(CheckerReport("a", "web", 1, None, ()))
        await writer.flush()
        await writer.flush()
        assert [(type(each), each.sequence) for each in store.written] == [
            (CheckerReport, 1),
            (CheckerReport, 2),
            (Beat, 2),
        ]

    run(main)


def test_a_reload_during_the_start_starts_nothing_twice() -> None:
    """A reload that arrives while the first pools wait for the store leaves one prober a pool, the newer one."""

    async def main() -> None:
        store = MemoryStore()
        store.fails = Unavailable("not up yet")
        opened: list[Prober] = []

        def opening(settings: ProbeSettings, on_results: Callable[[list[ProbeResult]], None]) -> Prober:
            opened.append(open_prober(settings, on_results, salt="a"))
            return opened[-1]

        role = CheckerRole(CheckerSettings("a", (pool_of({"t": 1}),)), open_prober=opening, store=store)
        stop = asyncio.Event()
        running = asyncio.create_task(role.run(stop))
        reloading = asyncio.create_task(role.reload(CheckerSettings("a", (pool_of({"u": 1}),))))
        await until(lambda: role.writer.problem is not None)
        store.fails = None
        await reloading
        assert len(opened) == 1
        assert [target.key for target in role.pools["web"].pool.targets] == ["u"]
        stop.set()
        await running

    run(main)


def test_a_refused_body_does_not_hold_up_the_others() -> None:
    """A body that the store will never take is dropped and said, not tried for ever."""

    async def main() -> None:
        store = MemoryStore()
        writer = ReportWriter(store)
        store.fails = Refused("too big")
        writer.report(CheckerReport("a", "web", 1, None, ()))
        await writer.flush()
        store.fails = None
        writer.report(CheckerReport("a", "api", 1, None, ()))
        await writer.flush()
        assert [each.pool for each in store.written] == ["api"]

    run(main)


def test_a_taken_health_port_is_said() -> None:
    """A port that somebody else has is an error at the start, not a checker that nobody can reach."""

    async def main() -> None:
        async with target_at() as (_, port):
            settings = CheckerSettings("a", (), health_address="127.0.0.1", health_port=port)
            role = CheckerRole(settings, open_prober=partial(open_prober, salt="a"), store=MemoryStore())
            with pytest.raises(OSError, match="in use"):
                await role.run(asyncio.Event())

    run(main)
