"""What a region's numbers come to, in targets and seconds: shares of few targets surprise people.

Pure arithmetic on the formulas of the limiter. One target stands for W/n, the mean weight, as it does there; so in a
pool
of unequal weights "2 targets" is the weight of two mean ones, and the first line says so.
"""

from fencepost.settings import units
from fencepost.settings.schema import Pool, Region

LARGE = 6
"""From this many targets on, limits and budget allow two at the least; below, one."""

REFILL_SLOWEST_NS = 5 * units.NS["m"]
"""The budget never takes longer than this for one target, however small the rate."""


def allowance(share_ppm: int, count: int) -> int:
    """Give the targets of a pool of `count` that a share comes to: at least one, from six on two, none of one."""
    if count <= 1:
        return 0
    return max(count * share_ppm // units.WHOLE, 2 if count >= LARGE else 1)


def floor(min_in_ppm: int, min_count: int, count: int) -> int:
    """Give the targets of a pool of `count` that must stay in service."""
    return max(min_count, -(-count * min_in_ppm // units.WHOLE))


def out_at_most(pool: Pool) -> tuple[int, str]:
    """Give how many targets automation takes out one by one, and the setting that says so."""
    count = len(pool.targets)
    by_max_out = allowance(pool.safety.max_out_ppm, count)
    by_min_in = max(0, count - floor(pool.safety.min_in_ppm, pool.safety.min_count, count))
    return (by_max_out, "max_out") if by_max_out <= by_min_in else (by_min_in, "min_in")


def refill_ns(pool: Pool) -> int:
    """Give the time in which the removal budget grows by one target."""
    rate = pool.safety.rate
    return min(REFILL_SLOWEST_NS, rate.per_ns * units.WHOLE // (rate.share_ppm * len(pool.targets)))


def leaves_dns_ns(pool: Pool) -> tuple[int, int]:
    """Give the shortest and longest time from a target's death to its leaving DNS, writes (some ms) left out.

    Shortest: it dies just before a probe and refuses the connection, so the last of `fall` probes fails that many
    intervals less one later. Longest: just after a probe, and it hangs, so that the last probe runs into its timeout.
    """
    probe = pool.probe
    return (probe.fall - 1) * probe.interval_ns, probe.fall * probe.interval_ns + probe.timeout_ns


def meaning(region: Region) -> tuple[str, ...]:
    """Say in three lines for each pool what its settings mean."""
    return tuple(line for pool in region.pools for line in pool_meaning(region, pool))


def pool_meaning(region: Region, pool: Pool) -> tuple[str, ...]:
    """Say what one pool's settings mean."""
    count = len(pool.targets)
    most, limit = out_at_most(pool)
    least = floor(pool.safety.min_in_ppm, pool.safety.min_count, count)
    zones = len({target.zone for target in pool.targets})
    head = f"pool {pool.name}"
    pad = " " * (len(head) + 3)
    has = f"{_count(count, 'target')}, {_count(zones, 'zone')}"
    if len({target.counts for target in pool.targets}) > 1:
        has += f", one counts as its weight by the mean {sum(t.counts for t in pool.targets) / count:.3g}"
    if most == 0:
        why = "never the last target" if count == 1 else f"min_in leaves no room: {least} of {count} must stay"
        return (f"{head}   {has}; automation takes out none ({why})",)
    soonest, latest = leaves_dns_ns(pool)
    ttls = sorted({endpoint.ttl_s for endpoint in region.endpoints if endpoint.pool == pool.name})
    longest = ttls[-1] if ttls else region.dns.ttl_s
    burst = max(1, allowance(pool.safety.burst_ppm, count))
    grows = refill_ns(pool)
    source = "never slower" if grows == REFILL_SLOWEST_NS else f"rate {_rate(pool)} of {count}"
    return (
        f"{head}   {has}; automation takes out at most {most} ({limit}), never leaves under {least}",
        f"{pad}a dead target leaves DNS after {_between(soonest, latest)}, "
        f"callers' caches add up to {units.spoken(longest * units.NS['s'])} (ttl)",
        f"{pad}removal budget {_count(burst, 'target')}, a new one every {units.spoken(grows)} ({source})",
    )


def _rate(pool: Pool) -> str:
    return units.rate_text(pool.safety.rate).replace("%", " %")


def _between(low_ns: int, high_ns: int) -> str:
    """Say a span, with its unit once where both ends are seconds: ``2.0 to 3.5 s``."""
    low, high = low_ns / units.NS["s"], high_ns / units.NS["s"]
    if high < 60:
        return f"{low:.1f} to {high:.1f} s"
    return f"{units.spoken(low_ns)} to {units.spoken(high_ns)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
