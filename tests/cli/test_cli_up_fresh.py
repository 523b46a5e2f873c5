"""``fencepost up --fresh`` that is refused: what the sample's earlier run left stands as it was."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_ports import free_port

from fencepost.cli import up_sample
from fencepost.cli.up import Run
from fencepost.cli.up_start import hold_all
from fencepost.dev.sample import sample_text
from fencepost.ports import Misconfigured
from fencepost.settings import SettingsError


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a sample that ran and left a store, its targets' addresses and ports this test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("FENCEPOST_")]:
        monkeypatch.delenv(name)
    text = re.sub(r"(127\.0\.0\.\d+):\d+", lambda found: f"{found[1]}:{free_port()}", sample_text("embedded", "sqlite"))
    monkeypatch.setattr(up_sample, "sample_text", lambda *_: text)
    monkeypatch.setattr("fencepost.cli.regions.sample.sample_text", lambda *_: text)
    folder = tmp_path / ".fencepost" / "demo"
    (folder / "local").mkdir(parents=True)
    for name in ("fencepost.sqlite", "tsig.key", "local/enactor"):
        (folder / name).write_text("left")
    (folder / "region.toml").write_text("spoilt = ")
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Every file of a folder that an earlier run left."""
    files = [each for each in folder.rglob("*") if each.is_file() and each.name != "supervisor.lock"]
    return {str(each.relative_to(folder)): each.read_bytes().decode(errors="replace") for each in files}


def start_fresh() -> None:
    """``up --fresh`` until it would fork."""
    chosen = up_sample.choose(None, fresh=True, provider="embedded", store="sqlite")
    run = Run(chosen.region, with_targets=False, last_ns=1, as_json=False, yes=True)
    run.forget = chosen.forget
    run.run()


@contextmanager
def port_taken() -> Iterator[str]:
    """Somebody else listens where the sample's API would."""
    region = up_sample.choose(None, fresh=True, provider="embedded", store="sqlite").region
    with socket.create_server((region.api.listen.host, region.api.listen.port)):
        yield f"{region.api.listen.port}"


@contextmanager
def owner_in_use() -> Iterator[str]:
    """Another sample on this machine has the owner at that server."""
    region = up_sample.choose(None, fresh=True, provider="embedded", store="sqlite").region
    other = Path("other")
    other.mkdir()
    locks = hold_all(region, other)
    try:
        yield "already"
    finally:
        locks.let_go()


@pytest.mark.parametrize("reason", [port_taken, owner_in_use])
def test_a_start_that_is_refused_forgets_nothing(sample: Path, reason: object) -> None:
    """A port that was taken, an owner in use: the start was refused, and the earlier run's store was gone already."""
    before = contents(sample)
    with reason() as why, pytest.raises(Misconfigured) as refused:  # type: ignore[operator]
        start_fresh()
    assert why in f"{refused.value.what} {refused.value.where}"
    assert contents(sample) == before


def test_a_file_that_is_refused_forgets_nothing(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample as it would be placed is judged before anything goes."""
    before = contents(sample)
    monkeypatch.setattr(up_sample, "sample_text", lambda *_: "[region]\n")
    with pytest.raises(SettingsError):
        start_fresh()
    assert contents(sample) == before


def test_a_start_that_nothing_refuses_begins_anew(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spoilt file, store and key go too: that is what one says it for; the lock stays, which is held."""

    class Forked(Exception):  # noqa: N818  where the test ends
        pass

    def fork(run: Run) -> tuple[int, int]:
        run.locks.let_go()
        raise Forked

    monkeypatch.setattr(Run, "fork_supervisor", fork)
    with pytest.raises(Forked):
        start_fresh()
    left = contents(sample)
    assert "127.0.0.1" in left["region.toml"]
    assert "left" not in left.values()
    assert "local/enactor" not in left
