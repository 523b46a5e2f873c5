"""Launches: names, digests, what is still to be written, and how fast they may come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity.launches import (
    AT_ONCE,
    BOUND,
    FINISHED_WITHIN,
    MOST,
    RATE_FIRST,
    RATE_LEAST,
    Gate,
    Pace,
    digest_of,
    name_of,
    unwritten,
)
from fencepost.core.capacity.rows import DrainRow, LaunchRow
from fencepost.core.instant import SECOND


def test_names_say_their_pool_and_are_never_counted() -> None:
    """A wiped store would count from 1 again while web-1 still runs on a host that hasn't told yet."""
    assert name_of("web", 0) == "web-aaaaaaaa"
    names = {name_of("web", drawn * 0x9E3779B97F4A7C15 % 2**64) for drawn in range(10_000)}
    assert len(names) == 10_000


@given(st.text("ab\0", max_size=3), st.integers(0, 99), st.text("ab\0", max_size=3), st.integers(0, 99))
def test_another_request_has_another_digest(pool: str, count: int, other: str, more: int) -> None:
    """Pool and count don't run into one another."""
    assert (digest_of(pool, count) == digest_of(other, more)) == ((pool, count) == (other, more))


def test_what_is_missing_is_written_for_a_while() -> None:
    """Later it may have ended and been cleared away since."""
    launch = LaunchRow("k", "d", ("a", "b", "c"), asked_at=5)
    assert unwritten(launch, {"a": 1}, 5) == ("b", "c")
    assert unwritten(launch, {"a": 1}, 5 + FINISHED_WITHIN) == ("b", "c")
    assert unwritten(launch, {"a": 1}, 6 + FINISHED_WITHIN) == ()


def test_a_transaction_takes_the_launch_and_its_first_instances() -> None:
    """DynamoDB takes a hundred actions, four of them the store's own."""
    assert AT_ONCE <= 96


def test_the_pace_is_seen_while_some_wait_and_never_falls_to_nothing() -> None:
    """An idle fleet says nothing about its pace, and one without room neither."""
    pace = Pace()
    for second in range(30):
        pace.see(10, 40 * second, second * SECOND)
    assert pace.rate == pytest.approx(40, abs=0.5)
    for second in range(30, 60):
        pace.see(0, 40 * second, second * SECOND)
        pace.see(10, 40 * 29, second * SECOND)
    assert pace.rate == pytest.approx(40, abs=0.5)
    slow = Pace()
    for hour in range(100):
        slow.see(1, hour, hour * 3600 * SECOND)
    assert slow.rate == RATE_LEAST


class Queue:
    """Launches that come as they are let in, and are placed at a rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.now = 0
        self.depth = 0.0
        self.gate = Gate(0)

    def ask(self, count: int, who: str = "", stages: tuple[DrainRow, ...] = ()) -> int:
        wait = self.gate.wait(count, int(self.depth), self.rate, stages, self.now, who)
        if not wait:
            self.depth += count
        return wait

    def later(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
        self.depth = max(0.0, self.depth - self.rate * seconds)


@given(st.lists(st.tuples(st.integers(1, MOST), st.floats(0, 30)), max_size=60), st.sampled_from([2.0, 50.0, 400.0]))
def test_no_more_waits_than_the_bound_and_nobody_waits_for_nothing(asked: list[tuple[int, float]], rate: float) -> None:
    """Whatever comes: the queue is bounded, a time is at least a second, and an empty queue lets all in at last."""
    queue = Queue(rate)
    for at, (count, pause) in enumerate(asked):
        wait = queue.ask(count, str(at))
        assert wait == 0 or wait >= SECOND
        assert queue.depth <= BOUND
        queue.later(pause)
    queue.later(2 * BOUND / rate + MOST / rate)
    assert queue.ask(MOST) == 0


def test_what_is_let_in_falls_with_the_depth_to_the_drain_rate() -> None:
    """Under a flood as much comes in as is placed, and the queue stands still well below its bound."""
    queue = Queue(50.0)
    let_in = 0
    for _ in range(1200):
        for _ in range(20):
            let_in += 10 * (queue.ask(10) == 0)
        queue.later(1)
    assert queue.depth < BOUND / 2
    assert let_in - queue.depth == pytest.approx(1200 * 50, rel=0.05)


def test_a_full_stage_behind_lets_nothing_in_and_an_empty_one_everything() -> None:
    """The slowest stage counts, not the one in front."""
    queue = Queue(RATE_FIRST)
    assert queue.ask(MOST) == 0
    queue.later(60)
    full, free = DrainRow("network", 640, 640, 10.0), DrainRow("network", 0, 640, 10.0)
    for _ in range(20):
        assert queue.ask(1, "", (full,)) >= 64 * SECOND
        queue.later(1)
    queue.later(30)
    assert queue.ask(100, "", (free,)) == 0


def test_those_turned_away_together_come_back_apart() -> None:
    """Retry times are spread over as long again (consul #9469)."""
    queue = Queue(50.0)
    assert queue.ask(MOST) == 0
    waits = sorted(queue.ask(MOST, f"client-{at}") for at in range(1000))
    assert waits[0] >= 20 * SECOND
    assert waits[-1] <= 40 * SECOND
    for share in range(1, 10):
        assert waits[share * 100] == pytest.approx((20 + 2 * share) * SECOND, rel=0.1)
