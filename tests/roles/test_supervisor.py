"""The supervisor where the system refuses it something: its own end would be that of every role (decision 21)."""

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from fencepost.cli import up_reload
from fencepost.roles.supervisor import Child, Ended, Spec, Supervisor


class Region:
    """A supervisor of two processes that only sleep, its time at the test's hand."""

    def __init__(self, folder: Path, *, reload: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.short = 0
        self.told: list[tuple[str, str]] = []
        self.ends: list[Ended] = []
        specs = [Spec("dns", self.start), Spec("checker/a", self.start)]
        self.supervisor = Supervisor(specs, folder, self.take, reload=reload)

    def take(self, name: str, text: str, ended: Ended | None = None, /) -> None:
        """A line of its."""
        self.told.append((name, text))
        self.ends += [ended] if ended is not None else []

    def start(self) -> int:
        """A process, unless the system is short of them."""
        if self.short:
            self.short -= 1
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        pid = os.fork()
        if not pid:
            signal.pause()
            os._exit(0)
        return pid

    def child(self, name: str) -> Child:
        return next(child for child in self.supervisor.children if child.spec.name == name)

    def later(self) -> None:
        """A step, everything that waits for a time being due."""
        for child in self.supervisor.children:
            child.due = 0.0
        self.supervisor.look_due = 0.0
        self.supervisor.go_on()

    def written(self) -> dict[str, int | None]:
        """Whom ``status`` takes to run."""
        known = json.loads((self.folder / "processes.json").read_text())["processes"]
        return {name: each["pid"] for name, each in known.items()}

    def kill(self, name: str) -> None:
        """End a process, and wait until it can be seen that it ended."""
        pid = self.child(name).pid
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def region(tmp_path: Path) -> "Region":
    return Region(tmp_path)


def test_a_fork_that_is_refused_is_asked_for_again_and_said_once(region: Region) -> None:
    """EAGAIN from fork(2), at a limit of processes: one checker's death took the DNS server with it."""
    supervisor = region.supervisor
    supervisor.go_on()
    try:
        dns = region.child("dns").pid
        region.kill("checker/a")
        region.short = 3
        for _ in range(4):
            region.later()
        refused = [text for name, text in region.told if "can't be started" in text]
        assert len(refused) == 1
        assert "Resource temporarily unavailable" in refused[0]
        assert region.child("checker/a").pid == 0 or region.short == 0
        region.later()
        assert region.child("checker/a").pid
        assert region.child("dns").pid == dns
        assert [text for _, text in region.told if "started again" in text]
        assert region.written()["checker/a"] == region.child("checker/a").pid
    finally:
        supervisor.stop_all()


def test_a_role_waits_for_the_server_that_it_needs_until_it_answers_once(tmp_path: Path) -> None:
    """docs/operating/commands.md, `--store postgresql`: started beside it. Roles came first, and each said at every
    first start that the store can't be reached. What doesn't need it doesn't wait; a server that is away later on
    holds back nobody, and neither does one that never answers.
    """
    answers = iter([False, True])
    made = Region(tmp_path)
    specs = [Spec("postgresql", made.start), Spec("planner", made.start, needs=True)]
    made.supervisor = Supervisor(specs, tmp_path, made.take, answers=lambda: next(answers))
    try:
        made.supervisor.go_on()
        assert [bool(child.pid) for child in made.supervisor.children] == [True, False]
        assert made.supervisor.pause() > 0, "or it would ask without end"
        made.supervisor.go_on()
        first = made.child("planner").pid
        assert first
        made.kill("planner")
        made.later()
        made.later()
        assert made.child("planner").pid not in (0, first)
    finally:
        made.supervisor.stop_all()
    late = Region(tmp_path)
    late.supervisor = Supervisor(specs, tmp_path, late.take, answers=lambda: False)
    late.supervisor.unanswered_until = 0.0
    late.supervisor.go_on()
    assert late.child("planner").pid
    late.supervisor.stop_all()


def test_how_a_process_ended_is_told_beside_its_words(region: Region) -> None:
    """`up`'s screen says by it what is started again; read from the words, a line that was cut short said otherwise."""
    region.supervisor.go_on()
    try:
        region.kill("dns")
        region.supervisor.go_on()
        assert region.ends == [Ended(-signal.SIGKILL, again=True)]
        assert region.told[-1][1].startswith("died (signal 9, pid ")
    finally:
        region.supervisor.stop_all()


def test_what_a_full_disk_did_not_take_is_written_when_there_is_room(region: Region, tmp_path: Path) -> None:
    """Pids of the dead stood in processes.json until something else died."""
    supervisor = region.supervisor
    supervisor.go_on()
    try:
        before = region.written()
        # A folder where the new file would go: no write succeeds, as on a full disk.
        (tmp_path / "processes.new").mkdir()
        region.kill("checker/a")
        for _ in range(3):
            region.later()
        assert region.written() == before
        assert len([text for _, text in region.told if "can't write" in text]) == 1
        (tmp_path / "processes.new").rmdir()
        region.later()
        assert region.written()["checker/a"] == region.child("checker/a").pid != before["checker/a"]
        assert not (tmp_path / "processes.new").exists()
    finally:
        supervisor.stop_all()


def test_nothing_of_a_file_that_could_not_be_written_is_left_lying_about(
    region: Region, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk makes an empty file of it."""

    def full(path: Path, mode: str) -> NoReturn:
        path.touch()
        raise OSError(errno.ENOSPC, f"{mode}: {os.strerror(errno.ENOSPC)}")

    supervisor = region.supervisor
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", full)
            supervisor.go_on()
        assert not list(tmp_path.iterdir())
        region.later()
        assert region.written()["dns"] == region.child("dns").pid
    finally:
        supervisor.stop_all()


def test_no_refusal_of_the_system_ends_the_supervisor(tmp_path: Path) -> None:
    """Whatever it asks for: here a reload, whose process can't be forked."""

    def refuse() -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    region = Region(tmp_path, reload=refuse)
    region.supervisor.hung_up = True
    try:
        region.supervisor.go_on()
        assert region.child("dns").pid
        region.later()
        assert region.written()["dns"] == region.child("dns").pid
        assert [text for name, text in region.told if name == "supervisor" and "Cannot allocate memory" in text]
    finally:
        region.supervisor.stop_all()


def test_a_reload_that_cannot_be_forked_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leads to no second supervisor: the fork that is refused may be that of the process in between."""
    from fencepost.settings import load

    sample = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
    told: list[str] = []

    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuse)
    up_reload.reload_aside(sample, lambda _, text: told.append(text))
    assert told
    assert "not done: Resource temporarily unavailable" in told[0]
    # In the process between, which has forked once: it must end there.
    forks = iter([0])

    class Ended(Exception):  # noqa: N818  the process's end
        pass

    def fork() -> int:
        for answer in forks:
            return answer
        return refuse()

    def leave(_: int) -> None:
        raise Ended

    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(Ended):
        up_reload.reload_aside(sample, lambda _, text: told.append(text))
    assert len(told) == 2
