"""What a running manager takes up without a restart: a new calibration, the names of all hosts, how long callers'
caches keep an address, and, while instances move, which attempts are in service.

All are looked at together, each few seconds; while the store is away what was read last stands.
"""

import asyncio
import logging
from collections.abc import Mapping

from fencepost.core.capacity.rows import CalibrationRow
from fencepost.core.capacity.shards import shard_of
from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.membership import SERVING, Membership
from fencepost.ports import Misconfigured, PortError, StorePort
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.bodies import read_body
from fencepost.roles.configuration import Running
from fencepost.roles.fleet.calibrated import HOSTS, settings_from
from fencepost.roles.fleet.host_manager import HostManager
from fencepost.roles.fleet.placer import Placer
from fencepost.settings import Region

log = logging.getLogger(__name__)

EVERY_S = 3.0
CACHES_SLACK: Duration = 5 * SECOND
"""Beyond a TTL: what a cache took from another cache, and clocks."""


def linger_of(region: Region) -> Duration:
    """How long an instance that nobody lists any more may still be asked for: the longest TTL of names it serves."""
    launched = {pool.name for pool in region.pools if pool.launch is not None}
    ttls = [endpoint.ttl_s for endpoint in region.endpoints if endpoint.pool in launched]
    return max(ttls, default=0) * SECOND + CACHES_SLACK


def listed_of(region: Region, shard: int) -> frozenset[str]:
    """The hosts of a shard that a region names; none where it takes all."""
    fleet = region.fleet
    if fleet is None:
        return frozenset()
    return frozenset(host for host in fleet.hosts if shard_of(host, fleet.shards) == shard)


def serving(membership: Mapping[str, tuple[int, bytes]]) -> frozenset[str]:
    """The attempts and the listed addresses in service in their pools; none of a pool whose row can't be read.

    At an address that a file lists, membership knows of no attempt: it serves if its probes pass.
    """
    found: set[str] = set()
    for pool, (_, body) in membership.items():
        try:
            row = read_body(Membership, body, f"pool {pool}: its membership row") if body else None
        except Misconfigured as problem:
            log.debug("%s", problem)
            continue
        found.update(
            each.source or each.key for each in (row.members if row is not None else ()) if each.state in SERVING
        )
    return frozenset(found)


class Following:
    """Keeps one manager and its placer by what the store says."""

    def __init__(self, store: StorePort, rows: FleetStorePort, manager: HostManager, placer: Placer) -> None:
        self.store = store
        self.rows = rows
        self.manager = manager
        self.placer = placer
        self.running = Running()
        self.since = 0
        self.life = ""
        self.region: Region | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except PortError as error:
                log.debug("settings: %s", error)
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Once. Raises a ``PortError``."""
        inputs = await self.store.inputs()
        loaded = self.running.take(inputs.config)
        if loaded is not None and loaded.region is not self.region:
            self.region = loaded.region
            self.take(loaded.region)
        if self.placer.moving:
            self.placer.serve(serving(inputs.membership))
        page = await self.rows.rows("calibration", None, self.since)
        if page.life != self.life and self.since:
            page = await self.rows.rows("calibration")
        self.life, self.since = page.life, page.snapshot
        for at in page.rows:
            if isinstance(at.row, CalibrationRow) and at.row.name == HOSTS:
                self.calibrated(at.row)

    def take(self, region: Region) -> None:
        """The configuration as it is now."""
        settings = self.manager.settings
        if region.fleet is not None and region.fleet.shards == settings.of:
            self.manager.lists(listed_of(region, settings.shard))
        self.placer.lingers(linger_of(region))

    def calibrated(self, row: CalibrationRow) -> None:
        """A calibration: what is in flight stays, and the brake begins anew from the new number."""
        wanted = settings_from(row, self.manager.settings)
        if wanted == self.manager.admission_settings:
            return
        before = self.manager.admission_settings.limit
        self.manager.recalibrate(wanted)
        of = self.manager.settings.of
        share = f", the share of this shard of {row.limit}" if of > 1 else ""
        log.info("%d hosts may be asked at once now%s, %d before: calibrated anew", wanted.limit, share, before)
