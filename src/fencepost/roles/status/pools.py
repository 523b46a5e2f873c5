"""The status of pools: what the membership row says, in targets and weights, with the limits as applied now."""

from fencepost.core.instant import Instant
from fencepost.core.traffic.allowance import allowance
from fencepost.core.traffic.membership import MICRO, Membership, State
from fencepost.roles.status.document import PoolStatus, number, seconds
from fencepost.roles.status.facts import Facts
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.schema import Pool


def pool_statuses(facts: Facts) -> tuple[PoolStatus, ...]:
    """Every pool of the region, by name; those the load balancer has no row of yet are unknown in all but size."""
    rows = facts.store.pools if facts.store else {}
    read_at = facts.store.at if facts.store else 0
    found = (pool_status(pool, rows.get(pool.name), facts.now, read_at) for pool in facts.region.pools)
    return tuple(sorted(found, key=lambda each: each.name))


def pool_status(pool: Pool, row: Membership | None, now: Instant, read_at: Instant) -> PoolStatus:
    """One pool as of its row."""
    if row is None:
        return PoolStatus(pool.name, len(pool.targets), *(None,) * 11)
    allowed = allowance(row, safety_settings(pool.safety), now)
    count = {state: sum(member.state is state for member in row.members) for state in State}
    return PoolStatus(
        name=pool.name,
        targets=len(row.members),
        in_=count[State.IN] + count[State.KEPT],
        dead=sum(member.healthy is False for member in row.members),
        kept=count[State.KEPT],
        out=count[State.OUT],
        pending=count[State.PENDING],
        drained=count[State.DRAINED],
        suspect=bool(row.suspect),
        panic=row.panic,
        max_out=number(allowed.max_out / MICRO),
        min_in=number(allowed.min_in / MICRO),
        budget=number(allowed.budget / MICRO),
        budget_next_s=seconds(allowed.next_ns) if allowed.next_ns is not None else None,
        mode=str(row.mode),
        read_s=seconds(now - read_at),
        weight=number(allowed.capacity / MICRO),
        max_out_targets=allowed.max_out_count,
        burst=number(allowed.burst / MICRO),
    )
