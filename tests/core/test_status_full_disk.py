"""A store on a full disk: read as ever, and nothing written. One note says it, at once, and nobody is called silent."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs
from status_examples import NOW, beat, ids, made, problems, region, stored

from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Unavailable
from fencepost.roles.status.full_disk import full_disk
from fencepost.settings.schema import Store

FULL = Unavailable("no space is left for the store", where="x", hint="make room on the disk of /var")
POSTGRESQL = Store("postgresql", "")


def test_one_note_leads_and_no_role_is_called_silent() -> None:
    """It said "ok", and then of ten roles that they "gave no sign of life": none of them was ill."""
    late = tuple(structs.replace(each, at=NOW - 60 * SECOND) for each in stored().beats)
    assert "role-silent" in ids(made(store=stored(beats=late)))
    for beats in (late, stored().beats):
        ill = structs.replace(beats[0], state="unavailable", error="/x/demo.db: no space is left for the store")
        status = made(store=stored(beats=(ill, *beats[1:])), store_full=FULL)
        found = problems(status)["store-unavailable", region().store.place]
        assert found.what.startswith("no space is left for the store: make room on the disk of /var")
        assert found.try_ == f"df -h {Path(region().store.place).parent}"
        assert (found.needs_person, status.verdict) == (True, "attention")
        assert not {"role-silent", "role-unavailable", "role-down", "region-down"} & set(ids(status))


def test_once_there_is_room_signs_of_life_have_time_to_come() -> None:
    """Room was made, and for some seconds all ten roles were called silent for what they couldn't say before."""
    late = tuple(structs.replace(each, at=NOW - 60 * SECOND) for each in stored().beats)
    for ago, silent in ((3, False), (16, True)):
        status = made(store=stored(beats=late), full_at=NOW - ago * SECOND)
        assert ("role-silent" in ids(status)) == silent
        assert "store-unavailable" not in ids(status)


def test_who_was_silent_before_the_disk_was_full_is_still() -> None:
    """What was known when signs of life could last be given isn't forgotten for that."""
    beats = (structs.replace(stored().beats[0], at=NOW - 60 * SECOND), *stored().beats[1:])
    status = made(store=stored(beats=beats), store_full=FULL, full_at=NOW)
    assert [each.on for each in status.problems if each.id == "role-silent"] == [beats[0].role]


def test_a_full_disk_is_seen_before_any_sign_of_life_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """statvfs(3): what the store could still write, before it has tried."""
    store = Store("sqlite", str(tmp_path / "demo.db"))
    assert full_disk(store, "", (), [beat("planner", 1)], NOW) is None

    def answers(free: int, blocks: int = 100) -> None:
        found = SimpleNamespace(f_bavail=free, f_bfree=free, f_frsize=4096, f_blocks=blocks)
        monkeypatch.setattr(os, "statvfs", lambda _: found)

    answers(4)
    assert full_disk(store, "", (), [], NOW) is None
    answers(3)
    error = full_disk(store, "", (), [], NOW)
    assert error is not None
    assert (error.where, error.hint) == (store.path, f"make room on the disk of {tmp_path}; it goes on by itself then")
    assert full_disk(POSTGRESQL, "", (), [], NOW) is None, "its disk is another machine's"
    answers(0, 0)
    assert full_disk(store, "", (), [], NOW) is None, "some file systems count nothing"


def line(at: Instant, text: str) -> str:
    """A line as roles write it."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at // SECOND))},{at % SECOND // 10**6:03} W {text}\n"


@pytest.mark.parametrize(
    ("logged", "beaten", "said"),
    [
        (-8, -9, True),  # since then nothing was written
        (-8, -1, False),  # signs of life are given: what didn't fit was one plan
        (-20, -9, False),  # it was full, and something was written since
    ],
)
def test_a_quota_is_known_by_the_logs_once_signs_of_life_are_overdue(
    tmp_path: Path, logged: int, beaten: int, said: bool
) -> None:
    """The disk has room, and this user has none: no statvfs(3) tells, and each role's log does."""
    text = "x" * 20_000 + "\n" + line(NOW + logged * SECOND, "publish: demo: no space is left for the store; free some")
    (tmp_path / "planner.log").write_text(text + "another line\n")
    os.utime(tmp_path / "planner.log", ns=(NOW, NOW))
    beats = [beat("planner", 1, at=NOW + beaten * SECOND), beat("janitor", 2, at=NOW - 60 * SECOND)]
    found = full_disk(POSTGRESQL, str(tmp_path), ("planner.log", "gone.log"), beats, NOW)
    assert (found is not None) == said
