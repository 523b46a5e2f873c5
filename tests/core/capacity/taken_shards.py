"""A manager that has its shard, for tests of what it then does with hosts."""

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import ShardRead, ShardWritten, Tick, WriteShard, lease_settings
from fencepost.core.instant import Duration, Instant


def owning(renew: Duration, now: Instant) -> HostLeases:
    """One that has just taken the only shard of a store in which nobody had it; no host's row is read yet."""
    leases = HostLeases(lease_settings("m", 1, 1, renew))
    leases.on(Tick(), now)
    leases.on(ShardRead("life", None), now)
    (asked,) = leases.on(ShardRead("life", None), now)
    assert isinstance(asked, WriteShard)
    leases.on(ShardWritten(asked.row), now)
    return leases
