"""A recovery in the status document: how many leases are back of how many, how fast, and about when it is done.

It rests on what the managers noted in the store: :mod:`fencepost.core.capacity.coming_back`.
"""

from collections.abc import Iterable

from fencepost.core.capacity.coming_back import coming_back
from fencepost.core.capacity.rows import CheckpointRow
from fencepost.core.instant import SECOND
from fencepost.roles.status.document import RecoveryStatus, seconds
from fencepost.settings.units import spoken

FINE = 10
"""Below so many a second fractions matter."""


def recovery_status(told: Iterable[tuple[CheckpointRow | None, bool]]) -> RecoveryStatus | None:
    """The whole fleet's, of each shard's row and whether it is of lately; None where there is no recovery."""
    rows = [(row, fresh) for row, fresh in told if row is not None]
    found = coming_back([row.past for row, _ in rows], [fresh for _, fresh in rows])
    if found is None:
        return None
    pace = found.pace
    return RecoveryStatus(
        back=found.back,
        of=found.of,
        rate_s=round(pace.rate, 2) if pace is not None else None,
        over_s=seconds(pace.over) if pace is not None else None,
        done_s=seconds(found.left) if found.left is not None else None,
    )


def recovery_words(found: RecoveryStatus) -> str:
    """For people: ``1,200 of 1,808 leases back, about 85/s, done in about 8 s``."""
    text = f"{found.back:,} of {found.of:,} leases back"
    if found.rate_s is None or found.over_s is None:
        return f"{text}; too little noted yet to say how fast"
    if not found.rate_s:
        return f"{text}, none more in the last {found.over_s:.0f} s"
    rate = f"{found.rate_s:,.0f}" if found.rate_s >= FINE else f"{found.rate_s:.2g}"
    if found.done_s is None:
        return f"{text}, about {rate}/s; in one shard none, so when it is done isn't known"
    return f"{text}, about {rate}/s, done in about {spoken(max(1, round(found.done_s)) * SECOND)}"
