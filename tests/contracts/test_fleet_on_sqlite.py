"""The fleet rows' contract, kept by SQLite; old files, copied files, full disks."""

# ruff: noqa: ASYNC240  looking at a file in a test's own loop holds nobody up

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from fleet_agreement import Operation, agree, operations
from fleet_store import FleetStoreContract, Make, claimed, host, names, new, put
from fleet_waiting import FleetWaitingContract
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.adapters.store_fleet_rows import SHARD_IS, hash_of, shard_values
from fencepost.adapters.store_sqlite import SqliteStore, database, life, schema
from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import CheckpointRow, ShardRow
from fencepost.core.capacity.shards import shard_of
from fencepost.ports import Misconfigured, Unavailable


class TestSqlite(FleetStoreContract, FleetWaitingContract):
    """The rows in the store's file."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        """The same new file each time."""
        return lambda: SqliteFleetStore.open(tmp_path / "region.db", create=True)


@contextlib.asynccontextmanager
async def opened(path: Path, *, create: bool = True) -> AsyncIterator[SqliteFleetStore]:
    """The rows in a file, closed at the end."""
    store = SqliteFleetStore.open(path, create=create)
    try:
        yield store
    finally:
        await store.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=operations)
def test_any_run_of_commits_ends_the_same_as_on_the_reference(tmp_path: Path, run: list[Operation]) -> None:
    """What is proven of the reference's rows holds for the file only if the two never differ."""

    async def go() -> None:
        for old in tmp_path.iterdir():
            old.unlink()
        async with opened(tmp_path / "region.db") as store:
            await agree(store, run)

    asyncio.run(go())


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 1000))
def test_a_databases_remainder_is_the_names_shard(name: str, of: int) -> None:
    """Kept is the hash less 2**63, since databases count from there; what they make of it is the shard."""
    db = sqlite3.connect(":memory:")
    shard = shard_of(name, of)
    sql = SHARD_IS.format_map(shard_values(ShardRow(shard, of)))
    assert db.execute(f"SELECT {sql} FROM (SELECT ? AS hash)", (hash_of(name),)).fetchone() == (1,)
    db.close()


def as_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store as the version before the fleet made it; its identity."""
    with monkeypatch.context() as old:
        old.setattr(schema, "SCHEMA_VERSION", 2)
        old.setattr(life, "settle", lambda *_: None)
        database.make(path)
    db = sqlite3.connect(path)
    ((identity,),) = db.execute("SELECT store FROM head").fetchall()
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'fleet%'").fetchone() == (0,)
    db.close()
    return str(identity)


def test_a_store_from_before_the_fleet_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any role does it, and the life is the identity that the store has had all along."""
    path = tmp_path / "region.db"
    identity = as_before(path, monkeypatch)

    async def go() -> None:
        async with opened(path, create=False) as store:
            assert (await store.rows("host")).life == identity
            await put(store, host("host-1"))
        async with opened(path, create=False) as store:
            assert ((await store.rows("host")).life, await names(store)) == (identity, ["host-1"])
        plans = SqliteStore.open(path)
        assert (await plans.head()).store == identity
        await plans.close()

    asyncio.run(go())
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)

    async def older() -> None:
        async with opened(path, create=False) as store:
            with pytest.raises(Misconfigured, match=r"schema version 3; this fencepost knows versions up to 2"):
                await store.rows("host")

    asyncio.run(older())


def test_a_copy_put_in_the_files_place_is_another_life(tmp_path: Path) -> None:
    """Its leases count as unknown, its rows are there, and a claim from before the restore writes nothing."""
    path, copy = tmp_path / "region.db", tmp_path / "copy"

    async def go() -> None:
        async with opened(path) as store:
            claim = await claimed(store)
            await put(store, host("host-1"))
            db = sqlite3.connect(path)
            db.execute("VACUUM INTO ?", (str(copy),))
            db.close()
            await put(store, host("host-2"))
            copy.replace(path)  # under the running store
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            page = await store.rows("host")
            assert page.life != claim.life
            assert [found.row.key for found in page.rows] == ["host-1"]
            assert await store.commit(claim, [new(host("host-3"))]) is None
            async with opened(path, create=False) as other:
                assert (await other.rows("host")).life == page.life, "and it stays the one it is from then on"

    asyncio.run(go())


def made_anew(path: Path) -> Path:
    """The path, without the file."""
    path.unlink()
    return path


def test_a_stopped_store_that_is_restored_is_another_life_and_one_that_lay_still_is_not(tmp_path: Path) -> None:
    """Opened again it is the same; read back from a backup it isn't; a person may say so, too."""
    path, backup = tmp_path / "region.db", tmp_path / "backup"

    async def now() -> str:
        async with opened(path, create=False) as store:
            return (await store.rows("host")).life

    async def go() -> None:
        async with opened(path) as store:
            await put(store, host("host-1"))
            first = (await store.rows("host")).life
        assert await now() == first
        shutil.copyfile(path, backup)
        assert await now() == first
        async with opened(path, create=False) as store:
            await put(store, host("host-2"))
        lives = [first]
        restores: tuple[Callable[[], object], ...] = (
            lambda: shutil.copyfile(backup, path),  # over it: the same inode
            lambda: shutil.copyfile(backup, made_anew(path)),  # mostly the same inode again
            lambda: backup.replace(path),
        )
        for restore in restores:
            restore()
            lives.append(await now())
            assert await now() == lives[-1], "and it stays the one it is from then on"
            async with opened(path, create=False) as store:
                assert await names(store) == ["host-1"]
                lives.append(await store.restamp())
            assert await now() == lives[-1]
        assert len(set(lives)) == 7

    asyncio.run(go())


def test_who_commits_late_does_not_undo_that_a_new_life_began(tmp_path: Path) -> None:
    """A commit's note that comes after another life has begun is not written: else that life would end at once."""
    path = tmp_path / "region.db"

    async def go() -> None:
        async with opened(path) as store:
            first = (await store.rows("host")).life
            await put(store, host("host-1"))
            second = await store.restamp()
            life.note_commit(path, first, 1)
            async with opened(path, create=False) as other:
                assert (await other.rows("host")).life == second
            await put(store, host("host-2"))
        noted = Path(f"{path}{life.END}").read_text().split()
        assert noted == [second, "3"]

    asyncio.run(go())


def test_a_full_disk_loses_nothing_and_ends_by_itself(tmp_path: Path) -> None:
    """SQLITE_FULL: nothing of the commit is there, and the next one after space is back applies."""

    async def go() -> None:
        async with opened(tmp_path / "region.db") as store:
            await put(store, host("host-1"))

            def limit(pages: int) -> None:
                store._database.read(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())

            limit(1)  # SQLite takes this as "not one page more"
            many = [new(host(f"many-{number}")) for number in range(2_000)]
            with pytest.raises(Unavailable, match="no space") as told:
                await store.commit(None, many)
            assert "free some space" in told.value.hint
            assert told.value.where.endswith("region.db")
            assert await names(store) == ["host-1"]
            limit(1_000_000)
            written = await store.commit(None, many)
            assert written is not None
            assert all(written.applied)

    asyncio.run(go())


def test_a_file_that_can_not_be_written_is_for_a_person(tmp_path: Path) -> None:
    """SQLITE_READONLY, as on a disk that was mounted so: rows can be read, a commit says what to do."""

    async def go() -> None:
        async with opened(tmp_path / "region.db") as store:
            await put(store, host("host-1"))
            store._database.read(lambda db: db.execute("PRAGMA query_only = 1").fetchone())
            with pytest.raises(Misconfigured, match="can't be written") as told:
                await store.commit(None, [new(host("host-2"))])
            assert "writable by the user" in told.value.hint
            assert await names(store) == ["host-1"]

    asyncio.run(go())


def test_a_store_that_is_away_says_so_and_comes_back(tmp_path: Path) -> None:
    """A file that is gone: reads and commits are unavailable to whoever may not make it; a new one has another life."""
    path = tmp_path / "region.db"

    async def go() -> None:
        async with opened(path) as planner, opened(path, create=False) as store:
            claim = await claimed(store)
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink()
            for call in (store.rows("host"), store.prove(1, []), store.commit(claim, [new(host("host-1"))])):
                with pytest.raises(Unavailable, match="the store file is gone"):
                    await call
            assert (await planner.rows("host")).life != claim.life
            assert await store.commit(claim, [new(host("host-1"))]) is None

    asyncio.run(go())


def test_a_row_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    """Never skipped: a host without its row would look as if it weren't there."""
    path = tmp_path / "region.db"

    async def go() -> None:
        async with opened(path) as store:
            await put(store, host("host-1"), host("host-2"))
            db = sqlite3.connect(path)
            db.execute("UPDATE fleet_row SET body = ? WHERE key = 'host-2'", (b'{"type": "host", "host": 3}',))
            db.commit()
            with pytest.raises(Misconfigured, match="row 'host-2' of table fleet_row of kind host"):
                await store.rows("host")
            db.execute("UPDATE fleet_row SET body = (SELECT body FROM fleet_row WHERE key = 'host-1')")
            db.commit()
            db.close()
            with pytest.raises(Misconfigured, match="the row of host 'host-1' stands there"):
                await store.prove(1, [("host", "host-2")])

    asyncio.run(go())


def test_checkpoints_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    """Nobody decides by them; whatever decides is on disk when it is told."""

    async def go() -> None:
        async with opened(tmp_path / "region.db") as store:
            checkpoint = CheckpointRow("1/0", "m-1", 1, ("host-1",), (0,))
            for groups, level in (([new(checkpoint)], 1), ([new(host("host-1"))], 2)):
                assert await store.commit(None, groups) is not None
                found = store._database.read(lambda db: db.execute("PRAGMA synchronous").fetchone())
                assert found == (level,)
            mixed = [(Change(checkpoint, 1),), new(host("host-2"))]
            assert await store.commit(None, mixed) is not None
            assert store._database.read(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)

    asyncio.run(go())
