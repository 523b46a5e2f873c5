"""The store's contract, kept by PostgreSQL; and any run of operations ends the same on it and on the reference."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgresql import Server, postgresql
from put_back import PutBackContract
from store import Make, StoreContract, plan
from test_store_on_sqlite import _operation, does, everything

from fencepost.adapters.store_postgresql import PostgresqlStore
from fencepost.core.store import Head
from fencepost.world.reference_store import ReferenceStore


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file."""
    with postgresql() as running:
        yield running


_schemas = (f"example_{n}" for n in itertools.count())


def new_schema(server: Server) -> str:
    """Where no store is yet: a schema, since making a database takes a tenth of a second or more."""
    return server.dsn("postgres", options=f"-c search_path={next(_schemas)}")


class TestPostgresql(StoreContract, PutBackContract):
    """The store in a database."""

    @pytest.fixture
    def make(self, server: Server) -> Make:
        """A new schema, which is a store of its own."""
        return lambda: PostgresqlStore.open(new_schema(server), create=True)


async def agree(store: PostgresqlStore, operations: Sequence[tuple[Any, ...]]) -> None:
    """Both stores do the same; PostgreSQL goes first and its nonce is the reference's too."""
    first = await store.head()
    heads = [first]

    async def never(most: int) -> None:
        raise AssertionError

    reference = ReferenceStore(first.store, lambda: drawn, never)
    for operation in operations:
        outcome = await does(store, heads, operation)
        drawn = outcome.nonce if isinstance(outcome, Head) else "none drawn"
        assert await does(reference, heads, operation) == outcome, operation
        if isinstance(outcome, Head):
            heads.append(outcome)
    assert await everything(store, heads) == await everything(reference, heads)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(_operation, min_size=5, max_size=40))
def test_any_run_of_operations_ends_the_same_as_on_the_reference(
    server: Server, operations: list[tuple[Any, ...]]
) -> None:
    """What the explorer proves of the reference's plans and rows holds here only if the two never differ."""

    async def go() -> None:
        store = PostgresqlStore.open(new_schema(server), create=True)
        try:
            await agree(store, operations)
        finally:
            await store.close()

    asyncio.run(go())


def test_of_writers_on_connections_of_their_own_one_wins_each_time(server: Server) -> None:
    """Ten stores, ten writers on each, twenty swaps each: the lock of the head's row lets one through at a time."""
    dsn = server.dsn(server.database())
    stores = [PostgresqlStore.open(dsn, create=True) for _ in range(10)]
    won: list[int] = []
    refused = 0

    async def writer(store: PostgresqlStore, name: str) -> None:
        nonlocal refused
        for _ in range(20):
            head = await store.head()
            done = await store.publish(plan(head, head.number + 1, name))
            if done is None:
                refused += 1
            else:
                won.append(done.number)

    async def go() -> None:
        await asyncio.gather(*(writer(stores[n % 10], f"e{n}.example") for n in range(100)))
        assert (await stores[0].head()).number == len(won)
        for store in stores:
            await store.close()

    asyncio.run(go())
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) + refused == 2_000
    assert refused > 0
    chain = server.sql(dsn.split("dbname=")[1].split()[0], "SELECT number FROM fencepost.plan ORDER BY seq")
    assert [number for (number,) in chain] == sorted(won)[-len(chain) :]


def test_two_regions_in_one_database_know_nothing_of_each_other(server: Server) -> None:
    """A schema is a store: other tables, another identity, another channel to be woken on."""
    database = server.database()

    async def go() -> None:
        one, two = (
            PostgresqlStore.open(server.dsn(database, options=f"-csearch_path={name},public"), create=True)
            for name in ("one", "two")
        )
        assert (await one.head()).store != (await two.head()).store
        await one.put_config(b"1", b"")
        assert (await two.inputs()).config == b""
        await one.close()
        await two.close()

    asyncio.run(go())
    found = server.sql(database, "SELECT nspname FROM pg_namespace WHERE nspname IN ('one', 'two', 'fencepost')")
    assert sorted(str(name) for (name,) in found) == ["one", "two"]
