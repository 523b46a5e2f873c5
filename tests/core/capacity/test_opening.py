"""When a shard whose store was lost is opened for placing."""

import numpy as np
from taken_shards import owning

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Facts, HostsRead, ReadHosts, Tick
from fencepost.core.instant import SECOND, Instant

R = 10 * SECOND
NONE, WORDS, NO = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.bool_)
NOBODY = Facts(NONE, NONE, WORDS, np.zeros(0, np.int8), WORDS, WORDS, NONE, NO, NONE, NO)


def taken(now: Instant) -> HostLeases:
    """A manager that has just taken a shard of a store without any rows."""
    leases = owning(R, now)
    leases.on(HostsRead("life", 0, NOBODY), now)
    return leases


def test_rows_read_before_the_wait_was_over_dont_open_a_shard_however_late_they_come() -> None:
    """A manager that slept hears its old question answered first: hosts may have made themselves known since, and what
    they run would be started twice (promise `started_once`).
    """
    leases = taken(R)
    over = R
    while not any(isinstance(each, ReadHosts) for each in leases.on(Tick(), over)):
        over += R // 2
        assert over < 100 * R, "the wait ends"
    leases.on(HostsRead("life", 0, NOBODY), over)
    assert not leases.placing
    assert ReadHosts(waited=True) in leases.on(Tick(), over + 1), "it is asked again until that is answered"
    leases.on(HostsRead("life", 0, NOBODY, waited=True), over + 2)
    assert leases.placing
    leases.on(HostsRead("life", 0, NOBODY), over + 3)
    assert leases.placing, "what was waited for stays so"
