"""The SQLite store stays small and its costs flat, however long it runs and however many endpoints there are."""

# ruff: noqa: ASYNC240  looking at a file in a test's own loop holds nobody up
import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from store_sqlite_opened import opened, publish

from fencepost.adapters.store_sqlite import SqliteStore, checkpoints, plans, telemetry
from fencepost.ports import HistoryRow

T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "region.db"


def test_the_history_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`backlog_bounded`: no table outgrows what it is about."""
    monkeypatch.setattr(telemetry, "HISTORY_KEPT", 100)

    async def go() -> None:
        async with opened(path) as store:
            for start in range(0, 300, 50):
                lines = [HistoryRow("plan", "a", "planner", str(n), at=n) for n in range(start, start + 50)]
                await store.note(lines)
            assert [line.text for line in await store.history()] == [str(n) for n in range(200, 300)]

    asyncio.run(go())


def test_the_chain_of_plans_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans whose rows are all deleted are forgotten; a reader that is still there is given every row."""
    monkeypatch.setattr(plans, "PLANS_KEPT", 5)

    async def go() -> None:
        async with opened(path) as store:
            await publish(store, "quiet.example")
            known = await publish(store, "busy.example")
            for _ in range(20):
                await publish(store, "busy.example")
                for old, _, _ in await store.spent_rows(10):
                    assert await store.delete_row(old.name, old.generation, old.nonce)
            count = store._database.read(lambda db: db.execute("SELECT count(*) FROM plan").fetchone()[0])
            assert count <= 5 + 2
            assert len((await store.newest_rows(known))[1]) == 2

    asyncio.run(go())


def test_the_log_stays_short_with_one_process_copying_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without checkpoints the write-ahead log grows for ever; and only the one process makes them."""
    monkeypatch.setattr(checkpoints, "LOOK_EACH_S", 0.005)
    monkeypatch.setattr(checkpoints, "COPY_FROM_BYTES", 64 * 1024)
    monkeypatch.setattr(checkpoints, "INSIST_FROM_BYTES", 512 * 1024)
    log = Path(f"{path}-wal")

    async def write(store: SqliteStore) -> None:
        for n in range(250):  # 7.5 MB: past the 4 MB from which SQLite would copy by itself
            await store.put_report("a", "web", n, os.urandom(30_000))

    async def go() -> None:
        async with opened(path) as store:
            await write(store)
            assert log.stat().st_size > 7_000_000
            assert path.stat().st_size < 1_000_000
            async with opened(path, copying=True):
                await write(store)
                for _ in range(2_000):
                    if log.stat().st_size < 512 * 1024:
                        break
                    await asyncio.sleep(0.01)
                assert log.stat().st_size < 512 * 1024

    asyncio.run(go())


async def steps(store: SqliteStore, call: Awaitable[object]) -> int:
    """How many steps of SQLite's virtual machine a call takes: the same on every machine and at every load."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    store._database.read(lambda db: db.set_progress_handler(step, 1))
    await call
    store._database.read(lambda db: db.set_progress_handler(None, 1))
    return count


def test_one_change_costs_the_same_among_many_endpoints(path: Path, tmp_path: Path) -> None:
    """A region of 100,000 endpoints publishes and reads one change as cheaply as a small one."""

    async def cost(store: SqliteStore, endpoints: int) -> dict[str, int]:
        await publish(store, *(f"e{n}.example" for n in range(endpoints)))
        before = await publish(store, "e7.example")
        published = await steps(store, publish(store, "e7.example"))
        (first, *_), after = await store.spent_rows(1), await store.head()
        assert len((await store.newest_rows(before))[1]) == 1
        return {
            "publish": published,
            "read what changed": await steps(store, store.newest_rows(before)),
            "read nothing new": await steps(store, store.newest_rows(after)),
            "inputs": await steps(store, store.inputs()),
            "rows of one": await steps(store, store.rows_of("e7.example")),
            "spent": await steps(store, store.spent_rows(10)),
            "delete": await steps(store, store.delete_row(first[0].name, first[0].generation, first[0].nonce)),
        }

    async def go() -> None:
        async with opened(path) as small, opened(tmp_path / "large.db") as large:
            few, many = await cost(small, 50), await cost(large, 5_000)
            assert 0 < few["read nothing new"] < 30
            assert [what for what in few if many[what] > few[what] * 1.1 + 20] == [], (few, many)

    asyncio.run(go())
