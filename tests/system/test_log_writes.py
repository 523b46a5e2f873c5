"""Being told that a store is written to, by whichever process, and still seeing every change where nothing is told."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fencepost.adapters.store_sqlite import SqliteStore, log_writes
from fencepost.adapters.store_sqlite.log_writes import LogWrites
from fencepost.core.instant import SECOND
from fencepost.ports import HistoryRow

LONG_S = 30.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "demo.db"


@pytest.fixture
def db(path: Path) -> sqlite3.Connection:
    """A database with a log, and a connection that keeps the log there."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (x)")
    db.execute("INSERT INTO t VALUES (0)")
    return db


def test_another_processs_commit_ends_the_wait(path: Path, db: sqlite3.Connection) -> None:
    """inotify(7) tells of writes by any process of the machine."""
    writes = LogWrites(path)
    assert writes.watching()
    assert not writes.wait(0.01)
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute('INSERT INTO t VALUES (1)')"
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as child:
        assert writes.wait(LONG_S)
        assert child.wait(LONG_S) == 0
    writes.hear()
    assert not writes.wait(0.01), "what was heard of is not told again"
    assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)
    writes.close()


def test_a_log_that_is_removed_or_replaced_is_told_of_and_another_one_watched(
    path: Path, db: sqlite3.Connection
) -> None:
    """Whoever waits for writes to a file that is gone would wait for ever."""
    writes, log = LogWrites(path), path.with_name("demo.db-wal")
    assert writes.watching()
    log.rename(path.with_name("aside"))
    assert writes.wait(LONG_S)
    assert not writes.watching(), "there is none: it must be looked for"
    log.write_bytes(b"")
    assert writes.watching()
    with log.open("ab") as other:
        other.write(b"x")
    assert writes.wait(LONG_S)
    writes.close()
    db.close()


def test_stopping_ends_a_wait(path: Path, db: sqlite3.Connection) -> None:
    """A role that is told to end doesn't wait for a commit."""
    writes = LogWrites(path)
    assert writes.watching()
    waiting = threading.Thread(target=writes.wait, args=(LONG_S,))
    waiting.start()
    writes.stop()
    waiting.join(LONG_S / 2)
    assert not waiting.is_alive()
    writes.close()
    db.close()


@pytest.mark.parametrize("told", [True, False])
def test_each_change_is_seen_whether_or_not_the_kernel_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    """A user may have run out of watches (fs.inotify.max_user_instances): then it is looked as often as ever."""
    if not told:
        monkeypatch.setattr(log_writes.LogWrites, "watching", lambda _: False)
    assert asyncio.run(seen(tmp_path / "demo.db")) == 5


async def seen(path: Path) -> int:
    """How many of five changes by another connection ended a wait."""
    mine, other = SqliteStore.open(path, create=True), SqliteStore.open(path)
    waiter, found = mine.waiter(reports=True), 0
    try:
        await waiter.wait(SECOND // 100)
        await waiter.wait(SECOND // 2)  # our own opening
        for number in range(5):
            task = asyncio.create_task(waiter.wait(60 * SECOND))
            await asyncio.sleep(0.15 if number % 2 else 0)
            await other.note([HistoryRow("finding", "x", "test", str(number), number)])
            await asyncio.wait_for(task, 20)
            found += 1
    finally:
        await mine.close()
        await other.close()
    return found


def test_no_descriptor_is_left(path: Path, db: sqlite3.Connection) -> None:
    """A region runs for months, and its files may be replaced often."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        writes = LogWrites(path)
        assert writes.watching()
        writes.close()
    assert len(os.listdir("/proc/self/fd")) == before
    db.close()
