"""What a region's numbers come to, in targets and seconds: shares of few targets surprise people.

Each number is asked of the limiter's own rules, so what `check` says is what will be done. One target stands for W/n,
the mean weight, as it does there; so in a pool of unequal weights "2 targets" is the weight of two mean ones, and the
first line says so.
"""

from collections.abc import Sequence

from fencepost.core.traffic import limits
from fencepost.core.traffic.membership import MICRO, family
from fencepost.settings import units
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.fleet import fleet_meaning
from fencepost.settings.schema import Pool, Region


class Scale:
    """A pool with all its targets in service, as the limiter's sums, and the size of one mean target in them."""

    def __init__(self, pool: Pool, launched: Sequence[tuple[int, str]] = ()) -> None:
        """Take a pool that has targets: its own, or ``launched``, the weight and address of each of those there are."""
        targets = launched or [(target.counts, target.address) for target in pool.targets]
        self.count = len(targets)
        self.capacity = sum(weight for weight, _ in targets) * MICRO
        self.each = self.capacity // self.count
        self.safety = safety_settings(pool.safety)
        self.families = len({family(address) for _, address in targets})
        self.standing = limits.Standing(count=self.count, capacity=self.capacity)

    def enough(self, staying: int) -> bool:
        """Say whether so many targets in service satisfy min_in and min_count, and leave one of each family."""
        left = self.capacity - (self.count - staying) * self.each
        return staying >= self.families and limits.above_min_in(staying, left, self.capacity, self.safety)

    def out_at_most(self) -> tuple[int, str]:
        """Give how many targets automation takes out one by one, and the setting that stops it there."""
        for out in range(1, self.count + 1):
            if not limits.within_max_out(out, out * self.each, self.standing, self.safety):
                return out - 1, "max_out"
            if not self.enough(self.count - out):
                return out - 1, "min_in"
        return self.count, ""

    def least_in(self) -> int:
        """Give the fewest targets that may stay in service."""
        return next((staying for staying in range(self.count) if self.enough(staying)), self.count)

    def burst(self) -> int:
        """Give the whole targets that a full removal budget pays for."""
        return limits.burst(self.count, self.capacity, self.safety) // self.each

    def refill_ns(self) -> int:
        """Give the time in which the removal budget grows by one target."""
        return limits.refill_time(self.each, self.count, self.capacity, False, self.safety)


def leaves_dns_ns(pool: Pool) -> tuple[int, int]:
    """Give the shortest and longest time from a target's death to its leaving DNS, writes (some ms) left out.

    Shortest: it dies just before a probe and refuses the connection, so the last of `fall` probes fails that many
    intervals less one later. Longest: just after a probe, and it hangs, so that the last probe runs into its timeout.
    """
    probe = pool.probe
    return (probe.fall - 1) * probe.interval_ns, probe.fall * probe.interval_ns + probe.timeout_ns


def meaning(region: Region) -> tuple[str, ...]:
    """Say in three lines for each pool what its settings mean, and what the fleet's come to."""
    return (*(line for pool in region.pools for line in pool_meaning(region, pool)), *fleet_meaning(region))


def pool_meaning(region: Region, pool: Pool) -> tuple[str, ...]:
    """Say what one pool's settings mean."""
    if not pool.targets:
        return (f"pool {pool.name}   no targets of its own: its instances come by  fencepost fleet launch {pool.name}",)
    scale = Scale(pool)
    count, least = scale.count, scale.least_in()
    most, limit = scale.out_at_most()
    zones = len({target.zone for target in pool.targets})
    head = f"pool {pool.name}"
    pad = " " * (len(head) + 3)
    has = f"{_count(count, 'target')}, {_count(zones, 'zone')}"
    if len({target.counts for target in pool.targets}) > 1:
        has += f", one counts as its weight by the mean {sum(t.counts for t in pool.targets) / count:.3g}"
    if most == 0 or scale.burst() == 0:
        return (f"{head}   {has}; automation takes out none ({_why_none(scale, limit if most == 0 else 'burst')})",)
    soonest, latest = leaves_dns_ns(pool)
    ttls = sorted({endpoint.ttl_s for endpoint in region.endpoints if endpoint.pool == pool.name})
    longest = ttls[-1] if ttls else region.dns.ttl_s
    grows = scale.refill_ns()
    source = "never slower" if grows == limits.LEAST_REFILL_NS else f"rate {_rate(pool)} of {count}"
    return (
        f"{head}   {has}; automation takes out at most {most} ({limit}), never leaves under {least}",
        f"{pad}a dead target leaves DNS after {_between(soonest, latest)}, "
        f"callers' caches add up to {units.spoken(longest * units.NS['s'])} (ttl)",
        f"{pad}removal budget {_count(scale.burst(), 'target')}, a new one every {units.spoken(grows)} ({source})",
    )


def _why_none(scale: Scale, limit: str) -> str:
    if scale.count == 1:
        return "never the last target"
    if limit == "min_in":
        return f"min_in leaves no room: {scale.least_in()} of {scale.count} must stay"
    return f"{limit} is 0"


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
