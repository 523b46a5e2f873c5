"""A pool in virtual time: real checkers and load balancers around a store with compare-and-set, for tests.

Probing, checkers and load balancers run the very deciders of production; only the targets are made up. Time goes in
steps of a quarter of a second. Everything is deterministic: chance is `jitter`, a hash.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.core.events import Woke
from fencepost.core.instant import MINUTE, SECOND, Instant
from fencepost.core.jitter import jitter
from fencepost.core.traffic.bounded_removal import Witness, saw
from fencepost.core.traffic.health import (
    Checker,
    Probed,
    PublishBeat,
    PublishReport,
    Restarted,
    TargetsListed,
)
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import SERVING, Listing, Member, Membership, Move, Override, State, Target
from fencepost.core.traffic.verdict import Beat, CheckerReport, ProbeResult

STEP = SECOND // 4
ZONES = ("a", "b", "c")
EPOCH = 1_700_000_000 * SECOND
DEFAULT = PoolSettings("web")
NOTHING = Listing()
UNSEEN = Witness()

Answer: TypeAlias = Callable[[str, str, Instant], bool]
"""(checker's zone, target, seconds since the start in ns) -> whether the probe passes."""


def addresses(count: int) -> tuple[Target, ...]:
    """`count` targets dealt over three zones."""
    return tuple(Target(f"10.0.{n // 250}.{n % 250 + 1}", ZONES[n % 3]) for n in range(count))


def chance(*what: object) -> float:
    """A number in [0, 1), the same for the same words."""
    return jitter(1 << 30, *what) / (1 << 30)


@dataclass
class PoolWorld:
    """The pool. `alive` says who can really serve; `answer` what a probe sees (by default the truth)."""

    count: int
    alive: Callable[[str, Instant], bool] = lambda _key, _at: True
    answer: Answer | None = None
    settings: PoolSettings = DEFAULT
    balancers: int = 1
    overrides: tuple[Override, ...] = ()
    listing: Listing = NOTHING
    now: Instant = EPOCH
    row: Membership | None = None
    version: int = 0
    bodies: dict[str, CheckerReport] = field(default_factory=dict)
    beats: dict[str, Beat] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    rows: list[tuple[Instant, Membership]] = field(default_factory=list)
    witness: Witness = UNSEEN

    def __post_init__(self) -> None:
        if not self.listing.targets:
            self.listing = Listing(addresses(self.count), 1)
        self.checkers = {zone: self._checker(zone) for zone in ZONES}
        self.brokers = [LoadBalancer() for _ in range(self.balancers)]
        self.passes = 0

    def _checker(self, zone: str) -> Checker:
        checker = Checker(zone, "web", self.settings.health)
        beat = self.beats.get(zone)
        self._carry(checker.on(Restarted(self.bodies.get(zone), beat.number if beat else 0), self.now))
        self._carry(checker.on(TargetsListed(tuple(each.key for each in self.listing.targets)), self.now))
        return checker

    def restart_checker(self, zone: str) -> None:
        """Its process dies and starts again."""
        self.checkers[zone] = self._checker(zone)

    def _carry(self, effects: tuple[object, ...]) -> None:
        for effect in effects:
            if isinstance(effect, PublishReport):
                self.bodies[effect.report.zone] = effect.report
            elif isinstance(effect, PublishBeat):
                self.beats[effect.beat.zone] = effect.beat

    @property
    def since_start(self) -> Instant:
        """Time since the world began."""
        return self.now - EPOCH

    def probe_round(self) -> None:
        """Probes due in this step, at every checker."""
        interval = self.settings.health.interval_ns
        keys = [target.key for target in self.listing.targets]
        at = self.since_start
        answer = self.answer or (lambda _zone, key, when: self.alive(key, when))
        for place, zone in enumerate(ZONES):
            results = []
            for index, key in enumerate(keys):
                offset = (interval * index // len(keys) + place * interval // 3) % interval
                due = offset // STEP * STEP
                if at % interval == due:
                    ok = answer(zone, key, at)
                    results.append(ProbeResult(key, ok, "" if ok else "timeout after 2 s"))
            checker = self.checkers[zone]
            self._carry(checker.on(Probed(tuple(results)) if results else Woke(), self.now))

    def balance(self, number: int) -> bool:
        """One pass of a load balancer. Whether it wrote."""
        return self.write(self.decide(number))

    def reading(self) -> ReportsRead:
        """What a load balancer reads now."""
        return ReportsRead(
            self.settings,
            self.listing,
            tuple(self.bodies.values()),
            tuple(self.beats.values()),
            self.overrides,
            self.row,
            self.version,
        )

    def decide(self, number: int) -> WriteMembership | None:
        """What load balancer `number` asks to write on what it reads now."""
        self.passes += 1
        for effect in self.brokers[number].on(self.reading(), self.now):
            if isinstance(effect, WriteMembership):
                return effect
        return None

    def write(self, effect: WriteMembership | None) -> bool:
        """The store's compare-and-set."""
        if effect is None or effect.expected_version != self.version:
            return False
        known = self.row.moved if self.row else 0
        if self.row:
            self.witness, breach = saw(self.witness, self.row, effect.row, self.settings.safety)
            assert breach is None, breach
        self.moves += [move for move in effect.row.moves if move.number > known]
        self.row, self.version = effect.row, self.version + 1
        self.rows.append((self.now, effect.row))
        return True

    def step(self) -> None:
        """A quarter of a second."""
        self.now += STEP
        self.probe_round()
        if self.since_start % SECOND == 0:
            for number in range(self.balancers):
                self.balance(number)

    def run(self, seconds: float) -> "PoolWorld":
        """Let time pass."""
        until = self.now + int(seconds * SECOND)
        while self.now < until:
            self.step()
        return self

    def states(self) -> dict[str, State]:
        """Each member's state."""
        assert self.row is not None
        return {member.key: member.state for member in self.row.members}

    def count_in(self, *states: State) -> int:
        """How many members are in these states."""
        return sum(state in states for state in self.states().values())

    def serving(self) -> list[str]:
        """Keys in service."""
        return [key for key, state in self.states().items() if state in SERVING]


@dataclass
class Score:
    """What callers felt: lowest living share in service (%), the longest a dead one was served (s), and removals."""

    lowest: int = 100
    dead_served: float = 0
    false_removals: int = 0
    removals: int = 0


def scored(world: PoolWorld, seconds: float) -> Score:
    """Run and keep the score from now on."""
    score = Score()
    dead_for: dict[str, Instant] = {}
    first = len(world.moves)
    until = world.now + int(seconds * SECOND)
    while world.now < until:
        world.step()
        serving = frozenset(world.serving())
        at = world.since_start
        living = 0
        for target in world.listing.targets:
            if world.alive(target.key, at):
                living += target.key in serving
                dead_for.pop(target.key, None)
            elif target.key in serving:
                dead_for.setdefault(target.key, world.now)
                score.dead_served = max(score.dead_served, (world.now - dead_for[target.key]) / SECOND)
            else:
                dead_for.pop(target.key, None)
        score.lowest = min(score.lowest, round(100 * living / world.count))
    removed = [move for move in world.moves[first:] if move.after is State.OUT]
    score.removals = len(removed)
    score.false_removals = sum(world.alive(move.key, move.at - EPOCH) for move in removed)
    return score


WARM = 2 * MINUTE // SECOND
"""Seconds after which every vote counts."""

DEAD = "10.0.0.1"
SECOND_DEAD = "10.0.0.2"


def member(world: PoolWorld, key: str = DEAD) -> Member:
    """One member of the row."""
    return next(each for each in row(world).members if each.key == key)


def row(world: PoolWorld) -> Membership:
    """The row."""
    assert world.row is not None
    return world.row


def warm(count: int, **options: object) -> PoolWorld:
    """A pool that has been well for two minutes."""
    return PoolWorld(count, **options).run(WARM)  # type: ignore[arg-type]


def kill(world: PoolWorld, *keys: str) -> None:
    """These targets die now."""
    before = world.alive
    world.alive = lambda key, at: key not in keys and before(key, at)


def revive(world: PoolWorld) -> None:
    """All targets are well again."""
    world.alive = lambda _key, _at: True
