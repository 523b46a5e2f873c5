"""Two ``fencepost up`` in the same instant: one starts, the other says in words which runs, and what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost import assembly
from fencepost.cli import up as up_module
from fencepost.cli.up import Run
from fencepost.cli.up_start import hold, say_holder
from fencepost.ports import Misconfigured
from fencepost.settings import Region, load

TEXT = """
[region]
name = "twice"
owner = "{owner}"
[dns]
provider = "embedded"
domain = "example.test"
listen = "127.0.0.1:5399"
[pool.web]
probe = "http://:80/"
[pool.web.targets]
a = ["127.0.0.1"]
[[endpoint]]
name = "api.example.test"
pool = "web"
"""
HOLDER = """
import sys
from pathlib import Path
from fencepost import assembly
from fencepost.cli.up_start import hold, hold_places
from fencepost.settings import load
region = load(sys.argv[1])
folder = assembly.state_folder(region)
folder.mkdir(parents=True, exist_ok=True)
fds = hold(folder), *hold_places(region)
print("holds", flush=True)
sys.stdin.read()
"""


def region(folder: Path, owner: str = "twice") -> Region:
    """A region of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "region.toml").write_text(TEXT.format(owner=owner))
    return load(folder / "region.toml")


@contextmanager
def starting(of: Region) -> Iterator[int]:
    """Another ``up``, just past the point where it takes its locks; its pid."""
    command = [sys.executable, "-c", HOLDER, of.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "holds\n"
        yield process.pid
        process.stdin.close()


@pytest.fixture(autouse=True)
def seen_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before the start found nobody: both looked before either had its locks."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(up_module, "refuse_clashes", lambda *_args, **_more: None)


def start(of: Region) -> None:
    """Start it, as far as it comes."""
    Run(of, with_targets=False, last_ns=1, as_json=False, yes=True).run()


def test_the_same_region(tmp_path: Path) -> None:
    """The second says which process has it; nothing of it was started or written."""
    mine = region(tmp_path / "one")
    with (
        starting(mine) as pid,
        pytest.raises(Misconfigured, match=re.escape(f"this region runs already (supervisor pid {pid})")) as caught,
    ):
        start(mine)
    assert "fencepost status" in caught.value.hint
    assert not Path(mine.store.path).exists()


def test_the_same_owner(tmp_path: Path) -> None:
    """Another folder, the same owner at the same place: whose it is, and what to do."""
    theirs, mine = region(tmp_path / "one"), region(tmp_path / "two")
    says = f'owner "twice" is in use for example.test at 127.0.0.1:5399 already, by {theirs.path} (pid '
    with starting(theirs) as pid, pytest.raises(Misconfigured, match=re.escape(f"{says}{pid})")) as caught:
        start(mine)
    assert "write another in [region], or end that one" in caught.value.hint
    assert not Path(mine.store.path).exists()


def test_a_lock_says_who_has_it_now(tmp_path: Path) -> None:
    """It is taken before the fork, and named after the supervisor, whose it is then."""
    lock = hold(tmp_path)
    assert (tmp_path / "supervisor.lock").read_text() == f"{os.getpid()}\n"
    for text, told in (("4711\n", "{}\n"), ("/a/4711/region.toml (pid 4711)\n", "/a/4711/region.toml (pid {})\n")):
        (tmp_path / "supervisor.lock").write_text(text)
        say_holder(lock)
        assert (tmp_path / "supervisor.lock").read_text() == told.format(os.getpid())
    os.close(lock)
    assert assembly.state_folder(region(tmp_path / "one")) != tmp_path
