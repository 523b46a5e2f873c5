"""What comes in is slowed by the stage behind: in virtual time, with and without it."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity.drain import BOUND_S, NETWORK, Meter, admitted, bound
from fencepost.core.capacity.rows import DrainRow
from fencepost.core.instant import SECOND

HOSTS = 20_000
LEASES = 60.0
"""Leases established a second, by an admission of their own that is exactly right."""
STATES = 38.5
"""Network states carried a second: the rate that fits the backlog of October 2025."""
DEMAND = 20.0


@dataclass
class Stages:
    """Leases, then network states, a second a step. A host that comes back lacks all it had: one state here.

    Launches are pushed at ``DEMAND`` a second; who isn't let in comes back, so demand is never lost.
    """

    slowed: bool
    leased: float = 0
    depth: float = 0
    done: float = 0
    launched: float = 0
    waiting: float = 0
    deepest: float = 0
    seconds: int = 0

    def step(self) -> None:
        """One second."""
        back = min(LEASES, HOSTS - self.leased)
        self.leased += back
        self.waiting += DEMAND
        row = DrainRow(NETWORK, int(self.depth), bound(STATES), STATES)
        rate = admitted(row, LEASES) if self.slowed else LEASES
        let_in = min(self.waiting, rate)
        self.waiting -= let_in
        self.launched += let_in
        self.depth += back + let_in
        worked = min(self.depth, STATES)
        self.depth -= worked
        self.done += worked
        self.deepest = max(self.deepest, self.depth)
        self.seconds += 1

    def until_drained(self) -> "Stages":
        """Until every host has its lease and next to nothing lies in the second stage."""
        while self.leased < HOSTS or self.depth > STATES:
            self.step()
            assert self.seconds < 100_000
        return self


def test_relief_of_leases_alone_drowns_network_states() -> None:
    """October 2025, 05:28 to 10:36: leases were back, and what they let through lay in the stage behind for hours."""
    as_it_was, slowed = Stages(slowed=False).until_drained(), Stages(slowed=True).until_drained()
    hosts_alone = HOSTS / LEASES * (LEASES - STATES)
    assert as_it_was.deepest > 1.5 * hosts_alone
    assert slowed.deepest < hosts_alone + bound(STATES)
    assert slowed.seconds < 0.7 * as_it_was.seconds
    assert slowed.done / slowed.seconds >= 0.95 * STATES


def test_launches_alone_never_fill_a_stage() -> None:
    """What is let in at rate × (1 − depth ÷ bound) can't outgrow the bound, whatever is asked for."""
    stages = Stages(slowed=True, leased=HOSTS, waiting=1e6)
    for _ in range(2_000):
        stages.step()
        assert stages.depth <= bound(STATES)
    assert stages.done / stages.seconds >= 0.95 * STATES


@given(st.floats(0, 1e5), st.integers(0, 10**7))
def test_a_stage_lets_in_at_most_what_it_drains(rate: float, depth: int) -> None:
    """And nothing at all once it holds as much as it may."""
    row = DrainRow(NETWORK, depth, bound(rate), rate)
    assert 0 <= admitted(row, 1.0) <= rate
    if depth >= row.bound:
        assert admitted(row, 1.0) == 0


def test_nobody_is_slowed_by_a_stage_that_says_nothing() -> None:
    """A fleet whose network manager never ran: launches go by what else slows them."""
    assert admitted(None, 7.0) == 7.0
    assert bound(0.0) == 64
    assert bound(100.0) == 100 * BOUND_S


def test_the_rate_is_that_of_busy_time_only() -> None:
    """One host that never answers isn't what the stage can do, nor is an idle night."""
    meter, now = Meter(100.0), 0
    for _ in range(60):
        now += SECOND
        meter.passed(0, False, now)
    assert meter.rate == 100.0
    for _ in range(60):
        now += SECOND
        meter.passed(40, True, now)
    assert 39.9 < meter.rate < 40.1
    now += 3600 * SECOND
    meter.passed(1, False, now)
    assert 39.9 < meter.rate < 40.1
