"""What renewals leave to those who lost their lease: a tenth, and never a lease that is held."""

from typing import Any

import numpy as np
from admission_model import settings
from hypothesis import given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from fencepost.core.admission import Admission, first_renewal, next_renewal, phase
from fencepost.core.instant import MILLISECOND, SECOND

R = 10 * SECOND
CALL = 160 * MILLISECOND


class Fleet:
    """Hosts that renew leases of three periods, some of which just lost theirs, and a service that takes ``limit``
    calls at once, each as long as the other: what it carries doesn't change."""

    def __init__(self, hosts: int, limit: int, lost: int, seed: int = 0, call: int = CALL, **more: Any) -> None:
        given_: dict[str, Any] = {"service": call, "service_p99": call, "service_p999": call, "period": R}
        self.admission, self.call, self.now = Admission(settings(limit, **(given_ | more)), hosts), call, 0
        ids = np.arange(hosts)
        due = next_renewal(phase(ids + seed, R) - 3 * R, 0, R) - R
        self.ends = due + 2 * R
        self.seed = seed
        self.admission.renew(ids, due, self.ends)
        self.gone = ids[:: max(1, hosts // lost)][:lost] if lost else ids[:0]
        self.ends[self.gone] = -1
        self.admission.drop(self.gone)
        self.admission.acquire(self.gone, 0)
        self.out: list[tuple[int, Any]] = []
        self.missed: set[int] = set()
        self.acquired, self.renewed = 0, 0

    def run(self, until: int) -> "Fleet":
        """What is answered, then what goes out, at each instant at which anything may."""
        while self.now < until:
            while self.out and self.out[0][0] <= self.now:
                self.answer(self.out.pop(0)[1])
            ids, acquiring = self.admission.take(self.now)
            if len(ids):
                self.missed |= set(ids[acquiring & (self.ends[ids] >= 0)].tolist())
                self.out.append((self.now + self.call, ids))
            at = self.admission.next_at(self.now)
            times = [until, *(each for each, _ in self.out[:1]), *([at] if at is not None and at > self.now else [])]
            self.now = min(times)
        return self

    def answer(self, ids: Any) -> None:
        """Each holds a lease from now on."""
        self.admission.answered(ids, self.now)
        held = self.ends[ids] >= 0
        self.acquired += int(np.count_nonzero(~held))
        self.renewed += int(np.count_nonzero(held))
        later = next_renewal(phase(ids + self.seed, R), self.now, R)
        due = np.where(held, later, first_renewal(ids, ids * 0, self.now, R))
        self.ends[ids] = self.now + 3 * R
        self.admission.renew(ids, due, self.ends[ids])


def overload(hosts: int, limit: int) -> float:
    """How many periods it takes to ask every host once."""
    return hosts * CALL / (limit * R)


def test_without_a_floor_renewals_may_take_all() -> None:
    """A braked limit carries the renewals in 1.93 periods: none comes too late, and nobody else ever has a turn."""
    fleet = Fleet(488, 4, 6, period=0).run(12 * R)
    assert 1.9 < overload(482, 4) < 1.95
    assert (fleet.acquired, fleet.missed) == (0, set())


def test_a_tenth_goes_to_the_line_meanwhile() -> None:
    """The same fleet: all six hold a lease again within a period, and no other loses its own."""
    fleet = Fleet(488, 4, 6).run(R)
    assert (fleet.acquired, fleet.missed) == (6, set())
    assert not fleet.run(12 * R).missed


FEW = run_settings(max_examples=40, deadline=None)


@FEW
@given(st.integers(20, 80), st.integers(1, 3), st.integers(0, 100), st.integers(0, 1_000_000))
def test_nobody_loses_a_lease_by_it(hosts: int, limit: int, lost: int, seed: int) -> None:
    """Whatever the service carries, from hardly anything to plenty: where all renewals are in time without the floor,
    they are with it."""
    lost = hosts * lost // 200
    if Fleet(hosts, limit, lost, seed, period=0, call=3 * CALL).run(7 * R).missed:
        return
    assert not Fleet(hosts, limit, lost, seed, call=3 * CALL).run(7 * R).missed


@FEW
@given(st.integers(20, 80), st.integers(1, 3), st.integers(1, 100), st.integers(0, 1_000_000))
def test_while_renewals_have_time_nobody_starves(hosts: int, limit: int, lost: int, seed: int) -> None:
    """Where every host could be asked once in 1.8 periods, each has its turn: a tenth of all calls goes to the line."""
    lost = max(1, hosts * lost // 200)
    call = int(1.8 * limit * R / hosts)
    rate = limit * SECOND / call
    fleet = Fleet(hosts, limit, lost, seed, call=call).run(R + int((lost + 1) / (0.1 * rate) * SECOND))
    assert (fleet.acquired, fleet.missed) == (lost, set())


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.sampled_from((-1, 1)))
def test_renewals_without_a_period_to_spare_leave_nothing(ready: int, line: int, limit: int, beside: int) -> None:
    """The most urgent one, after all the others, has just a period left: a millisecond decides."""
    admission = Admission(settings(limit, period=R, floor_share=0.99), ready + line)
    needs = ready * 40 * MILLISECOND // limit
    admission.renew(np.arange(ready), 0, needs + R + beside * MILLISECOND)
    admission.acquire(np.arange(ready, ready + line), 0)
    ids, acquiring = admission.take(0)
    room = min(limit, ready + line)
    if ready <= limit and beside >= 0:
        return
    expected = min(int(0.99 * limit + 1e-9), line) if beside > 0 else max(0, room - ready)
    assert (len(ids), int(np.count_nonzero(acquiring))) == (room, expected)


def test_nothing_is_saved_up() -> None:
    """Hours in which nobody could be let through don't come back as a burst of acquisitions."""
    admission = Admission(settings(10, period=R), 3_000)
    admission.renew(np.arange(1_000), 0, R)
    admission.acquire(np.arange(1_000, 3_000), 0)
    for at in range(50):
        ids, acquiring = admission.take(at)
        assert not acquiring.any()
        admission.answered(ids, at)
        admission.renew(ids, 0, R + at)
    admission.renew(np.arange(1_000), 0, 100 * R)
    ids, acquiring = admission.take(60)
    assert (len(ids), int(np.count_nonzero(acquiring))) == (10, 1)
