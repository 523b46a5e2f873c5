"""The database server dies and comes back while planners publish: no generation is lost, and none is made twice."""

import asyncio
import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable

import pytest
from postgresql import Server, postgresql
from store import plan

from fencepost.adapters.store_postgresql import PostgresqlStore
from fencepost.adapters.store_waiting import Waiter
from fencepost.core.instant import SECOND
from fencepost.core.store import Head
from fencepost.ports import Unavailable

WRITERS = 4
ENOUGH = 25


class Writer(threading.Thread):
    """A planner: reads the head, publishes the next number, and after an unknown outcome reads again."""

    def __init__(self, dsn: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.dsn = dsn
        self.stop = threading.Event()
        self.won: list[Head] = []
        self.refused = 0
        self.unknown = 0
        self.wrong: BaseException | None = None

    def run(self) -> None:
        """Until it is told to stop."""
        try:
            asyncio.run(self.publishes())
        except BaseException as error:
            self.wrong = error

    async def publishes(self) -> None:
        """One after the other."""
        store = PostgresqlStore.open(self.dsn)
        while not self.stop.is_set():
            try:
                head = await store.head()
            except Unavailable:
                await asyncio.sleep(0.02)
                continue
            try:
                done = await store.publish(plan(head, head.number + 1, f"{self.name}.example"))
            except Unavailable:
                self.unknown += 1
                continue
            if done is None:
                self.refused += 1
            else:
                self.won.append(done)
        await store.close()


def until(happened: Callable[[], bool], writers: list[Writer], what: str) -> None:
    """Wait for it; a writer that broke ends the test."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, what
        for writer in writers:
            if writer.wrong is not None:
                raise writer.wrong
        time.sleep(0.01)


def kill_a_session(server: Server) -> None:
    """Kill -9 of one of ours: the postmaster ends all others and recovers, as after a crash."""
    found = server.sql("postgres", "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencepost' LIMIT 1")
    os.kill(int(str(found[0][0])), signal.SIGKILL)
    server.wait_ready()


@pytest.mark.timeout(120)
def test_no_generation_is_lost_or_doubled_when_the_server_is_restarted_under_its_writers() -> None:
    """Immediate shutdown, a killed backend, a fast shutdown; every publish that was answered is there afterwards."""
    with postgresql(restart_after_crash="on") as server:
        database = server.database()
        dsn = server.dsn(database)
        opened = PostgresqlStore.open(dsn, create=True)
        first = asyncio.run(opened.head())
        writers = [Writer(dsn, f"w{n}") for n in range(WRITERS)]
        for writer in writers:
            writer.start()

        def crash() -> None:
            server.stop(signal.SIGQUIT)
            server.start()

        def end_in_order() -> None:
            server.stop(signal.SIGINT)
            server.start()

        for restart in (crash, lambda: kill_a_session(server), end_in_order, lambda: None):
            before = [len(writer.won) for writer in writers]
            until(
                lambda before=before: sum(len(w.won) for w in writers) >= sum(before) + ENOUGH,  # type: ignore[misc]
                writers,
                "they publish",
            )
            restart()
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join(30)
            assert writer.wrong is None
        chain = server.sql(database, "SELECT number, nonce FROM fencepost.plan ORDER BY seq")
        assert asyncio.run(opened.head()).store == first.store, "a restart is no promotion"
        asyncio.run(opened.close())
    numbers = [number for number, _ in chain]
    assert numbers == list(range(1, len(chain) + 1))
    won = {(head.number, head.nonce) for writer in writers for head in writer.won}
    assert won <= set(chain), "what was answered as published is there"
    assert len(set(chain) - won) <= sum(writer.unknown for writer in writers), "what is there was published once"
    assert sum(writer.refused for writer in writers) > 0
    assert sum(len(writer.won) for writer in writers) == len(won) >= 4 * ENOUGH


async def heard_all(store: PostgresqlStore, waiter: Waiter) -> None:
    """Wait until the store's thread listens, and all that it told so far is known."""
    async with asyncio.timeout(20):
        heard = -1
        while not store._watch.connected or heard != store._watch.changes:
            heard = store._watch.changes
            await waiter.wait(SECOND // 5)


def many_files(files: contextlib.ExitStack) -> None:
    """Open files until the next one has a number above 1,023."""
    found = 0
    while found < 1024:
        found = os.open(os.devnull, os.O_RDONLY)
        files.callback(os.close, found)


def test_a_waiter_is_told_after_the_listening_connection_was_lost() -> None:
    """Notifications sent meanwhile are gone: being lost and being back both count as a change."""
    with postgresql() as server:
        database = server.database()

        async def go() -> None:
            store = PostgresqlStore.open(server.dsn(database), create=True)
            other = PostgresqlStore.open(server.dsn(database))
            await store.head()
            waiter = store.waiter()
            await heard_all(store, waiter)
            waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE %s"
            server.sql(database, cut.replace("%s", "'SELECT store, number%'"))
            await asyncio.wait_for(waiting, 20)
            await other.put_config(b"one", b"")
            deadline = time.monotonic() + 20
            while (await store.inputs()).config != b"one":
                assert time.monotonic() < deadline
                await asyncio.wait_for(waiter.wait(3600 * SECOND), 20)
            # Whatever was told before: it listens again, and hears the next change.
            await heard_all(store, waiter)
            waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
            await other.put_config(b"two", b"one")
            await asyncio.wait_for(waiting, 20)
            await store.close()
            await other.close()

        asyncio.run(go())


def test_a_waiter_is_told_in_a_process_with_more_files_than_select_can_take() -> None:
    """A checker of a thousand targets has descriptors above 1,023, and select(2) takes none of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with postgresql() as server, contextlib.ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
        database = server.database()

        async def go() -> None:
            store = PostgresqlStore.open(server.dsn(database), create=True)
            other = PostgresqlStore.open(server.dsn(database))
            many_files(files)
            waiter = store.waiter()
            await heard_all(store, waiter)
            waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
            await other.put_config(b"one", b"")
            await asyncio.wait_for(waiting, 20)
            await store.close()
            await other.close()

        asyncio.run(go())
