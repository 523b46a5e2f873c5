"""An enactor's local file when the disk is full, the file damaged or its place taken: the enactor runs all the same."""

import logging
import sqlite3
from pathlib import Path

import pytest

from fencepost.core.fence import Generation
from fencepost.core.judge import Remembered
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import OverrideKind
from fencepost.roles import local_file
from fencepost.roles.local_file import ASIDE_MOST, LocalFile
from fencepost.roles.overrides import KeptWords, StoredOverride

NAME = "api.example.test"
SET = content(["192.0.2.1"], 30)
KNOWN = Remembered(Generation(0, 7), "0" * 32, SET, "4", None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that remembers one endpoint, closed."""
    made = LocalFile(tmp_path / "enactor-a.known")
    made.keep([(NAME, KNOWN)])
    made.close()
    return made.path


def failing(monkeypatch: pytest.MonkeyPatch, code: int, *modes: str) -> None:
    """Opening in these modes fails as SQLite would say it."""
    connect = sqlite3.connect

    def refuse(where: str, **how: object) -> sqlite3.Connection:
        if where.partition("mode=")[2] in modes:
            error = sqlite3.OperationalError("it can't be")
            error.sqlite_errorcode = code
            raise error
        return connect(where, **how)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", refuse)


@pytest.mark.parametrize(
    "code",
    [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, 0x70A],
)
@pytest.mark.parametrize("modes", [("rwc",), ("rwc", "ro")])
def test_a_disk_that_takes_no_writes_costs_no_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, modes: tuple[str, ...]
) -> None:
    """An enactor that starts on a full disk heals from what it kept before (the fill was what emptied the endpoint)."""
    failing(monkeypatch, code, *modes)
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        known = LocalFile(path)
        assert known.recall(NAME) == KNOWN
        known.keep([("other", KNOWN)])
        known.keep([("other", KNOWN)])
        known.close()
    assert len(caplog.records) == 2
    assert not list(path.parent.glob("*.damaged*"))


def test_without_any_file_an_enactor_runs_and_later_keeps_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be opened now is tried again, not before a while and without a restart."""
    path = tmp_path / "enactor-a.known"
    path.mkdir()
    known = LocalFile(path)
    known.keep([(NAME, KNOWN)])
    assert known.recall(NAME) is None
    path.rmdir()
    assert known.recall(NAME) is None
    assert not path.exists()
    monkeypatch.setattr(local_file, "AGAIN_AFTER_S", 0.0)
    known._again_at = 0.0
    known.keep([(NAME, KNOWN)])
    assert known.recall(NAME) == KNOWN
    known.close()


def test_a_write_that_finds_no_room_is_said_once_and_tried_again(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite's own limit of pages stands in for the disk's."""
    known = LocalFile(path)
    assert known._connection is not None
    known._connection.execute("pragma max_page_count = 2")
    large = [(f"e{n}", KNOWN) for n in range(500)]
    known.keep(large)
    known.keep(large)
    assert len(caplog.records) == 1
    assert known.recall(NAME) == KNOWN
    assert known.recall("e1") is None
    known._again_at = 0.0
    known.keep(large)
    assert known.recall("e1") == KNOWN
    assert not list(path.parent.glob("*.damaged*"))
    known.close()


def test_damaged_files_are_kept_beside_one_another_and_only_a_few(path: Path) -> None:
    """The first one tells most, so it is never written over; a log left beside one goes with it."""
    for number in range(ASIDE_MOST + 2):
        path.write_bytes(b"%d is no database" % number * 100)
        path.with_name(path.name + "-wal").write_bytes(b"left")
        known = LocalFile(path)
        assert known.recall(NAME) is None
        known.keep([(NAME, KNOWN)])
        assert known.recall(NAME) == KNOWN
        known.close()
    aside = sorted(found.name for found in path.parent.glob("*.damaged*") if not found.name.endswith("-wal"))
    assert aside == ["enactor-a.damaged", "enactor-a.damaged-2", "enactor-a.damaged-3"]
    assert path.with_suffix(".damaged").read_bytes().startswith(b"0 is")
    assert path.with_suffix(".damaged-3").read_bytes().startswith(b"2 is")


def test_damage_met_while_running_begins_a_new_file(path: Path) -> None:
    """Pages overwritten under an open file are found at the next read, not at the next start."""
    known = LocalFile(path)
    known.keep([(f"e{n}", KNOWN) for n in range(500)])
    known.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    known = LocalFile(path)
    for n in range(500):
        assert known.recall(f"e{n}") is None
    known.keep([(NAME, KNOWN)])
    assert known.recall(NAME) == KNOWN
    assert path.with_suffix(".damaged").exists()
    known.close()


def test_overrides_are_kept_beside_the_sets(path: Path) -> None:
    """One row: the newest read of them replaces the one before."""
    word = StoredOverride("d", OverrideKind.DRAIN, "web", "192.0.2.1")
    known = LocalFile(path)
    assert known.recall_words() is None
    for snapshot in (3, 4):
        known.keep_words(KeptWords("eu-1", "aaaa", snapshot, (word,)))
    known.close()
    again = LocalFile(path)
    assert again.recall_words() == KeptWords("eu-1", "aaaa", 4, (word,))
    assert again.recall(NAME) == KNOWN
    again.close()


def test_a_file_from_before_there_were_overrides_still_heals_on_a_full_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It can't be given the table for them; the sets are read all the same."""
    with sqlite3.connect(path) as db:
        db.execute("drop table words")
    db.close()
    failing(monkeypatch, sqlite3.SQLITE_FULL, "rwc")
    caplog.set_level(logging.WARNING)
    known = LocalFile(path)
    assert known.recall_words() is None
    known.keep_words(KeptWords("eu-1", "aaaa", 1, ()))
    assert known.recall(NAME) == KNOWN
    assert len(caplog.records) == 1
    known.close()
