"""Admission against plain lists: whatever comes in which order, both take the same hosts in the same order."""

from typing import Any

import numpy as np
from admission_model import PlainAdmission, settings
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.admission import Admission
from fencepost.core.instant import MILLISECOND, SECOND

SIZE = 7
HOSTS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=4)
STEP = st.sampled_from((0, 1, 30 * MILLISECOND, SECOND, 4 * SECOND, 11 * SECOND))
WHEN = st.sampled_from((-SECOND, 0, 100 * MILLISECOND, 200 * MILLISECOND, 2 * SECOND, 2 * SECOND + 1, 9 * SECOND))
CALLS = st.one_of(
    st.tuples(st.just("take"), st.one_of(st.none(), st.integers(0, 5))),
    st.tuples(st.just("acquire"), HOSTS),
    st.tuples(st.just("drop"), HOSTS),
    st.tuples(st.just("answered"), HOSTS),
    st.tuples(st.just("failed"), HOSTS),
    st.tuples(st.just("renew"), HOSTS, WHEN, WHEN),
)
RUN = st.lists(st.tuples(STEP, CALLS), max_size=40)


def apply(real: Admission, plain: PlainAdmission, now: int, call: Any) -> None:
    """The same call to both; what is taken must be the same."""
    name, *rest = call
    if name == "take":
        ids, acquiring = real.take(now, rest[0])
        assert list(zip(ids.tolist(), acquiring.tolist(), strict=True)) == plain.take(now, rest[0])
        return
    hosts = rest[0]
    once = list(dict.fromkeys(hosts))
    if name == "renew":
        real.renew(hosts, now + rest[1], now + rest[2])
        for host in once:
            plain.renew(host, now + rest[1], now + rest[2])
        return
    arguments = (hosts,) if name == "drop" else (hosts, now)
    getattr(real, name)(*arguments)
    for host in once:
        getattr(plain, name)(host)


@given(RUN)
def test_the_same_as_plain_lists(run: list[tuple[int, Any]]) -> None:
    """Order, who renews and who acquires, states, and who is overdue, after any calls at any times."""
    real, plain = Admission(settings(3), SIZE), PlainAdmission(settings(3), SIZE)
    now = 1
    for step, call in run:
        now += step
        apply(real, plain, now, call)
        assert real.counts() == {state: plain.state.count(state) for state in real.counts()}
        late = [host for host in plain.out() if plain.dispatched[host] + real.settings.attempt <= now]
        assert sorted(real.overdue(now).tolist()) == late
        assert real.in_flight <= real.limit


@given(RUN)
def test_copies_answer_alike_and_apart(run: list[tuple[int, Any]]) -> None:
    """A copy has the same key, is untouched by what the other does, and one that is aged answers as much later."""
    real, plain = Admission(settings(3), SIZE), PlainAdmission(settings(3), SIZE)
    now = 1
    for step, call in run:
        now += step
        apply(real, plain, now, call)
    copy, key, later = real.copy(), real.key(), real.aged(5 * SECOND)
    assert copy.key() == key == later.aged(-5 * SECOND).key()
    first = real.take(now + SECOND)
    assert copy.key() == key
    for other, by in ((copy, 0), (later, 5 * SECOND)):
        assert [each.tolist() for each in other.take(now + SECOND + by)] == [each.tolist() for each in first]
    assert copy.key() == real.key() == later.aged(-5 * SECOND).key()


@given(RUN)
def test_nothing_is_new_before_next_at(run: list[tuple[int, Any]]) -> None:
    """A manager that sleeps until then misses nothing: no renewal that is due, no second try, nobody overdue."""
    real, plain = Admission(settings(3), SIZE), PlainAdmission(settings(3), SIZE)
    now = 1
    for step, call in run:
        now += step
        apply(real, plain, now, call)
        at = real.next_at(now)
        before = now + 30 * SECOND if at is None else at - 1
        if before > now:
            asleep = real.copy()
            assert not len(asleep.take(before)[0])
            assert not len(asleep.overdue(before))


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=300), st.integers(1, 50))
def test_many_renewals_come_by_deadline(deadlines: list[int], batch: int) -> None:
    """Over many buckets, in batches, with some called for anew: always the earliest deadline of those that are due."""
    real = Admission(settings(1_000, width=SECOND), len(deadlines))
    ends = np.array(deadlines) * 50 * MILLISECOND + 300 * SECOND
    real.renew(np.arange(len(deadlines)), 10 * SECOND, ends + 1)
    real.renew(np.arange(len(deadlines)), 20 * SECOND, ends)
    assert not len(real.take(20 * SECOND - 1)[0])
    seen: list[int] = []
    while len(taken := real.take(20 * SECOND, batch)[0]):
        seen += taken.tolist()
    assert seen == sorted(range(len(deadlines)), key=lambda host: (ends[host], host))
