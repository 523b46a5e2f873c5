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
from fencepost.cli.up_locks import Place, clear_left, hold_place, hold_places, let_go
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
from fencepost.cli.up_locks import hold_places, let_go
from fencepost.cli.up_start import hold
from fencepost.settings import load
region = load(sys.argv[1])
folder = assembly.state_folder(region)
folder.mkdir(parents=True, exist_ok=True)
lock, places = hold(folder), hold_places(region)
print("holds", flush=True)
sys.stdin.read()
let_go(places)
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


def test_the_same_owner_as_the_sample(tmp_path: Path) -> None:
    """Whoever runs the sample has no file to write another owner in: told how to get one."""
    theirs = region(tmp_path / "one")
    (tmp_path / ".fencepost").mkdir()
    for name in ("demo", "demo-bind"):
        mine = region(tmp_path / ".fencepost" / name)
        with starting(theirs), pytest.raises(Misconfigured) as caught:
            hold_places(mine)
        assert "fencepost init --sample  gives a region.toml to name another in, or end that one" in caught.value.hint


def test_the_same_region_a_moment_before_its_folder_is_held(tmp_path: Path) -> None:
    """Of four started at once two were told to write another owner, into the one file that all four have."""
    mine = region(tmp_path / "one")
    with starting(mine) as pid, pytest.raises(Misconfigured, match="this region runs already") as caught:
        hold_places(mine)
    assert caught.value.what == f"this region runs already (pid {pid})"
    assert "fencepost status" in caught.value.hint


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


def lock_files(folder: Path) -> list[str]:
    """The files of places that are held, or were."""
    return sorted(path.name for path in folder.glob("fencepost-*.lock"))


def test_nothing_is_left_of_a_place_that_was_let_go(tmp_path: Path) -> None:
    """Files in the temporary folder stay for ever otherwise: hundreds after a day of starting regions."""
    mine = region(tmp_path / "one")
    with starting(mine):
        assert len(lock_files(tmp_path)) == 2
    assert lock_files(tmp_path) == []
    let_go(hold_places(mine))
    assert lock_files(tmp_path) == []


def test_a_start_that_is_refused_leaves_the_places_to_who_has_them(tmp_path: Path) -> None:
    """The second start takes away what it made, and nothing of the first one's."""
    theirs, mine = region(tmp_path / "one"), region(tmp_path / "two")
    with starting(theirs):
        before = lock_files(tmp_path)
        with pytest.raises(Misconfigured):
            hold_places(mine)
        assert lock_files(tmp_path) == before
        clear_left()
        assert lock_files(tmp_path) == before, "held ones aren't cleared either"


def test_what_a_kill_left_is_cleared_by_the_next_start(tmp_path: Path) -> None:
    """Killed by signal 9 it can take nothing away; files that look alike and aren't ours to know stay."""
    mine = region(tmp_path / "one")
    for name in ("fencepost-old-0123456789ab.lock", "fencepost-x.lock", "other-0123456789ab.lock"):
        (tmp_path / name).write_text("/gone/region.toml (pid 4711)\n")
    (tmp_path / "fencepost-link-0123456789ab.lock").symlink_to(tmp_path / "other-0123456789ab.lock")
    places = hold_places(mine)
    clear_left()
    assert sorted(path.name for path in tmp_path.glob("*.lock")) == sorted(
        ["fencepost-x.lock", "other-0123456789ab.lock", "fencepost-link-0123456789ab.lock"]
        + [place.path.name for place in places]
    )
    let_go(places)


def test_a_lock_on_a_file_that_was_taken_away_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened before its holder let go, locked after: whoever comes next makes another file and locks that one."""
    mine = region(tmp_path / "one")
    first = hold_place(mine, "x-0123456789ab", "in use", "wait")
    opened: list[int] = []

    def let_go_in_between(path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not opened:
            let_go([first])
        opened.append(fd)
        return fd

    monkeypatch.setattr("fencepost.cli.up_locks.opened", let_go_in_between)
    second = hold_place(mine, "x-0123456789ab", "in use", "wait")
    assert len(opened) == 2
    assert os.path.samestat(os.fstat(second.fd), second.path.stat())
    let_go([Place(*second)])
    assert not second.path.exists()
