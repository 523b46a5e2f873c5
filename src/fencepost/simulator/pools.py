"""Pools of targets: who can really serve, what probes see of it, and the checkers and load balancers that decide.

Checkers and load balancers are the very deciders of production. Made up are the targets and the network between them
and the checkers. The store's part of it (reports, beats, membership rows, overrides, the configuration) is kept here
beside the tables of :mod:`fencepost.core.store`, and is lost and restored with them.
"""

from collections.abc import Callable

from msgspec import Struct, structs

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.store import Wanted
from fencepost.core.traffic.bounded_removal import Witness, is_ordinary, saw
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.load_balancer import PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import SERVING, Listing, Membership, Override, State, Target
from fencepost.core.traffic.verdict import Beat, CheckerReport, ProbeResult
from fencepost.simulator.chance import stream
from fencepost.simulator.timed import EndpointSetting, indexed
from fencepost.simulator.walk import Process, Walk
from fencepost.world.region import Shared

ZONES = ("a", "b", "c")
READINGS = (None, 10, None)
"""What a pool's targets say that they can carry, pool after pool; most say nothing."""
LIE = 240
"""What a lying target says."""


Rouse = Callable[[int], None]


class Configuration(Struct, frozen=True, gc=False):
    """What the owner's file says: endpoints, and each pool's list of targets."""

    endpoints: tuple[EndpointSetting, ...]
    listings: tuple[Listing, ...]


class Kept(Struct, frozen=True, gc=False):
    """What the store holds besides rows, orders and head. Immutable, so that an old copy is just kept."""

    configuration: Configuration | None = None
    rows: tuple[tuple[int, Membership | None], ...] = ()
    reports: tuple[tuple[CheckerReport, ...], ...] = ()
    beats: tuple[tuple[Beat, ...], ...] = ()
    overrides: tuple[tuple[int, Override], ...] = ()


class Truth:
    """Who can serve, and what stands between targets and checkers; each until an instant."""

    def __init__(self, seed: int) -> None:
        self.random = stream(seed, "probes")
        self.dead: dict[str, Instant] = {}
        self.flapping: dict[str, tuple[Instant, Duration]] = {}
        self.lying: dict[str, Instant] = {}
        self.cut: dict[str, tuple[Instant, bool]] = {}
        self.loss_until: Instant = 0
        self.troubled_until: Instant = 0

    def trouble(self, until: Instant) -> None:
        """Something is amiss until then: probes have to be looked at one by one."""
        self.troubled_until = max(self.troubled_until, until)

    def alive(self, key: str, now: Instant) -> bool:
        """Whether a target could serve now."""
        if self.dead.get(key, 0) > now:
            return False
        until, period = self.flapping.get(key, (0, 1))
        return until <= now or now // period % 2 == 0

    def probe(self, zone: str, key: str, now: Instant, reading: int | None) -> ProbeResult:
        """What a checker's probe finds; ``reading`` is the capacity that targets of its pool give, if they do."""
        reached = self.cut.get(zone, (0, False))[0] <= now
        lost = self.loss_until > now and self.random.random() < 0.33
        if not reached or lost:
            return ProbeResult(key, False, "timeout after 2 s")
        if not self.alive(key, now):
            return ProbeResult(key, False, "connection refused")
        return ProbeResult(key, True, "", LIE if self.lying.get(key, 0) > now else reading)

    def canary(self, zone: str, now: Instant) -> bool:
        """Whether a checker reaches its canary."""
        until, canary_too = self.cut.get(zone, (0, False))
        return until <= now or not canary_too


class Pools:
    """The store's side of health and membership, and what promises say of it."""

    def __init__(self, walk: Walk, settings: tuple[PoolSettings, ...], configuration: Configuration, truth: Truth):
        self.walk = walk
        self.settings = settings
        self.truth = truth
        self.owner = configuration
        """What the owner's file says now; the store knows it once it is loaded."""
        empty = tuple(() for _ in settings)
        self.empty = Kept(None, tuple((0, None) for _ in settings), empty, empty)
        self.kept = self.empty
        self.witnesses = [Witness() for _ in settings]
        self.one_clock = True
        self.sleepers: list[Rouse] = []
        self.silent_until: dict[int, Instant] = {}

    def load(self, _: object = None) -> None:
        """The owner's configuration is loaded: into the store, if it answers, and seen by every part."""
        if self.walk.now < self.walk.store_away_until:
            self.walk.push(self.walk.store_away_until + SECOND, self.load)
            return
        if self.kept.configuration != self.owner:
            self.kept = structs.replace(self.kept, configuration=self.owner)
            self.inputs_changed()
            self.rouse()

    def inputs_changed(self) -> None:
        """What is wanted of each endpoint, worked out anew: a new snapshot of the inputs."""
        walk = self.walk
        wanted: list[tuple[str, Wanted]] = []
        known: dict[tuple[int, tuple[str, ...], int], Wanted | None] = {}
        before = dict(walk.shared.tables.wanted)
        for each in self.kept.configuration.endpoints if self.kept.configuration else ():
            key = (each.pool, each.records, each.ttl_s)
            if key not in known:
                known[key] = desired(each.records, each.ttl_s, self.kept.rows[each.pool][1])
            asked = known[key]
            if asked is not None and each.listed:
                old = before.get(each.name)
                wanted.append((each.name, old if old is not None and old == asked else asked))
        tables = walk.shared.tables
        walk.put(structs.replace(tables, wanted=tuple(wanted), inputs=tables.inputs + 1))

    def rouse(self, pool: int | None = None) -> None:
        """Something that load balancers read of a pool, or of all, has changed."""
        for each in range(len(self.settings)) if pool is None else (pool,):
            for balancer in self.sleepers:
                balancer(each)

    def reading(self, pool: int, process: Process) -> ReportsRead:
        """What a load balancer reads for one pool."""
        kept, walk = self.kept, self.walk
        configuration = kept.configuration or self.owner
        listing = configuration.listings[pool]
        if self.silent_until.get(pool, 0) > walk.now:
            listing = Listing((), listing.revision)
        version, row = kept.rows[pool]
        published: frozenset[str] | None = frozenset()
        if row is None:
            published = None if walk.no_dns(process) else self.published(pool, walk.shared, configuration)
        overrides = tuple(each for at, each in kept.overrides if at == pool)
        return ReportsRead(
            self.settings[pool], listing, kept.reports[pool], kept.beats[pool], overrides, row, version, published
        )

    def published(self, pool: int, shared: Shared, configuration: Configuration) -> frozenset[str]:
        """The addresses that DNS answers for a pool's endpoints."""
        names = [each.name for each in configuration.endpoints if each.pool == pool]
        return frozenset(address for live in shared.domain if live.name in names for address in live.a + live.aaaa)

    def write(self, what: tuple[Process, int, WriteMembership]) -> None:
        """A membership row reaches the store: compare-and-set on its version."""
        process, pool, effect = what
        walk = self.walk
        version, before = self.kept.rows[pool]
        watch = walk.watch
        if walk.no_store(process) or effect.expected_version != version:
            watch.saw("membership refused")
            watch.tell(walk.now, process.name, f"membership of {effect.pool} is refused")
            return
        row = effect.row
        rows = self.kept.rows
        self.kept = structs.replace(self.kept, rows=rows[:pool] + ((version + 1, row),) + rows[pool + 1 :])
        self.watch(pool, before, row)
        moved = before.moved if before is not None else 0
        words = "; ".join(f"{m.key} {m.before} -> {m.after} ({m.rule})" for m in row.moves if m.number > moved)
        watch.tell(walk.now, process.name, f"writes membership of {effect.pool}{': ' if words else ''}{words}", row)
        if before is None or served(before) != served(row) or before.shift_since != row.shift_since:
            self.inputs_changed()
        self.rouse(pool)

    def watch(self, pool: int, before: Membership | None, row: Membership) -> None:
        """What promises say of a row just written, and what happened in it."""
        watch = self.walk.watch
        if before is None:
            watch.saw("first membership")
            self.witnesses[pool] = Witness()
            return
        for move in row.moves:
            if move.number <= before.moved:
                continue
            if is_ordinary(move):
                watch.saw("removal")
            elif move.after is State.OUT:
                watch.saw(f"out by {move.rule}")
            elif move.after is State.KEPT:
                watch.saw("kept")
            elif move.after in SERVING and move.before is not None and move.before not in SERVING:
                watch.saw("put back")
        if row.panic and not before.panic:
            watch.saw("fail open")
        if self.one_clock:
            watch.checked["bounded_removal"] += 1
            self.witnesses[pool], wrong = saw(self.witnesses[pool], before, row, self.settings[pool].safety)
            watch.judge("bounded_removal" if wrong else None, f"{row.pool}: {wrong}")

    def override(self, pool: int, override: Override, *, ends: bool = False) -> None:
        """A person's word is placed, or taken back."""
        others = tuple(each for each in self.kept.overrides if each != (pool, override))
        self.kept = structs.replace(self.kept, overrides=others if ends else (*others, (pool, override)))
        tables = self.walk.shared.tables
        self.walk.put(structs.replace(tables, inputs=tables.inputs + 1))
        self.rouse(pool)

    def replace(self, kept: Kept) -> None:
        """The store was lost, or set back; budgets are counted anew with it."""
        self.kept = kept
        self.witnesses = [Witness() for _ in self.settings]
        self.walk.put(indexed(self.walk.shared.tables))
        self.rouse()


def served(row: Membership) -> list[tuple[str, int]]:
    """Who is in service with which weight, in order."""
    return [(member.key, member.weight) for member in row.members if member.state in SERVING]


def addresses(pool: int, count: int) -> tuple[Target, ...]:
    """A pool's targets, dealt over three zones; every third pool has IPv6 targets too."""
    four = tuple(Target(f"192.0.2.{16 * pool + n + 1}", ZONES[n % 3]) for n in range(count))
    return four + tuple(
        Target(f"2001:db8::{16 * pool + n + 1:x}", ZONES[n % 3]) for n in range(count * (pool % 3 == 2))
    )
