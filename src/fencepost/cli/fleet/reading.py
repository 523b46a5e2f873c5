"""Hosts and instances, from as near as they can be had: the API, else the store."""

import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

import msgspec

from fencepost.cli.looking import aged, ask_api
from fencepost.cli.regions import refuse_unstarted, region_of
from fencepost.cli.talk import Talk, talk_about
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.ports import Beat, Misconfigured, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.view import HostSeen, InstanceSeen, View
from fencepost.settings import Region

FROM_STORE = "the API doesn't answer; this is read from the store"


class Seen(NamedTuple):
    """What was read, and where: ``api`` or ``store``. ``calibrated``: it was measured how many may be asked at once.

    ``still`` says that no manager keeps it true, and since when; "" if one does.
    """

    source: str
    hosts: tuple[HostSeen, ...] = ()
    instances: tuple[InstanceSeen, ...] = ()
    calibrated: bool = True
    still: str = ""

    @property
    def line(self) -> str:
        """How far down one had to look; "" where the API said it."""
        if self.source == "api":
            return ""
        return f"{FROM_STORE}; {self.still}" if self.still else FROM_STORE


class Page(msgspec.Struct):
    """A page of the API's answer."""

    more: str
    hosts: tuple[HostSeen, ...] = ()
    instances: tuple[InstanceSeen, ...] = ()
    calibrated: bool = True


def fleet_region(config: str | None) -> Region:
    """The region that a command means, which has a fleet. Raises ``Misconfigured``."""
    region = region_of(config, forgiving=True)
    if region.fleet is None:
        hint = "write [fleet], and [pool.NAME.launch] for a pool that is launched; docs/operating/settings.md"
        raise Misconfigured("this region has no fleet", where=region.path, hint=hint)
    return region


def look(region: Region, what: str, timeout: Duration) -> Seen:
    """All ``hosts`` or ``instances``. Raises a ``PortError`` if neither API nor store can be read."""
    try:
        return from_api(region, what, timeout)
    except Unavailable:
        return from_store(region, timeout)


def from_api(region: Region, what: str, timeout: Duration) -> Seen:
    """As the API says, page after page. Raises ``Unavailable``."""
    from urllib.parse import quote

    pages: list[Page] = []
    while not pages or pages[-1].more:
        after = quote(pages[-1].more, safe="") if pages else ""
        body = ask_api(region, f"/v1/fleet/{what}?most=10000&after={after}", timeout)
        try:
            pages.append(msgspec.json.decode(body, type=Page))
        except msgspec.MsgspecError as error:
            raise Unavailable(f"answered something else ({error})", where=f"the API at {region.api.listen}") from None
    hosts = tuple(each for page in pages for each in page.hosts)
    return Seen("api", hosts, tuple(each for page in pages for each in page.instances), pages[-1].calibrated)


def from_store(region: Region, timeout: Duration) -> Seen:
    """As the store says. Raises a ``PortError``."""
    found: list[Seen] = []

    async def work(talk: Talk, store: FleetStorePort) -> int:
        found.append(await seen(talk, store))
        return 0

    with_store(region, timeout, work)
    return found[0]


async def seen(talk: Talk, store: FleetStorePort) -> Seen:
    """What the store holds now. Raises a ``PortError``."""
    from fencepost.roles.status.document import when

    view = View(store, time.monotonic_ns)
    await talk.within(view.refresh(), "the store")
    beats = await talk.within(talk.store.beats(), "the store")
    measured, now = view.calibration is not None, time.time_ns()
    still = unkept(beats, (at.row for at in view.rows["checkpoint"].values()), now)
    return Seen("store", tuple(view.hosts(now, when)), tuple(view.instances(when)), measured, still)


def unkept(beats: Iterable[Beat], checkpoints: Iterable[object], now: Instant) -> str:
    """That no manager runs, and since when the rows tell of nothing any more; "" if one is heard."""
    from fencepost.core.capacity.rows import CheckpointRow
    from fencepost.roles.status.processes import gone
    from fencepost.roles.status.running import SILENT_AFTER, kind_of

    managers = [each for each in beats if kind_of(each.role) == "host-manager"]
    dead = gone(each.pid for each in managers)
    if any(each.pid not in dead and now - each.at < SILENT_AFTER for each in managers):
        return ""
    told = [each.at for each in managers] + [row.at for row in checkpoints if isinstance(row, CheckpointRow)]
    if not told:
        return "no manager runs"
    return f"no manager runs: leases and instances are as they stood {aged(max(0, now - max(told)) / SECOND)}"


def with_store(
    region: Region, timeout: Duration, work: Callable[[Talk, FleetStorePort], Coroutine[Any, Any, int]]
) -> int:
    """Do a command's work with the fleet's rows; its exit code."""
    refuse_unstarted(region)

    async def whole(talk: Talk) -> int:
        from fencepost.assembly.stores import fleet_store

        store = fleet_store(region)
        try:
            return await work(talk, store)
        finally:
            await store.close()

    return talk_about(region, timeout, whole)
