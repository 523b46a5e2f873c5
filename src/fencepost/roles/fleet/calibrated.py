"""How much a manager has in flight: as it was calibrated, or where it never was, a number that hurts nobody.

What is learned in a recovery comes too late for it; so it is measured on a quiet day and kept in a row.
"""

import logging

from fencepost.core.admission import AdmissionSettings
from fencepost.core.capacity.calibrated import HOSTS, UNCALIBRATED, settings_from, share_of
from fencepost.core.capacity.lease_calls import LeaseSettings
from fencepost.core.capacity.rows import CalibrationRow
from fencepost.ports import PortError
from fencepost.ports.fleet import FleetStorePort

log = logging.getLogger(__name__)

__all__ = ["HOSTS", "UNCALIBRATED", "admission_settings", "settings_from", "share_of"]


async def admission_settings(store: FleetStorePort, lease: LeaseSettings) -> AdmissionSettings:
    """What a shard's admission goes by; from the row if there is one and the store answers."""
    row = UNCALIBRATED
    try:
        page = await store.rows("calibration")
    except PortError as error:
        log.warning(
            "not known how much may be in flight, %d by all shards until a restart: %s", row.limit, error.in_full
        )
    else:
        found = [each.row for each in page.rows if isinstance(each.row, CalibrationRow) and each.row.name == HOSTS]
        row = found[0] if found else row
    return settings_from(row, lease)
