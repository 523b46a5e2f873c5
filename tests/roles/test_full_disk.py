"""A disk that is full at the first start (ENOSPC): nothing half is left, it is said, and with room it goes on."""

import asyncio
import errno
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.adapters.store_sqlite import database, schema
from fencepost.assembly.fleet_key import draw_fleet_key, fleet_key, make_fleet_key
from fencepost.assembly.places import draw_tsig_key
from fencepost.cli.errors import guarded
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import HostRow
from fencepost.dev.sample import sample_text
from fencepost.ports import Misconfigured
from fencepost.roles.status.listening import read_token
from fencepost.roles.whole_file import make_whole
from fencepost.settings import Region, SettingsError, load
from fencepost.settings.schema import Secret
from fencepost.settings.secret import read_tsig_key
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows


@pytest.fixture
def region(tmp_path: Path) -> Region:
    """The sample in a folder of its own."""
    (tmp_path / "region.toml").write_text(sample_text("embedded", "sqlite"))
    return load(str(tmp_path / "region.toml"), {})


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A disk that takes names and no bytes, as a full one does; called, it has room again."""

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    return monkeypatch.undo


def test_a_secret_is_there_whole_or_not_at_all(tmp_path: Path, region: Region, full: Callable[[], None]) -> None:
    """An empty tsig.key was left once, and no later start would make another."""
    key, seal = tmp_path / "tsig.key", Secret(file=str(tmp_path / "fleet.key"))
    with pytest.raises(OSError, match=r"tsig\.key") as told:
        draw_tsig_key(key, "fencepost-demo")
    assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(key))
    for draw in (lambda: make_fleet_key(seal, region.path), lambda: read_token(region)):
        with pytest.raises(Misconfigured, match="the disk is full") as said:
            draw()
        assert said.value.hint == f"make room, then do the same again: df -h {tmp_path}"
    assert [each.name for each in tmp_path.iterdir()] == ["region.toml"]
    full()
    draw_tsig_key(key, "fencepost-demo")
    make_fleet_key(seal, region.path)
    assert read_tsig_key(Secret(file=str(key)), {}).secret
    assert fleet_key(seal)
    assert read_token(region)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir() if each.suffix != ".toml"} == {0o600}


def test_an_empty_secret_of_ours_is_drawn_anew_and_one_that_holds_something_stays(
    tmp_path: Path, region: Region
) -> None:
    """What an earlier version left of a start on a full disk stands in no later start's way."""
    seal = Secret(file=str(tmp_path / "fleet.key"))
    for name in ("tsig.key", "fleet.key", "api.token"):
        make_whole(tmp_path / name, b"")
    load(region.path, {})
    drawn = []
    for _ in range(2):
        draw_tsig_key(tmp_path / "tsig.key", "fencepost-demo")
        make_fleet_key(seal, region.path)
        key = read_tsig_key(Secret(file=str(tmp_path / "tsig.key")), {})
        drawn.append((key, fleet_key(seal), read_token(region)))
    assert drawn[0] == drawn[1]


async def sleeping(_: int) -> None:
    """Time passes."""


def test_a_fleets_key_that_hosts_have_is_not_drawn_anew(tmp_path: Path, region: Region) -> None:
    """`rm fleet.key` and a manager's restart: it drew another in silence, and every host's words were a stranger's."""
    file = tmp_path / "fleet.key"
    seal = Secret(file=str(file))
    store = ReferenceFleet(ReferenceRows("1"), sleeping)

    def start() -> bytes:
        asyncio.run(draw_fleet_key(seal, region.path, store))
        return fleet_key(seal)

    first = start()
    assert asyncio.run(store.commit(None, [(Change(HostRow("h1", "a", "192.0.2.9:1"), 0),)]))
    assert start() == first, "a key that is there is left alone"
    file.unlink()
    with pytest.raises(Misconfigured, match="the fleet's key is gone, and hosts have it") as told:
        start()
    assert told.value.where == seal.file
    assert not file.exists()


def test_an_empty_secret_elsewhere_is_its_owners(tmp_path: Path, region: Region) -> None:
    """Nobody but its owner knows what belongs into it."""
    make_whole(tmp_path / "mine", b"")
    text = re.sub("(?m)^token .*", 'token = { file = "mine" }', Path(region.path).read_text())
    Path(region.path).write_text(text)
    with pytest.raises(SettingsError, match="mine is empty; put the secret into it, or remove it"):
        load(region.path, {})
    make_fleet_key(Secret(file=str(tmp_path / "mine")), region.path)
    with pytest.raises(Misconfigured, match="is empty"):
        fleet_key(Secret(file=str(tmp_path / "mine")))
    assert (tmp_path / "mine").read_bytes() == b""


def test_init_on_a_full_disk_leaves_no_file(
    tmp_path: Path, full: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A region.toml of no bytes was left once."""
    path = tmp_path / "region.toml"
    assert guarded(["init", "--config", str(path)]) == 2
    assert "the disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    full()
    assert guarded(["init", "--config", str(path)]) == 0
    assert path.stat().st_size
    assert guarded(["init", "--config", str(path)]) == 2, "it is left alone"


def test_a_full_disk_is_no_defect_of_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of a write names no file; it was told as a defect to report."""

    def no_room(_: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fencepost.cli.errors.run", no_room)
    assert guarded(["up"]) == 2
    said = capsys.readouterr().err
    assert "the disk is full" in said
    assert "df -h ." in said
    assert "defect" not in said


def test_a_store_that_could_not_be_made_leaves_its_draft_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left of it kept the very room that was wanted."""

    def no_room(db: sqlite3.Connection, draft: Path, *, create: bool) -> None:
        prepare(db, draft, create=create)
        assert Path(f"{draft}-wal").exists()
        raise sqlite3.OperationalError("database or disk is full")

    prepare = schema.prepare
    path = tmp_path / "region.db"
    monkeypatch.setattr(schema, "prepare", no_room)
    with pytest.raises(sqlite3.OperationalError):
        database.make(path)
    assert [each.name for each in tmp_path.iterdir()] == ["region.db.lock"]
    monkeypatch.undo()
    database.make(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["region.db", "region.db.lock"]
