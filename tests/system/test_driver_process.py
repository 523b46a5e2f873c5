"""Instances as processes: what is started, found, waited for and ended, and by whom."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from agents import SLEEPER, alive
from patience import patient

from fencepost.adapters.driver_process import KEPT, ProcessDriver
from fencepost.adapters.processes import Carriers, find, start_of
from fencepost.core.capacity.messages import Instance, NetworkState
from fencepost.ports import Refused, Unavailable

PARENT = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "


def played(folder: Path, play: Callable[[ProcessDriver, list[str]], Awaitable[None]]) -> None:
    """Run a play with a driver; whatever it started is ended after."""

    async def main() -> None:
        driver, ended = ProcessDriver(folder), list[str]()
        driver.on_end(ended.append)
        try:
            await play(driver, ended)
        finally:
            driver.close()
            for carriers in marked(folder).values():
                for pid in (*carriers.leaders, *carriers.others):
                    os.kill(pid, signal.SIGKILL)

    asyncio.run(main())


def marked(folder: Path) -> dict[str, Carriers]:
    """What carries the folder's mark."""
    return find(f"FENCEPOST_INSTANCE_FOLDER={folder.resolve() / 'instances'}", "FENCEPOST_INSTANCE=")


async def until(what: Callable[[], object]) -> None:
    """Wait for something."""
    async with asyncio.timeout(patient(20)):
        while not what():  # noqa: ASYNC110  processes tell nobody
            await asyncio.sleep(0.01)


def instance(id_: str, *command: str) -> Instance:
    """One that sleeps unless told otherwise."""
    return Instance(id_, "web", "127.0.9.1", 80, command or SLEEPER)


def test_one_that_ends_by_itself_is_told_once_and_one_that_is_stopped_is_not(tmp_path: Path) -> None:
    """Stopping is the agent's own doing."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.start(instance("web-1.1", sys.executable, "-c", "print('done')"))
        await until(lambda: ended == ["web-1.1"])
        assert (driver.folder / "web-1.1" / "log").read_text() == "done\n"
        await driver.start(instance("web-2.1"))
        await driver.stop("web-2.1")
        await driver.stop("web-3.1")
        assert ended == ["web-1.1"]
        assert not await driver.running()

    played(tmp_path, play)


def test_an_end_is_told_on_a_disk_that_has_become_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux mounts a failing disk read-only (ext4(5), errors=remount-ro), and what runs there tends to die just then:
    untold it would count as running, and be ready, for good."""

    def read_only(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.start(instance("web-1.1"))
        await driver.start(instance("web-2.1"))
        monkeypatch.setattr(Path, "unlink", read_only)
        os.kill(driver.attempts["web-1.1"].pid, signal.SIGKILL)
        await until(lambda: ended == ["web-1.1"])
        await driver.stop("web-2.1")
        monkeypatch.undo()
        assert not await ProcessDriver(tmp_path).running()

    played(tmp_path, play)


def test_a_whole_process_group_ends_with_its_first_process(tmp_path: Path) -> None:
    """Or a worker would go on serving for an attempt that is over."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        for id_, rest in (("web-1.1", "time.sleep(600)"), ("web-2.1", "time.sleep(0.3)")):
            await driver.start(instance(id_, sys.executable, "-c", PARENT + rest))
        await until(lambda: all(len(each.others) == 1 for each in marked(tmp_path).values()))
        await until(lambda: ended == ["web-2.1"])
        await driver.stop("web-1.1")
        await until(lambda: not marked(tmp_path))

    played(tmp_path, play)


def test_what_an_attempt_left_behind_while_no_agent_looked_is_ended(tmp_path: Path) -> None:
    """Its first process died with nobody there to see it; the rest isn't the attempt."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.start(instance("web-1.1", sys.executable, "-c", PARENT + "time.sleep(600)"))
        seen: list[int] = []

        def parented() -> bool:  # who is just becoming another program shows no environment for a moment
            seen.extend(pid for each in marked(tmp_path).values() for pid in each.others)
            return bool(seen)

        await until(parented)
        left = seen[0]
        child = driver.attempts["web-1.1"].child
        assert child is not None
        driver.close()
        child.kill()
        child.wait()
        assert alive(left)
        assert not await ProcessDriver(tmp_path).running()
        await until(lambda: not alive(left))

    played(tmp_path, play)


def test_what_cant_be_waited_for_isnt_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of file descriptors: a start that can't be watched is undone, and a look says that it doesn't know."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.start(instance("web-1.1"))

        def none_left(_: int) -> int:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(os, "pidfd_open", none_left)
        with pytest.raises(Unavailable, match="can't be waited for"):
            await driver.start(instance("web-2.1"))
        assert list(marked(tmp_path)) == ["web-1.1"]
        with pytest.raises(Unavailable, match="can't be waited for"):
            await ProcessDriver(tmp_path).running()

    played(tmp_path, play)


@pytest.mark.parametrize("id_", ["../web-1.1", "a/b.1", "", ".1", "x" * 300, "web-1.1\n"])
def test_a_name_leads_nowhere_else(tmp_path: Path, id_: str) -> None:
    """It names a folder."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        with pytest.raises(Refused, match="no name for an attempt"):
            await driver.start(instance(id_))

    played(tmp_path, play)


@pytest.mark.parametrize("command", [(), ("",), ("/nowhere",), ("/etc/passwd",), ("a\0b",)])
def test_what_cant_be_run_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    """With the system's own word for it."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        with pytest.raises(Refused):
            await driver.start(Instance("web-1.1", command=command))
        assert not ended
        assert not await driver.running()

    played(tmp_path, play)


def test_folders_of_attempts_that_ended_are_bounded(tmp_path: Path) -> None:
    """Those that run keep theirs, however old."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.start(instance("web-0.1"))
        for number in range(KEPT + 10):
            old = driver.folder / f"old-{number}.1"
            old.mkdir()
            os.utime(old, (number, number))  # those made within one tick of the clock would be equally old
        await driver.start(instance("web-1.1", "/bin/true"))
        await until(lambda: ended)
        names = {each.name for each in driver.folder.iterdir()}
        assert len(names) == KEPT + 1
        assert {"web-0.1", "web-1.1", f"old-{KEPT + 9}.1"} <= names

    played(tmp_path, play)


def test_network_state_is_replaced_whole_or_said_not_to_be(tmp_path: Path) -> None:
    """An instance that reads it finds the old one or the new one."""

    async def play(driver: ProcessDriver, ended: list[str]) -> None:
        await driver.network((NetworkState("web-1.1", 1, "d", b"{}"),))
        path = driver.folder / "web-1.1" / "network.json"
        assert path.read_bytes() == b"{}"
        path.with_suffix(".new").mkdir()
        with pytest.raises(Unavailable, match="can't be written"):
            await driver.network((NetworkState("web-1.1", 2, "d", b"[]"),))
        assert path.read_bytes() == b"{}"

    played(tmp_path, play)


def test_a_start_time_is_read_whatever_the_process_calls_itself() -> None:
    """proc(5): the name in brackets may hold anything."""
    assert start_of(os.getpid()) == start_of(os.getpid())
    assert start_of(2**22 + 1) is None


def test_the_agents_folder_is_not_made_where_it_is_away(tmp_path: Path) -> None:
    """Unmounted: nothing is put in its place, so what lies in it is found when it is back."""
    driver = ProcessDriver(tmp_path / "hosts" / "h1")
    with pytest.raises(Unavailable, match="No such file"):
        asyncio.run(driver.running())
    assert not list(tmp_path.iterdir())
