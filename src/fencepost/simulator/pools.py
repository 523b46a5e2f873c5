"""Pools of targets: who can really serve, what probes see of it, and the checkers and load balancers that decide.

Checkers and load balancers are the very deciders of production. Made up are the targets and the network between them
and the checkers. The store's part of it (reports, beats, membership rows, overrides, the configuration) is kept here
beside the tables of :mod:`fencepost.core.store`, and is lost and restored with them.
"""

from collections.abc import Iterable

from msgspec import Struct, structs

from fencepost.core.effects import Effect
from fencepost.core.events import Woke
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.store import Wanted
from fencepost.core.traffic.bounded_removal import Witness, is_ordinary, saw
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.health import CanaryProbed, Checker, Probed, PublishBeat, PublishReport, Restarted
from fencepost.core.traffic.health import TargetsListed as Listed
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import SERVING, Listing, Membership, Override, State, Target
from fencepost.core.traffic.verdict import Beat, CheckerReport, ProbeResult
from fencepost.simulator.chance import stream
from fencepost.simulator.timed import EndpointSetting, indexed
from fencepost.simulator.walk import Process, Walk
from fencepost.world.region import Shared

ZONES = ("a", "b", "c")
TICK: Duration = SECOND
ROUND = 10
"""Seconds between two probes of a target, the default of :class:`HealthSettings`."""
CALM: Duration = 5 * SECOND
"""A load balancer's timer fires each second, and later and later, up to this, while it finds nothing to do and nothing
that it reads has changed: it decides by what it reads, so it may be late."""
READINGS = (None, 10, None)
"""What a pool's targets say that they can carry, pool after pool; most say nothing."""
LIE = 240
"""What a lying target says."""
WOKE = Woke()


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
        self.sleepers: list[Balancer] = []
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
                balancer.rouse(each)

    def reading(self, pool: int) -> ReportsRead:
        """What a load balancer reads for one pool."""
        kept, walk = self.kept, self.walk
        configuration = kept.configuration
        assert configuration is not None
        listing = configuration.listings[pool]
        if self.silent_until.get(pool, 0) > walk.now:
            listing = Listing((), listing.revision)
        version, row = kept.rows[pool]
        published: frozenset[str] | None = frozenset()
        if row is None:
            published = None if walk.now < walk.dns_away_until else self.published(pool, walk.shared, configuration)
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
        if walk.now < walk.store_away_until or effect.expected_version != version:
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


class CheckerPart:
    """One zone's checker process: a decider for each pool, ticked each second."""

    def __init__(self, walk: Walk, process: Process, pools: Pools, place: int) -> None:
        self.walk = walk
        self.process = process
        self.pools = pools
        self.place = place
        self.zone = ZONES[place]
        self.token = 0
        self.listings: tuple[Listing, ...] = ()
        self.deciders: list[Checker] = []
        self.due: list[list[list[str]]] = []
        self.batches: list[list[Probed | None]] = []
        self.put: list[CheckerReport | None] = []

    def begin(self, after: Duration) -> None:
        """Start, or start anew: its own last report is read back from the store."""
        self.token += 1
        self.walk.push(self.walk.now + after, self.start, self.token)

    def start(self, token: int) -> None:
        """The process is up. Without a store that answers, or a configuration, it waits."""
        if token != self.token:
            return
        walk, pools = self.walk, self.pools
        configuration = pools.kept.configuration
        if walk.now < walk.store_away_until or configuration is None:
            walk.push(walk.now + SECOND, self.start, token)
            return
        self.deciders, self.put, now = [], [], walk.now + self.process.skew
        for pool, settings in enumerate(pools.settings):
            checker = Checker(self.zone, settings.name, settings.health)
            last = next((each for each in pools.kept.reports[pool] if each.zone == self.zone), None)
            beat = next((each.number for each in pools.kept.beats[pool] if each.zone == self.zone), 0)
            checker.on(Restarted(last, beat), now)
            self.deciders.append(checker)
            self.put.append(last)
        self.take_lists(configuration.listings, now)
        walk.push(walk.now + TICK, self.tick, token)

    def take_lists(self, listings: tuple[Listing, ...], now: Instant) -> None:
        """Other targets: who is probed in which second of a round."""
        self.listings = listings
        self.due, self.batches = [], []
        for pool, listing in enumerate(listings):
            keys = [target.key for target in listing.targets]
            slots: list[list[str]] = [[] for _ in range(ROUND)]
            for at, key in enumerate(keys):
                slots[(ROUND * at // len(keys) + self.place * ROUND // 3) % ROUND].append(key)
            self.due.append(slots)
            well = [tuple(ProbeResult(key, True, "", READINGS[pool % 3]) for key in each) for each in slots]
            self.batches.append([Probed(each) if each else None for each in well])
            self.carry(pool, self.deciders[pool].on(Listed(tuple(keys)), now))

    def tick(self, token: int) -> None:
        """A second has passed: probes have finished, and each decider is told."""
        if token != self.token:
            return
        walk, process, truth = self.walk, self.process, self.pools.truth
        if process.stopped_until > walk.now:
            walk.push(process.stopped_until, self.tick, token)
            return
        now = walk.now + process.skew
        configuration = self.pools.kept.configuration
        if configuration is not None and configuration.listings is not self.listings:
            self.take_lists(configuration.listings, now)
        second = walk.now // SECOND % ROUND
        troubled = truth.troubled_until > walk.now
        canary = CanaryProbed(truth.canary(self.zone, walk.now)) if second == self.place else None
        for pool, decider in enumerate(self.deciders):
            if canary is not None:
                self.carry(pool, decider.on(canary, now))
            event: Probed | None = self.batches[pool][second]
            if troubled and event is not None:
                reading, due = READINGS[pool % 3], self.due[pool][second]
                event = Probed(tuple(truth.probe(self.zone, key, walk.now, reading) for key in due))
            effects = decider.on(event or WOKE, now)
            if effects:
                self.carry(pool, effects)
        if walk.watch.told is not None:
            walk.watch.tell(walk.now, process.name, "probes")
        walk.push(walk.now + TICK, self.tick, token)

    def carry(self, pool: int, effects: Iterable[Effect]) -> None:
        """Reports and beats reach the store, or not."""
        for effect in effects:
            if isinstance(effect, PublishReport):
                self.put[pool] = effect.report
                self.store(pool, effect.report)
            elif isinstance(effect, PublishBeat) and self.walk.now >= self.walk.store_away_until:
                kept = self.pools.kept
                beats = [each for each in kept.beats[pool] if each.zone != self.zone] + [effect.beat]
                beats.sort(key=lambda each: each.zone)
                every = kept.beats[:pool] + (tuple(beats),) + kept.beats[pool + 1 :]
                self.pools.kept = structs.replace(kept, beats=every)
                known = next((each for each in kept.reports[pool] if each.zone == self.zone), None)
                report = self.put[pool]
                if report is not None and (known is None or known.sequence != report.sequence):
                    self.store(pool, report)

    def store(self, pool: int, report: CheckerReport) -> None:
        """A report reaches the store; where it was lost, the next beat brings it again."""
        if self.walk.now < self.walk.store_away_until:
            return
        kept = self.pools.kept
        reports = [each for each in kept.reports[pool] if each.zone != self.zone] + [report]
        reports.sort(key=lambda each: each.zone)
        every = kept.reports[:pool] + (tuple(reports),) + kept.reports[pool + 1 :]
        self.pools.kept = structs.replace(kept, reports=every)
        if self.walk.watch.told is not None:
            self.walk.watch.tell(self.walk.now, self.process.name, f"reports on {report.pool}", report)
        self.pools.rouse(pool)


class Balancer:
    """The load balancers of one planner's process: a decider for each pool."""

    def __init__(self, walk: Walk, process: Process, pools: Pools) -> None:
        self.walk = walk
        self.process = process
        self.pools = pools
        self.token = 0
        count = len(pools.settings)
        self.deciders: list[LoadBalancer] = []
        self.due: list[Instant] = [0] * count
        self.waits: list[Duration] = [SECOND] * count
        self.next_at: Instant = 0
        pools.sleepers.append(self)

    def begin(self, after: Duration) -> None:
        """Start, or start anew, with nothing remembered."""
        self.deciders = [LoadBalancer() for _ in self.pools.settings]
        self.due = [self.walk.now + after] * len(self.due)
        self.next(self.walk.now + after)

    def next(self, at: Instant) -> None:
        """The next pass, in place of any other."""
        self.token += 1
        self.next_at = at
        self.walk.push(at, self.balance, self.token)

    def rouse(self, pool: int) -> None:
        """Something changed about a pool."""
        self.waits[pool] = SECOND
        at = self.walk.now + self.walk.latency.notice()
        if at < self.due[pool]:
            self.due[pool] = at
            if at < self.next_at:
                self.next(at)

    def balance(self, token: int) -> None:
        """One pass over the pools that are due."""
        if token != self.token:
            return
        walk, process, pools = self.walk, self.process, self.pools
        if process.stopped_until > walk.now:
            walk.push(process.stopped_until, self.balance, token)
            return
        if walk.now < walk.store_away_until or pools.kept.configuration is None:
            self.next(walk.now + SECOND)
            return
        for pool, decider in enumerate(self.deciders):
            if self.due[pool] <= walk.now:
                self.balance_pool(pool, decider)
        if walk.watch.told is not None:
            walk.watch.tell(walk.now, process.name, "balances")
        self.next(min(self.due))

    def balance_pool(self, pool: int, decider: LoadBalancer) -> None:
        """One pool's pass; where nothing happens, the next comes later each time."""
        walk = self.walk
        wrote = False
        for effect in decider.on(self.pools.reading(pool), walk.now + self.process.skew):
            if isinstance(effect, WriteMembership):
                wrote = True
                walk.push(walk.now + walk.latency.call(), self.pools.write, (self.process, pool, effect))
        self.due[pool] = walk.now + self.waits[pool]
        self.waits[pool] = SECOND if wrote else min(2 * self.waits[pool], CALM)


def addresses(pool: int, count: int) -> tuple[Target, ...]:
    """A pool's targets, dealt over three zones; every third pool has IPv6 targets too."""
    four = tuple(Target(f"192.0.2.{16 * pool + n + 1}", ZONES[n % 3]) for n in range(count))
    return four + tuple(Target(f"2001:db8::{16 * pool + n + 1:x}", ZONES[n % 3]) for n in range(count * (pool % 3 == 2)))

