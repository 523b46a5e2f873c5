"""When work comes back: spread by a hash of what it is about, so that a crowd never comes back as one.

No state and no chance: the same host, token and moment give the same answer. A first renewal comes between one and two
periods after its grant, in a lease of three: jitter only ever *lengthens*. A shortening one (a fifth of a period up
to a whole one), with renewals first, is itself metastable: it has been seen stuck with 84 % of the hosts held and every
slot busy with renewals that came too early.
"""

import numpy as np
from numpy.typing import NDArray

from fencepost.core.admission.columns import Ids, Times
from fencepost.core.instant import Duration, Instant
from fencepost.core.jitter import jitter

ODD = 0xA0761D6478BD642F
GOLDEN = 0x9E3779B97F4A7C15
"""2^64 by the golden ratio."""
NEIGHBOURS = 4
"""Bits: so many ids follow one another."""
BITS = 53
"""Of a share of the period as a whole number: as many as a float has room for."""
EARLY = 8
"""A renewal keeps its phase if that brings the next one forward by at most this part of a period."""


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each word well mixed (the finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def shares(ids: Ids, numbers: Ids, now: Instant) -> NDArray[np.float64]:
    """A number in [0, 1) for each id, from the id, its token's number and the moment."""
    moment = np.uint64(now * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    words = ids.astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + numbers.astype(np.uint64) * np.uint64(ODD) + moment
    found: NDArray[np.float64] = (mixed(mixed(words)) >> np.uint64(11)).astype(np.float64) / (1 << 53)
    return found


def first_renewal(ids: Ids, numbers: Ids, now: Instant, period: Duration) -> Times:
    """When each is first to be renewed after a grant at ``now``: evenly in [period, 2 periods) from then."""
    return now + period + (shares(ids, numbers, now) * period).astype(np.int64)


def phase(ids: Ids, period: Duration) -> Times:
    """When in each period each one's renewals are due, the same for good: even over the ids.

    A phase kept from the last renewal would be lost with it: after a manager's start or a shard's change of hands all
    hosts are checked at once, and would be so again each period.

    Neighbours come one soon after another, since what is known of them shares cache lines: drawn one by one from a
    million, they cost twice as much to decide about. Their blocks lie as evenly as any number of them can (multiples of
    the golden ratio), each over a 64th of the period.
    """
    block = ((ids >> NEIGHBOURS).view(np.uint64) * np.uint64(GOLDEN) >> np.uint64(64 - BITS)).view(np.int64)
    within = (ids & ((1 << NEIGHBOURS) - 1)) << (BITS - 6 - NEIGHBOURS)
    share = (block + within) & ((1 << BITS) - 1)
    return (share * (period / (1 << BITS))).astype(np.int64)


def next_renewal(due: Times, now: Instant, period: Duration) -> Times:
    """When each is to be renewed after the renewal that was ``due`` came about at ``now``: its phase is kept.

    So the spread of the first renewals lasts, and a backlog worked off in a burst after an outage leaves no echo. It is
    at least 7/8 of a period ahead and less than 15/8, whatever the delay was.
    """
    least = now + period - period // EARLY
    periods: Times = np.maximum(-((due - least) // period), 1)
    return due + periods * period


def back_off(attempt: int, left: Duration, first: Duration, *what: object) -> Duration:
    """How long to wait after the ``attempt``-th failure (1, 2, ...) in a row, ``left`` before a lease ends.

    Between half and all of ``first`` × 2^(attempt - 1), and never more than half of what is left: a wait longer than
    the lease would defeat any grace. 0 once nothing is left. Nothing that is fixed: fixed times bunch.
    """
    most = min(first << min(max(attempt, 1) - 1, 32), max(left, 0) // 2)
    return most - jitter(most // 2, *what, attempt)
