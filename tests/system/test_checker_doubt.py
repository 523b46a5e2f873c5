"""When a checker doubts itself it takes nobody down: cut off from its canaries, blocked, out of descriptors."""

import asyncio

import uvloop
from checker_running import MemoryStore, checking, pool_of, target_at, until
from hypothesis import given
from hypothesis import strategies as st
from own_process import no_descriptors_left, stand_still

from fencepost.adapters.probe import Prober, ProbeTarget
from fencepost.core.traffic.verdict import CheckerReport, Suspicion
from fencepost.roles.checker.lag import SAMPLE_NS, WINDOW_SAMPLES, LagWindow


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

    uvloop.run(main())


def test_one_living_canary_is_enough() -> None:
    """Of two canaries one is dead from the start: the checker votes all the same, or one death would silence all."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"t": port}), canaries=[1, port]):
            await until(lambda: store.verdict("t").counts)
        assert Suspicion.CANARY not in store.suspicions

    uvloop.run(main())


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

    uvloop.run(main())


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

    uvloop.run(main())


def test_no_descriptors_is_doubt_and_passes() -> None:
    """Out of descriptors a checker doubts itself, takes nobody down, and votes again afterwards (Consul #3886)."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (_, port), checking(store, pool_of({"t": port})):
            await until(lambda: store.verdict("t").counts)
            with no_descriptors_left():
                await until(lambda: Suspicion.FILES in store.suspicions)
            await until(lambda: store.verdict("t").counts)
            assert store.verdict("t").healthy is True
        bodies = [each for each in store.written if isinstance(each, CheckerReport)]
        assert not [v for each in bodies for v in each.verdicts if v.healthy is False]

    uvloop.run(main())


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
