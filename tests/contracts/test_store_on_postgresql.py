"""The store's contract, kept by PostgreSQL; and any run of operations ends the same on it and on the reference."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgresql import Server, postgresql
from put_back import PutBackContract
from store import Make, StoreContract, plan
from swaps import SwapsContract
from test_store_on_sqlite import _operation, does, everything

from fencepost.adapters.store_postgresql import PostgresqlStore
from fencepost.core.fence import Generation
from fencepost.core.store import Head, Order
from fencepost.ports import Enacted, HistoryRow, PutBack
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


class TestPostgresql(StoreContract, PutBackContract, SwapsContract):
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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def on_stores(server: Server, count: int, test: Callable[[list[PostgresqlStore]], Coroutine[Any, Any, None]]) -> None:
    """Run a test on so many roles' connections to one new store."""
    dsn = new_schema(server)
    stores = [PostgresqlStore.open(dsn, create=True) for _ in range(count)]

    async def go() -> None:
        try:
            await asyncio.wait_for(test(stores), 60)
        finally:
            for store in stores:
                await store.close()

    asyncio.run(go())


def test_of_compare_and_sets_at_once_one_wins(server: Server) -> None:
    """Configuration, membership, an order, what is put back: eight roles, each with a connection of its own."""

    async def race(stores: list[PostgresqlStore]) -> None:
        for turn in range(10):
            config = (await stores[0].inputs()).config
            seen = await stores[0].overrides()
            back = PutBack(seen.store, seen.snapshot, "lost", turn, {f"x{turn}": b"1"})
            order = Order(f"o{turn}", "withdraw", "a.example")
            won = await asyncio.gather(*(each.put_config(b"%d" % turn, config) for each in stores))
            assert won.count(True) == 1
            won = await asyncio.gather(*(each.put_membership("web", turn, b"m") for each in stores))
            assert won.count(True) == 1
            await asyncio.gather(*(each.put_order(order) for each in stores))
            assert {await each.put_back(back) for each in stores} == {None}, "the inputs have changed since"
            seen = await stores[0].overrides()
            back = PutBack(seen.store, seen.snapshot, "lost", turn, {f"x{turn}": b"1"})
            won_back = await asyncio.gather(*(each.put_back(back) for each in stores))
            assert [found for found in won_back if found] == [
                [f"x{turn}"] if turn == 0 else [f"x{turn - 1}", f"x{turn}"]
            ]
        found = await stores[0].inputs()
        assert [order.id for order in found.orders] == [f"o{turn}" for turn in range(10)]
        assert found.snapshot == 40, "each change was counted once"

    on_stores(server, 8, race)


def test_what_is_read_is_one_moment(server: Server) -> None:
    """A head with the rows of another plan, or a snapshot's number with another's contents, would be planned from."""

    async def torn(stores: list[PostgresqlStore]) -> None:
        done = asyncio.Event()
        names = ("a.example", "b.example", "c.example")

        async def publishes() -> None:
            for number in range(1, 150):
                head = await stores[0].head()
                assert await stores[0].publish(plan(head, number, *names, inputs=head.inputs)) is not None
            done.set()

        async def changes() -> None:
            body, turn = b"", 0
            while not done.is_set():
                turn += 1
                assert await stores[1].put_config(b"%d" % turn, body)
                body = b"%d" % turn

        async def reads(store: PostgresqlStore) -> int:
            since, moments = None, set()
            while not done.is_set():
                head, rows = await store.newest_rows(since)
                assert {row.generation.number for row in rows} <= {head.number}
                inputs = await store.inputs()
                assert int(inputs.config or 0) == inputs.snapshot
                moments.add((head.number, inputs.snapshot))
                since = head if len(moments) % 3 else None
            return len(moments)

        *_, first, second = await asyncio.gather(publishes(), changes(), reads(stores[2]), reads(stores[3]))
        assert min(first, second) > 5, "they read while it changed"

    on_stores(server, 4, torn)


def test_notes_of_many_enactors_about_the_same_endpoints_never_wait_for_each_other(server: Server) -> None:
    """Rows locked in two orders are a deadlock; here every writer takes them by name. The newest stands in the end."""

    async def notes(stores: list[PostgresqlStore]) -> None:
        names = [f"e{n}.example" for n in range(50)]

        async def enactor(at: int, store: PostgresqlStore) -> None:
            for number in range(20):
                order = names if (at + number) % 2 else list(reversed(names))
                await store.note_enacted(
                    [Enacted(name, Generation(0, number), f"enactor/{at}", number, 1) for name in order]
                )
                await store.note([HistoryRow("enacted", "a", "b", f"{at}.{number}", 1)])

        await asyncio.gather(*(enactor(at, store) for at, store in enumerate(stores)))
        assert {one.generation.number for one in (await stores[0].enacted()).values()} == {19}
        ids = [line.id for line in await stores[0].history()]
        assert len(ids) == 20 * len(stores)
        assert ids == sorted(set(ids))

    on_stores(server, 6, notes)
