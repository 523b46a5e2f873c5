"""The SQLite store against what happens to files: lost, replaced, deleted while in use, full, put back."""

# ruff: noqa: ASYNC240  looking at a file in a test's own loop holds nobody up
import asyncio
import os
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_sqlite_opened import opened, publish, row

from fencepost.adapters.store_sqlite import database, plans
from fencepost.core.instant import SECOND
from fencepost.core.store import Order, Plan
from fencepost.ports import Unavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "region.db"


def test_the_file_and_its_companions_are_for_its_user_only(path: Path) -> None:
    """Overrides carry names and reasons of people."""

    async def go() -> None:
        async with opened(path) as store:
            await publish(store, "a.example")
            for end in ("", "-wal", "-shm"):
                assert stat.S_IMODE(os.stat(f"{path}{end}").st_mode) == 0o600, end

    asyncio.run(go())


def test_a_store_opened_again_holds_what_was_committed(path: Path) -> None:
    """All roles end at each restart of the region."""

    async def go() -> None:
        async with opened(path) as store:
            head = await publish(store, "a.example")
            await store.put_order(Order("o1", "withdraw", "a.example"))
        async with opened(path, create=False) as store:
            assert await store.head() == head
            assert (await store.inputs()).orders == (Order("o1", "withdraw", "a.example"),)

    asyncio.run(go())


def test_a_head_is_committed_to_disk_and_a_heartbeat_with_the_next_head(path: Path) -> None:
    """SQLite's synchronous NORMAL may lose the last commits at a power cut, and then a generation would fall."""

    def level(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA synchronous").fetchone()[0])

    files = database.Database(path, create=True)
    assert files.write(level, durable=False) == 1
    assert files.write(level) == 2
    files.close()


def test_only_a_role_that_may_create_makes_a_store(path: Path) -> None:
    """A file may be missing because a disk isn't mounted: a new, empty store there must be somebody's decision."""

    async def go() -> None:
        async with opened(path, create=False) as reader:
            with pytest.raises(Unavailable, match="gone") as told:
                await reader.head()
            assert (told.value.where, bool(told.value.hint)) == (str(path), True)
            assert not path.exists()
            async with opened(path) as maker:
                assert await reader.head() == await maker.head()

    asyncio.run(go())


def test_a_deleted_file_is_noticed_and_made_anew_under_another_identity(path: Path) -> None:
    """A wiped store must never be taken for the one read before."""

    async def go() -> None:
        async with opened(path) as maker, opened(path, create=False) as reader:
            before = await publish(maker, "a.example")
            assert await reader.head() == before
            for found in path.parent.iterdir():
                found.unlink()
            with pytest.raises(Unavailable, match="gone"):
                await reader.head()
            after = await maker.head()
            assert (after.number, after.store == before.store) == (0, False)
            assert await reader.head() == after
            assert await maker.publish(Plan(before, 2, 0, (row("a.example", 2),))) is None

    asyncio.run(go())


def test_what_a_deleted_file_leaves_beside_it_never_enters_the_new_store(path: Path) -> None:
    """Processes that still have the deleted file open share its log and index by name: neither may be used again."""

    async def go() -> None:
        async with opened(path) as maker:
            await publish(maker, "old.example")
            stale = sqlite3.connect(path, isolation_level=None)
            stale.execute("PRAGMA wal_autocheckpoint = 0")
            stale.execute("BEGIN IMMEDIATE")
            stale.execute("INSERT INTO config VALUES (1, x'00')")
            path.unlink()
            fresh = await publish(maker, "a.example")
            stale.execute("COMMIT")
            stale.close()
            await publish(maker, "b.example")
            async with opened(path, create=False) as reader:
                assert {found.name for found in (await reader.newest_rows(None))[1]} == {"a.example", "b.example"}
                assert (await reader.inputs()).config == b""
                assert (await reader.head()).store == fresh.store
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()

    asyncio.run(go())


def test_a_replaced_file_shows_in_the_heads_identity_and_wakes_who_waits(path: Path, tmp_path: Path) -> None:
    """A store put back from elsewhere counts as a lost one: it is noticed by device and inode."""

    async def go() -> None:
        other = tmp_path / "other.db"
        async with opened(other) as store:
            there = await publish(store, "b.example")
        async with opened(path) as store:
            await publish(store, "a.example")
            waiter = store.waiter()
            await waiter.wait(0)
            await waiter.wait(SECOND // 5)
            waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
            for end in ("-wal", "-shm"):
                Path(f"{path}{end}").unlink()
            os.replace(other, path)
            await asyncio.wait_for(waiting, 10)
            assert await store.head() == there
            assert await store.rows_of("a.example") == ()

    asyncio.run(go())


def test_a_write_into_a_file_that_is_gone_is_not_taken_for_done(path: Path) -> None:
    """The commit succeeds, in a file that nobody will ever read again."""
    files = database.Database(path, create=True)
    files.data_version()

    def work(db: sqlite3.Connection) -> None:
        db.execute("UPDATE head SET number = 7")
        path.unlink()

    with pytest.raises(Unavailable, match="replaced while it was written"):
        files.write(work)
    assert files.read(plans.read_head).number == 0
    files.close()


def test_a_write_that_fails_midway_leaves_nothing(path: Path) -> None:
    """Whatever goes wrong between the first statement and the commit."""
    files = database.Database(path, create=True)

    def work(db: sqlite3.Connection) -> None:
        db.execute("UPDATE head SET number = 7")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write(work)
    assert files.read(plans.read_head).number == 0
    files.close()


def test_many_who_may_create_make_one_store(path: Path) -> None:
    """Roles start at the same moment; each store made has an identity of its own, so there must be one."""

    def identity(_: int) -> str:
        files = database.Database(path, create=True)
        together.wait()
        found = files.read(plans.read_head).store
        files.close()
        return found

    for _ in range(10):
        together = threading.Barrier(6)
        with ThreadPoolExecutor(6) as threads:
            assert len(set(threads.map(identity, range(6)))) == 1
        for found in path.parent.iterdir():
            found.unlink()


def test_a_full_disk_loses_nothing_and_ends_by_itself(path: Path) -> None:
    """SQLITE_FULL: readers go on, the plan isn't half there, and the next one after space is back is published."""

    async def go() -> None:
        async with opened(path) as store, opened(path, create=False) as reader:
            head = await publish(store, "a.example")

            def limit(pages: int) -> None:
                store._database.read(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())

            limit(1)  # SQLite takes this as "not one page more"
            wide = tuple(row(f"e{n}.example", 2) for n in range(2_000))
            with pytest.raises(Unavailable, match="no space") as told:
                await store.publish(Plan(head, 2, 0, wide))
            assert "free some space" in told.value.hint
            assert await reader.head() == head
            assert len((await reader.newest_rows(None))[1]) == 1
            limit(1_000_000)
            assert await store.publish(Plan(head, 2, 0, wide)) is not None
            assert len((await reader.newest_rows(None))[1]) == 2_001

    asyncio.run(go())


def test_a_copy_put_back_is_read_whole_though_it_counts_to_the_same_snapshot(path: Path) -> None:
    """What a store remembers of its inputs is of one file: an older copy may have gone another way since."""

    async def go() -> None:
        async with opened(path) as store:
            await store.put_config(b"one", b"")
            copy = path.with_name("copy")
            db = sqlite3.connect(path)
            db.execute("VACUUM INTO ?", (str(copy),))
            db.close()
            await store.put_config(b"two", b"one")
            assert (await store.inputs()).config == b"two"
            async with opened(copy, create=False) as other:
                await other.put_config(b"three", b"one")
            copy.replace(path)
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            found = await store.inputs()
            assert (found.snapshot, found.config) == (2, b"three")

    asyncio.run(go())


def test_a_plan_alone_reads_no_configuration_again(path: Path) -> None:
    """One change costs the same however large the configuration: only orders can differ with a new head."""

    async def go() -> None:
        async with opened(path) as store, opened(path) as planner:
            await store.put_config(b"x" * 1_000, b"")
            await store.put_order(Order("o1", "withdraw", "a.example", by="ops", reason="moved"))
            before = await store.inputs()
            head = await planner.head()
            assert await planner.publish(Plan(head, 1, 0, (row("a.example", 1),), spends=("o1",))) is not None
            after = await store.inputs()
            assert after.config is before.config
            assert (len(before.orders), after.orders) == (1, ())
            assert after.snapshot == before.snapshot

    asyncio.run(go())
