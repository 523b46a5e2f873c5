"""Launches, as the API takes them: admitted, written once a key, and found again by whoever lost the reply."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct, structs

from fencepost.core.capacity import launches
from fencepost.core.capacity.fleet_store import Change, Group
from fencepost.core.capacity.rows import CheckpointRow, InstanceRow, LaunchRow
from fencepost.core.instant import SECOND, Instant
from fencepost.ports import Refused, Unavailable
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet import opening
from fencepost.roles.fleet.refusals import Conflict, Insufficient, LimitExceeded, Unknown
from fencepost.roles.fleet.view import View
from fencepost.settings import Region
from fencepost.settings.mistakes import advice
from fencepost.settings.providers import PROVIDERS
from fencepost.settings.schema import Target
from fencepost.settings.sizes import too_big
from fencepost.settings.units import spoken

KEY_LETTERS = 128


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for: ``count`` instances of a pool. ``key`` is drawn by whoever asks, once for each launch."""

    pool: str
    count: int = 1
    key: str = ""
    by: str = ""
    reason: str = ""


class Clocks(NamedTuple):
    """``wall``: nanoseconds since 1970. ``steady``: the process's own. ``draw``: 64 random bits."""

    wall: Callable[[], Instant]
    steady: Callable[[], Instant]
    draw: Callable[[], int]


class Launcher:
    """Takes launches for one region. ``region`` is what it runs on now."""

    def __init__(self, region: Callable[[], Region], store: FleetStorePort, view: View, clocks: Clocks) -> None:
        self.region = region
        self.store = store
        self.view = view
        self.clocks = clocks
        self.gate = launches.Gate(clocks.steady())
        self.reserved = 0

    async def launch(self, ask: Launch) -> LaunchRow:
        """The launch, with its instances' names. Raises a ``PortError`` (see :mod:`~.refusals`).

        After ``Unavailable`` it may have been written: ask again under the same key.
        """
        like = self.judged(ask)
        key = ask.key or launches.name_of("launch", self.clocks.draw())
        await self.view.refresh()
        known = self.view.launch(key)
        if known is None:
            self.admit(ask)
            self.reserved += ask.count
            try:
                known = await self.write(ask, key, like)
                await self.finish(known, like)
                await self.view.refresh()
            finally:
                self.reserved -= ask.count
        elif known.digest != launches.digest_of(ask.pool, ask.count):
            what = f"the key {key} stands for another launch, of {len(known.instances)} instances"
            raise Conflict(what, where="key", hint="draw another key for each launch")
        else:
            await self.finish(known, like)
        return known

    def judged(self, ask: Launch) -> InstanceRow:
        """What each instance is like. Raises ``Refused``."""
        region = self.region()
        pool = next((each for each in region.pools if each.name == ask.pool), None)
        launched = [each.name for each in region.pools if each.launch is not None]
        if pool is None:
            raise Unknown(f"there is no pool {ask.pool[:40]!r}", where="pool", hint=advice(ask.pool, launched))
        if pool.launch is None or region.fleet is None:
            hint = f"write [pool.{pool.name}.launch] in region.toml"
            raise Refused(f"pool {pool.name} launches nothing", where="pool", hint=hint)
        if not 1 <= ask.count <= launches.MOST:
            raise Refused(f"{ask.count} instances at once; 1 to {launches.MOST}", where="count", hint="launch in parts")
        if len(ask.key) > KEY_LETTERS or not ask.key.isascii() or (ask.key and not ask.key.isprintable()):
            raise Refused(f"a key has at most {KEY_LETTERS} plain letters", where="key", hint="draw a UUID for each")
        launch = pool.launch
        return InstanceRow("", pool.name, port=launch.port, command=launch.command, asked_at=self.clocks.wall())

    def admit(self, ask: Launch) -> None:
        """Raise what speaks against letting it in now; nothing is awaited here, so two can't have the same place."""
        fleet = self.region().fleet
        self.refuse_too_big(ask)
        closed = self.view.closed(fleet.shards if fleet is not None else 1)
        if closed:
            raise self.not_open(closed[0])
        depth = len(self.view.waiting) + self.reserved
        free = max(0, self.view.room.free - depth)
        if free < ask.count:
            places = max(0, self.view.room.places - depth)
            short = f" ({places} places, and addresses for {free}: addresses are short)" if places > free else ""
            what = f"insufficient capacity: room for {free}{short}, and {ask.count} asked for"
            more = "give agents more addresses (--address)" if places >= ask.count else "add hosts"
            shut = self.view.room.shut
            if shut:
                what = f"{what}; {shut} more on hosts that are cordoned or drained"
                more = f"fencepost resume HOST    opens one; or {more}"
            hint = f"fencepost fleet hosts    shows where room is; {more}, or terminate instances"
            raise Insufficient(what, where="the fleet", hint=hint)
        who, now = f"{ask.by}/{ask.key}", self.clocks.steady()
        # Each instance takes its host a check and a write: as many as were measured to come about a second, at most.
        measured, rate = self.view.calibration, self.view.pace.rate
        rate = min(rate, measured.rate) if measured is not None and measured.rate > 0 else rate
        wait = self.gate.wait(ask.count, depth, rate, self.view.stages, now, who)
        if wait:
            what = f"request limit exceeded: {self.why(depth)}"
            raise LimitExceeded(what, wait, where="the fleet", hint="come back then, with the same key")

    def not_open(self, shard: int) -> Unavailable:
        """What a launch waits for while a shard's hosts aren't all known yet, and for how long, as its manager says."""
        said = self.view.row("checkpoint", str(shard))
        counts = opening.counts_now(said if isinstance(said, CheckpointRow) else None, self.clocks.wall())
        waits, left = opening.waits_for(counts), counts.get("waits_s", 0)
        what = f"not every host has been heard of yet (shard {shard}), and nothing is placed until then: it waits for"
        after = f"in {spoken(left * SECOND)}" if left and not counts.get("missing") else "once that is over"
        hint = f"ask again {after};  fencepost status    says how long yet"
        return Unavailable(f"{what} {waits}", where="the fleet", hint=hint)

    def why(self, depth: int) -> str:
        """What a launch is turned away for, when so many wait for a place."""
        if depth:
            return "a launch waits already" if depth == 1 else f"{depth} launches wait already"
        owed = max((stage.depth for stage in self.view.stages), default=0)
        if owed:
            who = "an instance waits for its" if owed == 1 else f"{owed} instances wait for their"
            return f"{who} network state already"
        return "more was launched a moment ago than is placed in so short a time"

    def refuse_too_big(self, ask: Launch) -> None:
        """Raise ``Refused`` if an endpoint of the pool couldn't be written with so many addresses in it."""
        region = self.region()
        pool = region.pool(ask.pool)
        there = self.view.pools[ask.pool] + self.reserved
        for endpoint in region.endpoints:
            if endpoint.pool == ask.pool:
                like = Target("2001:db8::1" if "AAAA" in endpoint.records else "192.0.2.1", "", None, 0, 0)
                whole = structs.replace(pool, targets=pool.targets + (there + ask.count) * (like,))
                fault = too_big(endpoint, whole, PROVIDERS[region.dns.provider].room)
                if fault:
                    raise Refused(fault, where="count", hint=f"{there} instances of pool {ask.pool} are there")

    async def write(self, ask: Launch, key: str, like: InstanceRow) -> LaunchRow:
        """The launch's row and its first instances, together; another's under the same key if that came first."""
        names = tuple(
            dict.fromkeys(launches.name_of(ask.pool, self.clocks.draw()) for _ in range(ask.count + ask.count // 8 + 1))
        )[: ask.count]
        row = LaunchRow(key, launches.digest_of(ask.pool, ask.count), names, like.asked_at)
        first = launches.instances_of(like, names[: launches.AT_ONCE - 1])
        written = await self.store.commit(None, [(Change(row, 0), *(Change(each, 0) for each in first))])
        if written is not None and written.applied[0]:
            return row
        await self.view.refresh()
        known = self.view.launch(key)
        if known is None or known.digest != row.digest:
            raise Conflict(f"the key {key} stands for another launch", where="key", hint="draw another key for each")
        return known

    async def finish(self, launch: LaunchRow, like: InstanceRow) -> None:
        """Write what of a launch isn't there yet."""
        if len(launch.instances) < launches.AT_ONCE:
            return
        await self.view.refresh()
        names = launches.unwritten(launch, self.view.rows["instance"], self.clocks.wall())
        groups: list[Group] = []
        for at in range(0, len(names), launches.AT_ONCE):
            rows = launches.instances_of(like, names[at : at + launches.AT_ONCE])
            groups.append(tuple(Change(row, 0) for row in rows))
        if groups:
            await self.store.commit(None, groups)
