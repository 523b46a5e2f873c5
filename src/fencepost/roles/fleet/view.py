"""What stands in the fleet's rows, read again only where it changed: for those who look, and for launches.

A host's lease in words: *held*, *suspect* (it didn't answer lately), *lapsed*, *unknown* (of another life of the store,
or never granted). An instance's: *waiting*, *pending* (placed, its network not acknowledged), *ready*, *ending*,
*ended*.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from fencepost.core.capacity import launches
from fencepost.core.capacity.attempts import free_addresses, free_room, to_be_moved
from fencepost.core.capacity.clearing import clearable, hidden
from fencepost.core.capacity.fleet_store import Versioned
from fencepost.core.capacity.network_state import missing
from fencepost.core.capacity.room import Room
from fencepost.core.capacity.rows import (
    CalibrationRow,
    CheckpointRow,
    DrainRow,
    FleetRow,
    HostRow,
    InstanceRow,
    Kind,
    LaunchRow,
    NetworkRow,
    ShardRow,
)
from fencepost.core.capacity.shards import closed
from fencepost.core.instant import Instant
from fencepost.ports.fleet import FleetStorePort

READ: tuple[Kind, ...] = ("shard", "host", "instance", "network", "launch", "checkpoint", "drain", "calibration")


class HostSeen(Struct, frozen=True, gc=False):
    """A host for people and programs. ``seen_s`` is the age of its last answer, None if nobody noted one.

    ``free`` is how many more instances may be placed there, ``addresses`` how many of its addresses no instance has.
    ``stuck`` is how many of its instances have no place elsewhere, though it is drained. ``unable`` is why it can't
    write its memory, as it says, "" if it can; ``unable_at`` since when, "" where it isn't so.
    """

    host: str
    zone: str
    at: str
    lease: str
    word: str
    room: int
    used: int
    seen_s: int | None
    instances: tuple[str, ...]
    free: int = 0
    addresses: int = 0
    stuck: int = 0
    unable: str = ""
    unable_at: str = ""


class InstanceSeen(Struct, frozen=True, gc=False):
    """An instance for people and programs. ``old`` is where an attempt before this one still runs, "" for nowhere.

    ``why`` says what it waits for, or why it ended; ``ends`` how many of its attempts in a row ended by themselves.
    ``again_at`` is when the next attempt is due after one that did, "" where none is waited for.
    ``stuck`` says why it has no place elsewhere, if it stays on a drained host for that.
    """

    instance: str
    pool: str
    state: str
    attempt: int
    host: str
    zone: str
    address: str
    port: int
    old: str
    asked_at: str
    why: str
    ends: int = 0
    again_at: str = ""
    stuck: str = ""


class View:
    """All rows of a store, by kind and key. ``steady`` is the process's own monotonic time, nanoseconds."""

    def __init__(self, store: FleetStorePort, steady: Callable[[], Instant]) -> None:
        self.store = store
        self.steady = steady
        self.pace = launches.Pace()
        self.life = ""
        self._reading: asyncio.Task[None] | None = None
        self._begin("")

    def _begin(self, life: str) -> None:
        self.life = life
        self.since: dict[Kind, int] = dict.fromkeys(READ, 0)
        self.rows: dict[Kind, dict[str, Versioned]] = {kind: {} for kind in READ}
        self.room = Room(life)
        self.held = Counter[str]()
        self.waiting: dict[str, None] = {}
        self.placed = 0
        self.pools = Counter[str]()
        self.ready: dict[str, None] = {}
        self.came: dict[str, Instant] = {}  # when a checkpoint's present version was read, by our own clock

    async def refresh(self) -> None:
        """Read what changed since the last time, at least up to now. Raises a ``PortError``."""
        if self._reading is not None and not self._reading.done():
            # One that began before may have passed what its caller just wrote; the next one surely hasn't.
            await asyncio.wait([self._reading])
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        for kind in READ:
            page = await self.store.rows(kind, None, self.since[kind])
            if page.life != self.life:
                self._begin(page.life)
                await self._read()
                return
            self.since[kind] = max(self.since[kind], page.snapshot)
            for at in page.rows:
                self.take(kind, at)
        self.pace.see(len(self.waiting), self.placed, self.steady())

    def take(self, kind: Kind, at: Versioned) -> None:
        """One row, if it is newer than what is known."""
        known = self.rows[kind].get(at.row.key)
        if known is not None and known.revision >= at.revision:
            return
        self.rows[kind][at.row.key] = at
        if isinstance(at.row, CheckpointRow):
            self.came[at.row.key] = self.steady()
        elif isinstance(at.row, HostRow):
            self.take_host(at.row, known.row if known is not None else None)
        elif isinstance(at.row, InstanceRow):
            if known is not None and isinstance(known.row, InstanceRow):
                if known.row.id != at.row.id:
                    self.ready.pop(known.row.id, None)
                self.pools[known.row.pool] -= known.row.state != "ended"
            self.pools[at.row.pool] += at.row.state != "ended"
            if at.row.state == "waiting":
                self.waiting[at.row.instance] = None
            elif at.row.instance in self.waiting:
                del self.waiting[at.row.instance]
                self.placed += at.row.state == "placed"

    def take_host(self, row: HostRow, before: FleetRow | None) -> None:
        """A host's row: its room, and which instances stand in any host's set, ``held``."""
        self.room.put(row)
        if isinstance(before, HostRow):
            for each in before.set.instances:
                self.held[each.name] -= 1
                if not self.held[each.name]:
                    del self.held[each.name]
        for each in row.set.instances:
            self.held[each.name] += 1

    async def clear(self, now: Instant) -> int:
        """Delete rows that nobody minds any more; how many. Raises a ``PortError``."""
        await self.refresh()
        groups = clearable(self.rows["instance"], self.rows["launch"].values(), self.held, now)
        if not groups:
            return 0
        written = await self.store.commit(None, groups)
        applied = written.applied if written is not None else ()
        for (change,), ok in zip(groups, applied, strict=False):
            if ok:
                kind, key = change.place
                self.rows[kind].pop(key, None)
        return sum(applied)

    def row(self, kind: Kind, key: str) -> FleetRow | None:
        """One row."""
        at = self.rows[kind].get(key)
        return at.row if at is not None else None

    def host(self, name: str) -> HostRow | None:
        """A host's row."""
        row = self.row("host", name)
        return row if isinstance(row, HostRow) else None

    def instance(self, name: str) -> InstanceRow | None:
        """An instance's row."""
        row = self.row("instance", name)
        return row if isinstance(row, InstanceRow) else None

    def launch(self, key: str) -> LaunchRow | None:
        """A launch's row."""
        row = self.row("launch", key)
        return row if isinstance(row, LaunchRow) else None

    @property
    def stages(self) -> list[DrainRow]:
        """How each stage behind launches keeps up."""
        return [at.row for at in self.rows["drain"].values() if isinstance(at.row, DrainRow)]

    @property
    def calibration(self) -> CalibrationRow | None:
        """How many hosts may be asked at once, if that was ever measured."""
        row = self.row("calibration", "hosts")
        return row if isinstance(row, CalibrationRow) else None

    def closed(self, shards: int) -> tuple[int, ...]:
        """The shards whose hosts aren't all known yet in this life of the store: nothing is placed meanwhile."""
        rows = (at.row for at in self.rows["shard"].values())
        return closed((row for row in rows if isinstance(row, ShardRow)), shards, self.life)

    # For people.

    def short(self, pool: str) -> str:
        """What hosts are short of, so that nothing of a pool can be placed; "" where something can."""
        if not self.room.free:
            return "no host with room has a free address" if self.room.places else "no host has room"
        taken = "each free address of a host with room is in use at another host, which gives it too"
        return "" if self.room.choose(pool) else taken

    def stuck(self, row: InstanceRow) -> str:
        """What hosts are short of, so that an instance can't leave a drained host; "" if it can, or needn't."""
        host = self.host(row.host) if row.state == "placed" else None
        return self.short(row.pool) if host is not None and to_be_moved(row, host, self.life) else ""

    def stuck_at(self, host: HostRow) -> int:
        """How many instances can't leave a drained host."""
        if host.word != "drain":
            return 0
        rows = (self.instance(each.name) for each in host.set.instances)
        return sum(row is not None and row.host == host.host and bool(self.stuck(row)) for row in rows)

    def lease(self, row: HostRow) -> str:
        """A host's lease in words."""
        if row.life != self.life or row.lease == "none":
            return "unknown"
        return "suspect" if row.lease == "held" and row.left else row.lease

    def noted(self, now: Instant | None = None) -> tuple[dict[str, int], set[str]]:
        """What managers noted of hosts: seconds since each one's last answer, and who didn't answer the last check.

        For people by the wall clocks, with the time ``now``. Without it, for rules: at least so long ago by clocks that
        never jump, the manager's until it noted that and ours since we read it.
        """
        answered, silent = dict[str, int](), set[str]()
        found = sorted(self.rows["checkpoint"].values(), key=lambda each: each.revision)
        rows = (each.row for each in found)  # the newest counts, where blocks were divided otherwise
        for row in (each for each in rows if isinstance(each, CheckpointRow)):
            if row.counts:
                continue
            since = now - row.at if now is not None else self.steady() - self.came[row.key]
            later = max(0, since) // 10**9
            silent.difference_update(row.hosts)
            silent.update(row.hosts[place] for place in row.silent if place < len(row.hosts))
            answered.update((host, age + later) for host, age in zip(row.hosts, row.ages, strict=False) if age >= 0)
        return answered, silent

    def hosts(self, now: Instant, when: Callable[[Instant], Any], after: str = "") -> Iterator[HostSeen]:
        """Hosts after a name, in order of their names. ``now`` is nanoseconds since 1970; ``when`` writes a time."""
        answered, silent = self.noted(now)
        for name in sorted(self.rows["host"]):
            row = self.host(name)
            if name > after and row is not None and not hidden(row, self.life):
                ids = tuple(each.id for each in row.set.instances)
                lease = self.lease(row)
                words = (row.zone, row.at, "suspect" if lease == "held" and name in silent else lease, row.word)
                free = (free_room(row, self.life), len(free_addresses(row)), self.stuck_at(row))
                unable = (row.unable, when(row.unable_at) if row.unable_at else "")
                yield HostSeen(name, *words, row.room, len(ids), answered.get(name), ids, *free, *unable)

    def state(self, row: InstanceRow) -> tuple[str, str]:
        """An instance's state in words, and what it lacks or why it is so."""
        if row.state != "placed":
            return row.state, row.why or (self.short(row.pool) if row.state == "waiting" else "")
        if row.id in self.ready:
            return "ready", row.why  # a newer version that isn't acknowledged yet takes nothing away
        network = self.row("network", row.id)
        lacks = missing(network if isinstance(network, NetworkRow) else None, self.host(row.host), self.life)
        if not lacks:
            self.ready[row.id] = None
        return ("pending", lacks) if lacks else ("ready", row.why)

    def instances(self, when: Callable[[Instant], Any], after: str = "") -> Iterator[InstanceSeen]:
        """Instances after a name, in order of their names; ``when`` writes a time."""
        for name in sorted(self.rows["instance"]):
            row = self.instance(name)
            if name <= after or row is None:
                continue
            state, why = self.state(row)
            asked, again = (when(at) if at else "" for at in (row.asked_at, row.again_at))
            where = (row.host, row.zone, row.address, row.port, row.old[0])
            last = (row.ends, again, self.stuck(row))
            yield InstanceSeen(row.instance, row.pool, state, row.attempt, *where, asked, why, *last)
