"""A simulated manager's placing: reads what changed, decides, writes under the shard's claim, again and again."""

from collections.abc import Callable, Sequence

from fencepost.core.capacity.fleet_store import Group, Versioned
from fencepost.core.capacity.placement import Placement, PlacementSettings
from fencepost.core.capacity.rows import HostRow, Kind, ShardRow
from fencepost.core.capacity.told_by_hosts import ToldByHosts
from fencepost.core.instant import MILLISECOND, SECOND, Duration
from fencepost.ports.fleet import Written
from fencepost.simulator.fleet.manager import SimManager

KINDS: tuple[Kind, ...] = ("shard", "host", "instance")
REST: Duration = 100 * MILLISECOND
Pages = list[tuple[str, int, Sequence[Versioned]]]


class SimPlacer:
    """One shard's placing."""

    def __init__(self, manager: SimManager, ready: Callable[[str], bool]) -> None:
        self.manager = manager
        self.walk = manager.walk
        self.ready = ready
        self.settings = PlacementSettings(manager.shard, manager.of, patience=60 * SECOND)

    def begin(self) -> None:
        """It starts with its manager."""
        self.placement = Placement(self.settings, "")
        self.since: dict[Kind, int] = {}
        self.busy = self.wanted = False
        self.manager.news[:] = [self.news]
        self.idle()

    def idle(self) -> None:
        """Look at least each second."""
        self.news()
        self.walk.to(self.manager.process, self.walk.now + SECOND, self.idle)

    def news(self) -> None:
        """Rows changed, or a host told something."""
        if self.manager.process.alive and not self.wanted:
            self.wanted = True
            self.walk.to(self.manager.process, self.walk.now + REST, self.turn)

    def turn(self) -> None:
        """One look, and one commit if there is something to write."""
        self.wanted = False
        if self.busy:
            return
        if not self.manager.leases.acting:
            self.placement = Placement(self.settings, "")
            return
        self.busy = True
        self.walk.call(self.manager.process, self.read, self.decide, self.failed)

    def failed(self) -> None:
        """The store is away, or this write's outcome is unknown: what changed is read anew."""
        self.busy = False

    def read(self) -> Pages:
        """What changed; everything, in another life of the store."""
        rows = self.walk.rows
        same = rows.life == self.placement.life
        return [
            (rows.life, rows.snapshot, rows.changed(kind, None, self.since.get(kind, 0) if same else 0))
            for kind in KINDS
        ]

    def decide(self, pages: Pages) -> None:
        """Take the rows, decide, write."""
        if not self.manager.leases.acting:
            self.busy = False
            return
        for kind, (life, snapshot, rows) in zip(KINDS, pages, strict=True):
            if life != self.placement.life:
                self.placement = Placement(self.settings, life)
                self.placement.told = ToldByHosts(self.manager.core)
                self.since.clear()
            self.take(rows)
            self.since[kind] = snapshot
        table = self.manager.hands.table
        for number in table.down:
            self.placement.look[table.names[number]] = None
        now = self.manager.process.clock(self.walk.now)
        groups = self.placement.decide(now, self.walk.now, self.ready)
        self.manager.leases.room = self.placement.room.free
        if not groups:
            self.busy = False
            return
        self.write(groups)

    def write(self, groups: tuple[Group, ...]) -> None:
        """Write what was decided, under the claim."""
        owner, claim = self.manager.settings.owner, self.manager.hands.claim()

        def done(written: Written | None) -> None:
            self.busy = False
            if written is not None:
                self.placement.wrote(groups, written.snapshot, written.applied)
                self.news()

        work = lambda: self.walk.judge.commit(owner, claim, groups)  # noqa: E731
        self.walk.call(self.manager.process, work, done, self.failed, writes=True)

    def take(self, rows: Sequence[Versioned]) -> None:
        """Rows as they are now."""
        for at in rows:
            match at.row:
                case ShardRow() as row:
                    self.placement.shard(row)
                case HostRow():
                    self.placement.host(at)
                case _:
                    self.placement.instance(at)
