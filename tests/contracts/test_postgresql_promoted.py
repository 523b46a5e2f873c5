"""A store that comes back from the past, or elsewhere, counts as lost: a promoted replica, a dump, a copy."""

import asyncio
import signal
from collections.abc import Iterator

import pytest
from postgresql import Server, Switch, postgresql, replica
from put_back import puts_back, standing
from store import plan, published, quiet

from fencepost.adapters.store_postgresql import PostgresqlStore
from fencepost.core.instant import SECOND
from fencepost.core.store import Head, Order
from fencepost.ports import Misconfigured, Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for those tests that leave it as it is."""
    with postgresql() as running:
        yield running


async def fill(store: PostgresqlStore) -> Head:
    """A store with something of everything in it."""
    head = await published(store, 1, "a.example", "b.example")
    head = await published(store, 2, "a.example")
    assert await store.put_config(b"a configuration", b"")
    assert await store.put_membership("web", 0, b"a membership")
    await store.put_override("x", b"a drain")
    await store.put_order(Order("o1", "withdraw", "a.example"))
    return head


async def is_as_new(store: PostgresqlStore, old: Head) -> None:
    """What roles are told of a lost store: another identity, and nothing in it."""
    head = await store.head()
    assert head.mark != old.mark
    assert head == Head(head.store)
    assert await store.newest_rows(old) == (head, ())
    inputs = await store.inputs()
    assert (inputs.snapshot, inputs.config, inputs.orders) == (0, b"", ())
    assert (dict(inputs.membership), dict(inputs.overrides)) == ({}, {})
    assert await store.spent_rows(9) == ()
    assert await store.publish(plan(old, old.number + 1, "a.example", inputs=old.inputs)) is None
    assert any("counts as lost" in line.text for line in await store.history())


@pytest.mark.timeout(120)
def test_a_promoted_replica_that_lagged_is_another_store() -> None:
    """It holds generation 2 where 3 was published: under the same identity, 3 would be published again."""

    async def go(primary: Server) -> None:
        database = primary.database()
        switch = Switch(primary.port)
        dsn = primary.dsn(database, port=switch.port)
        store, reader = PostgresqlStore.open(dsn, create=True), PostgresqlStore.open(dsn)
        await fill(store)
        with replica(primary) as second:
            second.wait_caught_up()
            second.lag()
            lost = await published(store, 3, "a.example", "c.example")
            await store.put_override("y", b"placed where it will be lost")
            remembered = await store.overrides()
            waiter = reader.waiter()
            await quiet(waiter)
            primary.stop(signal.SIGQUIT)
            both = dsn.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1")
            both = both.replace(f"port={switch.port}", f"port={primary.port},{second.port}")
            finder = PostgresqlStore.open(f"{both} target_session_attrs=read-write")
            with pytest.raises(Unavailable):  # this one looks again soon: it may find a primary by itself
                await finder.head()
            switch.move(second.port)
            assert "can only be read" in await misconfigured(store), "it is a replica still"
            second.promote()
            await asyncio.wait_for(waiter.wait(3600 * SECOND), 30)
            head = await settled(reader)
            assert head.store != lost.store
            await is_as_new(reader, lost)
            assert await settled(store) == head, "every role sees the same one"
            assert await settled(finder) == head
            await finder.close()
            assert await store.newest_rows(lost) == (head, ())
            # What the enactors remember of the lost store has the last word, and the next plan goes on.
            assert await puts_back(store, remembered.snapshot, lost.store, **remembered.words) == ["x", "y"]
            assert set(await standing(reader)) == {"x", "y"}
            assert (await published(store, 4, "a.example")).store == head.store
            kept = second.sql(database, "SELECT kind, name FROM fencepost.former ORDER BY kind, name")
            assert ("config", "") in kept
            assert ("override", "x") in kept
            assert ("row", "b.example") in kept
            # Restarted, it is the same one.
            second.stop(signal.SIGINT)
            second.start()
            assert (await settled(store)).store == head.store
        await store.close()
        await reader.close()
        switch.close()

    with postgresql() as primary:
        asyncio.run(go(primary))


async def settled(store: PostgresqlStore) -> Head:
    """The head, once the store can be read again."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await store.head()
            except (Unavailable, Misconfigured):
                await asyncio.sleep(0.05)


async def misconfigured(store: PostgresqlStore) -> str:
    """What a person is to mend, once the connection that broke is given up."""
    async with asyncio.timeout(30):
        while True:
            try:
                await store.head()
            except Unavailable:
                await asyncio.sleep(0.05)
            except Misconfigured as problem:
                return problem.what


def test_a_dump_read_back_is_another_store(server: Server) -> None:
    """Into the same database of the same server: the tables are others, and what they hold is as old as the dump."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        old = await fill(store)
        dump = str(server.data.parent / "dump")
        server.run("pg_dump", "-d", server.dsn(database), "-Fc", "-f", dump)
        await published(store, 3, "a.example")
        await store.close()
        server.run("pg_restore", "-d", server.dsn(database), "--clean", dump)
        store = PostgresqlStore.open(server.dsn(database))
        await is_as_new(store, old)
        await store.close()

    asyncio.run(go())


def test_a_copied_database_is_another_store(server: Server) -> None:
    """A region tried out on a copy must not be taken for the one that runs; that one isn't touched."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        old = await fill(store)
        await store.close()
        server.sql("postgres", f"CREATE DATABASE copied TEMPLATE {database}")
        copy = PostgresqlStore.open(server.dsn("copied"))
        await is_as_new(copy, old)
        await copy.close()
        store = PostgresqlStore.open(server.dsn(database))
        assert await store.head() == old
        await store.close()

    asyncio.run(go())


def test_two_roles_that_notice_at_once_found_it_once(server: Server) -> None:
    """Each would draw an identity; the head's lock lets the first, and the second finds it done."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database), create=True)
        old = await fill(store)
        await store.close()
        server.sql(database, "UPDATE fencepost.head SET origin = 'elsewhere'")
        stores = [PostgresqlStore.open(server.dsn(database)) for _ in range(8)]
        heads = await asyncio.gather(*(each.head() for each in stores))
        assert len({head.store for head in heads}) == 1
        assert heads[0].mark != old.mark
        assert len([line for line in await stores[0].history() if "counts as lost" in line.text]) == 1
        for each in stores:
            await each.close()

    asyncio.run(go())
