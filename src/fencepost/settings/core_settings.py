"""From region.toml to the settings that the deciders take. What the file doesn't name keeps their defaults."""

from fencepost.core.traffic.desired import Offer
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.load_balancer import PoolSettings
from fencepost.core.traffic.membership import Mode
from fencepost.core.traffic.membership import Target as Listed
from fencepost.settings.schema import Endpoint, Pool, Region, Safety
from fencepost.settings.units import NS

DEFAULT = SafetySettings()
EXIT_PPM = DEFAULT.exit_ppm
"""Fail open ends below this share of sick targets, so `fail_open` must lie above it."""


def safety_settings(safety: Safety) -> SafetySettings:
    """Give limits as the limiter takes them. Raises ValueError for numbers `load` would have refused."""
    return SafetySettings(
        max_out_ppm=safety.max_out_ppm,
        min_in_ppm=safety.min_in_ppm,
        min_count=safety.min_count,
        burst_ppm=safety.burst_ppm,
        rate_ppm_per_min=max(1, safety.rate.share_ppm * NS["m"] // safety.rate.per_ns),
        fail_open_ppm=safety.fail_open_ppm,
        ready_age_ns=safety.ready_age_ns,
        # In proportion: a zone that can't see a new target has as long to come to as before.
        ready_wait_ns=max(DEFAULT.ready_wait_ns, safety.ready_age_ns * DEFAULT.ready_wait_ns // DEFAULT.ready_age_ns),
    )


def health_settings(pool: Pool) -> HealthSettings:
    """Give how a pool is judged as a checker takes it. Raises ValueError for numbers `load` would have refused."""
    probe = pool.probe
    return HealthSettings(interval_ns=probe.interval_ns, timeout_ns=probe.timeout_ns, fall=probe.fall, rise=probe.rise)


def pool_settings(region: Region, pool: Pool) -> PoolSettings:
    """Give all that the load balancer is told of a pool."""
    return PoolSettings(
        pool.name, health_settings(pool), safety_settings(pool.safety), Mode(region.mode), region.dns.gather_ns
    )


def offer(region: Region, endpoint: Endpoint) -> Offer | None:
    """Give the service that an endpoint's addresses are offered under by SRV records; None if it has none.

    A target is reached at its own port if it has one, else at the port of its pool's probe.
    """
    pool = next((each for each in region.pools if endpoint.srv and each.name == endpoint.pool), None)
    if pool is None:
        return None
    return Offer(endpoint.srv, pool.probe.url.port, {each.address: each.port for each in pool.targets if each.port})


def listed_targets(pool: Pool) -> tuple[Listed, ...]:
    """Give a pool's targets as its owner's list. A weight that isn't in the file may come from `capacity`."""
    return tuple(Listed(target.address, target.zone, target.weight) for target in pool.targets)
