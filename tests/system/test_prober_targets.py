"""Which targets the prober probes: each at its own port and path, changed while it runs, and none after its stop."""

import asyncio
import os

import uvloop
from prober_running import (
    OK,
    SOON,
    Results,
    closed_port,
    listening,
    patient,
    probing,
    quick,
    serving,
)

from fencepost.adapters.probe import MS, ProbeTarget


def test_targets_have_ports_and_paths_of_their_own() -> None:
    """Each target may differ from its pool in port and path, and v4 and v6 of one host are two targets."""

    async def main() -> None:
        async with (
            serving(OK) as (one, port),
            serving(OK) as (other, other_port),
            serving(OK, "::1") as (six, six_port),
        ):
            targets = [
                ProbeTarget("one", "127.0.0.1"),
                ProbeTarget("other", "127.0.0.1", port=other_port, path="/else"),
                ProbeTarget("six", "::1", port=six_port),
            ]
            async with probing(targets, patient(port, interval_ns=2_001 * MS)) as (_, results):
                await results.until(lambda r: len({each[0] for each in r.known()}) == 3)
            assert {result[:3] for result in results.known()} == {
                ("one", True, ""),
                ("other", True, ""),
                ("six", True, ""),
            }
            assert one.asked[0].startswith(b"GET /healthz HTTP/1.1\r\n")
            assert other.asked[0].startswith(b"GET /else HTTP/1.1\r\n")
            assert b"Host: [::1]:" in six.asked[0]

    uvloop.run(main())


def test_targets_change_without_disturbing_the_others() -> None:
    """One that left is probed no more and gives no result; a new one starts; the others' connections aren't touched."""

    async def main() -> None:
        async with serving(OK) as (server, port):
            stays, leaves, comes = (
                ProbeTarget(name, "127.0.0.1", path=f"/{name}") for name in ("stays", "leaves", "comes")
            )
            async with probing([stays, leaves], quick(port)) as (prober, results):
                await results.until(lambda r: r.of("stays") and r.of("leaves"))
                prober.set_targets([stays, comes])
                results.clear()
                server.asked.clear()
                await results.until(lambda r: len(r.of("stays")) >= 5 and len(r.of("comes")) >= 4)
                assert not results.of("leaves")
                # A connection may have been under way at the change; no further one was opened.
                assert sum(b"/leaves" in asked for asked in server.asked) <= 1
                assert {x[1] for x in results.of("stays")} <= {True, None}

    uvloop.run(main())


def test_a_moved_target_is_probed_at_its_new_port() -> None:
    """The same key at another port is another thing to probe, at once."""

    async def main() -> None:
        async with serving(OK) as (_, port):
            target = ProbeTarget(SOON, "127.0.0.1", port=closed_port())
            async with probing([target], quick(port)) as (prober, results):
                await results.until(lambda r: any(x[1] is False for x in r))
                prober.set_targets([ProbeTarget(SOON, "127.0.0.1")])
                results.clear()
                await results.until(Results.known)
                assert results.known()[0][1] is True

    uvloop.run(main())


def test_stopping_leaves_nothing_behind() -> None:
    """After `stop` no result comes, no probe is in flight and no descriptor stays open."""

    async def main(port: int) -> None:
        opened = []
        for _ in range(2):  # the first round pays for what the event loop opens once
            async with probing([ProbeTarget(f"{n}", "127.0.0.1") for n in range(10)], quick(port)) as (prober, results):
                await results.until(lambda _, prober=prober: prober.in_flight >= 3)  # type: ignore[misc]
            results.clear()
            await asyncio.sleep(0.1)
            assert not results
            assert prober.in_flight == 0
            opened.append(sorted(os.listdir("/proc/self/fd")))
        assert opened[0] == opened[1]

    with listening() as port:
        uvloop.run(main(port))
