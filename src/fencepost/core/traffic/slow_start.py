"""Weights to publish: capacity scaled to 1..255, and a gentle start for who just came in.

Scaled first and ramped after, so that a start at a few per cent never rounds to nothing (envoy #29259). The ramp goes
by tenths: a pool with a newcomer changes its row ten times, not at every pass. When more than half of those in service
are starting there is nobody to take the load meanwhile, so nobody ramps; nor does anybody when the pool itself starts.
"""

from collections.abc import Sequence

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.limits import SafetySettings

MOST = 255
"""The largest weight Route 53 takes; our own server draws by weight over the largest."""

STEPS = 10
"""Steps of the ramp."""


class Entrant(msgspec.Struct, frozen=True, gc=False):
    """One target in service: its capacity (at least 1) and when it came in (ns; 0: it doesn't ramp)."""

    capacity: int
    joined: Instant


def starting(joined: Instant, now: Instant, settings: SafetySettings) -> bool:
    """Whether it is still on its ramp."""
    return bool(joined) and 0 <= now - joined < settings.ramp_ns


def weights(entrants: Sequence[Entrant], now: Instant, settings: SafetySettings) -> list[int]:
    """The weight of each, 1 to 255, in the same order."""
    if not entrants:
        return []
    largest = max(each.capacity for each in entrants)
    ramping = sum(starting(each.joined, now, settings) for each in entrants)
    ramp = ramping * 2 <= len(entrants)
    return [
        max(1, _scaled(each.capacity, largest) * _step(each.joined, now, settings) // STEPS)
        if ramp and each.joined
        else _scaled(each.capacity, largest)
        for each in entrants
    ]


def _scaled(capacity: int, largest: int) -> int:
    return max(1, (MOST * capacity + largest // 2) // largest)


def _step(joined: Instant, now: Instant, settings: SafetySettings) -> int:
    if not starting(joined, now, settings):
        return STEPS
    floor = STEPS * settings.ramp_floor_ppm // 1_000_000
    return max(1, floor, STEPS * (now - joined) // settings.ramp_ns)
