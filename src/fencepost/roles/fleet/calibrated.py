"""How much a manager has in flight: as it was calibrated, or where it never was, a number that hurts nobody.

What is learned in a recovery comes too late for it; so it is measured on a quiet day and kept in a row.
"""

import logging

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.instant import MILLISECOND, SECOND, Duration
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort

log = logging.getLogger(__name__)

HOSTS = "hosts"
"""The row about checks of hosts."""
UNCALIBRATED = CalibrationRow(HOSTS, limit=64, service=5 * MILLISECOND, slowest=250 * MILLISECOND, rate=0.0)

ATTEMPT_LEAST: Duration = 500 * MILLISECOND
"""A host is told apart from a busy machine: what takes less than that is no silence."""


async def admission_settings(store: FleetStorePort, renew: Duration) -> AdmissionSettings:
    """What admission goes by; from the row if there is one and the store answers."""
    row = UNCALIBRATED
    try:
        page = await store.rows("calibration")
    except PortError as error:
        log.warning("not known how much may be in flight, %d until a restart: %s", row.limit, error.in_full)
    else:
        found = [each.row for each in page.rows if isinstance(each.row, CalibrationRow) and each.row.name == HOSTS]
        row = found[0] if found else row
    return settings_from(row, renew)


def settings_from(row: CalibrationRow, renew: Duration) -> AdmissionSettings:
    """A calibration as admission's settings.

    An attempt may take four times the slowest of a thousand, and never more than one renewal: a call that hangs for
    longer than its lease has left would let it lapse (kubernetes #44887).
    """
    slowest = min(max(row.slowest, row.service), renew // 2)
    service = min(row.service, slowest)
    attempt = min(max(4 * slowest, ATTEMPT_LEAST), renew, 5 * SECOND)
    return AdmissionSettings(row.limit, service, slowest, slowest, max(attempt, slowest))
