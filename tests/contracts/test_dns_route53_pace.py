"""Route 53's pace: turns that all roles of a host take from one budget, and what is given up while it waits for one."""

import asyncio
import itertools
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from dns_scene import change, standing
from route53_stage import Route53Stage, server, stage

from fencepost.adapters.dns_route53 import Route53Dns
from fencepost.adapters.dns_route53.host_cache import Shared, now
from fencepost.adapters.dns_route53.pace import Pace
from fencepost.core.instant import MILLISECOND, SECOND

__all__ = ["server", "stage"]
NAME, WRITE = "api.example.test", "ChangeResourceRecordSets"


def test_turns_are_an_interval_apart_whoever_takes_them(tmp_path: Path) -> None:
    """Two a second for the host, not for each role; a write's turn comes before the rolling scan's."""
    first, second = (Pace(Shared(tmp_path / "route53.db"), 2.0, asyncio.sleep) for _ in range(2))
    at = 1_000 * SECOND
    assert first.take(at, urgent=False) == 0
    assert second.take(at, urgent=False) == 500 * MILLISECOND
    assert second.take(at + 400 * MILLISECOND, urgent=True) == 100 * MILLISECOND
    assert first.take(at + 500 * MILLISECOND, urgent=False) > 0
    assert second.take(at + 500 * MILLISECOND, urgent=True) == 0
    assert first.take(at + 999 * MILLISECOND, urgent=False) == MILLISECOND
    assert first.take(at + SECOND, urgent=False) == 0


def test_a_look_before_the_first_start_alarms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`plan`, `doctor` and `prove` of a region without a folder yet each began with "route53.db can't be used"."""
    Shared(tmp_path / "never-ran" / "route53.db")
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
    (tmp_path / "route53.db").mkdir()
    Shared(tmp_path / "route53.db")
    assert "paced by this process alone" in caplog.text, "a role whose folder is there, and the file no use"


def test_a_write_that_another_role_was_quicker_with_is_not_sent(stage: Route53Stage, tmp_path: Path) -> None:
    """At two requests a second it waits for its turn longer than the other's takes: it would only be refused.

    Here the turn is far enough away for any machine, and free once the other wants it.
    """
    other = "other.example.test"

    async def act() -> None:
        quick, port = stage.shared(tmp_path), Route53Dns(stage.settings(folder=tmp_path, requests=2.0))
        stage._ports.append(port)
        await quick.read()
        await port.read()
        late = change(port.live(NAME), 1, "192.0.2.2")
        first = change(quick.live(NAME), 1, "192.0.2.1")
        waits = iter((first, None))

        async def meanwhile(_seconds: float) -> None:
            quicker = next(waits)
            if quicker is not None:
                turn(0)
                assert await quick.commit((quicker,))

        def turn(at: int) -> None:
            Shared(tmp_path / "route53.db").run("update pace set next = ?", (at,))

        port._pace._sleep = meanwhile
        turn(now() + 30 * SECOND)
        stage.server.calls.clear()
        assert not await port.commit((change(port.live(other), 1, "192.0.2.3"), late))
        assert list(stage.server.calls) == [WRITE], "the quicker one alone"
        assert port.live(NAME) == standing(NAME, 1, "192.0.2.1"), "and the late one knows it"
        port._pace._sleep = asyncio.sleep
        assert await port.commit((change(port.live(other), 1, "192.0.2.3"),)), "what is written elsewhere is no matter"

    stage.run(act)


TAKER = """
import asyncio, sys
from pathlib import Path
from fencepost.adapters.dns_route53 import host_cache, pace

async def main():
    taken = []
    turns = pace.Pace(host_cache.Shared(Path(sys.argv[1])), 500.0, asyncio.sleep)
    take = turns.take
    def noted(at, *, urgent):
        left = take(at, urgent=urgent)
        if not left:
            taken.append(at)
        return left
    turns.take = noted
    for index in range(40):
        await turns.turn(urgent=index % 2 == 0)
    print(*taken)

asyncio.run(main())
"""


def test_processes_take_turns_from_one_budget(tmp_path: Path) -> None:
    """Three processes, a hundred and twenty turns: no two of them less than an interval apart."""
    started = [
        subprocess.Popen([sys.executable, "-c", TAKER, str(tmp_path / "route53.db")], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=60)[0] for process in started]
    taken = sorted(int(each) for answer in answers for each in answer.split())
    assert len(taken) == 120
    assert min(later - earlier for earlier, later in itertools.pairwise(taken)) >= 2 * MILLISECOND


def test_throttling_slows_the_whole_host_and_wears_off(tmp_path: Path) -> None:
    """The interval doubles up to sixteenfold, and creeps back with each request that is answered."""
    first, second = (Pace(Shared(tmp_path / "route53.db"), 2.0, asyncio.sleep) for _ in range(2))
    for _ in range(3):
        first.was_throttled()
    assert second.period() == 4 * SECOND
    for _ in range(9):
        first.was_throttled()
    assert second.period() == 8 * SECOND
    for _ in range(40):
        second.went_well()
    assert first.period() == 500 * MILLISECOND


def test_a_clock_set_back_holds_up_nobody(tmp_path: Path) -> None:
    """A turn taken an hour ahead was taken by a clock that was wrong."""
    pace = Pace(Shared(tmp_path / "route53.db"), 2.0, asyncio.sleep)
    assert pace.take(10_000 * SECOND, urgent=True) == 0
    assert pace.take(6_400 * SECOND, urgent=True) == 0
