"""Admission rule by rule, each as a sentence."""

from typing import Any

import pytest
from admission_model import settings

from fencepost.core.admission import Admission, AdmissionSettings
from fencepost.core.instant import MILLISECOND, SECOND


def test_a_host_is_in_one_place_however_often_it_asks() -> None:
    """A set: joining twice changes nothing, so a retry multiplies nothing (`backlog_bounded`)."""
    admission = Admission(settings(2), 5)
    for _ in range(3):
        admission.acquire([4, 4, 1, 0], 0)
    assert admission.backlog == 3
    assert admission.take(0)[0].tolist() == [4, 1]
    admission.acquire([4, 1, 0], 0)
    assert admission.backlog == 3
    assert admission.take(0)[0].tolist() == []


def test_no_more_than_the_limit_is_in_flight() -> None:
    """However many wait, however often it is asked."""
    admission = Admission(settings(3), 10)
    admission.acquire(range(10), 0)
    assert [len(admission.take(at)[0]) for at in range(4)] == [3, 0, 0, 0]
    admission.answered([0], 5)
    assert admission.take(5)[0].tolist() == [3]


def test_the_deadline_starts_at_dispatch() -> None:
    """The wait in line eats nothing of it: in October 2025 it ate all, and finished work was thrown away."""
    admission = Admission(settings(1), 2)
    admission.acquire([0, 1], 0)
    admission.take(0)
    admission.answered([0], 60 * SECOND)
    admission.take(60 * SECOND)
    assert admission.overdue(70 * SECOND - 1).tolist() == []
    assert admission.overdue(70 * SECOND).tolist() == [1]
    assert admission.in_flight == 1


def test_an_attempt_shorter_than_its_service_is_refused() -> None:
    """Less than the 99.9th percentile: calls that would have been answered would be given up and done again."""
    with pytest.raises(ValueError, match=r"less than the 99\.9th percentile"):
        settings(attempt=200 * MILLISECOND)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"limit": 0}, "nothing is ever done"),
        ({"limit_most": 3}, "less than the limit"),
        ({"service": 0}, "no call takes no time"),
        ({"service_p99": 1}, "must rise"),
        ({"slow_ratio": 1.0}, "every window is slow"),
        ({"calm_ratio": 2.0}, "between 1 and slow_ratio"),
        ({"cut": 1.0}, "doesn't brake"),
        ({"ceiling": 0.9}, "could never be reached"),
        ({"retry_share": 0.0}, "is a share"),
        ({"samples": 0}, "says nothing"),
        ({"window": 0}, "at least 1 ns"),
        ({"failed_share": 1.0}, "is a share"),
        ({"step": 0.0}, "at most 1"),
        ({"calm_windows": 0}, "at least 1"),
    ],
)
def test_senseless_settings_are_refused(wrong: dict[str, Any], words: str) -> None:
    """Each with its reason."""
    with pytest.raises(ValueError, match=words):
        settings(**wrong)


def test_renewals_go_first_by_earliest_deadline() -> None:
    """Whoever acquires has lost its lease already; whoever renews would lose it."""
    admission = Admission(settings(3), 6)
    admission.acquire([0, 1], 0)
    admission.renew([2, 3, 4], [0, 0, 5 * SECOND], [9 * SECOND, 8 * SECOND, 7 * SECOND])
    ids, acquiring = admission.take(0)
    assert (ids.tolist(), acquiring.tolist()) == ([3, 2, 0], [False, False, True])


def test_a_renewal_that_comes_too_late_acquires() -> None:
    """With less left than the 99th percentile of service the answer would find no lease: it joins the tail."""
    admission = Admission(settings(1), 3)
    admission.acquire([0], 0)
    admission.renew([1, 2], 0, [183 * MILLISECOND, 184 * MILLISECOND])
    taken = []
    for at in range(3):
        ids, acquiring = admission.take(at)
        taken += list(zip(ids.tolist(), acquiring.tolist(), strict=True))
        admission.answered(ids, at)
    assert taken == [(2, False), (0, True), (1, True)]


def test_what_failed_goes_to_the_tail() -> None:
    """Behind all who haven't had their turn."""
    admission = Admission(settings(1), 4)
    admission.acquire([0, 1, 2], 0)
    admission.take(0)
    admission.failed([0], 1)
    order = []
    for at in range(2, 5):
        ids, _ = admission.take(at)
        order += ids.tolist()
        admission.answered(ids, at)
    assert order == [1, 2, 0]


def test_a_tenth_of_dispatches_are_second_tries_while_others_wait() -> None:
    """With each call failing, nine first dispatches earn one second try; retries never crowd out first calls."""
    admission = Admission(settings(1), 2_000)
    admission.acquire(range(20), 0)
    sent: list[int] = []
    for at in range(1_000):
        admission.acquire([20 + at], at)
        ids, _ = admission.take(at)
        sent += ids.tolist()
        admission.failed(ids, at)
    again = len(sent) - len(set(sent))
    assert 90 <= again <= 100


def test_failed_work_that_is_alone_trickles_and_then_flows() -> None:
    """A tenth of nothing would be nothing: a tenth of what the service carries, doubled after each good second."""
    admission = Admission(settings(4, window=SECOND, samples=1), 2_000)
    admission.acquire(range(1_000), 0)
    while len(ids := admission.take(0)[0]):
        admission.failed(ids, 0)
    done, now = [], 0
    for second in range(8):
        before = admission.counts()["idle"]
        while now < (second + 1) * SECOND:
            now += 40 * MILLISECOND
            admission.answered(admission.take(now - 40 * MILLISECOND)[0], now)
        done.append(admission.counts()["idle"] - before)
    assert done[0] <= 16
    assert done[-1] > 70


def test_an_answer_after_the_call_was_given_up_counts() -> None:
    """The work is done: it leaves the tail, and isn't done again."""
    admission = Admission(settings(1), 2)
    admission.acquire([0], 0)
    admission.take(0)
    admission.failed(admission.overdue(10 * SECOND), 10 * SECOND)
    assert admission.counts()["again"] == 1
    admission.answered([0], 11 * SECOND)
    assert admission.backlog == 0
    assert admission.next_at(11 * SECOND) is None


def test_a_dropped_host_keeps_its_slot_until_its_call_ends() -> None:
    """The service still works on it; asked for meanwhile, it is back without a second call."""
    admission = Admission(settings(1), 3)
    admission.acquire([0, 1, 2], 0)
    admission.take(0)
    admission.drop([0, 1])
    assert admission.take(1)[0].tolist() == []
    admission.failed([0], 2)
    assert admission.take(2)[0].tolist() == [2]
    assert admission.counts()["idle"] == 2


def test_a_fleet_grows() -> None:
    """Columns grow, nobody moves; an id outside is refused, a negative one too."""
    admission = Admission(settings(2), 1)
    admission.acquire([0], 0)
    admission.grow(3)
    admission.acquire([2], 0)
    assert admission.take(0)[0].tolist() == [0, 2]
    for bad in (3, -1):
        with pytest.raises(ValueError, match="outside"):
            admission.acquire([bad], 0)
    with pytest.raises(ValueError, match="size is 2"):
        admission.grow(2)


def test_what_was_calibrated_can_be_kept() -> None:
    """L rises in calm windows; the next process begins with it instead of learning it again in a recovery."""
    admission = Admission(settings(10, window=SECOND), 5_000)
    admission.acquire(range(5_000), 0)
    now = 0
    while now < 12 * SECOND:
        ids, _ = admission.take(now)
        now += 40 * MILLISECOND
        admission.answered(ids, now)
    assert 13 <= admission.calibrated <= admission.limit <= 40


def test_only_settings_and_calls_decide() -> None:
    """The same calls at the same instants give the same answers: there is no chance and no clock in it."""
    keys = set()
    for _ in range(2):
        admission = Admission(AdmissionSettings(4, 10, 20, 30, 40), 50)
        admission.acquire(range(50), 0)
        for at in range(100):
            ids, _ = admission.take(at)
            admission.failed(ids[::2], at)
            admission.answered(ids[1::2], at)
        keys.add(admission.key())
    assert len(keys) == 1
