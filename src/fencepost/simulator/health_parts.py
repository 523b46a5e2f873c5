"""Checkers and load balancers in time: the processes that tick, probe, report and decide who serves."""

from collections.abc import Iterable

from msgspec import structs

from fencepost.core.effects import Effect
from fencepost.core.events import Woke
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.traffic.health import CanaryProbed, Checker, Probed, PublishBeat, PublishReport, Restarted
from fencepost.core.traffic.health import TargetsListed as Listed
from fencepost.core.traffic.load_balancer import LoadBalancer, WriteMembership
from fencepost.core.traffic.membership import Listing
from fencepost.core.traffic.verdict import CheckerReport, ProbeResult
from fencepost.simulator.pools import READINGS, ZONES, Pools
from fencepost.simulator.walk import Process, Walk

TICK: Duration = SECOND
ROUND = 10
"""Seconds between two probes of a target, the default of :class:`HealthSettings`."""
CALM: Duration = 5 * SECOND
"""A load balancer's timer fires each second, and later and later, up to this, while it finds nothing to do and nothing
that it reads has changed: it decides by what it reads, so it may be late."""
WOKE = Woke()


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
        if walk.no_store(self.process) or configuration is None:
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
            elif isinstance(effect, PublishBeat) and not self.walk.no_store(self.process):
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
        if self.walk.no_store(self.process):
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
        pools.sleepers.append(self.rouse)

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
        if walk.no_store(process) or pools.kept.configuration is None:
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
        for effect in decider.on(self.pools.reading(pool, self.process), walk.now + self.process.skew):
            if isinstance(effect, WriteMembership):
                wrote = True
                walk.push(walk.now + walk.latency.call(), self.pools.write, (self.process, pool, effect))
        self.due[pool] = walk.now + self.waits[pool]
        self.waits[pool] = SECOND if wrote else min(2 * self.waits[pool], CALM)
