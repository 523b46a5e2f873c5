"""Files that can't be a SQLite store: damaged, foreign, empty, of another version. Each is for a person, or mended."""

# ruff: noqa: ASYNC240  looking at a file in a test's own loop holds nobody up
import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from store_sqlite_opened import opened, publish

from fencepost.adapters.store_sqlite import SqliteStore, database, schema
from fencepost.core.fence import Generation
from fencepost.core.store import Head
from fencepost.ports import Beat, Enacted, HistoryRow, Misconfigured, Unavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "region.db"


def as_directory(path: Path) -> None:
    """A directory where the file should be."""
    path.mkdir()


def as_text(path: Path) -> None:
    """No SQLite file at all."""
    path.write_bytes(b"[region]\nname = 'demo'\n" * 300)


def as_foreign(path: Path) -> None:
    """Another program's SQLite file."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.close()


def as_newer(path: Path) -> None:
    """A store that a later fencepost has migrated."""
    database.make(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()


def as_headless(path: Path) -> None:
    """A store somebody has emptied by hand."""
    database.make(path)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM head")
    db.commit()
    db.close()


def as_torn(path: Path) -> None:
    """A store of which some pages were overwritten."""
    database.make(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096 * 3)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (as_directory, "directory"),
        (as_text, "damaged or no store"),
        (as_foreign, "not a fencepost store"),
        (as_newer, f"version 9.*up to {schema.SCHEMA_VERSION}"),
        (as_torn, "damaged"),
        (as_headless, "no head"),
    ],
)
def test_a_file_that_cannot_be_a_store_is_for_a_person_and_is_left_alone(
    path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    """Nothing is ever made in the place of something else; and it is told what, where and what to do."""
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""

    async def go() -> None:
        async with opened(path) as store:
            await store.inputs()

    with pytest.raises(Misconfigured, match=says) as told:
        asyncio.run(go())
    assert told.value.where == str(path)
    assert told.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_missing_directory_is_for_a_person(tmp_path: Path) -> None:
    """A path mistyped in the settings, or a disk not mounted."""

    async def go() -> None:
        async with opened(tmp_path / "none" / "region.db") as store:
            await store.head()

    with pytest.raises(Misconfigured, match="directory is missing") as told:
        asyncio.run(go())
    assert "mkdir" in told.value.hint


def test_a_damaged_store_is_used_again_once_it_is_put_aside(path: Path) -> None:
    """Roles that run on look again: nobody has to restart them."""

    async def go() -> None:
        async with opened(path) as store:
            before = await publish(store, *(f"e{n}.example" for n in range(500)))
            store._database.checkpoint("TRUNCATE")
            with path.open("r+b") as file:
                file.seek(4096)
                file.write(b"\xa5" * (path.stat().st_size - 4096))
            async with opened_anyway(path) as other:
                with pytest.raises(Misconfigured, match="damaged"):
                    await other.newest_rows(None)
                for end in ("", "-wal", "-shm"):
                    os.replace(f"{path}{end}", f"{path}.aside{end}")
                after = await store.head()
                assert after.store != before.store
                assert await other.head() == after

    asyncio.run(go())


@contextlib.asynccontextmanager
async def opened_anyway(path: Path) -> AsyncIterator[SqliteStore]:
    """A store object on a file that can't be opened now."""
    aside = path.with_name("aside")
    os.replace(path, aside)
    store = SqliteStore.open(path)
    os.replace(aside, path)
    try:
        yield store
    finally:
        await store.close()


def test_an_empty_file_is_filled_only_by_a_role_that_may_create(path: Path) -> None:
    """`touch region.db`, or a crash of some other tool."""
    path.touch(mode=0o600)

    async def go() -> None:
        async with opened(path, create=False) as reader:
            with pytest.raises(Unavailable, match="empty"):
                await reader.head()
            async with opened(path) as maker:
                assert await reader.head() == await maker.head()

    asyncio.run(go())


def test_an_older_store_is_brought_up_to_date_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step runs in one transaction with the version it leads to, whichever process comes first."""

    async def write() -> Head:
        async with opened(path) as store:
            return await publish(store, "a.example")

    async def read() -> Head:
        async with opened(path, create=False) as one, opened(path, create=False) as two:
            assert await one.head() == await two.head()
            return await one.head()

    head = asyncio.run(write())
    now = schema.SCHEMA_VERSION
    steps = {**schema.STEPS, now: ("CREATE TABLE later (x)", "INSERT INTO later VALUES (1)")}
    monkeypatch.setattr(schema, "STEPS", steps)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", now + 1)
    assert asyncio.run(read()) == head
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (now + 1,)
    assert db.execute("SELECT count(*) FROM later").fetchone() == (1,)
    db.close()


def test_a_row_of_another_version_is_for_a_person(path: Path) -> None:
    """A body that can't be read is never skipped: an endpoint without row would look unknown."""

    async def go() -> None:
        async with opened(path) as store:
            await publish(store, "a.example")
            db = sqlite3.connect(path)
            db.execute("UPDATE row SET body = ?", (b'{"name": 3}',))
            db.commit()
            db.close()
            with pytest.raises(Misconfigured, match="damaged"):
                await store.newest_rows(None)
            assert (await store.head()).number == 1

    asyncio.run(go())


@pytest.mark.parametrize(
    ("sql", "asks", "names"),
    [
        ("UPDATE row SET body = x'00'", "newest_rows", r"row 'a\.example' of table row"),
        ("UPDATE enacted SET at = 'abc'", "enacted", r"row 'a\.example' of table enacted: 'abc'"),
        ("UPDATE history SET text = x'00ff'", "history", r"row 1 of table history"),
        ("UPDATE beat SET body = 'nope'", "beats", "row 'planner' of table beat"),
        ("UPDATE beat SET body = 5", "beats", "row 'planner' of table beat"),
        ("UPDATE finding SET body = x'ff'", "findings", "row 'enactor/a' of table finding"),
        ("INSERT INTO waiting_order (id, body) VALUES ('o', '{}')", "inputs", "row 'o' of table waiting_order"),
        ("UPDATE head SET number = 'many'", "head", "row 1 of table head"),
        ("UPDATE head SET snapshot = 9223372036854775807 + 1.0", "inputs", "row 1 of table head"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_by_table_and_key(path: Path, sql: str, asks: str, names: str) -> None:
    """Whatever stands there: a person is told which row, and no other error than the port's three comes out."""

    async def go() -> None:
        async with opened(path) as store:
            await publish(store, "a.example")
            await store.note_enacted([Enacted("a.example", Generation(0, 1), "enactor/a", 1, 1)])
            await store.note([HistoryRow("finding", "a.example", "enactor/a", "text", 1)])
            await store.beat(Beat("planner", 1, "1", "up", "", 1))
            await store.put_findings("enactor/a", {"a.example": ("ask", "why")})
            db = sqlite3.connect(path)
            db.execute(sql)
            db.commit()
            db.close()
            ask = getattr(store, asks)
            with pytest.raises(Misconfigured, match=names) as told:
                await (ask(None) if asks == "newest_rows" else ask())
            assert told.value.where == str(path)
            assert told.value.hint

    asyncio.run(go())


def test_a_version_past_all_numbers_is_for_a_person(path: Path) -> None:
    """SQLite's integers end at 2**63 - 1."""

    async def go() -> None:
        async with opened(path) as store:
            await store.put_membership("web", 0, b"{}")
            db = sqlite3.connect(path)
            db.execute("UPDATE membership SET version = 9223372036854775807")
            db.commit()
            db.close()
            with pytest.raises(Misconfigured):
                await store.put_membership("web", 2**63 - 1, b"{}")

    asyncio.run(go())
