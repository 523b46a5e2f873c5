"""An answer that can't be written: one line on stderr and a code of its own; a reader who has gone is no error."""

import builtins
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from called import FENCEPOST

from fencepost.cli import main

CASES = (
    ("--help",),
    ("--version",),
    ("status", "--help"),
    ("check", "region.toml"),
    ("check", "--json"),
    ("nope", "--json"),
    ("simulate", "--scenario", "list"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a region.toml, of which nothing runs."""
    found = tmp_path_factory.mktemp("streams")
    subprocess.run([str(FENCEPOST), "init"], cwd=found, check=True, capture_output=True)
    return found


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell, in which $FP is the command."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**environ, "FP": str(FENCEPOST)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", CASES)
def test_a_full_disk_is_one_line_and_74(folder: Path, words: tuple[str, ...]) -> None:
    """`status --json >/dev/full` was two tracebacks and 1, which means "a person is needed" (sysexits(3): EX_IOERR)."""
    done = run(folder, f"$FP {' '.join(words)} >/dev/full")
    assert done.returncode == 74, done.stderr
    assert done.stderr == (
        "error: the answer can't be written to stdout: no space left on device; what the command did stands\n"
    )


def test_a_closed_stdout_is_said_too_and_takes_no_file(folder: Path) -> None:
    """The next file that is opened would get its number, and the answer be written into the store."""
    done = run(folder, "$FP check >&-")
    assert (done.returncode, done.stderr.count("\n")) == (74, 1)
    assert "it is closed" in done.stderr


@pytest.mark.parametrize("words", CASES)
def test_a_reader_who_has_gone_is_no_error(folder: Path, words: tuple[str, ...]) -> None:
    """`fencepost status | head -1`: silent."""
    done = run(folder, f"$FP {' '.join(words)} | true")
    assert done.stderr == ""
    assert done.returncode in (0, 2), "2: it had ended before its reader did"


@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
def test_a_note_that_cannot_be_written_stops_nothing(folder: Path, to: str) -> None:
    """The error's own code says enough."""
    assert run(folder, f"$FP nope 2{to}").returncode == 2
    assert run(folder, f"$FP check 2{to}").returncode == 0


def test_a_closed_stdin_is_nobody_there(folder: Path) -> None:
    """Nobody can be asked."""
    assert run(folder, "$FP check <&-").returncode == 0


@pytest.mark.parametrize("read", ["fencepost.cli.errors", "fencepost.cli.streams", "fencepost.cli.app"])
def test_ctrl_c_while_modules_are_read_is_130_and_quiet(
    read: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the first tenth of a second it was a traceback out of some import."""
    real = builtins.__import__

    def interrupted(name: str, *more: Any, **named: Any) -> Any:
        if name == read:
            raise KeyboardInterrupt
        return real(name, *more, **named)

    monkeypatch.setattr("fencepost.cli.streams.take_over", lambda: None)
    monkeypatch.setattr("sys.argv", ["fencepost", "check"])
    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    monkeypatch.undo()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""
