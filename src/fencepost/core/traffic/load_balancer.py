"""The load balancer: from the checkers' reports to the membership row.

Each pass reads everything anew (reports, overrides, listing, the row with its version) and answers with at most one
compare-and-set of the row. What it remembers between passes is only what makes it more careful: when it last saw each
checker's beat change, how long a lone dissenter has stood, how sick the pool was seconds ago, and how much time it has
itself seen pass since the row was written. Losing that memory delays removals; it never adds one.
"""

import msgspec

from fencepost.core.effects import Effect
from fencepost.core.events import Event
from fencepost.core.traffic.health import HealthSettings
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.membership import Listing, Membership, Mode, Override
from fencepost.core.traffic.verdict import Beat, CheckerReport


class PoolSettings(msgspec.Struct, frozen=True, gc=False):
    """What the file says of one pool. `mode` is the file's; an override may be stricter."""

    name: str
    health: HealthSettings = HealthSettings()
    safety: SafetySettings = SafetySettings()
    mode: Mode = Mode.ENABLED


class ReportsRead(Event, frozen=True, gc=False):
    """Everything one pass needs, read in one go.

    settings, listing: the pool as configured.   reports, beats: the newest of each zone's checker.
    overrides: those of this pool (or of the region, spelled out for it); expired ones may be among them.
    row, version: the membership row and the store's version of it; None and 0 when there is none.
    published: addresses in DNS now, needed only when `row` is None; None if DNS couldn't be read, and then a pool
    without a row waits.
    """

    settings: PoolSettings
    listing: Listing
    reports: tuple[CheckerReport, ...] = ()
    beats: tuple[Beat, ...] = ()
    overrides: tuple[Override, ...] = ()
    row: Membership | None = None
    version: int = 0
    published: frozenset[str] | None = frozenset()


class WriteMembership(Effect, frozen=True, gc=False):
    """Replace the row if its version is still `expected_version` (0: if there is none).

    Not answered: a refused or lost write is found by the next pass, which reads the row again.
    """

    pool: str
    expected_version: int
    row: Membership
