"""The SQLite store shared by real processes: racing, killed, stopped, out of disk, without rights."""

import asyncio
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from fencepost.adapters.store_sqlite import SqliteStore, database
from fencepost.adapters.store_sqlite.writer import LOOKS_LEAST, WriteLock
from fencepost.core.instant import SECOND
from fencepost.core.store import Head
from fencepost.ports import Unavailable

CHILD = Path(__file__).with_name("store_sqlite_child.py")
Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A new store."""
    database.make(tmp_path / "region.db")
    return tmp_path / "region.db"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts children, and ends by pid those that are left."""
    children: list[subprocess.Popen[str]] = []

    def begin(*words: object, before: tuple[str, ...] = (), **options: object) -> "subprocess.Popen[str]":
        command = [*before, sys.executable, str(CHILD), *map(str, words)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        child: subprocess.Popen[str] = subprocess.Popen(command, **{**pipes, **options})  # type: ignore[call-overload]
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def ask(child: "subprocess.Popen[str]", lines: int) -> list[str]:
    """Have a ``told`` child try once; what it says."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return [child.stdout.readline().strip() for _ in range(lines)]


def until_stopped(child: "subprocess.Popen[str]") -> None:
    """Return once a ``stopped`` child has stopped, lock in hand."""
    assert child.stdout is not None
    assert child.stdout.readline() == "stopping\n"
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)


def chain(path: Path) -> list[tuple[int, str, int]]:
    """(number, nonce, rows) of each plan, in the order published, after SQLite's own check of the file."""

    def read(db: sqlite3.Connection) -> list[tuple[int, str, int]]:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM row WHERE plan NOT IN (SELECT seq FROM plan)").fetchone() == (0,)
        rows = "SELECT count(*) FROM row WHERE row.plan = plan.seq"
        return [(*link,) for link in db.execute(f"SELECT number, nonce, ({rows}) FROM plan ORDER BY seq")]

    files = database.Database(path, create=False)
    try:
        return files.read(read)
    finally:
        files.close()


async def head_of(path: Path) -> Head:
    """The head, read by this process."""
    store = SqliteStore.open(path)
    try:
        return await store.head()
    finally:
        await store.close()


def test_eight_planners_make_one_chain(path: Path, start: Start) -> None:
    """Two planners of October 2025 wrote over each other; here each attempt is published whole or outrun, none both."""
    children = [start("planner", path, name, 40) for name in "abcdefgh"]
    said = [child.communicate(timeout=120)[0].splitlines() for child in children]
    assert all(len(lines) == 40 for lines in said)
    published = [(int(line.split()[1]), line.split()[2]) for lines in said for line in lines if line != "outrun"]
    links = chain(path)
    assert sorted(published) == [(number, nonce) for number, nonce, _ in links]
    assert [number for number, _, _ in links] == list(range(1, len(links) + 1))
    assert {rows for _, _, rows in links} == {2}
    head = asyncio.run(head_of(path))
    assert (head.number, head.nonce) == links[-1][:2]


def test_killed_planners_leave_whole_plans_only(path: Path, start: Start) -> None:
    """`kill -9` at any moment: a plan is in the chain with all its rows or not at all, and what was said is kept."""
    chance = random.Random(7)
    said: list[str] = []
    for round_ in range(4):
        children = [start("planner", path, f"{name}{round_}", 100_000) for name in "abc"]
        for child in children:  # each has published twice, however slow the disk is, and is outrun now and then
            assert child.stdout is not None
            told = 0
            while told < 2:
                said.append(child.stdout.readline())
                assert said[-1], "it ended"
                told += said[-1].startswith("published")
        time.sleep(chance.uniform(0, 0.1))
        for child in children:
            child.kill()
            assert child.stdout is not None
            # The last line may be cut off by the kill, or its plan published and not said.
            said += [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    published = {tuple(line.split()[1:]) for line in said if line.startswith("published")}
    links = chain(path)
    assert len(published) > 12
    assert published <= {(str(number), nonce) for number, nonce, _ in links}
    assert len(links) - len(published) <= 12
    assert [number for number, _, _ in links] == list(range(1, len(links) + 1))
    assert {rows for _, _, rows in links} == {2}
    assert asyncio.run(head_of(path)).number == len(links)


def test_a_writer_stopped_amid_a_write_is_named_and_ended(
    path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused process keeps the write lock for as long as it is paused: others read on, and learn whom to end."""
    monkeypatch.setattr(database, "PATIENCE_S", 0.2)
    child = start("stopped", path)

    async def go() -> None:
        store, lock = SqliteStore.open(path), WriteLock(path)
        assert lock.stuck(SECOND, 0) is None
        until_stopped(child)
        assert lock.holder() == child.pid
        assert (await store.head()).number == 0
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        with pytest.raises(Unavailable, match=f"process {child.pid} has held") as refusal:
            await store.put_config(b"one", b"")
        ticking.cancel()
        assert ticks > 2  # the loop went on while the write waited
        assert "kill -9` it" in refusal.value.hint
        assert lock.stuck(0, SECOND) is None  # first look
        assert lock.stuck(0, 2 * SECOND) == child.pid
        child.kill()
        child.wait()
        assert lock.holder() is None
        assert lock.stuck(0, 3 * SECOND) is None
        assert await store.put_config(b"one", b"")
        assert (await store.head()).number == 0
        await store.close()

    asyncio.run(go())


def test_how_long_a_writer_is_stuck_is_what_was_seen_of_it(path: Path, start: Start) -> None:
    """A pause of the watching process itself, or of the whole machine, is no proof against a writer."""
    keeper = database.Database(path, create=False)
    keeper.data_version()
    child = start("stopped", path)
    until_stopped(child)
    lock = WriteLock(path)
    assert lock.stuck(10 * SECOND, 0) is None
    assert lock.stuck(10 * SECOND, 3600 * SECOND) is None  # two looks an hour apart
    looks = [lock.stuck(10 * SECOND, (3600 + at) * SECOND) for at in range(1, 12)]
    assert looks[0] is None
    assert looks[-1] == child.pid
    again = WriteLock(path)
    stuck = [again.stuck(10 * SECOND, at * SECOND) for at in range(12)]
    assert stuck[:11] == [None] * 11  # "longer than" ten seconds
    assert stuck[11] == child.pid
    assert LOOKS_LEAST >= 3
    os.kill(child.pid, signal.SIGCONT)
    assert child.stdout is not None
    assert child.stdout.readline() == "committed\n"
    assert lock.stuck(10 * SECOND, 10**6 * SECOND) is None
    keeper.close()


def test_a_busy_writer_is_never_called_stuck(path: Path) -> None:
    """Whoever commits between two looks is working, however often he is seen with the lock."""
    keeper = database.Database(path, create=False)
    lock = WriteLock(path)
    command = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for line in sys.stdin:\n"
        "    if db.in_transaction: db.execute('COMMIT')\n"
        "    db.execute('BEGIN IMMEDIATE'); db.execute('UPDATE head SET snapshot = snapshot + 1'); print(1, flush=True)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    keeper.data_version()
    with subprocess.Popen([sys.executable, "-c", command, str(path)], text=True, **pipes) as child:  # type: ignore[call-overload]
        for at in range(30):
            child.stdin.write("\n")
            child.stdin.flush()
            child.stdout.readline()
            assert lock.holder() == child.pid
            assert lock.stuck(10 * SECOND, at * SECOND) is None
        child.stdin.close()
    keeper.close()


def test_a_failing_disk_is_unavailable_and_ends_by_itself(path: Path, start: Start) -> None:
    """A write past the file size limit fails like a bad disk (SQLITE_IOERR): nothing is lost, reading goes on."""
    child = start("told", path, 2_000)
    assert ask(child, 2) == ["read 0", "published 1"]
    size = os.stat(f"{path}-wal").st_size
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
    outcome = ask(child, 2)
    assert outcome[0] == "read 1"
    assert outcome[1].startswith("Unavailable")
    assert asyncio.run(head_of(path)).number == 1
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert ask(child, 2) == ["read 1", "published 2"]
    assert [rows for _, _, rows in chain(path)] == [2_000, 2_000]


def may_mount() -> bool:
    """Whether this user may mount in a namespace of its own."""
    try:
        tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
        return tried.returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not may_mount(), reason="mounting needs root")
def test_a_disk_that_is_really_full(path: Path, start: Start) -> None:
    """A file system of 1 MiB (ENOSPC): the plan that doesn't fit is Unavailable each time, and reading goes on."""
    script = 'mount -t tmpfs -o size=1m none "$0" && cp "$1" "$0/region.db" && shift && exec "$@" "$0/region.db" 8000'
    saved = path.rename(path.parent.parent / f"{path.parent.name}.db")
    child = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", script, str(path.parent), str(saved), sys.executable, str(CHILD), "told"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        first, second = ask(child, 2), ask(child, 2)
    finally:
        child.kill()
        child.communicate()
    assert first[0] == "read 0"
    assert first[1].startswith("Unavailable")
    assert "no space is left" in first[1]
    assert second == first


@pytest.fixture
def open_path(path: Path) -> Iterator[Path]:
    """A new store where other users may go; pytest's own directory is closed to them."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        yield Path(shutil.move(path, directory))


@pytest.mark.skipif(os.geteuid() != 0, reason="changing to another user needs root")
@pytest.mark.parametrize(("mode", "says"), [(0o444, "can't be written"), (0o000, "can't be opened")])
def test_a_file_without_rights_is_for_a_person(open_path: Path, start: Start, mode: int, says: str) -> None:
    """Another user's file: it can be read if its rights say so, and never written; mended, it goes on."""
    child = start("told", open_path, 1, 65534)
    open_path.chmod(mode)
    outcome = ask(child, 2 if mode else 1)
    assert outcome[-1].startswith("Misconfigured")
    assert says in outcome[-1]
    open_path.chmod(0o666)
    for end in ("-wal", "-shm"):
        Path(f"{open_path}{end}").unlink(missing_ok=True)
    assert ask(child, 2) == ["read 0", "published 1"]
