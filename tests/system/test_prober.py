"""The prober against real sockets on loopback, and its schedule as plain values."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.probe import MS, Prober, ProbeResult, ProbeSettings, ProbeTarget
from fencepost.adapters.probe_http import capacity_of, request, split_head, status_of, unchunk
from fencepost.adapters.probe_kinds import open_prober
from fencepost.adapters.probe_schedule import Rounds, jitter_ns, lane_limit, phases

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
PATIENCE_S = 20.0
"""How long a test waits for what must come; nothing is decided by it unless it never comes."""

SOON = min(map(str, range(500)), key=lambda key: phases([key], "a", 10**9)[key])
"""A key whose first probe comes early in its interval, so that tests needn't wait for one."""

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run a test's coroutine under uvloop, as the checker does."""

    async def inner() -> T:
        return await main()

    return uvloop.run(inner())


class Server(asyncio.Protocol):
    """Answers each connection with the bytes that `says` holds now; None is silence."""

    asked: list[bytes]
    says: bytes | None
    then_close: bool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        type(self).asked.append(data)
        if self.says is not None:
            self.transport.write(self.says)
        if self.then_close:
            self.transport.close()


@asynccontextmanager
async def serving(
    says: bytes | None, address: str = "127.0.0.1", *, then_close: bool = False
) -> AsyncIterator[tuple[type[Server], int]]:
    """A server on a free port; its class can be told to say something else."""
    server_class = type("AServer", (Server,), {"asked": [], "says": says, "then_close": then_close})
    server = await asyncio.get_running_loop().create_server(server_class, address, 0)
    try:
        yield server_class, server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Results(list[ProbeResult]):
    """Gathers results and lets a test wait for what it needs."""

    def of(self, key: str) -> list[ProbeResult]:
        return [result for result in self if result[0] == key]

    def known(self) -> list[ProbeResult]:
        """Those that say something of their target: a busy machine makes some late."""
        return [result for result in self if result[1] is not None]

    async def until(self, enough: Callable[[Results], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not enough(self):
            assert time.monotonic() < deadline, f"never came; results were {self[-10:]}"
            await asyncio.sleep(0.005)


@asynccontextmanager
async def probing(targets: Iterable[ProbeTarget], settings: ProbeSettings) -> AsyncIterator[tuple[Prober, Results]]:
    results = Results()
    prober = open_prober(settings, results.extend, salt="a")
    prober.set_targets(targets)
    prober.start()
    try:
        yield prober, results
    finally:
        prober.stop()


def quick(port: int = 1, **more: object) -> ProbeSettings:
    """Settings with short times."""
    return ProbeSettings(**{"port": port, "path": "/healthz", "interval_ns": 100 * MS, "timeout_ns": 60 * MS, **more})  # type: ignore[arg-type]


def patient(port: int = 1, **more: object) -> ProbeSettings:
    """Settings whose timeout is long enough that only silence runs into it, and a result comes soon all the same."""
    return quick(port, **{"interval_ns": 2_100 * MS, "timeout_ns": 2_000 * MS, **more})


def seen_last(cause: str, results: Results) -> bool:
    """Whether the newest result is a failure for that cause."""
    return results[-1][1:3] == (False, cause)


async def first_result(says: bytes | None, *, then_close: bool = False, **more: object) -> tuple[bool | None, str]:
    """What a prober thinks of one server."""
    async with serving(says, then_close=then_close) as (_, port):
        target = ProbeTarget(SOON, "127.0.0.1")
        async with probing([target], patient(port, **more)) as (_, results):
            await results.until(Results.known)
            return results.known()[0][1:3]


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        (OK, (True, "")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (True, "")),
        (b"HTTP/1.0 200\r\n\r\n", (True, "")),
        (b"HTTP/1.1 200 OK\n\n", (True, "")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (True, "")),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", (False, "status 503")),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", (False, "status 404")),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", (False, "status 302")),
        (b"SSH-2.0-OpenSSH_9.2\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/2 200\r\n\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/1.1 2000 OK\r\n\r\n", (False, "not an HTTP/1.x answer")),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 4000, (False, "response head over 16 KiB")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, (False, "status 100")),
    ],
)
def test_status_decides(says: bytes, verdict: tuple[bool, str]) -> None:
    """The final answer's status is the verdict (RFC 9110 section 15); a redirect isn't followed (Traefik #5147)."""
    assert run(lambda: first_result(says)) == verdict


def test_good_statuses_can_be_listed() -> None:
    """With a list of good statuses only those are good, a 302 too and a 200 not."""
    assert run(lambda: first_result(b"HTTP/1.1 302 Found\r\n\r\n", good_statuses=(302,))) == (True, "")
    assert run(lambda: first_result(OK, good_statuses=(302,))) == (False, "status 200")


def test_closing_without_an_answer_is_a_failure() -> None:
    """A server that closes, before or in the middle of its head, has not answered."""
    for says in (None, b"HTTP/1.1 200 OK\r\nContent-"):
        assert run(lambda says=says: first_result(says, then_close=True)) == (False, "closed without an answer")  # type: ignore[misc]


def test_silence_and_half_an_answer_run_into_the_timeout() -> None:
    """The timeout covers connecting and the whole head, and the cause says how long it was."""
    for says in (None, b"HTTP/1.1 200 OK\r\nContent-"):
        verdict = run(lambda says=says: first_result(says, timeout_ns=80 * MS, interval_ns=100 * MS))  # type: ignore[misc]
        assert verdict == (False, "timeout after 80 ms")


def test_an_answer_in_single_bytes_is_taken() -> None:
    """TCP gives no message boundaries: an answer may come byte by byte."""

    async def main() -> None:
        async with (
            serving(None) as (server, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], patient(port)) as (_, results),
        ):
            drops = OK

            def drip(self: Server, data: bytes) -> None:
                for place in range(len(drops)):
                    asyncio.get_running_loop().call_later(0.001 * place, self.transport.write, drops[place : place + 1])

            server.data_received = drip  # type: ignore[method-assign]
            await results.until(Results.known)
            assert results.known()[0][1:3] == (True, "")
            assert results.known()[0][3] > 0

    run(main)


def test_request_names_the_address_and_port_probed() -> None:
    """Host is the address with its port, in brackets for IPv6, without the default port (RFC 9110 section 7.2)."""
    assert b"\r\nHost: 192.0.2.1:8080\r\n" in request("192.0.2.1", 8080, "/")
    assert b"\r\nHost: [2001:db8::1]:8080\r\n" in request("2001:db8::1", 8080, "/")
    assert b"\r\nHost: 192.0.2.1\r\n" in request("192.0.2.1", 80, "/x?y=1")
    for path in ("x", "/a b", "/\r\nX: y", ""):
        with pytest.raises(ValueError, match="must start with /"):
            request("192.0.2.1", 80, path)


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

    run(main)


def stand_still(seconds: float) -> None:
    """Block the loop, as a long computation or a slow disk would."""
    time.sleep(seconds)


def closed_port() -> int:
    """A port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(backlog: int = 64) -> Iterator[int]:
    """A port that accepts connections in the kernel only: nobody ever answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        yield listener.getsockname()[1]


def test_tcp_passes_on_connect_alone() -> None:
    """A TCP target needs to accept, not to answer; a closed port is refused."""

    async def main(port: int) -> None:
        targets = [ProbeTarget("mute", "127.0.0.1"), ProbeTarget("closed", "127.0.0.1", port=closed_port())]
        async with probing(targets, patient(port, kind="tcp")) as (_, results):
            await results.until(lambda r: len({x[0] for x in r.known()}) == 2)
        assert ("mute", True, "") in {result[:3] for result in results}
        assert ("closed", False, "connection refused") in {result[:3] for result in results}

    with listening() as port:
        run(lambda: main(port))


def test_unknown_kind_and_bad_times_are_refused() -> None:
    """A kind that isn't there is named, with those that are; a timeout as long as the interval makes no sense."""
    with pytest.raises(ValueError, match=r"no probe of kind 'htpp'; there are http, tcp"):
        open_prober(ProbeSettings(kind="htpp"), lambda _: None)
    with pytest.raises(ValueError, match="must lie between"):
        ProbeSettings(interval_ns=MS, timeout_ns=MS)


def test_a_reset_connection_is_a_failure() -> None:
    """A target that resets has failed, and the cause says so."""

    async def main() -> None:
        async with (
            serving(None) as (server, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], patient(port)) as (_, results),
        ):

            def reset(self: Server, data: bytes) -> None:
                self.transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.transport.abort()

            server.data_received = reset  # type: ignore[method-assign]
            await results.until(Results.known)
            assert results.known()[0][1:3] == (False, "connection reset")

    run(main)


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
        run(lambda: main(dead_port))


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
        run(lambda: main(dead_port))


def test_no_time_wait_is_left() -> None:
    """Probes end by RST, so no port stays in TIME_WAIT (Kubernetes #89898), whether or not the server closes first."""

    def waiting(port: int) -> int:
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table][1:]
        return sum(row[3] == "06" and f"{port:04X}" in (row[1][-4:], row[2][-4:]) for row in rows)

    async def main(kind: str, says: bytes | None, then_close: bool) -> None:
        async with serving(says, then_close=then_close) as (_, port):
            targets = [ProbeTarget(str(n), "127.0.0.1") for n in range(50)]
            async with probing(targets, quick(port, kind=kind)) as (_, results):
                await results.until(lambda r: sum(x[1] is True for x in r) >= 100)
                assert waiting(port) == 0

    run(lambda: main("http", OK, False))
    run(lambda: main("http", OK, True))
    run(lambda: main("tcp", None, False))


def test_running_out_of_files_is_unknown_and_passes() -> None:
    """No descriptor left is no verdict on a target (Consul #3886), and probing goes on by itself afterwards."""

    async def main() -> None:
        async with (
            serving(OK) as (_, port),
            probing([ProbeTarget(SOON, "127.0.0.1")], quick(port)) as (prober, results),
        ):
            await results.until(lambda r: any(x[1] for x in r))
            assert prober.files_ran_out_ns == 0
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            held: list[int] = []
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
                with suppress(OSError):
                    while True:
                        held.append(os.open("/dev/null", os.O_RDONLY))
                results.clear()
                await results.until(lambda r: sum(x[2] == "out of file descriptors" for x in r) >= 3)
                assert {x[1] for x in results if "descriptors" in x[2]} == {None}
                assert False not in {x[1] for x in results}
                assert prober.files_ran_out_ns > 0
            finally:
                for descriptor in held:
                    os.close(descriptor)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            results.clear()
            await results.until(lambda r: sum(x[1] is True for x in r) >= 3)

    run(main)


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
        run(lambda: main(mute_port))


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

    run(main)


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

    run(main)


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
        run(lambda: main(port))


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

    run(main)


@pytest.mark.parametrize(
    ("says", "then_close", "capacity"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n120", False, 120),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n0\n", False, 0),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n25\r\n1\r\n5\r\n0\r\n\r\n", False, 255),
        (b"HTTP/1.0 200 OK\r\n\r\n77\n", True, 77),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n256", False, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n-1", False, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfull", False, None),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n50", False, None),
    ],
)
def test_capacity_is_a_number_or_nothing(says: bytes, then_close: bool, capacity: int | None) -> None:
    """A capacity is an integer from 0 to 255 in a 200 answer; anything odd is no statement and no failure."""

    async def main() -> None:
        async with serving(OK) as (_, port), serving(says, then_close=then_close) as (asked, capacity_port):
            settings = quick(port, capacity_port=capacity_port, capacity_path="/capacity", capacity_every=1)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: len(r) >= 4)
            assert results[-1][4] == capacity
            assert {x[1] for x in results} <= {True, None}
            assert asked.asked[0].startswith(b"GET /capacity HTTP/1.1\r\n")

    run(main)


def test_capacity_that_falls_silent_is_forgotten() -> None:
    """A capacity is asked for each `capacity_every` rounds, and a silent server's last number doesn't stay."""

    async def main() -> None:
        number = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n40"
        async with serving(OK) as (server, port), serving(number) as (teller, capacity_port):
            settings = quick(port, capacity_port=capacity_port, capacity_path="/capacity", capacity_every=3)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: any(x[4] == 40 for x in r))
                teller.says = None
                await results.until(lambda r: r[-1][4] is None)
                await results.until(lambda r: len(r) >= 12)
            assert len(teller.asked) <= len(server.asked) // 3 + 1

    run(main)


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_without_an_error(data: bytes) -> None:
    """Whatever a target sends, it gets a verdict: parsing never raises (RFC 9112 section 2.2 asks for no more)."""
    for answer in (data, b"HTTP/1.1 " + data, OK + data):
        parts = split_head(answer)
        head = parts[0] if parts else answer
        status = status_of(head)
        assert status is None or 100 <= status <= 999
        capacity = capacity_of(unchunk(data) or data)
        assert capacity is None or 0 <= capacity <= 255


@given(st.integers(1, 400), st.integers(10, 10_000), st.text(max_size=3))
def test_first_probes_are_spread(count: int, interval_ms: int, salt: str) -> None:
    """N targets that start together are sent at no more than 1.1 x N / interval in any second (Envoy #4132)."""
    interval_ns = interval_ms * MS
    offsets = sorted(phases([f"192.0.2.{n}" for n in range(count)], salt, interval_ns).values())
    assert len(offsets) == count
    assert all(0 <= offset < interval_ns for offset in offsets)
    window_ns = min(1_000 * MS, interval_ns)
    for place, start in enumerate(offsets):
        inside = sum(start <= offset < start + window_ns for offset in offsets[place:])
        assert inside <= 1.1 * count * window_ns / interval_ns + 1


def test_ten_thousand_start_evenly() -> None:
    """10,000 targets each 10 s: at most 1,100 first probes in any second, and each checker in its own order."""
    keys = [f"10.0.{n >> 8}.{n & 255}" for n in range(10_000)]
    offsets = phases(keys, "a", 10_000 * MS)
    a_second = Counter(offset // (1_000 * MS) for offset in offsets.values())
    assert max(a_second.values()) <= 1_100
    assert offsets != phases(keys, "b", 10_000 * MS)
    assert offsets == phases(reversed(keys), "a", 10_000 * MS)


def test_no_second_of_the_first_rounds_exceeds_the_rate() -> None:
    """With jitter, and where one round meets the next: at most 1.1 x N / interval in any second (Envoy #4132)."""
    count, interval_ns = 2_000, 10_000 * MS
    rounds: Rounds[None] = Rounds("a", interval_ns)
    for key, phase_ns in phases([f"192.0.2.{n}" for n in range(count)], "a", interval_ns).items():
        rounds.add(key, None, phase_ns)
    sent = []
    for now in range(0, 3 * interval_ns, 20 * MS):
        while due := rounds.pop_due(now):
            sent.append(now)
            rounds.next_round(now, *due[1:])
    tenths = Counter(at // (100 * MS) for at in sent)
    seconds = [sum(tenths[tenth + step] for step in range(10)) for tenth in range(290)]
    assert max(seconds) <= 1.1 * count / 10
    assert len(sent) >= 2.9 * count


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=40), st.integers(0, 999))
def test_rounds_go_on_whatever_the_pauses(pauses_ms: list[int], first_ms: int) -> None:
    """After any pause a target is due again within one interval and its jitter, once: no burst of missed rounds."""
    interval_ns = 1_000 * MS
    rounds: Rounds[str] = Rounds("a", interval_ns)
    rounds.add("t", "t", first_ms * MS)
    now, turns = 0, []
    for pause in pauses_ms:
        now += pause * MS
        due = rounds.pop_due(now)
        if due is None:
            continue
        due_ns, turn, key, first_ns, target = due
        turns.append(turn)
        rounds.next_round(now, turn, key, first_ns, target)
        assert rounds.pop_due(now) is None
        following = rounds.pop_due(now + interval_ns + interval_ns // 10)
        assert following is not None
        assert following[0] > now
        rounds.next_round(now, turn, key, first_ns, target)
        assert due_ns <= now
    assert turns == sorted(set(turns))


@given(st.text(max_size=20), st.integers(0, 1_000_000), st.integers(100, 10**11))
def test_jitter_is_small_and_repeatable(key: str, turn: int, interval_ns: int) -> None:
    """Jitter is a hash of target and round, under 10 % of the interval and never early; the first round has none."""
    value = jitter_ns(key, "a", turn, interval_ns)
    assert value == jitter_ns(key, "a", turn, interval_ns)
    assert 0 <= value * 100 <= 10 * interval_ns
    assert turn or value == 0


@given(st.integers(0, 20_000), st.integers(2, 60_000), st.data())
def test_a_lane_holds_rate_times_timeout(targets: int, interval_ms: int, data: st.DataObject) -> None:
    """Even if every target of the pool hangs, a lane holds them all, unless there aren't that many files."""
    timeout_ms = data.draw(st.integers(1, interval_ms - 1))
    limit = lane_limit(targets, interval_ms * MS, timeout_ms * MS, 1 << 20)
    assert limit >= targets * timeout_ms / interval_ms
    assert lane_limit(targets, interval_ms * MS, timeout_ms * MS, 100) <= 50


def test_the_sample_target_can_be_made_sick(tmp_path: Path) -> None:
    """The sample's target is well, then sick as told (by query, by file), then well again; its capacity is a number."""
    fail_file = tmp_path / "sick"
    arguments = [sys.executable, "-m", "fencepost.dev.target", "127.0.0.1", "0", "200", str(fail_file)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        async def ask(path: str) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("127.0.0.1", port, path))
            try:
                return await reader.read()
            finally:
                writer.close()

        async def main() -> None:
            settings = quick(port, capacity_path="/capacity", capacity_every=1)
            async with probing([ProbeTarget(SOON, "127.0.0.1")], settings) as (_, results):
                await results.until(lambda r: any(x[1] and x[4] == 200 for x in r))
                causes = {"status": "status 503", "redirect": "status 302", "reset": "connection reset"}
                for how, cause in causes.items():
                    await ask(f"/fail?for=60s&how={how}")
                    await results.until(partial(seen_last, cause))
                await ask("/fail?for=60s&how=silent")
                await results.until(lambda r: r[-1][2].startswith("timeout"))
                await ask("/fail?for=0s")
                await results.until(lambda r: r[-1][1] is True)
                fail_file.write_text("redirect")
                await results.until(lambda r: r[-1][1:3] == (False, "status 302"))
                fail_file.unlink()
                await results.until(lambda r: r[-1][1] is True)
                assert b"400 Bad Request" in await ask("/fail?for=soon")
                assert b"400 Bad Request" in await ask("/fail?how=odd")

        run(main)
    finally:
        process.terminate()
        process.wait()
