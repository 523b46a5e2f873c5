"""Agents register, come back when told to, and not all at once."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import pstdev

import pytest
from msgspec import json

from fencepost.adapters.joining import Replied, seconds
from fencepost.core.instant import SECOND
from fencepost.ports import Unavailable
from fencepost.roles.fleet.agent_role import Rhythm
from fencepost.roles.fleet.registering import AT_ONCE, PATH, Hosted, Registrar, due_after

HOSTS = tuple(Hosted(f"h{number}", "a", "127.0.0.1:7700") for number in range(AT_ONCE + 1))
DONE = Replied(200, 0.0, b'{"renew_s": 2.5, "shards": 4}')


class Api:
    """Answers as told, then well."""

    def __init__(self, *answers: Replied | Unavailable) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    async def __call__(self, path: str, body: bytes) -> Replied:
        """One request."""
        assert path == PATH
        self.asked.append([each["host"] for each in json.decode(body)["hosts"]])
        answer = self.answers.pop(0) if self.answers else DONE
        if isinstance(answer, Unavailable):
            raise answer
        return answer


def registrar(api: Api, hosts: Sequence[Hosted] = HOSTS[:1]) -> tuple[Registrar, list[int]]:
    """One for these hosts, and what it is told of R."""
    told: list[int] = []
    return Registrar("h0", api, lambda: hosts, told.append), told


def test_the_apis_answer_says_how_often_hosts_are_asked() -> None:
    """A host whose lease were longer than its managers take it to be would obey after it was given up."""
    found, told = registrar(Api())
    assert asyncio.run(found.ask(HOSTS[:1])) is None
    assert told == [2_500_000_000]


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (Replied(429, 7.0, b""), 7, 8),
        (Replied(503, 0.0, b""), 0.1, 0.2),
        (Unavailable("no connection"), 0.1, 0.2),
        (Replied(401, 0.0, b"no"), 30, 60),
        (Replied(302, 0.0, b""), 30, 60),
        (Replied(200, 0.0, b"<html>"), 0.1, 0.2),
        (Replied(200, 0.0, b'{"renew_s": "soon"}'), 0.1, 0.2),
    ],
)
def test_whoever_isnt_taken_comes_back_when_told_or_later_each_time(
    answer: Replied | Unavailable, least: float, most: float
) -> None:
    """Retry-After is obeyed; without one the wait grows; what a person must mend is tried once a minute."""
    found, told = registrar(Api(answer))
    wait_s = asyncio.run(found.ask(HOSTS[:1]))
    assert wait_s is not None
    assert least <= wait_s <= most
    assert not told


def test_hosts_told_the_same_time_come_back_within_a_second_of_it_evenly() -> None:
    """Retry-After is whole seconds: a thousand who obey it to the letter meet again at one instant (consul #9469)."""
    waits = []
    for number in range(1000):
        found = Registrar(f"h{number}", Api(Replied(429, 7.0, b"")), lambda: HOSTS[:1], lambda _: None)
        waits.append(asyncio.run(found.ask(HOSTS[:1])))
    counts = [sum(1 for each in waits if each is not None and at <= each * 10 < at + 1) for at in range(70, 80)]
    assert sum(counts) == 1000
    assert min(counts) > 60


def test_waits_grow_and_end() -> None:
    """Half a minute at most, so that a fleet is back soon after its API is."""
    found, _ = registrar(Api(*[Replied(503, 0.0, b"")] * 12))
    waits = [asyncio.run(found.ask(HOSTS[:1])) for _ in range(12)]
    assert all(each is not None and each <= 30 for each in waits)
    assert waits[-1] is not None
    assert waits[-1] >= 15


def test_a_no_renewal_time_is_none() -> None:
    """An API without a fleet says 0; nobody takes that for a lease."""
    found, told = registrar(Api(Replied(200, 0.0, b'{"renew_s": 0.0}')))
    assert asyncio.run(found.ask(HOSTS[:1])) is None
    assert not told


def test_many_hosts_register_so_many_a_request() -> None:
    """The API takes a thousand at once."""
    waiting, api = list(HOSTS), Api()
    found = Registrar("many", api, lambda: waiting, lambda _: None)

    async def run() -> None:
        done = asyncio.Event()

        def registered(those: Sequence[Hosted]) -> None:
            del waiting[: len(those)]
            if not waiting:
                done.set()

        task = asyncio.create_task(found.run(registered))
        await asyncio.wait_for(done.wait(), 10)
        task.cancel()

    asyncio.run(run())
    assert [len(each) for each in api.asked] == [AT_ONCE, 1]


def test_a_forgotten_fleet_comes_back_spread_over_a_renewal() -> None:
    """1,000 clients of consul #9469 retried at one moment after a fail-over: here, from 2R to 3R, evenly."""
    times = [due_after(10 * SECOND, f"h{number}", 1) / SECOND for number in range(2000)]
    assert min(times) >= 20
    assert max(times) < 30
    counts = [sum(1 for each in times if 20 + at <= each < 21 + at) for at in range(10)]
    assert pstdev(counts) < 40


@pytest.mark.parametrize(("text", "found"), [("12", 12), (None, 0), ("Wed, 21 Oct 2026", 0), ("-3", 0), ("٣", 0)])
def test_retry_after_is_read_or_left(text: str | None, found: float) -> None:
    """Nonsense counts as not given."""
    assert seconds(text) == found


def test_a_length_of_lease_that_cant_be_read_is_none(tmp_path: Path) -> None:
    """A file on a host's disk may hold anything; the agent ended at each start over one of thousands of digits."""
    for text in ("9" * 5000, "9" * 25, "nonsense", "", "-5", "0"):
        (tmp_path / "renew").write_text(text)
        assert Rhythm(tmp_path, None).renew is None
    (tmp_path / "renew").write_text(str(10 * SECOND))
    assert Rhythm(tmp_path, None).renew == 10 * SECOND
