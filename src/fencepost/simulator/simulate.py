"""One seed's walk through a scenario, from the start of the region to its convergence at the end."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from msgspec import structs

from fencepost.core.instant import MINUTE, SECOND, Duration, Instant
from fencepost.core.record_set import NOTHING
from fencepost.core.store import Wanted
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.core.traffic.load_balancer import PoolSettings
from fencepost.core.traffic.membership import Listing
from fencepost.simulator.dns_parts import DnsPart
from fencepost.simulator.fleet.simulate import FleetSimulation
from fencepost.simulator.health_parts import Balancer, CheckerPart
from fencepost.simulator.parts import Parts
from fencepost.simulator.pools import ZONES, Configuration, Pools, Truth, addresses
from fencepost.simulator.scenarios import Scenario
from fencepost.simulator.schedule import Upset
from fencepost.simulator.timed import EndpointSetting
from fencepost.simulator.upsets import Upsets
from fencepost.simulator.walk import EPOCH, Operation, Process, Walk
from fencepost.simulator.walked import Walked
from fencepost.simulator.watch import Broken
from fencepost.world import goals
from fencepost.world.region import OWNER

SETTLED: Duration = 2 * MINUTE
"""After the last upset every late write has landed by then, so an endpoint in order isn't so by chance."""
LOOK_EACH: Duration = 10 * SECOND
WANTED = Wanted(NOTHING, "4")
Told = Callable[[Instant, str, str, object], None]


class Simulation:
    """A region, about to be walked. ``upsets`` replaces the seed's own schedule (to shrink it)."""

    def __init__(
        self, seed: int, scenario: Scenario, upsets: tuple[Upset, ...] | None = None, *, shortcuts: bool = True
    ) -> None:
        self.seed = seed
        self.scenario = scenario
        self.upsets = scenario.upsets(seed) if upsets is None else upsets
        names = tuple(f"e{number:02}.example.test" for number in range(scenario.endpoints))
        self.walk = walk = Walk(seed, names, scenario.mean)
        walk.watch.judged = scenario.promises
        self.pools = pools_of(walk, seed, scenario, names)
        self.pools.one_clock = all(upset.kind != "clocks" for upset in self.upsets)
        self.parts = parts_of(walk, self.pools, scenario, shortcuts=shortcuts)
        self.drive = Upsets(walk, self.pools, self.parts)

    def run(self, told: Told | None = None, operated: Callable[[Operation], None] | None = None) -> Walked:
        """Walk to the end, or to the first promise broken."""
        began = time.process_time()
        walk, scenario, watch = self.walk, self.scenario, self.walk.watch
        watch.told, walk.operated = told, operated
        calm_at = EPOCH + scenario.lasts - scenario.quiet
        promise = words = ""
        after: Duration = 0
        try:
            self.begin(calm_at)
            walk.run(calm_at + SETTLED)
            after = self.converge(calm_at, EPOCH + scenario.lasts)
        except Broken as broken:
            promise, words = broken.promise, broken.words
        return Walked(
            self.seed,
            scenario.name,
            promise,
            words,
            walk.since,
            watch.moves,
            dict(watch.checked),
            dict(sorted(watch.seen.items())),
            after,
            time.process_time() - began,
            self.upsets,
        )

    def begin(self, calm_at: Instant) -> None:
        """Everything starts, one after the other."""
        self.pools.load()
        for place, part in enumerate(self.parts.every()):
            part.begin(place * SECOND // 20)
        self.drive.begin(self.upsets, calm_at)

    def converge(self, calm_at: Instant, end: Instant) -> Duration:
        """Walk on until the region has converged; how long that took since all was calm."""
        walk = self.walk
        walk.watch.checked["converges"] += 1
        while (late := self.unsettled()) and walk.now < end:
            walk.run(min(walk.now + LOOK_EACH, end))
        walk.watch.judge("converges" if late else None, ", ".join(late))
        took = walk.now - calm_at
        walk.run(end)
        return took

    def unsettled(self) -> list[str]:
        """Endpoints that are neither where they should be nor wait for a person; and orders not carried out."""
        shared = self.walk.shared
        tables = shared.tables
        wanted = dict(tables.wanted)
        late = []
        for live in shared.domain:
            asked = wanted.get(live.name)
            row = tables.newest(live.name)
            if asked is None and row is not None and row.hold is None:
                asked = structs.replace(WANTED, content=row.content)  # no longer listed: what stands stays
            if not goals.settled(tables, live, asked, self.walk.now):
                late.append(live.name)
        return late + [f"order {order.id} for {order.name}" for order in tables.orders if order.name in wanted]


def pools_of(walk: Walk, seed: int, scenario: Scenario, names: tuple[str, ...]) -> Pools:
    """The pools, their targets, and which endpoints they serve."""
    endpoints: list[EndpointSetting] = []
    for pool, (count, _) in enumerate(scenario.pools):
        records = ("A", "AAAA") if pool % 3 == 2 else ("A",)
        for _ in range(count):
            endpoints.append(EndpointSetting(names[len(endpoints)], pool, records, 30))
    listings = tuple(Listing(addresses(pool, targets), 1) for pool, (_, targets) in enumerate(scenario.pools))
    settings = tuple(PoolSettings(f"pool {pool}") for pool in range(len(scenario.pools)))
    return Pools(walk, settings, Configuration(tuple(endpoints), listings), Truth(seed))


def parts_of(walk: Walk, pools: Pools, scenario: Scenario, *, shortcuts: bool) -> Parts:
    """The processes and what lives in them."""
    parts = Parts()
    names = [live.name for live in walk.shared.domain]
    for place in range(scenario.enactors):
        name = f"enactor {'abcdef'[place]}"
        cursor = names[len(names) * place // scenario.enactors] if place else ""
        own = EnactorSettings(name, OWNER, cursor=cursor)
        parts.dns.append(DnsPart(walk, Process(name), partial(DnsEnactor, own, own.batch, own.cursor), shortcuts))
    for place in range(scenario.planners):
        process = Process(f"planner {place + 1}")
        plans = PlannerSettings(process.name, OWNER)
        parts.dns.append(DnsPart(walk, process, partial(DnsPlanner, plans), shortcuts))
        parts.balancers.append(Balancer(walk, process, pools))
    keeps = JanitorSettings(keep_generations=3, keep_for=5 * MINUTE)
    parts.dns.append(DnsPart(walk, Process("janitor"), partial(Janitor, keeps), shortcuts))
    for place in range(len(ZONES)):
        parts.checkers.append(CheckerPart(walk, Process(f"checker {ZONES[place]}"), pools, place))
    walk.sleepers = [part.rouse for part in parts.dns if not isinstance(part.slot.decider, Janitor)]
    return parts


def walk(seed: int, scenario: Scenario, upsets: tuple[Upset, ...] | None = None, told: Told | None = None) -> Walked:
    """One seed's walk through a scenario."""
    return simulation(seed, scenario, upsets).run(told)


def simulation(seed: int, scenario: Scenario, upsets: tuple[Upset, ...] | None = None) -> Simulation | FleetSimulation:
    """The region or the fleet that a scenario speaks of, about to be walked."""
    return (FleetSimulation if scenario.fleet else Simulation)(seed, scenario, upsets)


def added(counts: list[dict[str, int]]) -> dict[str, int]:
    """Several counts as one."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))
