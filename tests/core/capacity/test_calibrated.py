"""What is in flight of all shards together is what was calibrated: L is of the whole fleet, and a shard has a share.

L was measured on all hosts at once, and each shard's manager took all of it: with 2 shards and L = 128 each showed a
limit of 140, and N shards had N times as many checks in flight as the fleet answers best (docs/concepts/recovery.md).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.capacity.calibrated import UNCALIBRATED, settings_from, share_of
from fencepost.core.capacity.lease_calls import lease_settings
from fencepost.core.capacity.lease_manager import LeaseManager
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND

R = 10 * SECOND
SERVICE = 40 * MILLISECOND
HOSTS = 3000


def row(limit: int) -> CalibrationRow:
    """A calibration of a fleet."""
    return CalibrationRow("hosts", limit, SERVICE, 4 * SERVICE, 1600.0)


def manager(limit: int, shard: int, of: int, owner: str = "m") -> LeaseManager:
    """The manager of one shard, with more hosts in line than the whole fleet may have in flight."""
    settings = lease_settings(owner, shard, of, R)
    made = LeaseManager(settings, settings_from(row(limit), settings))
    made.admission.grow(HOSTS)
    made.admission.acquire(np.arange(HOSTS), 0)
    return made


@given(st.integers(1, 2000), st.integers(1, 64))
def test_the_limits_of_all_shards_come_to_l(limit: int, of: int) -> None:
    """Each share is at least 1 and within one of the others; only more shards than L come to more, one each."""
    shares = [settings_from(row(limit), lease_settings("m", n, of, R)).limit for n in range(1, of + 1)]
    assert sum(shares) == max(limit, of)
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(("limit", "of"), [(128, 1), (128, 2), (128, 3), (13, 4), (7, 3), (1000, 64)])
def test_what_is_in_flight_of_all_shards_is_l_and_at_the_ceiling_a_tenth_more(limit: int, of: int) -> None:
    """As the deciders dispatch it, from the first call to where each brake has eased to its ceiling."""
    managers = [manager(limit, shard, of) for shard in range(1, of + 1)]
    for each in managers:
        each.admission.take(0)
    assert sum(each.admission.in_flight for each in managers) == limit
    for each in managers:
        brake = each.admission.brake
        for second in (1, 2, 3):  # three steps of 5 % are more than there is up to the ceiling
            brake.answered(1000, 1000 * SERVICE, 2.0 * 1000 * SERVICE**2)
            brake.bound = False  # and L itself isn't learnt anew: that takes calm windows in which the ceiling binds
            brake.look(second * SECOND)
        each.admission.take(4 * SECOND)
    together = sum(each.admission.in_flight for each in managers)
    assert limit <= together <= 1.1 * limit
    assert together == sum(each.admission.limit for each in managers)


def test_a_shard_keeps_its_share_whoever_takes_it_over() -> None:
    """One that has two shards has both shares, and no more of either: shares are of shards, not of managers."""
    before = [manager(129, 1, 2, "a").admission.limit, manager(129, 2, 2, "b").admission.limit]
    after = [manager(129, 1, 2, "b").admission.limit, manager(129, 2, 2, "b").admission.limit]
    assert before == after == [65, 64]


def test_a_stored_calibration_and_none_at_all_are_of_the_whole_fleet() -> None:
    """A row kept by an earlier version was measured on all hosts too, so it is divided; so are the 64 of no row."""
    shares = [settings_from(UNCALIBRATED, lease_settings("m", n, 4, R)).limit for n in range(1, 5)]
    assert shares == [16, 16, 16, 16]
    assert [share_of(140, n, 2) for n in (1, 2)] == [70, 70]
    alone = settings_from(row(128), lease_settings("m", 1, 1, R))
    shared = settings_from(row(128), lease_settings("m", 2, 2, R))
    assert (alone.limit, shared.limit) == (128, 64)
    assert (alone.service, alone.service_p99, alone.attempt) == (shared.service, shared.service_p99, shared.attempt)
