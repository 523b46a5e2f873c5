"""What one checker says about targets: probe results in, verdicts and reports out.

A checker (one process a zone) applies hysteresis to its own probes and publishes a *verdict* for each target. The
load balancer takes a quorum over the verdicts of several zones. Hysteresis comes before the quorum, so one lost probe
at one checker never reaches a vote.

A report is two rows. The *body* (`CheckerReport`) holds every verdict and is written only when something in it
changed; the *beat* (`Beat`) is a few bytes, written each interval, and says "that body still stands". A pool of
10,000 quiet targets so costs one small write an interval.

Freshness is never read off a stamp. A reader remembers, on its own clock, when it last saw a beat's number change.
That is why a beat has a number and no time, and why a reader that has just started trusts nothing until it has seen
one change. The stamps that are here (`since`, `hold_until`) are the checker's own clock, for people to read and for
that checker's own restart.
"""

from enum import StrEnum

import msgspec


class Suspicion(StrEnum):
    """Why a checker distrusts itself; while any holds, its verdicts count in no quorum."""

    CANARY = "canary"
    """It can't reach the canary addresses, so its own network is the likelier fault."""
    LAG = "lag"
    """Its event loop is late (p99 over a quarter of the probe timeout), so time-outs are of its own making."""
    FILES = "files"
    """It ran out of file descriptors: probes fail before they leave the machine."""
    BLIND = "blind"
    """No probe at all has finished for three intervals: it looks well and has stopped seeing."""
    WARMING = "warming"
    """It started less than one interval and one timeout ago: not every target has been probed."""


class ProbeResult(msgspec.Struct, frozen=True, gc=False):
    """One finished probe.

    key: the target's address as listed, unique in its pool (IPv4 and IPv6 are separate targets).
    ok: the answer was a good one; a redirect or another status is judged by the prober, not here.
    cause: empty when ok, else a few plain words, e.g. "connection refused", "timeout after 500 ms", "status 503".
    capacity: what the target said it can carry, if it said so (any unit, the same for the whole pool).
    """

    key: str
    ok: bool
    cause: str = ""
    capacity: int | None = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """One checker's settled opinion of one target.

    key: the target's address as listed.
    healthy: after hysteresis; None until the first `fall` failures or `rise` passes. Kept over restarts and gaps.
    counts: this vote may be counted: at least `rise` probes since the checker's last gap.
    failing_now: the newest probe failed. A new removal asks this of every counted checker.
    since: when `healthy` last changed, on the checker's clock (ns).
    cause: why the newest failure failed, kept while the target is down; empty for a healthy one.
    flips: falls so far, one forgotten for each five minutes spent up; the hold is 30 s for each.
    hold_until: passing again but held down until then, on the checker's clock (ns); 0 when not held.
    capacity: the newest reading, or None if the target never gave one.
    """

    key: str
    healthy: bool | None = None
    counts: bool = False
    failing_now: bool = False
    since: int = 0
    cause: str = ""
    flips: int = 0
    hold_until: int = 0
    capacity: int | None = None


class CheckerReport(msgspec.Struct, frozen=True, gc=False):
    """The body: all verdicts of one checker on one pool.

    zone, pool: whose report this is; one row for each pair.
    sequence: raised by one at each new body, kept over restarts.
    suspect: the checker's reason to distrust itself, or None.
    verdicts: one for each target, in the order the targets are listed.
    """

    zone: str
    pool: str
    sequence: int
    suspect: Suspicion | None
    verdicts: tuple[Verdict, ...]


class Beat(msgspec.Struct, frozen=True, gc=False):
    """The heartbeat: the checker is alive, and the body numbered `sequence` is what it still thinks.

    number: raised by one at each beat; a reader takes a *change* of it as the sign of life.
    sequence: the newest body's. A reader that holds an older body doesn't count it.
    suspect: as in the body, repeated so that doubt travels with the cheap row.
    """

    zone: str
    pool: str
    number: int
    sequence: int
    suspect: Suspicion | None = None
