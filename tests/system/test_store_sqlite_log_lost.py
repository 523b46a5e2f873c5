"""The store's log removed under processes that use it: nobody goes on in a log that nobody else reads."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from store_sqlite_opened import opened, publish

from fencepost.adapters.store_sqlite import checkpoints, database, plans
from fencepost.core.instant import SECOND
from fencepost.core.store import Plan
from fencepost.ports import Unavailable

ENDS = [("-wal", "-shm"), ("-wal",), ("-shm",)]

CHILD = """
import sys
from pathlib import Path
from fencepost.adapters.store_sqlite import database, plans
from fencepost.ports import PortError
files = database.Database(Path(sys.argv[1]), create=False)
for line in sys.stdin:
    try:
        if line.strip() == "read":
            print("read", files.read(plans.read_head).number, flush=True)
        else:
            files.write(lambda db: db.execute("UPDATE head SET number = ?", (int(line),)))
            print("wrote", int(line), flush=True)
    except PortError as problem:
        print("error", problem, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "region.db"


def remove(path: Path, ends: tuple[str, ...]) -> None:
    """As a person does who tidies up."""
    for end in ends:
        Path(f"{path}{end}").unlink()


def number(db: sqlite3.Connection, value: int) -> None:
    """Any write."""
    db.execute("UPDATE head SET number = ?", (value,))


def sound(path: Path) -> bool:
    """SQLite's own look at the file."""
    db = sqlite3.connect(path)
    try:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        db.close()


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("first", ["we", "they"])
def test_two_processes_meet_in_one_log_after_theirs_was_removed(path: Path, ends: tuple[str, ...], first: str) -> None:
    """Before, each went on in what it had open while a third one opened a new log: the store was two, unseen."""
    database.make(path)
    files = database.Database(path, create=False)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def they(word: object) -> str:
            assert child.stdin is not None
            assert child.stdout is not None
            print(word, file=child.stdin, flush=True)
            return child.stdout.readline().strip()

        files.write(lambda db: number(db, 3))
        assert they("read") == "read 3"
        remove(path, ends)
        if first == "we":
            files.write(lambda db: number(db, 5))
            assert they("read") == "read 5"
            assert they(6) == "wrote 6"
        else:
            assert they(6) == "wrote 6"
        assert files.read(plans.read_head).number == 6
        files.write(lambda db: number(db, 7))
        assert they("read") == "read 7"
        child.stdin.close()
    files.close()
    assert sound(path)


@pytest.mark.parametrize("ends", ENDS)
def test_all_threads_of_a_process_let_go_of_the_removed_log(path: Path, ends: tuple[str, ...]) -> None:
    """SQLite shares the index among a process's connections: one left open would hand the old one to the others."""

    async def go() -> None:
        async with opened(path) as store, opened(path, create=False, copying=True) as other:
            await publish(store, "a.example")
            waiter = other.waiter()
            await waiter.wait(0)
            await waiter.wait(SECOND // 5)
            remove(path, ends)
            head = await publish(store, "b.example")
            assert await other.head() == head
            newest = await publish(other, "c.example")
            assert await store.head() == newest
            third = database.Database(path, create=False)
            assert third.read(plans.read_head) == newest
            third.close()
            assert await store.publish(Plan(head, 9, 0, ())) is None

    asyncio.run(go())
    assert sound(path)


def test_a_write_into_a_removed_log_is_not_taken_for_done(path: Path) -> None:
    """The commit succeeds, in a log that nobody will ever read: its outcome is unknown, and the next look is anew."""
    files, other = database.Database(path, create=True), database.Database(path, create=False)
    files.data_version()
    other.data_version()
    before = files.file

    def work(db: sqlite3.Connection) -> None:
        number(db, 7)
        remove(path, ("-wal", "-shm"))

    with pytest.raises(Unavailable, match="removed while it was in use") as told:
        files.write(work)
    assert told.value.hint
    assert files.read(plans.read_head) == other.read(plans.read_head)
    assert files.file != before
    for each in (files, other):
        each.close()


def test_a_log_removed_wakes_who_waits(path: Path) -> None:
    """Waiters look again: what they had read last may be gone."""

    async def go() -> None:
        async with opened(path) as store:
            await publish(store, "a.example")
            waiter = store.waiter()
            await waiter.wait(0)
            await waiter.wait(SECOND // 5)
            waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
            remove(path, ("-wal", "-shm"))
            await asyncio.wait_for(waiting, 10)

    asyncio.run(go())


def test_who_copies_the_log_lets_go_of_a_removed_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would copy pages of the old log over those of the new one."""
    monkeypatch.setattr(checkpoints, "LOOK_EACH_S", 3600.0)
    database.make(path)
    copying = checkpoints.Checkpoints(path)
    copying._database.data_version()
    files = database.Database(path, create=False)
    files.write(lambda db: number(db, 3))
    remove(path, ("-wal", "-shm"))
    before = copying._database.file
    copying._look()
    assert copying._database.file != before
    copying.close()
    files.close()
