"""The SQLite store: what a call costs, what a plan costs, and how fairly eight planners share it.

python -m bench.store            (about 15 s; files in the temporary directory)
"""

import asyncio
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row
from fencepost.ports import Beat

PLANNERS = 8
ATTEMPTS = 300


def plan(head: Head, names: list[str]) -> Plan:
    """The next plan: six addresses for each of these."""
    number = head.number + 1
    value = content([f"192.0.2.{n}" for n in range(1, 7)], 30)
    return Plan(head, number, 0, tuple(Row.of(name, Generation(0, number), value, families="4") for name in names))


async def each(what: str, times: int, call: Callable[[int], Awaitable[object]]) -> None:
    """Print the time of one of so many calls in a row, and this process's CPU time for it."""
    cpu, start = time.process_time(), time.perf_counter()
    for n in range(times):
        await call(n)
    wall_us, cpu_us = (time.perf_counter() - start) / times * 1e6, (time.process_time() - cpu) / times * 1e6
    print(f"  {what:42}{wall_us:9.0f} µs   (CPU {cpu_us:.0f} µs)")


async def calls(directory: str, endpoints: int) -> None:
    """One process: reads, writes, one change among many."""
    print(f"{endpoints:,} endpoints of six addresses")
    store = SqliteStore.open(Path(directory, f"{endpoints}.db"), create=True, checkpoints=True)
    names = [f"e{n}.example" for n in range(endpoints)]
    for what in ("first plan, every endpoint", "a plan that changes every endpoint"):
        start = time.perf_counter()
        head = await store.publish(plan(await store.head(), names))
        assert head is not None
        print(f"  {what:42}{(time.perf_counter() - start) * 1e3:9.0f} ms")
    start = time.perf_counter()
    await store.newest_rows(None)
    print(f"  {'reading every newest row':42}{(time.perf_counter() - start) * 1e3:9.0f} ms")

    async def one(n: int) -> None:
        nonlocal head
        assert head is not None
        head = await store.publish(plan(head, [names[n * 7 % endpoints]]))

    await each("a plan of one change (on disk)", 300, one)
    await each("head", 2_000, lambda _: store.head())
    await each("newest rows, nothing new", 2_000, lambda _: store.newest_rows(head))
    await each("inputs, nothing new", 2_000, lambda _: store.inputs())
    await each("a sign of life", 1_000, lambda n: store.beat(Beat("planner", 1, "0", "up", "", n)))
    await each("membership of 100 kB (on disk)", 200, lambda n: store.put_membership("web", n, b"x" * 100_000))
    waiter = store.waiter()
    await waiter.wait(0)
    await waiter.wait(SECOND)
    cpu, start = time.process_time(), time.perf_counter()
    await waiter.wait(3 * SECOND)
    share = (time.process_time() - cpu) / (time.perf_counter() - start)
    print(f"  {'waiting, nothing happens':42}{share * 100:9.2f} % of a core")
    await store.close()


async def planner(path: str) -> None:
    """A child: publish in a loop; print each attempt's time in µs."""
    store = SqliteStore.open(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(ATTEMPTS):
        start = time.perf_counter()
        done = await store.publish(plan(await store.head(), [f"e{os.getpid()}-{n}.example"]))
        print(int((time.perf_counter() - start) * 1e6), int(done is not None))
    await store.close()


def race(directory: str) -> None:
    """Eight processes, all publishing all the time."""
    path = str(Path(directory, "race.db"))
    asyncio.run(SqliteStore.open(path, create=True).close())
    with contextlib.ExitStack() as stack:
        children = []
        for _ in range(PLANNERS):
            command = [sys.executable, __file__, "planner", path]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            children.append(stack.enter_context(subprocess.Popen(command, **pipes)))  # type: ignore[call-overload]
        for child in children:
            child.stdout.readline()
        start = time.perf_counter()
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        found = [tuple(map(int, line.split())) for child in children for line in child.stdout]
        took = time.perf_counter() - start
    times = sorted(time_us for time_us, _ in found)
    won = sum(done for _, done in found)
    cuts = statistics.quantiles(times, n=100)
    print(f"{PLANNERS} planners at once: {len(found)} attempts in {took:.1f} s, {won} published, the others outrun")
    print(f"  an attempt takes {cuts[49] / 1e3:.1f} ms; p99 {cuts[98] / 1e3:.1f} ms; longest {times[-1] / 1e3:.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["planner"]:
        asyncio.run(planner(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            for endpoints in (1_000, 100_000):
                asyncio.run(calls(directory, endpoints))
            race(directory)
        print(f"largest size of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
