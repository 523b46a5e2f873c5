"""``fencepost prove`` that was killed: the next one takes away its folder, names its records, touches no live one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fencepost.cli import prove
from fencepost.cli.prove_folder import RunFolder, clear_dead

NAMES = ("fencepost-prove-1.example.test", "fencepost-prove-1-b.example.test")
RUN = """
import sys, time
from fencepost.cli.prove_folder import RunFolder
folder = RunFolder()
(folder.path / "0").mkdir()
if sys.argv[1:]:
    folder.writes_at(tuple(sys.argv[1:]))
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


DOMAINS = ("example.org", "example.test")


def running(*names: str) -> tuple[subprocess.Popen[str], Path]:
    """A run in a process of its own that writes at these names, and its folder."""
    process = subprocess.Popen([sys.executable, "-c", RUN, *names], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_killed_run_is_named_and_its_folder_goes(capsys: pytest.CaptureFixture[str]) -> None:
    """kill -9 leaves the folder and perhaps records: the first run afterwards says so, the second says nothing."""
    (killed, left), (lives, kept) = running(*NAMES), running(*NAMES)
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        prove.name_killed(DOMAINS)
        said = capsys.readouterr().err
        assert f"an earlier run (pid {killed.pid}) was killed: records may still stand at {' and '.join(NAMES)}" in said
        assert f"fencepost prove --clean --name {NAMES[0]}" in said
        assert not left.exists()
        assert (kept / "0").is_dir()
        prove.name_killed(DOMAINS)
        assert capsys.readouterr().err == ""
    finally:
        lives.kill()
        lives.wait()
    assert list(clear_dead()) == [(str(lives.pid), NAMES)]


def test_a_run_that_ends_leaves_nothing(temporary: Path) -> None:
    """Its folder goes with it, and nothing is said of it."""
    folder = RunFolder()
    folder.writes_at(NAMES)
    assert list(clear_dead()) == [], "it lives"
    assert folder.path.is_dir()
    folder.cleanup()
    assert list(temporary.iterdir()) == []


def killed(*names: str) -> Path:
    """The folder of a run that was killed."""
    process, left = running(*names)
    process.kill()
    process.wait()
    return left


def test_a_run_that_was_killed_before_it_wrote_is_not_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    """A person who wasn't there to say yes was told that records may stand, where nothing was ever written."""
    left = killed()
    prove.name_killed(DOMAINS)
    assert capsys.readouterr().err == ""
    assert not left.exists()


def test_a_killed_run_is_told_where_it_can_be_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    """Another region's `prove --clean` refuses the names as in no domain of its own: what it is told of, it forgets."""
    left = killed(*NAMES)
    prove.name_killed(("example.org", "test.example"))
    assert capsys.readouterr().err == ""
    assert left.exists()
    prove.name_killed(DOMAINS)
    assert NAMES[0] in capsys.readouterr().err
    assert not left.exists()


def test_what_is_no_runs_stays(temporary: Path) -> None:
    """Files, links, folders with other things in them; an empty one was a run's that was killed at its start."""
    (temporary / "fencepost-prove-file").write_text("")
    (temporary / "other").mkdir()
    (temporary / "other" / "run").write_text("1 a.example\n")
    (temporary / "fencepost-prove-link").symlink_to(temporary / "other")
    (temporary / "fencepost-prove-full").mkdir()
    (temporary / "fencepost-prove-full" / "mine").write_text("")
    (temporary / "fencepost-prove-empty").mkdir()
    assert list(clear_dead()) == []
    assert sorted(each.name for each in temporary.iterdir()) == [
        "fencepost-prove-file",
        "fencepost-prove-full",
        "fencepost-prove-link",
        "other",
    ]
    assert (temporary / "other" / "run").exists()


def test_a_folder_that_is_cleared_before_it_is_locked_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making and locking, another run may take it for a dead one's: then this run has another."""
    made, again = [], iter((True, False))
    mkdtemp = tempfile.mkdtemp

    def hasty(prefix: str) -> str:
        path = mkdtemp(prefix=prefix)
        made.append(path)
        if next(again):
            assert list(clear_dead()) == []
            assert not Path(path).exists()
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", hasty)
    folder = RunFolder()
    assert str(folder.path) == made[1]
    folder.cleanup()
