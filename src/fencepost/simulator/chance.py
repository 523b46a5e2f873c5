"""All chance of a walk: one seed, one stream for each purpose, so that none disturbs another.

Nothing else in a walk may differ from run to run: no set is iterated, no hash or address is looked at.
"""

from math import log
from random import Random

from fencepost.core.instant import MILLISECOND, SECOND, Duration

BITS = 12
TAIL = 40
"""The slowest of 128 calls take so many times longer."""
TABLE = tuple(int(-1000 * log(1 - (n + 0.5) / (1 << BITS))) * (TAIL if n % 128 == 77 else 1) for n in range(1 << BITS))
"""Exponentially spread factors, in thousandths, a few of them far out: latencies have long tails."""
REGIMES: tuple[Duration, ...] = (MILLISECOND // 2, 2 * MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND)
"""Mean of a call's latency: one host, one room, one country, something is wrong."""
WEIGHTS = (3, 5, 3, 1)


def stream(seed: int, purpose: str) -> Random:
    """A stream of chance; text seeds go through SHA-512, so they don't depend on PYTHONHASHSEED."""
    return Random(f"{seed} {purpose}")  # noqa: S311  simulated chance, no secret


class Latencies:
    """How long calls take in one walk."""

    def __init__(self, seed: int, mean: Duration = 0) -> None:
        self.random = stream(seed, "latencies")
        self.mean = mean or self.random.choices(REGIMES, WEIGHTS)[0]
        self.bits = self.random.getrandbits

    def call(self) -> Duration:
        """One call's, from leaving to taking effect."""
        return self.mean * TABLE[self.bits(BITS)] // 1000 + 50_000

    def notice(self) -> Duration:
        """Until a change of store or DNS has been noticed: up to 50 ms, and a call."""
        return self.bits(BITS) * 12_000 + 50_000

    def restart(self) -> Duration:
        """Until a dead process is up again."""
        return SECOND // 2 + self.bits(BITS) * SECOND // (1 << BITS)
