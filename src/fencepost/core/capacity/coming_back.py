"""How a shard's leases come back after many were lost: how many of how many, how fast, and how long yet.

A manager notes with each row about itself how many leases it had given by its own clock, and keeps the last half
minute of that in the row. So whoever reads one row has several counts with their times, from one clock, and guesses
nothing from a single one. The pace is counted from the fewest held on: while leases still lapse there is none yet.

Awkward truth: the rate is that of the last half minute, no promise. The last few hosts may be dead and never come.
"""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from fencepost.core.instant import SECOND, Duration, Instant

Noted: TypeAlias = tuple[Instant, int, int]
"""The noter's monotonic time (ns), leases held, and hosts that should hold one."""
SPAN: Duration = 30 * SECOND
MOST = 20
"""So much of the past is kept, in time and in number: rows are written each two seconds while counts change."""
SAMPLES = 3
"""Of two counts one may be from before a burst, and the other from after it."""
SHARE, LEAST = 0.1, 2
"""More than this share without a lease, and at least so many, are a loss of many: as for a mass lapse."""


class Pace(Struct, frozen=True, gc=False):
    """Leases that came back a second (never negative), and over how long that was counted."""

    rate: float
    over: Duration


class ComingBack(Struct, frozen=True, gc=False):
    """``back`` of ``of`` leases are held. ``pace`` is None where too little was noted to tell; ``left`` is how long it
    takes yet at this pace, None where that can't be told or nothing moves.
    """

    back: int
    of: int
    pace: Pace | None
    left: Duration | None


def noted(past: Sequence[Noted], at: Instant, held: int, of: int) -> tuple[Noted, ...]:
    """The past with one more count, what is too old left out."""
    return (*(each for each in past if at - SPAN <= each[0] < at), (at, held, of))[-MOST:]


def pace_of(past: Sequence[Noted]) -> Pace | None:
    """How fast leases came back since the fewest were held; None with fewer than three counts since then."""
    if not past:
        return None
    least = min(held for _, held, _ in past)
    since = next(place for place, (_, held, _) in enumerate(past) if held == least)
    counted = past[since:]
    over = counted[-1][0] - counted[0][0]
    if len(counted) < SAMPLES or over <= 0:
        return None
    return Pace((counted[-1][1] - least) * SECOND / over, over)


def coming_back(shards: Sequence[Sequence[Noted]], fresh: Sequence[bool]) -> ComingBack | None:
    """All shards together, by what each noted; None unless many lacked their lease lately, and some still do.

    It is done when the slowest shard is. A shard whose row isn't ``fresh`` counts as it was, and at no pace.
    """
    told = [(past, new) for past, new in zip(shards, fresh, strict=True) if past]
    back, of = sum(past[-1][1] for past, _ in told), sum(past[-1][2] for past, _ in told)
    lacked = sum(max(all_ - held for _, held, all_ in past) for past, _ in told)
    if back >= of or lacked < LEAST or lacked <= SHARE * of:
        return None
    rate, over, left = 0.0, 0, 0
    known = ends = True
    for past, new in told:
        lacks = past[-1][2] - past[-1][1]
        if lacks <= 0:
            continue
        pace = pace_of(past) if new else None
        if pace is None:
            known = False
        elif pace.rate <= 0:
            ends, over = False, max(over, pace.over)
        else:
            rate, over = rate + pace.rate, max(over, pace.over)
            left = max(left, int(lacks * SECOND / pace.rate))
    return ComingBack(back, of, Pace(rate, over) if known else None, left if known and ends else None)
