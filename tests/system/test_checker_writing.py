"""How a checker's reports reach a store that comes and goes: nothing queues, and no beat before its body."""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
import pytest
import uvloop
from checker_running import MemoryStore, checking, pool_of, target_at, until
from hypothesis import given
from hypothesis import strategies as st

from fencepost.adapters.probe import MS
from fencepost.adapters.probe_kinds import open_prober
from fencepost.core.traffic.verdict import Beat, CheckerReport
from fencepost.ports import Misconfigured, Refused, Unavailable
from fencepost.roles.checker import CheckerRole, CheckerSettings
from fencepost.roles.checker.writer import LOOK_EACH_BEATS, ReportWriter, pause_s
from fencepost.roles.loop import Condition


class InterruptedStore(MemoryStore):
    """Does something once in the middle of its first write."""

    then: Callable[[], None] | None = None

    async def put_report(self, zone: str, pool: str, sequence: int, body: bytes) -> None:
        await super().put_report(zone, pool, sequence, body)
        then, self.then = self.then, None
        if then is not None:
            then()


def test_the_store_may_be_away() -> None:
    """While the store is away probing goes on and nothing queues; on its return the newest body comes, then a beat."""

    async def main() -> None:
        store = MemoryStore()
        async with target_at() as (sick, port), checking(store, pool_of({"t": port})) as role:
            await until(lambda: store.verdict("t").healthy)
            store.fails = Unavailable("the disk is gone", where="test")
            sick.fall_ill(600 * 1_000 * MS, "status")
            runner = role.pools["web"]
            await until(lambda: runner.report is not None and runner.report.verdicts[0].healthy is False)
            await until(lambda: role.writer.problem is not None)
            written = len(store.written)
            store.fails = None
            await until(lambda: any(isinstance(each, Beat) for each in store.written[written:]))
            body = store.written[written]
            beat = next(each for each in store.written[written:] if isinstance(each, Beat))
            assert isinstance(body, CheckerReport)
            assert body.verdicts[0].healthy is False
            assert beat.sequence >= body.sequence
            assert role.writer.problem is None

    uvloop.run(main())


def test_a_store_that_a_person_has_mended_is_found_so_within_seconds() -> None:
    """For a minute status went on saying that the store was damaged, and the checkers' votes stayed away."""
    assert pause_s(Misconfigured("the store file is damaged"), "reports", 9) <= 5
    assert pause_s(Unavailable("the store file is gone"), "reports", 9) <= 1


def test_a_checker_that_cannot_write_its_reports_says_so_in_its_sign_of_life() -> None:
    """Its condition is what `status` shows of it: up, unavailable while the store is away, up again."""

    async def main() -> None:
        store, condition = MemoryStore(), Condition()
        writer = ReportWriter(store, partial(condition.now, "reports"))
        report = CheckerReport("a", "web", 1, None, ())
        store.fails = Unavailable("the disk is gone", where="test")
        writer.report(report)
        await writer.flush()
        assert (condition.state, condition.error) == ("unavailable", "test: the disk is gone")
        store.fails = None
        await writer.flush()
        assert (condition.state, condition.error) == ("up", "")

    uvloop.run(main())


def test_a_checker_waits_for_the_store_at_its_start() -> None:
    """Without its last verdicts a checker would forget who is dead, so it starts when the store answers."""

    async def main() -> None:
        store = MemoryStore()
        store.fails = Unavailable("not up yet")
        settings = CheckerSettings("a", (pool_of({"t": 1}),))
        role = CheckerRole(settings, open_prober=partial(open_prober, salt="a"), store=store)
        stop = asyncio.Event()
        running = asyncio.create_task(role.run(stop))
        await until(lambda: role.writer.problem is not None)
        assert not role.pools
        store.fails = None
        await until(lambda: role.pools)
        stop.set()
        await running

    uvloop.run(main())


@pytest.mark.parametrize(
    "left", [b"", b"another version's", msgspec.json.encode(CheckerReport("a", "web", 1, None, ()))]
)
def test_a_body_that_the_store_has_lost_is_put_again(left: bytes) -> None:
    """A store put back from a copy, or whose log was removed, knows an older body or none: until a verdict changes no
    beat would count in it."""

    async def main() -> None:
        store = MemoryStore()
        writer = ReportWriter(store)
        report = CheckerReport("a", "web", 2, None, ())
        writer.report(report)
        await writer.flush()
        for number in range(2 * LOOK_EACH_BEATS):
            writer.beat(Beat("a", "web", number, 2))
            await writer.flush()
        assert sum(isinstance(each, CheckerReport) for each in store.written) == 1
        store.rows["a", "web"][0] = left
        for number in range(LOOK_EACH_BEATS):
            writer.beat(Beat("a", "web", number, 2))
            await writer.flush()
        assert store.report() == report
        assert sum(isinstance(each, CheckerReport) for each in store.written) == 2

    uvloop.run(main())


@given(st.lists(st.sampled_from(["body", "beat", "away", "back", "wait"]), max_size=30))
def test_a_beat_never_speaks_of_a_body_that_is_not_there(steps: list[str]) -> None:
    """Whatever comes while the store comes and goes: a beat is written only when its body, or a newer one, is."""

    async def main() -> None:
        store = MemoryStore()
        writer = ReportWriter(store)
        sequence = number = 0
        for step in steps:
            if step == "body" or not sequence:
                sequence += 1
                writer.report(CheckerReport("a", "web", sequence, None, ()))
            if step == "beat":
                number += 1
                writer.beat(Beat("a", "web", number, sequence))
            store.fails = {"away": Unavailable("away"), "back": None}.get(step, store.fails)
            if step == "wait":
                await writer.flush()
        store.fails = None
        await writer.flush()
        newest = 0
        for each in store.written:
            if isinstance(each, CheckerReport):
                assert each.sequence > newest
                newest = each.sequence
            else:
                assert each.sequence <= newest
        assert newest == sequence

    asyncio.run(main())


def test_a_body_that_comes_during_a_write_goes_before_its_beat() -> None:
    """While a body is being written a newer one and its beat come: the beat waits for the newer body."""

    async def main() -> None:
        writer = ReportWriter(store := InterruptedStore())

        def meanwhile() -> None:
            writer.report(CheckerReport("a", "web", 2, None, ()))
            writer.beat(Beat("a", "web", 1, 2))

        store.then = meanwhile
        writer.report(CheckerReport("a", "web", 1, None, ()))
        await writer.flush()
        await writer.flush()
        assert [(type(each), each.sequence) for each in store.written] == [
            (CheckerReport, 1),
            (CheckerReport, 2),
            (Beat, 2),
        ]

    uvloop.run(main())


def test_a_refused_body_does_not_hold_up_the_others() -> None:
    """A body that the store will never take is dropped and said, not tried for ever."""

    async def main() -> None:
        store = MemoryStore()
        writer = ReportWriter(store)
        store.fails = Refused("too big")
        writer.report(CheckerReport("a", "web", 1, None, ()))
        await writer.flush()
        store.fails = None
        writer.report(CheckerReport("a", "api", 1, None, ()))
        await writer.flush()
        assert [each.pool for each in store.written] == ["api"]

    uvloop.run(main())


def test_a_pass_with_nothing_to_write_does_not_call_the_store_well(caplog: pytest.LogCaptureFixture) -> None:
    """In two minutes of a stopped PostgreSQL a checker's log said "reports are written again" 120 times, once after
    each beat that it had dropped, and its sign of life was well as often."""

    async def main() -> None:
        store, told = MemoryStore(), list[bool]()
        writer = ReportWriter(store, lambda problem: told.append(problem is None))
        store.fails = Unavailable("the database can't be reached", where="test")
        writer.beat(Beat("a", "web", 1, 0))
        await writer.flush()
        await writer.flush()
        running = asyncio.create_task(writer.run())

        def tried_again() -> bool:  # a beat that comes while the writer waits is dropped
            writer.beat(Beat("a", "web", 2, 0))
            return len(told) > 3

        await until(tried_again)
        running.cancel()
        assert not any(told), told

    caplog.set_level("INFO")
    uvloop.run(main())
    assert "written again" not in caplog.text
