"""What a manager says of its shard, for people: when each host last answered, who keeps silent, and how it gets on.

Nothing here is a rule's business: it is written beside the work, unhurried, a block of a thousand hosts a row, and only
where somebody answered or fell silent since. A manager that can't write it goes on as before.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fencepost.core.capacity import attempts
from fencepost.core.capacity.clearing import hidden
from fencepost.core.capacity.coming_back import Noted, noted
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.lease_calls import Ids, Lease
from fencepost.core.capacity.lease_columns import LONG_AGO
from fencepost.core.capacity.rows import CheckpointRow, HostRow, InstanceRow
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.ports import PortError
from fencepost.roles.fleet.host_manager import HostManager, now
from fencepost.roles.fleet.placer import Placer

log = logging.getLogger(__name__)

BLOCK = 1000
BLOCKS_A_COMMIT = 10
REST_S = 0.05
"""Between two commits: those of a million hosts take five seconds, of which readers see nothing."""
LOOK_S = 1.0
COUNTS_EVERY: Duration = 2 * SECOND
COUNTS_REST: Duration = 10 * SECOND
"""What a manager says of itself is written so often while something changes, and so often when nothing does."""
BLOCKS_LEAST: Duration = 10 * SECOND
LAPSED_NAMED = LOOPS_NAMED = STUCK_NAMED = UNABLE_NAMED = 10
AT_ONCE = 2000
MOVING = (
    "checks",
    "answers",
    "granted",
    "lapses",
    "orders",
    "in_flight",
    "backlog",
    "limit",
    "waits_s",
)
"""Counts that change all the time: they alone are no news."""


class Teller:
    """One manager's rows. ``written`` are the revisions of its rows, by block."""

    def __init__(self, manager: HostManager, placer: Placer) -> None:
        self.manager = manager
        self.placer = placer
        self.store = manager.store
        self.shard = manager.settings.shard
        self.every = max(manager.settings.renew, BLOCKS_LEAST)
        self.place = self.standing
        self.begin()

    def begin(self) -> None:
        """Nothing was written yet."""
        self.written: dict[str, int] = {}
        self.silent: dict[str, tuple[int, ...]] = {}
        self.sizes: dict[str, int] = {}
        self.news: dict[str, int] = {}
        self.told_at: Instant = LONG_AGO
        self.blocks_at: Instant = LONG_AGO
        self.states: dict[str, int] = {}
        self.loops: tuple[tuple[str, str, int, str], ...] = ()
        self.stuck: tuple[tuple[str, int], ...] = ()
        self.past: tuple[Noted, ...] = ()

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except PortError as error:
                log.debug("nobody is told: %s", error)

    @property
    def standing(self) -> tuple[str, int]:
        """In which life of the store, and in which epoch, the shard is ours."""
        owner = self.manager.leases.owner
        return owner.life, owner.epoch

    async def look(self) -> None:
        """Tell what is due; all of it where it was told to another store: a wiped one has nothing of what we said, and
        a shard may be lost and ours again between two looks. Raises a ``PortError``.
        """
        if not self.manager.leases.acting or self.place != self.standing:
            self.place = self.standing
            self.begin()
        if self.manager.leases.acting:
            await self.tell()

    async def tell(self) -> None:
        """What is due. Raises a ``PortError``."""
        at = now()
        if at - self.told_at >= COUNTS_EVERY:
            await self.count_instances()
            counts = self.counts(at)
            news = {name: value for name, value in counts.items() if name not in MOVING}
            if news != self.news or at - self.told_at >= COUNTS_REST:
                names, sizes = self.lapsed()
                self.past = noted(self.past, at, counts["held"], counts["held"] + self.lacking())
                said = (counts, self.loops, self.stuck, self.unable()[:UNABLE_NAMED], self.past)
                row = CheckpointRow(str(self.shard), self.owner, time.time_ns(), names, sizes, (), *said)
                await self.write([row])
                self.news, self.told_at = news, at
        if at - self.blocks_at >= self.every:
            for some in self.due(at, self.blocks_at):
                await self.write(some)
                await asyncio.sleep(REST_S)
            self.blocks_at = at

    @property
    def owner(self) -> str:
        """Who this manager is."""
        return self.manager.settings.owner

    async def write(self, rows: Sequence[CheckpointRow]) -> None:
        """Write rows over those that were read or written last; over others' the next time. Raises a ``PortError``."""
        groups = [(Change(row, self.written.get(row.block, 0)),) for row in rows]
        done = await self.store.commit(self.manager.hands.claim(), groups)
        if done is None:
            return
        other = []
        for row, ok in zip(rows, done.applied, strict=True):
            if ok:
                self.written[row.block] = done.snapshot
            else:
                other.append(row)
        if not other:
            return
        proof = await self.store.prove(self.shard, [("checkpoint", row.block) for row in other])
        found = {row.block: at.revision for row, at in zip(other, proof.rows, strict=True) if at is not None}
        if any(self.written.get(block) != revision for block, revision in found.items()):
            self.written.update(found)
            await self.write(other)

    # Blocks of hosts.

    def due(self, at: Instant, since: Instant) -> Iterator[list[CheckpointRow]]:
        """The blocks in which somebody answered or fell silent since, some at a time."""
        hosts, names = self.manager.leases.hosts, self.manager.hands.table.names
        quiet, size = self.quiet(at), min(len(names), hosts.size)
        wall, rows = time.time_ns(), list[CheckpointRow]()
        for begin in range(0, size, BLOCK):
            block, end = f"{self.shard}/{begin // BLOCK:06}", min(size, begin + BLOCK)
            seen = hosts.seen[begin:end]
            silent = tuple(np.flatnonzero(quiet[begin:end]).tolist())
            same = silent == self.silent.get(block, ()) and self.sizes.get(block) == end - begin
            if same and not bool((seen > since).any()):
                continue
            self.silent[block], self.sizes[block] = silent, end - begin
            ages = np.where(seen == LONG_AGO, -1, np.maximum(at - seen, 0) // SECOND)
            row = CheckpointRow(block, self.owner, wall, tuple(names[begin:end]), tuple(ages.tolist()), silent)
            rows.append(row)
            if len(rows) == BLOCKS_A_COMMIT:
                yield rows
                rows = []
        if rows:
            yield rows

    def quiet(self, at: Instant) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Hosts that hold a lease and didn't answer their last check; one never asked yet isn't silent for that."""
        leases = self.manager.leases
        hosts = leases.hosts
        last = np.maximum(hosts.seen, leases.taken)
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            (hosts.lease == Lease.HELD) & ~hosts.fresh & (at - last > leases.settings.renew)
        )
        return found

    # The shard as a whole.

    def lapsed(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Some hosts that have lapsed and aren't said to be gone, and how many instances each still has."""
        hosts, table = self.manager.leases.hosts, self.manager.hands.table
        ids: Ids = np.flatnonzero((hosts.lease == Lease.LAPSED) & ~hosts.gone)[:LAPSED_NAMED]
        rows: list[HostRow] = [table.row(number) for number in ids.tolist()]
        return tuple(row.host for row in rows), tuple(len(row.set.instances) for row in rows)

    def unable(self) -> tuple[tuple[str, str, Instant], ...]:
        """The shard's hosts that can't write their memories, as their rows say: which, why and since when."""
        placement, table = self.placer.placement, self.manager.hands.table
        rows = [placement.host_row(name) for name in placement.unable if name in table.numbers]
        found = [row for row in rows if row is not None and row.unable and not hidden(row, placement.life)]
        return tuple((row.host, row.unable, row.unable_at) for row in sorted(found, key=lambda row: row.host))

    def counts(self, at: Instant) -> dict[str, int]:
        """How the shard stands, in numbers."""
        manager, placement = self.manager, self.placer.placement
        leases, admission, done = manager.leases, manager.admission, manager.counts
        hosts, settings = leases.hosts, leases.settings
        told = (hosts.lease == Lease.LAPSED) | ((hosts.lease == Lease.HELD) & hosts.reported)
        row = leases.owner.row
        opened = row is not None and row.open == leases.owner.life
        wait = 0 if opened or settings.expect else max(0, settings.lease - (at - leases.taken))
        forgotten, lapsed = self.forgotten()
        return {
            "hosts": hosts.size - forgotten,
            "held": hosts.held,
            "suspect": int(self.quiet(at).sum()),
            "lapsed": int((hosts.lease == Lease.LAPSED).sum()) - lapsed,
            "lapsed_unsaid": int(((hosts.lease == Lease.LAPSED) & ~hosts.gone).sum()),
            "mass": int(leases.mass),
            "open": int(opened),
            "unheard": int((~told).sum()),
            "missing": max(0, settings.expect - hosts.size),
            "waits_s": wait // SECOND,
            "room": placement.room.free,
            "unable": len(self.unable()),
            **self.states,
            "checks": done.checks,
            "answers": done.answers,
            "granted": done.granted,
            "lapses": done.lapsed,
            "orders": done.orders,
            "in_flight": admission.in_flight,
            "limit": admission.limit,
            "backlog": admission.backlog,
        }

    def lacking(self) -> int:
        """How many hosts hold no lease and should: those that are said to be gone or forgotten aren't waited for."""
        leases, placement, table = self.manager.leases, self.placer.placement, self.manager.hands.table
        hosts = leases.hosts
        absent = (hosts.lease != Lease.HELD) & ~hosts.gone
        for name in placement.forgotten:
            row = placement.host_row(name)
            if name in table.numbers and row is not None and hidden(row, placement.life):
                absent[table.numbers[name]] = False
        return int(absent.sum()) + max(0, leases.settings.expect - hosts.size)

    def forgotten(self) -> tuple[int, int]:
        """How many of the shard's hosts a person has forgotten, and how many of those have lapsed."""
        placement, table = self.placer.placement, self.manager.hands.table
        found = [placement.host_row(name) for name in placement.forgotten if name in table.numbers]
        rows = [row for row in found if row is not None and hidden(row, placement.life)]
        return len(rows), sum(placement.lapsed(row) for row in rows)

    async def count_instances(self) -> None:
        """The shard's instances by state, some at a time."""
        placement = self.placer.placement
        states = dict.fromkeys(("waiting", "pending", "ready", "ending", "ended", "looping", "stuck"), 0)
        loops: list[tuple[str, str, int, str]] = []
        stuck, nowhere = Counter[str](), dict[str, bool]()
        for n, name in enumerate(list(placement.instances)):
            row = placement.instance_row(name)
            if isinstance(row, InstanceRow) and placement.mine(name):
                placed = "ready" if self.placer.acknowledged(row.id) else "pending"
                states[placed if row.state == "placed" else row.state] += 1
                if self.is_stuck(row, nowhere):
                    stuck[row.host] += 1
                if attempts.looping(row):
                    states["looping"] += 1
                    if len(loops) < LOOPS_NAMED:
                        loops.append((row.instance, row.pool, row.ends, row.why))
            if n % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        states["stuck"] = stuck.total()
        self.states, self.loops, self.stuck = states, tuple(loops), tuple(sorted(stuck.items())[:STUCK_NAMED])

    def is_stuck(self, row: InstanceRow, nowhere: dict[str, bool]) -> bool:
        """Whether an instance is to leave a drained host and has nowhere to go; ``nowhere`` keeps that by pool."""
        placement = self.placer.placement
        host = placement.host_row(row.host)
        if host is None or not placement.opened or not attempts.to_be_moved(row, host, placement.life):
            return False
        if row.pool not in nowhere:
            nowhere[row.pool] = placement.room.choose(row.pool) is None
        return nowhere[row.pool]
