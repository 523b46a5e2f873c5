"""A calibration as what admission goes by: how much may be in flight, and when a call counts as silent.

Without one the numbers are those of one room with fast hosts. Where calls take forty times longer that is wrong: each
second call counts as failed, the brake lets two or three be in flight, and eighty hosts wait for minutes to be asked.
No lease may be lost by that (:mod:`~fencepost.core.capacity.host_lease`), but little gets done.

**L is of the whole fleet.** It is measured on all hosts together, and what it bounds (the network, the hosts' machines,
the store) is shared by all managers. So each shard has its share of it, whoever owns the shard and however many others
he owns: what is in flight of all shards together is at most L, or 1.1 L at the brake's ceiling. A shard has at least
one in flight, else its hosts would never be asked; only with more shards than L is the sum more than L, and is their
number then. A stored row says L of the whole whatever the number of shards was when it was measured.
"""

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity.lease_calls import LeaseSettings
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration

HOSTS = "hosts"
"""The row about checks of hosts."""
UNCALIBRATED = CalibrationRow(HOSTS, limit=64, service=5 * MILLISECOND, slowest=250 * MILLISECOND, rate=0.0)

ATTEMPT_LEAST: Duration = 500 * MILLISECOND
"""A host is told apart from a busy machine: what takes less than that is no silence."""


def share_of(limit: int, shard: int, of: int) -> int:
    """What a shard (1 to ``of``) may have in flight of a fleet's ``limit``: at least 1.

    Shares differ by one at most, and come to ``limit`` together (to ``of``, if that is more).
    """
    each, rest = divmod(limit, of)
    return max(1, each + (shard <= rest))


def settings_from(row: CalibrationRow, lease: LeaseSettings) -> AdmissionSettings:
    """A calibration of a fleet as the settings of one shard's admission.

    Service times stay as they were measured: with every shard at its share the service is at L, as it was then.
    An attempt may take four times the slowest of a thousand, and never more than one renewal: a call that hangs for
    longer than its lease has left would let it lapse (kubernetes #44887).
    """
    renew = lease.renew
    slowest = min(max(row.slowest, row.service), renew // 2)
    service = min(row.service, slowest)
    attempt = min(max(4 * slowest, ATTEMPT_LEAST), renew, 5 * SECOND)
    limit = share_of(row.limit, lease.shard, lease.of)
    return AdmissionSettings(limit, service, slowest, slowest, max(attempt, slowest), period=renew)
