"""The prober in trouble, its targets' and its own: silent targets, no ports, no descriptors, a blocked loop."""

import asyncio
from collections import Counter

import uvloop
from free_ports import free_port
from own_process import no_descriptors_left, stand_still
from prober_running import (
    OK,
    SOON,
    Results,
    listening,
    patient,
    probing,
    quick,
    serving,
)

from fencepost.adapters.probe import MS, ProbeResult, ProbeTarget
from fencepost.adapters.probe_kinds import open_prober


def test_slow_targets_delay_nobody() -> None:
    """Open loop: forty silent targets hold their connections for the whole timeout; a living one keeps its rhythm."""

    async def main(dead_port: int) -> None:
        async with serving(OK) as (_, port):
            targets = [ProbeTarget(f"dead {n}", "127.0.0.1", port=dead_port) for n in range(40)]
            targets.append(ProbeTarget("live", "127.0.0.1"))
            async with probing(targets, patient(port, interval_ns=200 * MS, timeout_ns=150 * MS)) as (_, results):
                await results.until(lambda r: sum(x[2].startswith("timeout") for x in r) >= 40 * 5)
            rounds = Counter(result[0] for result in results)
            live = results.of("live")
            # A round for where each began, and one for the timeout that a dead one's result comes late.
            assert rounds["live"] >= max(rounds.values()) - 2
            assert {result[1] for result in live} <= {True, None}
            assert True in {result[1] for result in live}

    with listening(backlog=4096) as dead_port:
        uvloop.run(main(dead_port))


def test_dead_targets_cannot_starve_the_living() -> None:
    """With lanes of two places, twenty dead targets queue among themselves; the living have a lane of their own."""

    async def main(dead_port: int) -> None:
        async with serving(OK) as (_, port):
            dead = [ProbeTarget(f"dead {n}", "127.0.0.1", port=dead_port) for n in range(20)]
            live = [ProbeTarget(f"live {n}", "127.0.0.1") for n in range(5)]
            settings = patient(port, interval_ns=300 * MS, timeout_ns=240 * MS, in_flight=2)
            async with probing([*dead, *live], settings) as (prober, results):
                # Until all the dead are known for what they are, everybody is in one lane.
                await results.until(lambda r: all(any(x[1] is False for x in r.of(each.key)) for each in dead))
                results.clear()
                await results.until(lambda r: all(len(r.of(each.key)) >= 5 for each in live))
                assert prober.in_flight <= 4
            sent = [result for result in results if result[0].startswith("live")]
            assert not [result for result in sent if result[2].startswith("not sent")]
            waiting = [result for result in results if result[2].startswith("not sent")]
            assert waiting, "twenty dead targets fit into two places?"
            assert {result[1] for result in waiting} == {None}

    with listening(backlog=4096) as dead_port:
        uvloop.run(main(dead_port))


def test_no_time_wait_is_left() -> None:
    """Probes end by RST, so no port stays in TIME_WAIT (Kubernetes #89898), whether or not the server closes first."""

    def waiting(port: int) -> int:
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table][1:]
        return sum(row[3] == "06" and f"{port:04X}" in (row[1][-4:], row[2][-4:]) for row in rows)

    async def main(kind: str, says: bytes | None, then_close: bool) -> None:
        # No port of the system's own range: a connection of somebody else's could have left that in TIME_WAIT.
        async with serving(says, port=free_port(), then_close=then_close) as (_, port):
            targets = [ProbeTarget(str(n), "127.0.0.1") for n in range(50)]
            async with probing(targets, quick(port, kind=kind)) as (_, results):
                await results.until(lambda r: sum(x[1] is True for x in r) >= 100)
                assert waiting(port) == 0

    uvloop.run(main("http", OK, False))
    uvloop.run(main("http", OK, True))
    uvloop.run(main("tcp", None, False))


def test_running_out_of_files_is_unknown_and_passes() -> None:
    """No descriptor left is no verdict on a target (Consul #3886), and probing goes on by itself afterwards."""

    async def main() -> None:
        async with (
            serving(OK) as (_, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], quick(port)) as (prober, results),
        ):
            await results.until(lambda r: any(x[1] for x in r))
            assert prober.files_ran_out_ns == 0
            with no_descriptors_left():
                results.clear()
                await results.until(lambda r: sum(x[2] == "out of file descriptors" for x in r) >= 3)
                assert {x[1] for x in results if "descriptors" in x[2]} == {None}
                assert False not in {x[1] for x in results}
                assert prober.files_ran_out_ns > 0
            results.clear()
            await results.until(lambda r: sum(x[1] is True for x in r) >= 3)

    uvloop.run(main())


def test_a_blocked_loop_makes_no_failures() -> None:
    """The loop stands still longer than the timeout with probes in flight: unknown, not failed (Envoy #36295)."""

    async def main(mute_port: int) -> None:
        async with serving(OK) as (_, port):
            targets = [ProbeTarget(f"{n}", "127.0.0.1") for n in range(20)]
            targets += [ProbeTarget(f"slow {n}", "127.0.0.1", port=mute_port) for n in range(20)]
            async with probing(targets, patient(port, interval_ns=900 * MS, timeout_ns=800 * MS)) as (prober, results):
                await results.until(lambda _: prober.in_flight >= 10)
                results.clear()
                caught = prober.in_flight
                stand_still(1.0)  # longer than the timeout: every deadline has passed
                await results.until(lambda r: len(r) >= caught)
                assert {x[1] for x in results[:caught]} == {None}
                assert results[0][2].startswith("late: ")
                assert prober.late >= caught
                await results.until(lambda r: sum(x[1] is True for x in r) >= 20)
                assert False not in {x[1] for x in results if not x[0].startswith("slow")}

    with listening(backlog=4096) as mute_port:
        uvloop.run(main(mute_port))


def test_an_error_in_the_callback_does_not_end_the_probing() -> None:
    """What takes the results may fail; the next batch comes all the same."""

    async def main() -> None:
        calls = []

        def fail(results: list[ProbeResult]) -> None:
            calls.append(results)
            raise ValueError("a fault in the decider")

        async with serving(OK) as (_, port):
            errors: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
            prober = open_prober(quick(port), fail)
            prober.set_targets([ProbeTarget(SOON, "127.0.0.1")])
            prober.start()
            await Results().until(lambda _: len(calls) >= 3)
            prober.stop()
            assert errors

    uvloop.run(main())
