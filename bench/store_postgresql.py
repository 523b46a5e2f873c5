"""The PostgreSQL store on a server of its own, fsync on: what calls and plans cost, and a hundred planners at once.

    python -m bench.store_postgresql            (about 30 s; PostgreSQL 15 must be installed)

CPU is this process's own; the server's comes on top.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

from postgresql import Server, postgresql

from bench.figures import tell
from fencepost.adapters.store_postgresql import PostgresqlStore
from fencepost.core.fence import Generation
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row
from fencepost.ports import Beat

WRITERS = 100
SWAPS = 100
STORES = 10


def plan(head: Head, names: list[str]) -> Plan:
    """The next plan: six addresses for each of these."""
    number = head.number + 1
    value = content([f"192.0.2.{n}" for n in range(1, 7)], 30)
    return Plan(head, number, 0, tuple(Row.of(name, Generation(0, number), value, families="4") for name in names))


async def each(what: str, times: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Tell the median time of so many calls in a row, and this process's CPU time for one; the median in ms."""
    cpu, walls = time.process_time(), []
    for n in range(times):
        start = time.perf_counter()
        await call(n)
        walls.append((time.perf_counter() - start) * 1e3)
    cpu_ms = (time.process_time() - cpu) / times * 1e3
    median = statistics.median(walls)
    tell(what, median, "ms", f"(CPU {cpu_ms:.2f} ms)")
    return median


async def calls(server: Server, endpoints: int) -> float:
    """One process: plans of many rows, one change among many, the rest. The median of reading one change, in ms."""
    many = f"postgresql, {endpoints:,} rows"
    store = PostgresqlStore.open(server.dsn(server.database()), create=True)
    names = [f"e{n}.example" for n in range(endpoints)]
    for what in ("first plan", "a plan that changes every one"):
        head = await store.head()
        made = plan(head, names)
        start = time.perf_counter()
        assert await store.publish(made) is not None
        tell(f"{many}: {what}", (time.perf_counter() - start) * 1e3, "ms")
    start = time.perf_counter()
    await store.newest_rows(None)
    tell(f"{many}: reading every newest row", (time.perf_counter() - start) * 1e3, "ms")
    heads = [await store.head()]

    async def one(n: int) -> None:
        head = await store.publish(plan(heads[-1], [names[n * 7 % endpoints]]))
        assert head is not None
        heads.append(head)

    await each(f"{many}: a plan of one change", 200, one)

    async def since(_: int) -> None:
        found = await store.newest_rows(heads[-2])
        assert len(found[1]) == 1

    read = await each(f"{many}: reading one change", 300, since)
    await each(f"{many}: head", 1_000, lambda _: store.head())
    await each(f"{many}: inputs, nothing new", 1_000, lambda _: store.inputs())
    await each(f"{many}: a sign of life", 500, lambda n: store.beat(Beat("planner", 1, "0", "up", "", n)))
    await each(f"{many}: membership of 100 kB", 100, lambda n: store.put_membership("web", n, b"x" * 100_000))
    await each(f"{many}: spent rows, 100 of them", 50, lambda _: store.spent_rows(100))
    await woken(store, many)
    await store.close()
    return read


async def woken(store: PostgresqlStore, many: str) -> None:
    """From a change's call until its waiter runs; and what waiting costs while nothing happens."""
    waiter = store.waiter()
    for _ in range(3):
        await waiter.wait(SECOND // 5)
    walls = []
    for n in range(50):
        waiting = asyncio.create_task(waiter.wait(10 * SECOND))
        await asyncio.sleep(0.01)
        start = time.perf_counter()
        await store.put_override("x", str(n).encode())
        await waiting
        walls.append((time.perf_counter() - start) * 1e3)
    tell(f"{many}: a change, until its waiter runs", statistics.median(walls), "ms")
    await waiter.wait(SECOND // 5)
    cpu, start = time.process_time(), time.perf_counter()
    await waiter.wait(6 * SECOND)
    share = (time.process_time() - cpu) / (time.perf_counter() - start)
    tell(f"{many}: waiting, nothing happens", share * 100, "% of core")


async def race(server: Server) -> None:
    """A hundred planners on ten connections, a hundred swaps each."""
    dsn = server.dsn(server.database())
    stores = [PostgresqlStore.open(dsn, create=True) for _ in range(STORES)]
    numbers: list[int] = []
    refused = 0

    async def writer(store: PostgresqlStore, name: str) -> None:
        nonlocal refused
        for _ in range(SWAPS):
            head = await store.head()
            done = await store.publish(plan(head, [name]))
            refused += done is None
            if done is not None:
                numbers.append(done.number)

    start = time.perf_counter()
    await asyncio.gather(*(writer(stores[n % STORES], f"e{n}.example") for n in range(WRITERS)))
    took = time.perf_counter() - start
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(numbers) + refused == WRITERS * SWAPS
    words = f"{len(numbers)} published, {refused} outrun; none lost, none twice"
    tell(f"postgresql: {WRITERS} planners, {SWAPS} swaps each", took, "s", words)
    for store in stores:
        await store.close()


def main() -> None:
    """All of it."""
    with postgresql(fsync="on", autovacuum="on") as server:
        few = asyncio.run(calls(server, 1_000))
        many = asyncio.run(calls(server, 10_000))
        most = asyncio.run(calls(server, 100_000))
        tell("postgresql: reading one change, 100,000 rows ÷ 1,000 rows", most / few, "×")
        tell("postgresql: reading one change, 10,000 rows ÷ 1,000 rows", many / few, "×")
        asyncio.run(race(server))


if __name__ == "__main__":
    main()
