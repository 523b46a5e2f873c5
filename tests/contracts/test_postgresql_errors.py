"""What PostgreSQL refuses, and what a person is told: which of the three kinds, where, what to do; no password."""

import asyncio
import contextlib
import logging
import re
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from free_ports import free_port
from postgresql import PASSWORD, Server, postgresql
from store import plan

from fencepost.adapters.store_postgresql import PostgresqlStore, schema
from fencepost.adapters.store_postgresql.address import Address
from fencepost.core.fence import Generation
from fencepost.core.store import Order
from fencepost.ports import Beat, Enacted, HistoryRow, Misconfigured, PortError, Refused, Unavailable


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for this file; few may connect."""
    with postgresql(max_connections="12", superuser_reserved_connections="2", max_wal_senders="0") as running:
        yield running


async def asked(dsn: str, call: Callable[[PostgresqlStore], Coroutine[Any, Any, Any]], *, create: bool = False) -> Any:
    """One call of one store."""
    store = PostgresqlStore.open(dsn, create=create)
    try:
        return await asyncio.wait_for(call(store), 30)
    finally:
        await store.close()


def problem(dsn: str, *, create: bool = False) -> PortError:
    """What a call of this store raises; it shows no password, whichever way it is looked at."""
    with pytest.raises(PortError) as caught:
        asyncio.run(asked(dsn, lambda store: store.head(), create=create))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caught.value.hint
    assert PASSWORD not in shown
    assert caught.value.where
    return caught.value


def made(server: Server) -> str:
    """A database with a store in it, as its owner made it."""
    database = server.database()
    asyncio.run(asked(server.dsn(database), lambda store: store.head(), create=True))
    return database


def test_a_server_that_is_away_is_told_to_commands_too() -> None:
    """`store copy` said "it goes on by itself", and had ended: roles do so (docs/operating/store-postgresql.md)."""
    error = problem(f"postgresql://fencepost@127.0.0.1:{free_port()}/fencepost")
    assert isinstance(error, Unavailable)
    assert error.hint.startswith("does the server run, and is its port open? ")
    assert error.hint.endswith("roles go on by themselves once that is over")


def test_a_wrong_password_is_told_and_none_is_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the one that was tried nor the right one: errors go to logs, the status page and history."""
    caplog.set_level(logging.DEBUG)
    dsn = server.dsn("postgres").replace(PASSWORD, "not-the-word")
    found = problem(dsn)
    assert isinstance(found, Misconfigured)
    assert 'password authentication failed for user "admin"' in found.what
    assert "not-the-word" not in str(found) + found.hint + caplog.text
    assert "not-the-word" not in repr(PostgresqlStore.open(dsn))


def test_a_dsn_that_cannot_be_read_is_told_without_it(server: Server) -> None:
    """libpq's own text quotes the part it doesn't understand, which may be the password."""
    for dsn in (f"host=127.0.0.1 password {PASSWORD}", f"postgresql://user:{PASSWORD}@[half/x", f"{PASSWORD}"):
        assert isinstance(problem(dsn), Misconfigured)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999999999999999999", "54x2", "5432,70000"])
def test_a_port_that_can_not_be_is_a_persons_to_mend(server: Server, port: str) -> None:
    """libpq says so only when it connects, and without a SQLSTATE, as it says that nobody listens."""
    dsn = server.dsn("postgres").replace(f"port={server.port}", f"port={port}")
    assert f"port={port}" in dsn
    found = problem(dsn)
    assert isinstance(found, Misconfigured)
    assert "65535" in found.hint
    assert PASSWORD not in str(found) + found.hint


@pytest.mark.parametrize("port", ["{}", " {} ", "{},{}"])
def test_a_port_as_libpq_takes_it(server: Server, port: str) -> None:
    """Of several servers, and with blanks around it."""
    written = port.format(server.port, server.port)
    wrong = Address(server.dsn("postgres").replace(f"port={server.port}", f"port='{written}'")).wrong
    assert wrong is None


def test_names_that_are_not_there_are_a_persons_to_mend(server: Server) -> None:
    """Database and user."""
    assert 'database "nowhere" does not exist' in str(problem(server.dsn("nowhere")))
    for dsn in (server.dsn("nowhere"), server.dsn("postgres", "nobody-knows")):
        assert isinstance(problem(dsn), Misconfigured)


def test_nothing_listens(server: Server) -> None:
    """The server is down: that passes, and the next call fails at once, without a knock at its door."""
    dsn = server.dsn("postgres", port=free_port())

    async def go() -> None:
        store = PostgresqlStore.open(dsn)
        first, second = await asyncio.gather(store.head(), store.head(), return_exceptions=True)
        assert isinstance(first, Unavailable)
        assert "refused" in first.what
        assert isinstance(second, Unavailable)
        assert str(second) == str(first), "within the back-off the same answer is given"
        await store.close()

    asyncio.run(go())


def test_too_many_connections_pass(server: Server) -> None:
    """Another program took them all; nothing of ours is wrong."""
    database = made(server)
    server.sql(database, f"CREATE ROLE many LOGIN PASSWORD '{PASSWORD}'")
    taken = list[psycopg.Connection]()
    try:
        deadline = time.monotonic() + 30
        while len(taken) < 10:  # of twelve two are for superusers; those of sessions that have just ended come free
            assert time.monotonic() < deadline
            with contextlib.suppress(psycopg.OperationalError):
                taken.append(psycopg.connect(server.dsn(database, "many")))
        found = problem(server.dsn(database, "many"))
    finally:
        for connection in taken:
            connection.close()
        there = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'many'"
        while server.sql("postgres", there) != [(0,)]:  # the next test wants to connect
            time.sleep(0.01)
    assert isinstance(found, Unavailable)
    assert "connection slots" in found.what


def test_only_a_planner_makes_the_store(server: Server) -> None:
    """A role that met a new database first would otherwise make a store with another's rights."""
    found = problem(server.dsn(server.database()))
    assert isinstance(found, Unavailable)
    assert "planner" in found.hint


def test_another_version_is_told_and_left_alone(server: Server) -> None:
    """A newer store by all, an older one by all but the planner."""
    database = made(server)
    known = schema.SCHEMA_VERSION
    server.sql(database, "UPDATE fencepost.schema_version SET version = 99")
    for create in (False, True):
        newer = problem(server.dsn(database), create=create)
        assert isinstance(newer, Misconfigured)
        assert "version 99" in newer.what
        assert f"version {known}" in newer.what
        assert "newer" in newer.hint
    assert server.sql(database, "SELECT version FROM fencepost.schema_version") == [(99,)]


def test_a_store_that_is_migrated_under_a_running_role_is_told_by_its_version(server: Server) -> None:
    """At the first query that no longer fits it connects anew, and then says what is really wrong."""
    database = made(server)

    async def go() -> None:
        store = PostgresqlStore.open(server.dsn(database))
        beat = Beat("planner", 1, "0", "up", "", 1)
        for _ in range(7):  # the statement is prepared by now
            await store.beat(beat)
            await store.beats()
        server.sql(
            database,
            "UPDATE fencepost.schema_version SET version = 99",
            "ALTER TABLE fencepost.beat ALTER COLUMN body TYPE text USING ''",
        )
        with pytest.raises(Misconfigured):
            await store.beats()
        with pytest.raises(Misconfigured, match="version 99"):
            await store.beats()
        await store.close()

    asyncio.run(go())


def test_a_planner_brings_an_older_store_to_its_version(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps in one transaction; one that fails leaves the store as it was, and nothing that was in it is lost."""
    database = made(server)
    asyncio.run(asked(server.dsn(database), lambda store: store.put_config(b"kept", b"")))
    first = asyncio.run(asked(server.dsn(database), lambda store: store.head()))
    known = schema.SCHEMA_VERSION
    first_step, steps = ("ALTER TABLE beat ADD extra text",), dict(schema.STEPS)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", known + 2)
    monkeypatch.setattr(schema, "STEPS", steps | {known: first_step, known + 1: ("SELECT 1/0",)})
    assert isinstance(problem(server.dsn(database), create=True), PortError)
    assert server.sql(database, "SELECT version FROM fencepost.schema_version") == [(known,)]
    older = problem(server.dsn(database))
    assert isinstance(older, Misconfigured)
    assert "start this version's planner" in older.hint
    monkeypatch.setattr(schema, "STEPS", steps | {known: first_step, known + 1: ("SELECT 1",)})
    inputs = asyncio.run(asked(server.dsn(database), lambda store: store.inputs(), create=True))
    assert inputs.config == b"kept"
    assert asyncio.run(asked(server.dsn(database), lambda store: store.head())) == first
    assert server.sql(database, "SELECT version FROM fencepost.schema_version") == [(known + 2,)]


async def every_call(store: PostgresqlStore) -> None:
    """All that roles do, once."""
    await store.put_order(Order("o1", "withdraw", "a.example"))
    assert await store.put_config(b"{}", b"")
    assert await store.put_membership("web", 0, b"{}")
    await store.put_override("x", b"1")
    assert await store.drop_override("x")
    for number in (1, 2):
        assert await store.publish(plan(await store.head(), number, "a.example", spends=("o1",))) is not None
    ((row, _, _),) = await store.spent_rows(9)
    assert await store.delete_row(row.name, row.generation, row.nonce)
    await store.put_report("a", "web", 1, b"{}")
    await store.beat_report("a", "web", 1, b"{}")
    await store.note_enacted([Enacted("a.example", Generation(0, 1), "enactor/a", 1, 1)])
    await store.put_findings("enactor/a", {"a.example": ("ASK", "adopt it")})
    await store.put_findings("enactor/a", {})
    await store.note([HistoryRow("role", "a", "b", "a text with \0 in it", 1)])
    assert [line.text for line in await store.history()] == ["a text with \ufffd in it"]
    await store.beat(Beat("planner", 1, "0", "up", "", 1))
    await store.inputs()
    waiter = store.waiter()
    await waiter.wait(0)


def test_the_page_that_sets_it_up_gives_roles_all_they_need_and_no_more(server: Server) -> None:
    """Least privilege: its statements as they stand; the owner makes the tables, roles read and write rows."""
    page = (Path(__file__).parents[2] / "docs/operating/store-postgresql.md").read_text()
    first, second = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    server.sql("postgres", *[each for each in first.split(";") if each.strip()])
    server.sql("fencepost", *[each for each in second.split(";") if each.strip()])
    owner, role = (
        server.dsn("fencepost", user).replace(PASSWORD, word)
        for user, word in (("fencepost_owner", "one"), ("fencepost", "another"))
    )
    assert isinstance(problem(role), Unavailable)
    asyncio.run(asked(owner, lambda store: store.head(), create=True))
    asyncio.run(asked(role, every_call))
    # And a planner with no more rights than that goes on with the tables that are there.
    asyncio.run(asked(role, lambda store: store.head(), create=True))
    for statement in ("CREATE TABLE fencepost.mine ()", "DROP TABLE fencepost.head", "TRUNCATE fencepost.plan"):
        with psycopg.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
    # A role without rights to make tables founds it anew after a promotion all the same.
    server.sql("fencepost", "UPDATE fencepost.head SET origin = ''")
    before = asyncio.run(asked(role, lambda store: store.head()))
    assert before.number == 0
    assert server.sql("fencepost", "SELECT count(*) > 0 FROM fencepost.former") == [(True,)]


def test_of_several_servers_the_one_that_refuses_us_is_told(server: Server) -> None:
    """One is down, the other doesn't know the database: waiting for the first mends nothing."""
    for ports in (f"{free_port()},{server.port}", f"{server.port},{free_port()}"):
        dsn = server.dsn("nowhere").replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1")
        found = problem(dsn.replace(f"port={server.port}", f"port={ports}"))
        assert isinstance(found, Misconfigured), found


def test_a_missing_right_is_named_with_the_statements_that_give_it(server: Server) -> None:
    """Whoever runs them need not know our tables; run as they stand, they are enough."""
    database = made(server)
    server.sql(database, f"CREATE ROLE \"a-reader\" LOGIN PASSWORD '{PASSWORD}'")
    found = problem(server.dsn(database, "a-reader"))
    assert isinstance(found, Misconfigured)
    assert "permission denied for schema fencepost" in found.what
    server.sql(database, found.hint.partition("run: ")[2])
    assert asyncio.run(asked(server.dsn(database, "a-reader"), lambda store: store.head())).number == 0
    server.sql(database, 'REVOKE UPDATE ON fencepost.head FROM "a-reader"')
    with pytest.raises(Misconfigured, match="permission denied for table head") as caught:
        asyncio.run(asked(server.dsn(database, "a-reader"), lambda store: store.put_config(b"1", b"")))
    assert 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "fencepost" TO "a-reader"' in caught.value.hint


def test_a_planner_without_the_right_to_make_tables_says_who_can(server: Server) -> None:
    """The first start needs the owner's dsn, or a schema of its own."""
    database = server.database()
    server.sql(database, f"CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'")
    found = problem(server.dsn(database, "poor"), create=True)
    assert isinstance(found, Misconfigured)
    server.sql(database, found.hint.rpartition("owner: ")[2])
    asyncio.run(asked(server.dsn(database, "poor"), lambda store: store.head(), create=True))


def test_a_session_that_may_not_write_is_told(server: Server) -> None:
    """A read-only role would find out at its first plan; it is told before."""
    database = made(server)
    server.sql(
        database,
        f"CREATE ROLE looker LOGIN PASSWORD '{PASSWORD}'",
        "ALTER ROLE looker SET default_transaction_read_only = on",
    )
    found = problem(server.dsn(database, "looker"))
    assert isinstance(found, Misconfigured)
    assert "default_transaction_read_only" in found.hint


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_name_is_refused_when_the_store_is_made(
    server: Server, encoding: str
) -> None:
    """Reasons are people's words: in LATIN1 some could not be written, at three in the morning."""
    server.sql("postgres", f"CREATE DATABASE {encoding.lower()} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    found = problem(server.dsn(encoding.lower()), create=True)
    assert isinstance(found, Misconfigured)
    assert f"is {encoding};" in found.what


def test_a_row_that_cannot_be_read_is_named(server: Server) -> None:
    """Never skipped: an endpoint without its row would look unknown."""
    database = made(server)

    async def publishes(store: PostgresqlStore) -> None:
        assert await store.publish(plan(await store.head(), 1, "a.example")) is not None

    asyncio.run(asked(server.dsn(database), publishes))
    server.sql(database, "UPDATE fencepost.plan_row SET body = '{}'")
    for call in (
        lambda store: store.newest_rows(None),
        lambda store: store.rows_of("a.example"),
    ):
        with pytest.raises(Misconfigured, match=r"row 'a\.example' of table plan_row"):
            asyncio.run(asked(server.dsn(database), call))
    server.sql(database, "DROP TABLE fencepost.membership")
    with pytest.raises(Misconfigured, match="damaged or another version's"):
        asyncio.run(asked(server.dsn(database), lambda store: store.membership("web")))


def test_what_the_database_can_never_hold_is_refused(server: Server) -> None:
    """A name with a NUL byte: asked again it would fail again."""
    database = made(server)
    with pytest.raises(Refused):
        asyncio.run(asked(server.dsn(database), lambda store: store.put_override("a\0b", b"1")))
