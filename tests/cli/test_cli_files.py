"""Files of ours that can't be read or written: what, where and what to do, never a traceback or a defect (exit 70)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from called import FENCEPOST, call

KEY = 'key "fencepost-demo" {\n  algorithm hmac-sha256;\n  secret "aGVsbG8=";\n};\n'
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
"""Takes root's right to read everything; anybody else has none to take."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A region that has run once, of which its files can be read by nobody."""
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv can read everything")
    assert call("init", "--sample", cwd=tmp_path).returncode == 0
    state = tmp_path / ".fencepost/demo"
    state.mkdir(parents=True)
    for name, text in (("tsig.key", KEY), ("supervisor.lock", ""), ("processes.json", "{}")):
        (state / name).write_text(text)
        (state / name).chmod(0)
    return tmp_path


def denied(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command by somebody without rights."""
    before = WITHOUT_RIGHTS if os.getuid() == 0 else []
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    environ["XDG_RUNTIME_DIR"] = str(folder)  # else a sample that somebody runs on this machine has the owner
    command = [*before, str(FENCEPOST), *words]
    return subprocess.run(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check",), 0),
        (("status", "--timeout", "2s"), 3),
        (("repair", "api.example.test", "--yes", "--reason", "x"), 2),
        (("plan",), 2),
        (("up", "--for", "1s"), 2),
    ],
)
def test_another_user_is_told_which_file_and_what_to_do(folder: Path, words: tuple[str, ...], code: int) -> None:
    """These were once "a defect in fencepost: PermissionError"; a key that can't be read isn't a wrong key."""
    path = folder / "region.toml"
    path.write_text(path.read_text().replace("127.0.0.1:5301", "127.0.0.1:9"))
    done = denied(folder, *words)
    assert done.returncode == code, done.stderr
    assert "defect" not in done.stderr
    if code:
        assert "ermission denied" in done.stderr
        assert ".fencepost/demo/" in done.stderr
        assert "compare it with the server's key" not in done.stderr
        error = json.loads(denied(folder, *words, "--json").stdout)["error"]
        assert error["hint"]


def test_up_in_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """Exit 2, with the folder's name."""
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv can write everything")
    tmp_path.chmod(0o555)
    done = denied(tmp_path, "up", "--for", "1s")
    assert done.returncode == 2, done.stderr
    assert str(tmp_path) in done.stderr
    assert "permission denied" in done.stderr
