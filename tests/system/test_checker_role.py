"""The checker role with real probers and sockets on loopback: what it publishes, restarts and reloads."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
import uvloop
from checker_running import HEALTH, MemoryStore, checking, pool_of, target_at, until

from fencepost.adapters.probe import MS, Prober, ProbeResult, ProbeSettings
from fencepost.adapters.probe_kinds import open_prober
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import Beat, CheckerReport, Suspicion
from fencepost.ports import Unavailable
from fencepost.roles.checker import CheckerRole, CheckerSettings


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

    uvloop.run(main())


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

    uvloop.run(main())


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

    uvloop.run(main())


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
                await until(lambda: {type(each) for each in store.written[first:]} == {CheckerReport, Beat})
        body, beat = (next(x for x in store.written[first:] if isinstance(x, kind)) for kind in (CheckerReport, Beat))
        assert isinstance(body, CheckerReport)
        assert isinstance(beat, Beat)
        assert body.sequence > before.sequence
        assert beat.number > max(each.number for each in store.written[:first] if isinstance(each, Beat))
        assert {each.key: each.healthy for each in body.verdicts} == {"live": True, "dead": False}

    uvloop.run(main())


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

    uvloop.run(main())


def test_a_reload_that_leaves_the_probing_as_it_is_costs_no_vote() -> None:
    """Limits aren't the checker's, and other numbers (`fall`, `rise`) judge the same probes: the prober goes on, and no
    vote waits for anything. Otherwise all zones lose theirs at once, and a target that dies meanwhile is served on.
    """

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"one": port})) as role:
            await until(lambda: store.verdict("one").counts)
            runner, before = role.pools["web"], len(store.written)
            prober, decider = runner.prober, runner.decider
            other = HealthSettings(interval_ns=300 * MS, timeout_ns=240 * MS, fall=5, rise=9)
            await role.reload(CheckerSettings("a", (pool_of({"one": port, "two": port}, health=other),)))
            await until(lambda: store.verdict("two").counts)
            assert (role.pools["web"].prober, role.pools["web"].decider) == (prober, decider)
            assert runner.pool.health == other
            assert Suspicion.WARMING not in {each.suspect for each in store.written[before:]}

    uvloop.run(main())


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

    uvloop.run(main())


def test_a_taken_health_port_is_said() -> None:
    """A port that somebody else has is an error at the start, not a checker that nobody can reach."""

    async def main() -> None:
        async with target_at() as (_, port):
            settings = CheckerSettings("a", (), health_address="127.0.0.1", health_port=port)
            role = CheckerRole(settings, open_prober=partial(open_prober, salt="a"), store=MemoryStore())
            with pytest.raises(OSError, match="in use"):
                await role.run(asyncio.Event())

    uvloop.run(main())
