"""A server that says nothing, and sessions that hold locks: no call lasts for ever, and all goes on by itself."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from postgresql import Server, Switch, postgresql
from store import plan, published, quiet

from fencepost.adapters.store_postgresql import PostgresqlStore, address, connection
from fencepost.adapters.store_postgresql.bounded import BoundedConnection
from fencepost.adapters.store_postgresql.session import Session
from fencepost.core.instant import SECOND
from fencepost.core.store import Plan
from fencepost.ports import HistoryRow, Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file."""
    with postgresql() as running:
        yield running


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits, short enough for a test."""
    monkeypatch.setattr(BoundedConnection, "patience_s", 2.0)
    monkeypatch.setitem(connection.LIMITS, "lock_timeout", "800ms")
    monkeypatch.setitem(connection.LIMITS, "statement_timeout", "1600ms")
    monkeypatch.setitem(connection.LIMITS, "idle_in_transaction_session_timeout", "1200ms")
    monkeypatch.setitem(address.LIMITS, "connect_timeout", "2")


def sessions(server: Server) -> list[int]:
    """The processes that serve us."""
    found = server.sql("postgres", "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencepost'")
    return [int(str(pid)) for (pid,) in found]


def test_a_stopped_server_holds_nobody_up(server: Server, hurried: None) -> None:
    """SIGSTOP: its kernel takes what we send and nothing ever answers. Calls end, a close ends, and then it goes on."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        head = await published(store, 1, "a.example")
        waiter = store.waiter()
        await waiter.wait(SECOND // 5)
        stopped = [server.pid, *sessions(server)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="said nothing"):
                await asyncio.wait_for(store.publish(plan(head, 2, "a.example")), 10)
            with pytest.raises(Unavailable, match="can't be reached"):
                await asyncio.wait_for(store.head(), 10)
            other = PostgresqlStore.open(server.dsn(database))
            asking = asyncio.create_task(other.head())
            await asyncio.sleep(0.05)
            await asyncio.wait_for(other.close(), 10)
            with pytest.raises(Unavailable):
                await asking
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)
        await published_again(store)
        await store.close()

    asyncio.run(go())


async def published_again(store: PostgresqlStore) -> None:
    """The next plan, once the store can be used; what became of the last one is read, not guessed."""
    async with asyncio.timeout(30):
        while True:
            try:
                head = await store.head()
                assert await store.publish(plan(head, head.number + 1, "a.example")) is not None
            except Unavailable:
                await asyncio.sleep(0.05)
            else:
                return


def test_a_network_that_swallows_everything_holds_nobody_up(server: Server, hurried: None) -> None:
    """An idle connection is found dead at its first use: that call fails within the limit, the next one connects."""
    database = server.database()

    async def go() -> None:
        switch = Switch(server.port)
        store = PostgresqlStore.open(server.dsn(database, port=switch.port), create=True)
        await store.head()
        switch.swallow = True
        with pytest.raises(Unavailable, match="said nothing"):
            await asyncio.wait_for(store.head(), 10)
        switch.swallow = False
        await published_again(store)
        await store.close()
        switch.close()

    asyncio.run(go())


@pytest.mark.parametrize("before", [False, True])
def test_an_answer_that_was_lost_is_told_as_unknown_and_nothing_is_done_twice(server: Server, before: bool) -> None:
    """The connection breaks at COMMIT: only the server knows whether it took place. Sent again it would look outrun."""
    database = server.database()

    async def go() -> None:
        switch = Switch(server.port)
        store = PostgresqlStore.open(server.dsn(database, port=switch.port), create=True)
        first = await store.head()
        switch.cut_at, switch.before = b"COMMIT", before
        with pytest.raises(Unavailable):
            await store.publish(plan(first, 1, "a.example"))
        head = await store.head()
        switch.cut_at = b"COMMIT"
        with pytest.raises(Unavailable):
            await store.note([HistoryRow("role", "a", "b", "once", 1)])
        assert head.number == (0 if before else 1)
        assert len(await store.rows_of("a.example")) == head.number
        assert len(await store.history()) == (0 if before else 1)
        await store.close()
        switch.close()

    asyncio.run(go())


def commits_wait(server: Server) -> threading.Thread:
    """Once the server's checkpointer has read of a replica, commits wait for it: the one that was seen to wait."""
    seen = threading.Event()

    def commits() -> None:
        while not seen.is_set():
            server.sql("postgres", "CREATE TABLE written ()", "DROP TABLE written")

    thread = threading.Thread(target=commits, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while server.sql("postgres", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    seen.set()
    return thread


def test_a_commit_that_waits_for_a_replica_is_never_taken_for_done(hurried: None) -> None:
    """No limit on a statement's time ends the wait for a synchronous replica; ours does, and tells it as unknown."""

    async def go(server: Server) -> None:
        store = PostgresqlStore.open(server.dsn(server.database()), create=True)
        head = await published(store, 1, "a.example")
        server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        waiting = commits_wait(server)
        with pytest.raises(Unavailable, match="said nothing"):
            await store.publish(plan(head, 2, "a.example"))
        server.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        waiting.join(30)
        await published_again(store)
        numbers = [row.generation.number for row in await store.rows_of("a.example")]
        assert numbers == sorted(set(numbers), reverse=True)
        await store.close()

    with postgresql() as alone:
        asyncio.run(go(alone))


def test_a_server_that_is_merely_slow_holds_nobody_up_either(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement within its limit, all of a call together beyond it."""
    database = server.database()

    def slow(session: Session) -> None:
        for _ in range(100):
            session.execute("SELECT pg_sleep(0.1)")

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        await store.head()  # which makes the store
        monkeypatch.setattr("fencepost.adapters.store_postgresql.database.CALL_MOST_S", 1.0)
        with pytest.raises(Unavailable, match="too slow"):
            await asyncio.wait_for(store._read(slow), 8)
        await published_again(store)
        await store.close()

    asyncio.run(go())


def test_a_notification_that_never_comes_is_made_up_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler in the wrong mode, say: the listener looks at head and inputs all the same."""
    database = server.database()
    monkeypatch.setattr(Session, "notify_plans", lambda _session: None)

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        waiter = store.waiter()
        await quiet(waiter)
        await store.put_config(b"one", b"")
        await asyncio.wait_for(waiter.wait(3600 * SECOND), 30)
        await store.close()

    asyncio.run(go())


def test_a_writer_that_is_stopped_in_its_transaction_is_ended_by_the_server(
    server: Server, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the head's row; others are told so, and then the server ends its session: no lock outlives that."""
    monkeypatch.setitem(connection.LIMITS, "idle_in_transaction_session_timeout", "3s")  # long after others were told
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        head = await published(store, 1, "a.example")
        stuck = psycopg.connect(server.dsn(database))
        for name, value in connection.LIMITS.items():
            stuck.execute("SELECT set_config(%s, %s, false)", (name, value))
        stuck.commit()
        stuck.execute("SELECT * FROM fencepost.head FOR UPDATE")
        with pytest.raises(Unavailable, match=f"process {stuck.info.backend_pid} .* has held the store's lock"):
            await store.publish(plan(head, 2, "a.example"))
        began = time.monotonic()
        while True:
            try:
                assert await store.publish(plan(head, 2, "a.example")) is not None
                break
            except Unavailable:
                assert time.monotonic() < began + 20
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            stuck.execute("SELECT 1")
        stuck.close()
        await store.close()

    asyncio.run(go())


def test_a_session_broken_while_idle_costs_no_call(server: Server) -> None:
    """Restarted by night: a transaction that had not begun is done on a new connection, and nobody is told."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        for number in (1, 2, 3):
            head = await store.head()
            server.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                       f"'{database}' AND pid <> pg_backend_pid()")  # fmt: skip
            assert await store.publish(Plan(head, number, 0, ())) is not None
            server.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                       f"'{database}' AND pid <> pg_backend_pid()")  # fmt: skip
            await store.put_override("x", str(number).encode())
        await store.close()

    asyncio.run(go())


def test_one_change_reads_one_row(server: Server) -> None:
    """Whatever is done about one endpoint, the server finds it by an index, however stale its statistics."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        names = [f"e{n}.example" for n in range(3000)]
        head = await published(store, 1, *names)
        for number in range(2, 14):  # more than once: a plan kept for later must be no worse
            last = await published(store, number, names[7])
            _, rows = await store.newest_rows(head)
            assert [row.name for row in rows] == [names[7]]
            assert len(await store.rows_of(names[7])) == number
            assert await store.newest_rows(last) == (last, ())
        for row, _, _ in await store.spent_rows(5):
            assert await store.delete_row(row.name, row.generation, row.nonce)
        await store.close()

    asyncio.run(go())
    ended = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
    while server.sql("postgres", ended) != [(0,)]:  # what a session counted is seen when it has ended
        time.sleep(0.02)
    found = server.sql(
        database,
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
        " WHERE relname IN ('newest', 'plan_row', 'plan', 'spent')",
    )
    assert 0 < int(str(found[0][0])) < 3000, "rows were walked"
