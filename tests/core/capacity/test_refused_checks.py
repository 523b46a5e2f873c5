"""A host refuses a check whose token it has outgrown: whatever the manager knows by then, the host is asked again.

Found by simulated fleets where a call takes 200 ms: a store was put back, the epoch raised above what one host had met,
and the refusals of those asked before arrived after that. Nobody asked them any more, until their leases had run out.
"""

import numpy as np

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import (
    Effect,
    Facts,
    HostsRead,
    Outdated,
    Recheck,
    ShardRead,
    ShardWritten,
    Tick,
    WriteShard,
    lease_settings,
)
from fencepost.core.capacity.rows import ShardRow
from fencepost.core.instant import SECOND

HOSTS = 3
MET = 17
"""The epoch that every host has met, in a life of the store that is gone."""


def manager() -> HostLeases:
    """One that has taken a shard of a store put back: its epoch is 2, and no lease is known."""
    leases = HostLeases(lease_settings("m", 1, 1, 10 * SECOND))
    leases.on(Tick(), 0)
    old = ShardRow(1, 1, "", 1)
    leases.on(ShardRead("life", old), 0)
    leases.on(ShardWritten(written(leases.on(ShardRead("life", old), 0))), 0)
    kinds = (np.int64, np.uint64, np.int8, np.uint64, np.uint64, np.int64, np.bool_, np.int64, np.bool_)
    rows = Facts._make((np.arange(HOSTS), *(np.zeros(HOSTS, kind) for kind in kinds)))
    leases.on(HostsRead("life", HOSTS, rows), 0)
    assert (leases.owner.owning, leases.owner.epoch, leases.loaded) == (True, 2, True)
    return leases


def written(effects: tuple[Effect, ...]) -> ShardRow:
    """The shard's row that is asked to be written."""
    (row,) = [each.row for each in effects if isinstance(each, WriteShard)]
    return row


def rechecked(effects: tuple[Effect, ...]) -> set[int]:
    """The hosts that are to be checked again."""
    return {id_ for each in effects if isinstance(each, Recheck) for id_ in each.ids.tolist()}


def test_a_refusal_that_comes_after_the_epoch_was_raised_leaves_nobody_unasked() -> None:
    """Each host was asked under epoch 2; the first refusal raises the epoch, the others' are about the one before."""
    leases = manager()
    assert rechecked(leases.on(Outdated(0, MET, 0, 5), SECOND)) == set()
    effects = leases.on(ShardRead("life", leases.owner.row), SECOND)
    row = written(effects)
    assert row.epoch > MET
    assert rechecked(leases.on(ShardWritten(row), SECOND)) == set(range(HOSTS))
    for late in (1, 2):
        assert rechecked(leases.on(Outdated(late, MET, 0, 5), 2 * SECOND)) == {late}


def test_until_the_epoch_is_raised_nobody_is_asked_in_vain() -> None:
    """Under the present token all would refuse: the row is read first, and raised."""
    leases = manager()
    for host in range(HOSTS):
        assert rechecked(leases.on(Outdated(host, MET, 0, 5), SECOND)) == set()
    assert leases.owner.above == MET
