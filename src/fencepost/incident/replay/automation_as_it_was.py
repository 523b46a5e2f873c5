"""The DNS automation as it was, in time: three enactors, a planner and clean-up on plan trees, call by call.

The transactions are those of :mod:`fencepost.incident.tree`, the one that the explorer walks in every order; here the
order comes from how long calls take. An enactor looks for a newer plan, checks once, and walks the endpoints in its own
order: it reads an endpoint's lock, then sends the turn. Who loses the lock, or can't save what was live before, backs
off and tries the same turn again. When all are done it lists the plans and deletes those many generations behind.

Nothing here says when, or whether, an endpoint is emptied, nor that the automation is stuck afterwards: for half an
hour after the regional endpoint has gone all three enactors and the planner go on, and it is looked at what they did.
"""

from collections import Counter

from msgspec import Struct

from fencepost.core.instant import MINUTE, SECOND, Duration, Instant
from fencepost.incident import tree
from fencepost.incident.enactor import AGAIN
from fencepost.incident.replay.automation_time import (
    ENACTORS,
    REGIONAL,
    REGIONAL_NAME,
    Chance,
    DnsValues,
    Timeline,
    orders,
    plan_times,
)
from fencepost.incident.replay.outcome import Line
from fencepost.incident.tree import NO_LOCK, Guard, Guards, Lock, Outcome, Tree

TRIAL: Duration = 30 * MINUTE
"""So long all go on trying once the regional endpoint is empty."""
SPELL_MOST: Duration = 3 * 60 * MINUTE
"""A slow pass that takes longer isn't waited for."""
SETTLED_PLANS = 3
"""So many plans after the slow pass nothing is left of it."""


class Raced(Struct, frozen=True):
    """What came of it. ``empty_at``: when the regional endpoint answered no address; ``emptied`` endpoints did in all.

    ``mended_at``: when it answered again. ``stale`` is how long it answered from an older plan than before, ``turns``
    how many turns applied, ``failed`` how many could not save what was live before, ``lost`` how often a lock was lost.
    ``late``: for each endpoint, how long after its check enactor A turned it in the slow pass.
    """

    empty_at: Instant | None
    mended_at: Instant | None
    emptied: int
    stale: Duration
    turns: int
    failed: int
    lost: int
    late: dict[int, Duration]
    lines: tuple[Line, ...]
    trees: Tree


class Walker:
    """One enactor: the plan that it applies, its place in the walk, what it is about to delete."""

    def __init__(self, race: "Race", at: int, order: tuple[int, ...], chance: Chance) -> None:
        """It starts with a look, soon."""
        self.race, self.name, self.order, self.chance = race, ENACTORS[at], order, chance
        self.unlucky = at == 0
        self.slow = False
        self.plan = 0
        self.todo: list[int] = []
        self.spent: list[int] = []
        self.seen = NO_LOCK
        self.tries = self.lost = 0
        self.checked: Instant = 0
        self.failing = False
        race.time.later(self.chance.call(), self.look)

    def call(self) -> Duration:
        """How long its next call takes."""
        return self.chance.call(self.race.values.slow if self.slow else 1.0)

    def look(self) -> None:
        """The one check: where is the newest plan newer than what is live?"""
        race = self.race
        trees, now = race.trees, race.time.now
        newest, live = trees.written, trees.live
        self.todo = [endpoint for endpoint in reversed(self.order) if live[endpoint] < newest]
        if not self.todo:
            race.time.later(int(race.values.look * SECOND) + self.call(), self.look)
            return
        self.plan, self.checked = newest, now
        if self.unlucky and not race.spell and now >= race.values.slow_begins * SECOND:
            race.spell = self.slow = True
            race.time.tell(self.name, f"picks plan {newest} and checks it, once: newer than what is live? Yes, now.")
            race.time.tell(self.name, f"slows down: its calls take {race.values.slow:g} times as long")
        self.next()

    def next(self) -> None:
        """On to the next endpoint, or to clean-up."""
        self.race.time.later(self.call(), self.read_lock if self.todo else self.list_plans)

    def read_lock(self) -> None:
        """What the lock record says now is what the turn will delete."""
        self.seen = self.race.trees.lock[self.todo[-1]]
        self.race.time.later(self.call(), self.turn)

    def turn(self) -> None:
        """The transaction; nothing ties it to the check, however long ago that was."""
        race, endpoint = self.race, self.todo[-1]
        outcome = race.turn(self, endpoint)
        if outcome in AGAIN:
            values = race.values
            wait = min(values.back_off * 2 ** min(self.tries, 16), values.back_off_most)
            self.tries += 1
            self.lost += outcome is Outcome.LOCK_LOST
            race.time.later(int(wait * SECOND) + self.call(), self.read_lock)
            return
        self.tries = 0
        self.todo.pop()
        self.next()

    def list_plans(self) -> None:
        """All endpoints are done: which plans are far older than its own?"""
        trees = self.race.trees
        if self.slow:
            self.slow = False
            self.race.passed(self)
        oldest = self.plan - self.race.values.generations
        self.spent = [plan for plan in range(oldest, 0, -1) if not trees.gone(plan)]
        self.clean()

    def clean(self) -> None:
        """The next deletion, or a look."""
        if self.spent:
            self.race.time.later(self.chance.lasting(self.race.values.deletion), self.delete)
        else:
            self.race.time.later(self.call(), self.look)

    def delete(self) -> None:
        """A transaction of its own for each plan; by age, whatever points at it."""
        self.race.delete(self, self.spent.pop())
        self.clean()


class Race:
    """The trees, who works on them, and what is noted meanwhile."""

    def __init__(self, values: DnsValues, guards: Guards, seed: int, end: Instant) -> None:
        """The first plan is live everywhere."""
        self.values, self.guards = values, guards
        self.time = Timeline(min(end, int(values.slow_begins * SECOND) + SPELL_MOST))
        count = values.endpoints
        self.trees = Tree((1,) * count, (0,) * count, (NO_LOCK,) * count, written=1)
        self.spell = False
        self.empty_at: Instant | None = None
        self.mended_at: Instant | None = None
        self.empties: set[int] = set()
        self.spared: set[int] = set()
        self.highest = [1] * count
        self.stale: Duration = 0
        self.stale_since: Instant | None = None
        self.counts: Counter[Outcome] = Counter()
        self.late: dict[int, Duration] = {}
        self.walkers = [Walker(self, at, order, Chance(values, seed, at)) for at, order in enumerate(orders(values))]
        for at in plan_times(values, seed, self.time.end):
            self.time.later(at, self.write)

    def write(self) -> None:
        """The planner makes the next plan, whatever became of the last."""
        self.trees = tree.write(self.trees)

    def turn(self, who: Walker, endpoint: int) -> Outcome:
        """A turn arrives."""
        before, now = self.trees.live[endpoint], self.time.now
        mine = Lock(who.name, now)
        self.trees, outcome = tree.turn(self.trees, endpoint, who.plan, who.seen, mine, self.guards)
        self.counts[outcome] += 1
        if outcome is Outcome.DONE:
            self.turned(who, endpoint, before)
        elif outcome is Outcome.BEFORE_MISSING and not who.failing:
            who.failing = True
            self.time.tell(who.name, f"can't point {named(endpoint)} at plan {who.plan}: {outcome.value}; tries again")
        return outcome

    def turned(self, who: Walker, endpoint: int, before: int) -> None:
        """What is noted of a turn that applied."""
        now, plan = self.time.now, who.plan
        if who.slow:
            self.late[endpoint] = now - who.checked
        if endpoint == REGIONAL:
            self.tell_of(who, plan, before)
        self.note(endpoint)

    def tell_of(self, who: Walker, plan: int, before: int) -> None:
        """A turn of the regional endpoint: back to an older plan, on to a newer one after that, or as always."""
        now, endpoint = self.time.now, REGIONAL
        if plan < self.highest[endpoint]:
            since = f"{(now - who.checked) / MINUTE:.0f} min after its check, {who.lost} times beaten to a lock"
            self.time.tell(who.name, f"comes to {REGIONAL_NAME} {since}")
            gone = ", deleted meanwhile" * self.trees.gone(plan)
            self.time.tell(who.name, f"points {REGIONAL_NAME} at plan {plan}{gone}, in place of plan {before}")
            self.time.tell(who.name, "believes that this is newer: nothing ties the check to this write")
            if self.stale_since is None and not self.trees.gone(plan):
                self.stale_since = now
        else:
            if self.stale_since is not None:
                self.time.tell(who.name, f"points {REGIONAL_NAME} at plan {plan}; it had answered from plan {before}")
            self.fresh()
        self.highest[endpoint] = max(self.highest[endpoint], plan)

    def fresh(self) -> None:
        """The regional endpoint answers from an older plan no more."""
        if self.stale_since is not None:
            self.stale += self.time.now - self.stale_since
        self.stale_since = None

    def delete(self, who: Walker, plan: int) -> None:
        """A deletion arrives."""
        gone = self.trees.gone(plan)
        held = [endpoint for endpoint, live in enumerate(self.trees.live) if live == plan]
        self.trees, outcome = tree.delete(self.trees, plan, self.guards)
        if outcome is Outcome.SPARED:
            if plan not in self.spared:
                words = f"is done with plan {who.plan}; cleans up, and spares plan {plan}: {outcome.value}"
                self.time.tell(who.name, words)
            self.spared.add(plan)
            return
        if gone or not held:
            return
        others = len(held) - (REGIONAL in held)
        what = [REGIONAL_NAME] * (REGIONAL in held) + [f"{others} other endpoint{'s' * (others != 1)}"] * (others > 0)
        self.time.tell(who.name, f"is done with plan {who.plan}; cleans up: plan {plan} is {who.plan - plan} behind")
        self.time.tell(who.name, f"deletes plan {plan}, and with it the addresses of {' and '.join(what)}")
        for endpoint in held:
            self.note(endpoint)

    def note(self, endpoint: int) -> None:
        """Whether an endpoint answers addresses."""
        empty, now = self.trees.empty(endpoint), self.time.now
        if empty:
            self.empties.add(endpoint)
        if endpoint != REGIONAL:
            return
        if empty and self.empty_at is None:
            self.fresh()
            self.empty_at, self.time.end = now, min(self.time.end, now) + TRIAL
            self.time.tell("a caller", f"asks for {REGIONAL_NAME}: NOERROR, no addresses")
        elif not empty and self.empty_at is not None and self.mended_at is None:
            self.mended_at = now

    def passed(self, who: Walker) -> None:
        """The slow pass is over."""
        if self.empty_at is None:
            end = self.time.now + int(SETTLED_PLANS * self.values.plans * SECOND)
            self.time.end = min(self.time.end, end)
        minutes = f"{(self.time.now - who.checked) / MINUTE:.0f} min after its check"
        self.time.tell(who.name, f"is done with plan {who.plan}, {minutes}; it is as quick as ever again")

    def run(self) -> Raced:
        """To the end."""
        self.time.run()
        self.fresh()
        failed, lost = self.counts[Outcome.BEFORE_MISSING], self.counts[Outcome.LOCK_LOST]
        if self.empty_at is not None and self.mended_at is None:
            after = f"after {TRIAL // MINUTE} min and {failed} attempts of all three nothing has changed"
            self.time.tell("the automation", f"can't mend itself: {after}; {self.trees.written} plans are written")
        done = self.counts[Outcome.DONE]
        return Raced(
            self.empty_at,
            self.mended_at,
            len(self.empties),
            self.stale,
            done,
            failed,
            lost,
            self.late,
            tuple(self.time.lines),
            self.trees,
        )


def named(endpoint: int) -> str:
    """An endpoint in words."""
    return REGIONAL_NAME if endpoint == REGIONAL else f"endpoint {endpoint}"


def race(values: DnsValues, seed: int, end: Instant, *, spares: bool) -> Raced:
    """The automation as it was; ``spares``: but for a clean-up that spares what is referred to."""
    guards: Guards = frozenset({Guard.CLEANUP_SPARES}) if spares else frozenset()
    return Race(values, guards, seed, end).run()
