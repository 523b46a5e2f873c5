"""A calibration as what admission goes by: how much may be in flight, and when a call counts as silent.

Without one the numbers are those of one room with fast hosts. Where calls take forty times longer that is wrong: each
second call counts as failed, the brake lets two or three be in flight, and eighty hosts wait for minutes to be asked.
No lease may be lost by that (:mod:`~fencepost.core.capacity.host_lease`), but little gets done.
"""

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration

HOSTS = "hosts"
"""The row about checks of hosts."""
UNCALIBRATED = CalibrationRow(HOSTS, limit=64, service=5 * MILLISECOND, slowest=250 * MILLISECOND, rate=0.0)

ATTEMPT_LEAST: Duration = 500 * MILLISECOND
"""A host is told apart from a busy machine: what takes less than that is no silence."""


def settings_from(row: CalibrationRow, renew: Duration) -> AdmissionSettings:
    """A calibration as admission's settings.

    An attempt may take four times the slowest of a thousand, and never more than one renewal: a call that hangs for
    longer than its lease has left would let it lapse (kubernetes #44887).
    """
    slowest = min(max(row.slowest, row.service), renew // 2)
    service = min(row.service, slowest)
    attempt = min(max(4 * slowest, ATTEMPT_LEAST), renew, 5 * SECOND)
    return AdmissionSettings(row.limit, service, slowest, slowest, max(attempt, slowest), period=renew)
