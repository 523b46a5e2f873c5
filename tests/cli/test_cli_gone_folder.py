"""A shell may stand in a folder that was removed under it, a build's or a checkout's."""

import os
import subprocess
from pathlib import Path

import pytest
from called import FENCEPOST

from fencepost.settings.initial import INITIAL


def call_nowhere(gone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Call it in a folder that is removed right before."""
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("FENCEPOST_", "XDG_RUNTIME"))}
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(gone), str(FENCEPOST), *words],
        env=clean,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_named_in_full_needs_no_current_folder(tmp_path: Path) -> None:
    """It ended in "a defect: FileNotFoundError", with an absolute --config too."""
    path = tmp_path / "region.toml"
    path.write_text(INITIAL)
    done = call_nowhere(tmp_path / "gone", "check", "--config", str(path))
    assert done.returncode == 0, done.stderr
    assert f"{path}: ok" in done.stdout


@pytest.mark.parametrize("words", ["status", "check", "reload", "up", "check --config other.toml", "plan"])
def test_what_needs_the_current_folder_says_that_it_is_gone(tmp_path: Path, words: str) -> None:
    """A refusal with what to do, exit 2; nothing that looks like a fault of ours."""
    done = call_nowhere(tmp_path / "gone", *words.split())
    assert done.returncode == 2
    assert "the current folder was removed" in done.stderr
    assert "in full: --config" in done.stderr
    assert "defect" not in done.stderr
