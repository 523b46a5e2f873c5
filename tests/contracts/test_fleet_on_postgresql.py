"""The fleet rows' contract, kept by PostgreSQL; old stores, promoted ones, lost answers."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from fleet_agreement import Operation, agrees, operations
from fleet_store import FleetStoreContract, Make, claimed, host, names, new, put
from fleet_waiting import FleetWaitingContract
from hypothesis import given, settings
from postgresql import Server, Switch, postgresql

from fencepost.adapters.store_postgresql import PostgresqlStore, schema
from fencepost.adapters.store_postgresql.fleet import PostgresqlFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.instant import SECOND
from fencepost.ports import Misconfigured, Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file."""
    with postgresql() as running:
        yield running


_schemas = (f"fleet_{n}" for n in itertools.count())


def new_schema(server: Server) -> str:
    """Where no store is yet."""
    return server.dsn("postgres", options=f"-c search_path={next(_schemas)}")


class TestPostgresql(FleetStoreContract, FleetWaitingContract):
    """The rows in a database."""

    @pytest.fixture
    def make(self, server: Server) -> Make:
        """The same new schema each time."""
        dsn = new_schema(server)
        return lambda: PostgresqlFleetStore.open(dsn, create=True)


@pytest.mark.parametrize("examples", [12, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_any_run_of_commits_ends_the_same_as_on_the_reference(server: Server, examples: int) -> None:
    """What is proven of the reference's rows holds for the database only if the two never differ."""

    @settings(max_examples=examples, deadline=None)
    @given(run=operations)
    def runs(run: list[Operation]) -> None:
        agrees(lambda: PostgresqlFleetStore.open(new_schema(server), create=True), run)

    runs()


def test_a_store_from_before_the_fleet_is_brought_up_to_date_by_a_planner(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others say so until then; and the life is the identity that the store has had all along."""
    dsn = new_schema(server)

    async def before() -> str:
        plans = PostgresqlStore.open(dsn, create=True)
        head = await plans.head()
        await plans.close()
        return head.store

    async def after(identity: str) -> None:
        role, planner = PostgresqlFleetStore.open(dsn), PostgresqlFleetStore.open(dsn, create=True)
        with pytest.raises(Misconfigured, match="schema version 1; this fencepost works with version 2"):
            await role.rows("host")
        assert (await planner.rows("host")).life == identity
        await asyncio.sleep(0.3)  # a refused connection isn't tried again at once
        await put(role, host("host-1"))
        assert await names(planner) == ["host-1"]
        await role.close()
        await planner.close()

    with monkeypatch.context() as old:
        old.setattr(schema, "SCHEMA_VERSION", 1)
        identity = asyncio.run(before())
    asyncio.run(after(identity))


def test_a_promoted_or_restored_store_keeps_its_rows_under_another_life(server: Server) -> None:
    """Its leases count as unknown; whom somebody asked for is still known. A person may say so, too."""
    database = server.database()

    async def go() -> None:
        store = PostgresqlFleetStore.open(server.dsn(database), create=True)
        claim = await claimed(store)
        await put(store, host("host-1"))
        assert (await store.rows("host")).life == claim.life
        waiting = asyncio.create_task(store.wait(30 * SECOND))
        server.sql(database, "UPDATE fencepost.head SET origin = ''")
        plans = PostgresqlStore.open(server.dsn(database))
        identity = (await plans.head()).store
        await plans.close()
        await asyncio.wait_for(waiting, 20)
        page = await store.rows("host")
        assert page.life not in (claim.life, identity)
        assert [found.row.key for found in page.rows] == ["host-1"]
        assert await store.commit(claim, [new(host("host-2"))]) is None
        again = await store.restamp()
        assert again not in (claim.life, page.life)
        assert ((await store.rows("host")).life, await names(store)) == (again, ["host-1"])
        await store.close()

    asyncio.run(go())


@pytest.mark.parametrize("before", [False, True])
def test_an_answer_that_was_lost_is_unknown_and_the_own_row_is_known_again(server: Server, before: bool) -> None:
    """The connection breaks at COMMIT: only the server knows. Read again, the row with the own nonce is the writer's
    (cirello-io/dynamolock #280), and nothing was sent twice."""
    database = server.database()

    async def go() -> None:
        switch = Switch(server.port)
        store = PostgresqlFleetStore.open(server.dsn(database, port=switch.port), create=True)
        claim = await claimed(store)
        seen = await put(store, host("host-1"))
        switch.cut_at, switch.before = b"COMMIT", before
        with pytest.raises(Unavailable) as told:
            await store.commit(claim, [(Change(host("host-1", 7), seen),)])
        assert "127.0.0.1" in told.value.where
        assert told.value.hint
        (found,) = (await store.prove(1, [("host", "host-1")])).rows
        assert found is not None
        assert found == ((host("host-1"), seen) if before else (host("host-1", 7), seen + 1))
        await store.close()
        switch.close()

    asyncio.run(go())


def test_a_writer_stopped_in_mid_commit_holds_up_others_only_until_the_server_ends_it(server: Server) -> None:
    """Who holds the fleet's lock and says nothing is named to those who wait for it."""
    dsn = new_schema(server)
    place = dsn.rpartition("search_path=")[2].rstrip("'")

    async def go() -> None:
        store = PostgresqlFleetStore.open(dsn, create=True)
        await put(store, host("host-1"))
        other = PostgresqlFleetStore.open(dsn)
        await other.rows("host")
        session = other._database._session
        assert session is not None
        session.execute("BEGIN")
        session.execute(f"SELECT 1 FROM {place}.fleet FOR UPDATE")
        assert await names(store) == ["host-1"], "readers never wait"
        with pytest.raises(Unavailable, match=r"process \d+ \(fencepost, user admin\) has held the store's lock"):
            await store.commit(None, [new(host("host-2"))])
        session.execute("ROLLBACK")
        await put(store, host("host-2"))
        await store.close()
        await other.close()

    asyncio.run(go())


def test_a_server_that_is_away_says_so_and_comes_back() -> None:
    """Reads and commits are unavailable, each with where and what to do; nothing that was answered is lost."""
    with postgresql() as own:
        database = own.database()

        async def go() -> None:
            store = PostgresqlFleetStore.open(own.dsn(database), create=True)
            claim = await claimed(store)
            await put(store, host("host-1"))
            own.stop()
            for call in (store.rows("host"), store.prove(1, []), store.commit(claim, [new(host("host-2"))])):
                with pytest.raises(Unavailable) as told:
                    await call
                assert f"127.0.0.1:{own.port}" in told.value.where
                assert told.value.hint
            own.start()
            await asyncio.sleep(2.1)  # connecting isn't tried again at once
            assert await store.commit(claim, [new(host("host-2"))]) is not None
            assert await names(store) == ["host-1", "host-2"]
            own.sql(database, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
            own.sql("postgres", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
            with pytest.raises(Misconfigured):
                await store.commit(claim, [new(host("host-3"))])
            await store.close()

        asyncio.run(go())


def test_numbers_become_visible_in_their_order(server: Server) -> None:
    """A commit with a lower number is never seen after one with a higher: while one is under way the next one waits.

    Else a reader that has read up to the higher would miss the lower for ever.
    """
    dsn = new_schema(server)
    place = dsn.rpartition("search_path=")[2].rstrip("'")

    async def go() -> None:
        store, other = PostgresqlFleetStore.open(dsn, create=True), PostgresqlFleetStore.open(dsn)
        await put(store, host("host-1"))
        await other.rows("host")
        session = other._database._session
        assert session is not None
        session.execute("BEGIN")
        session.execute(f"UPDATE {place}.fleet SET snapshot = snapshot + 1")  # it has drawn number 2
        later = asyncio.create_task(store.commit(None, [new(host("host-2"))]))
        done, _ = await asyncio.wait([later], timeout=0.3)
        assert not done
        session.execute("COMMIT")
        written = await later
        assert written is not None
        assert written.snapshot == 3
        await store.close()
        await other.close()

    asyncio.run(go())
