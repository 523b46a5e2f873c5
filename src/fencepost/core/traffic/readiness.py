"""Readiness: what a new target must show before it is served.

In October 2025 new instances entered health checks before their network state had arrived; they failed, passed and
failed again, and healthy capacity was taken out with them. Here a new target stays pending, counted in no fraction,
until checkers of enough zones have each passed it `rise` times, its network state is acknowledged, and it is 30 s old.
It is never served before its verdict (pdns #12557).
"""

from fencepost.core.instant import Duration
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.quorum import LEAST_VOTES


def missing(
    passed: tuple[str, ...],
    voting: tuple[str, ...],
    age_ns: Duration,
    network_ready: bool,
    settings: SafetySettings,
    cause: str = "",
) -> str:
    """What a pending target still lacks, in words for people; empty when it is ready.

    passed: zones whose counted verdict is healthy.   voting: zones with a fresh checker that doesn't suspect itself.
    network_ready: acknowledged, or not required.   cause: why its newest probe failed, "" if none did.

    Every voting zone is asked for, and at least two. After `ready_wait_ns` two suffice: one zone that can't reach a new
    target must not keep it out for ever.
    """
    if not network_ready:
        return "its network state is not acknowledged"
    if age_ns < settings.ready_age_ns:
        return f"it is younger than {settings.ready_age_ns // 1_000_000_000} s"
    needed = LEAST_VOTES if age_ns >= settings.ready_wait_ns else max(LEAST_VOTES, len(voting))
    if len(passed) < needed:
        return f"passed from {len(passed)} of {needed} zones{f': {cause}' if cause else ''}"
    return ""
