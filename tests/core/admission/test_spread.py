"""When renewals and retries come: spread evenly, never early, and without an echo."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.admission import back_off, first_renewal, next_renewal
from fencepost.core.instant import MINUTE, SECOND

PERIOD = 2 * MINUTE
NOBODY = np.zeros(100_000, np.int64)


def test_first_renewals_after_a_mass_grant_are_even() -> None:
    """Between one and two periods after it, in each hundredth as many (fleetdm/fleet #3271)."""
    due = first_renewal(np.arange(100_000), NOBODY, 7, PERIOD) - 7
    assert due.min() >= PERIOD
    assert due.max() < 2 * PERIOD
    counts, _ = np.histogram(due, bins=100, range=(PERIOD, 2 * PERIOD))
    assert counts.std() / counts.mean() < 0.05


def test_another_grant_is_another_draw() -> None:
    """The hash is of host, token and moment: who was unlucky once isn't so each time."""
    ids = np.arange(10_000)
    draws = [first_renewal(ids, ids * 0 + number, 0, PERIOD) for number in (1, 2)]
    draws.append(first_renewal(ids, ids * 0 + 1, SECOND, PERIOD) - SECOND)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(draws[one], draws[other])[0, 1]) < 0.05
    assert draws[0].tolist() == first_renewal(ids, ids * 0 + 1, 0, PERIOD).tolist()


@given(st.integers(0, 10 * PERIOD))
def test_a_late_renewal_keeps_its_phase_and_is_never_followed_soon(late: int) -> None:
    """After an outage all come in one burst; the next ones come as spread as they were."""
    due = np.array([5 * SECOND, 90 * SECOND])
    coming = next_renewal(due, 90 * SECOND + late, PERIOD)
    assert ((coming - due) % PERIOD == 0).all()
    assert (coming >= 90 * SECOND + late + PERIOD * 7 // 8).all()
    assert (coming < 90 * SECOND + late + PERIOD * 15 // 8).all()


@given(st.integers(1, 60), st.integers(-SECOND, 10 * MINUTE), st.integers(0, 1_000))
def test_no_wait_is_longer_than_half_of_what_is_left(attempt: int, left: int, host: int) -> None:
    """A back-off longer than the lease would defeat any grace, however often it failed."""
    wait = back_off(attempt, left, SECOND, "host", host)
    assert 0 <= wait <= max(0, left) // 2
    assert wait <= SECOND << (attempt - 1)


def test_who_failed_together_does_not_come_back_together() -> None:
    """Fixed retry times bunch: a thousand that failed at once are spread over half of the back-off."""
    waits = np.array([back_off(4, 10 * MINUTE, SECOND, host) for host in range(1_000)])
    counts, _ = np.histogram(waits, bins=10, range=(4 * SECOND, 8 * SECOND))
    assert counts.sum() == 1_000
    assert counts.min() > 60
