"""What the history and a sign of life say of an enactor's work: what another writer did, for how long, what stands."""

# ruff: noqa: ASYNC110  what is waited for here tells nobody that it came
import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.cli.history import what, who
from fencepost.core.fence import Generation
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.core.record_set import content
from fencepost.core.store import Plan, Row
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.core.zone import Live
from fencepost.ports import HistoryRow
from fencepost.roles.enactor import run_enactor
from fencepost.roles.healed import empty_for, nth
from fencepost.roles.loop import Condition
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

API = "api.example.test"
WITHIN_S = 20.0


async def pause(length: Duration) -> None:
    """Time passes as it does."""
    await asyncio.sleep(length / SECOND)


async def until(done: Callable[[], bool]) -> None:
    """Wait for it."""
    async with asyncio.timeout(WITHIN_S):
        while not done():
            await asyncio.sleep(0.01)


def told(folder: Path, spoil: Callable[[Live], Live], *, enactors: int = 2) -> tuple[Sequence[HistoryRow], Condition]:
    """Enact one endpoint, spoil it, have it healed; the history since, and one enactor's condition."""
    domain, numbers = ReferenceDomain("example.test"), itertools.count(1)
    store = ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)
    conditions = [Condition() for _ in range(enactors)]

    async def go() -> Sequence[HistoryRow]:
        row = Row.of(API, Generation(0, 9), content(["192.0.2.1", "192.0.2.2"], 30), families="4")
        head = await store.head()
        assert await store.publish(Plan(head, 9, 0, (row,))) is not None
        tasks = [
            asyncio.ensure_future(
                run_enactor(
                    EnactorSettings(f"enactor/{number}", "demo"),
                    {"example.test": ReferenceDns(domain, pause)},
                    store,
                    folder / f"known-{number}",
                    condition,
                    None,
                )
            )
            for number, condition in enumerate(conditions)
        ]
        try:
            await until(lambda: API in domain.lives and not domain.lives[API].empty)
            whole = domain.lives[API]
            await until(lambda: all(condition.generation.number == 9 for condition in conditions))
            domain.set(spoil(whole))
            await until(
                lambda: (now := domain.lives.get(API)) is not None and now.marker is not None and now.a == whole.a
            )
            async with asyncio.timeout(WITHIN_S):
                while not any(row.kind == "healed" for row in await store.history()):
                    await asyncio.sleep(0.01)
            return await store.history()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(go()), conditions[0]


def test_an_emptied_record_makes_two_lines_whoever_saw_it(tmp_path: Path) -> None:
    """What another writer did when, which the marker still contradicts; and that it is healed, and how long it took."""
    rows, condition = told(tmp_path, lambda live: structs.replace(live, a=()))
    theirs, ours = [row for row in rows if row.kind in ("finding", "healed")]
    assert f"{who(theirs)} {what(theirs, None)}" == (
        f"{API} emptied by another writer; its marker still says gen 9, 2 addresses"
    )
    said = what(ours, None)
    assert re.fullmatch(rf"{API} healed: gen 9, second write; it was empty for \d+ m?s", said), "one time, not a range"
    assert who(ours).startswith("enactor ")
    assert theirs.at <= ours.at
    assert condition.generation == Generation(0, 9)


def test_an_altered_record_was_never_empty(tmp_path: Path) -> None:
    """external-dns #1502: another's address beside ours. Nobody went without an answer, so no time is told."""
    rows, _ = told(tmp_path, lambda live: structs.replace(live, a=(*live.a, "203.0.113.7")))
    theirs, ours = [row for row in rows if row.kind in ("finding", "healed")]
    assert theirs.text.startswith("altered by another writer; ")
    assert ours.text == "healed: gen 9, second write"


@pytest.mark.parametrize("emptied", [True, False])
def test_what_lost_its_marker_too_is_told_like_the_rest(tmp_path: Path, emptied: bool) -> None:
    """`dev wipe --both` and `--marker`: the history had `- -> 9`, as of a name that was written for the first time."""
    rows, _ = told(tmp_path, lambda live: structs.replace(live, marker=None, a=() if emptied else live.a))
    theirs, ours = [row for row in rows if row.kind in ("finding", "healed")]
    assert len([row for row in rows if row.kind == "enacted"]) == 1, "the first one"
    if emptied:
        assert theirs.text == "emptied by another writer, its marker too, unless the server lost both; it was gen 9"
        assert re.fullmatch(r"healed: gen 9, all anew; it was empty for \d+ m?s", ours.text)
    else:
        assert theirs.text == "altered by another writer: its marker is gone; it was gen 9"
        assert ours.text == "healed: gen 9, marker anew"
    assert theirs.at <= ours.at


@pytest.mark.parametrize(
    ("looked", "seen", "now", "words"),
    [
        (10 * SECOND, 11 * SECOND, 11 * SECOND + 64 * MILLISECOND, "for 64 ms"),
        (10 * SECOND, 11 * SECOND, 14 * SECOND, "for 3 s"),
        (10 * SECOND, 70 * SECOND, 71 * SECOND, "for 1 s to 1 min 1 s"),
        (0, MINUTE, MINUTE, "before this enactor looked"),
    ],
)
def test_how_long_it_was_empty_is_told_as_well_as_it_is_known(
    looked: Instant, seen: Instant, now: Instant, words: str
) -> None:
    """A provider that is asked once a minute doesn't tell when in that minute it happened."""
    assert empty_for(looked, seen, now) == words


def test_ordinals_are_words_while_they_are_few() -> None:
    """A second write is common, a hundredth is a fight with another writer."""
    assert [nth(n) for n in (1, 2, 3, 6, 11, 12, 21, 102, 111)] == [
        "first", "second", "third", "6th", "11th", "12th", "21st", "102nd", "111th",
    ]  # fmt: skip
