"""The same schedule with production's own planner, enactors and janitor, on a DNS provider that works as the rules say.

The deciders are the classes that ship (:mod:`fencepost.core.traffic`), the provider is :func:`fencepost.core.zone.
transact`, the store keeps :mod:`fencepost.core.store`'s rows. Inputs change when plans were made, calls take as long,
each endpoint is a transaction of its own, sent one after the other in the same order. Enactor A is as late as it was:
in its slow pass each write arrives as long after its reading as the turn of that endpoint came after the check, lock
losses and back-off included. There is no lock here to lose.

What a batch of many endpoints would save is left out on purpose, and so is the planner's gathering of capacity shifts:
both would make the race rarer, and neither is what stops it.
"""

from functools import partial

from msgspec import Struct

from fencepost.core.effects import (
    Commit,
    Compare,
    DeleteRow,
    Effect,
    Findings,
    Publish,
    ReadDns,
    ReadHead,
    ReadInputs,
    ReadRows,
    ReadSpent,
    SetAside,
    Survey,
    Wake,
)
from fencepost.core.events import (
    Changed,
    Committed,
    Compared,
    Deleted,
    DnsRead,
    Event,
    HeadRead,
    InputsRead,
    Outrun,
    Published,
    RowsRead,
    Spent,
    SpentRead,
    Standing,
    Surveyed,
    Woke,
)
from fencepost.core.fence import Marker
from fencepost.core.instant import MINUTE, SECOND, Duration, Instant
from fencepost.core.judge import Pair, same
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row, Wanted, stamped
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.core.traffic.room import Room
from fencepost.core.zone import Change, Live, transact
from fencepost.incident.replay.automation_as_it_was import SETTLED_PLANS, SPELL_MOST
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

OWNER = "region"
EPOCH: Instant = 1_700_000_000 * SECOND
"""Deciders are told the time since 1970."""
STORE = "0001"


class Fenced(Struct, frozen=True):
    """What came of it. ``refused`` writes were fenced (something newer stood there), ``beaten`` came after another's
    write of the same plan, ``writes`` applied; the rest as for the race as it was."""

    empty_at: Instant | None
    mended_at: Instant | None
    emptied: int
    stale: Duration
    refused: int
    beaten: int
    writes: int
    lines: tuple[Line, ...]


class World:
    """The provider's domain, the store, and what is noted of both. ``names`` are in the order of the endpoints."""

    def __init__(self, values: DnsValues, time: Timeline) -> None:
        """Nothing is planned, nothing stands in DNS."""
        self.values, self.time = values, time
        self.names = tuple(f"e{number:04}.example.test" for number in range(values.endpoints))
        self.places = {name: at for at, name in enumerate(self.names)}
        self.regional = self.names[REGIONAL]
        self.domain: dict[str, Live] = {name: Live(name) for name in self.names}
        self.head = Head(STORE)
        self.rows: dict[str, tuple[Row, ...]] = dict.fromkeys(self.names, ())
        self.newest: dict[str, Row] = {}
        self.wanted: dict[str, Wanted] = {}
        self.inputs = 0
        self.versions = [0, 0, 0]
        self.spell = False
        self.refused = self.beaten = self.writes = 0
        self.empties: set[str] = set()
        self.empty_at: Instant | None = None
        self.mended_at: Instant | None = None
        self.stale: Duration = 0
        self.stale_since: Instant | None = None
        self.newest_live = 0

    def shift(self) -> None:
        """Capacity shifts: every endpoint is to have other addresses."""
        self.inputs += 1
        self.versions[2] += 1
        one, two = 2 * self.inputs % 250, (2 * self.inputs + 1) % 250
        value = content([f"192.0.2.{one}", f"198.51.100.{two}"], 30)
        self.wanted = dict.fromkeys(self.names, Wanted(value, "4"))

    def write(self, change: Change) -> bool:
        """One endpoint's transaction arrives: whether it applied."""
        before = self.domain[change.name]
        replaced = transact(self.domain, (change,))
        if replaced is None:
            newer = isinstance(before.marker, Marker) and before.marker.generation > change.marker.generation
            self.refused += newer
            self.beaten += not newer
            return False
        self.domain |= replaced
        self.versions[0] += 1
        self.writes += 1
        self.note(before, self.domain[change.name])
        return True

    def note(self, before: Live, after: Live) -> None:
        """Whether an endpoint has lost its addresses."""
        if after.empty and not before.empty:
            self.empties.add(after.name)
        if after.name != self.regional:
            return
        self.age(after)
        if after.name in self.empties and self.empty_at is None:
            self.empty_at = self.time.now
        elif not after.empty and self.empty_at is not None and self.mended_at is None:
            self.mended_at = self.time.now

    def age(self, after: Live) -> None:
        """How long the regional endpoint answers from an older plan than it did."""
        number = after.marker.generation.number if isinstance(after.marker, Marker) else 0
        if self.stale_since is not None:
            self.stale += self.time.now - self.stale_since
        self.stale_since = self.time.now if number < self.newest_live else None
        self.newest_live = max(self.newest_live, number)

    def publish(self, plan: Plan) -> bool:
        """Compare-and-set on the head: whether the plan is the newest now."""
        if self.head != plan.expected:
            return False
        self.head, rows = stamped(plan, f"{STORE}-{plan.number}")
        for row in rows:
            self.rows[row.name] = (row, *self.rows[row.name])
            self.newest[row.name] = row
        self.versions[1] += 1
        return True

    def delete(self, effect: DeleteRow) -> None:
        """One row goes, if it is the one that was judged."""
        self.rows[effect.name] = tuple(
            row for row in self.rows[effect.name] if (row.generation, row.nonce) != (effect.generation, effect.nonce)
        )


class Part:
    """One decider and what it has read; its calls take time, its comparisons none."""

    def __init__(self, world: World, name: str, decider: DnsEnactor | DnsPlanner | Janitor, chance: Chance) -> None:
        """It wakes at once."""
        self.world, self.name, self.decider, self.chance = world, name, decider, chance
        self.dns: dict[str, Live] = {}
        self.rows: dict[str, Row] = {}
        self.wanted: dict[str, Wanted] = {}
        self.seen = [-1, -1, -1]
        self.calm: tuple[int, ...] = ()
        self.agreed_dns: dict[str, Live] = {}
        self.highest = 0
        world.time.later(0, self.woken)

    def woken(self) -> None:
        """Its timer fires."""
        self.told(Woke())

    def told(self, event: Event) -> None:
        """It is told an event, and asks for the next thing."""
        *aside, effect = self.decider.on(event, EPOCH + self.world.time.now)
        if not all(isinstance(each, Findings | SetAside) for each in aside):
            raise TypeError("a serial decider has one call outstanding")
        match effect:
            case Wake(after=after):
                self.world.time.later(after, self.woken)
            case Compare():
                self.told(self.compared(effect))
            case Survey():
                self.told(self.surveyed())
            case Commit(batch=batch):
                self.commit(batch)
            case DeleteRow():
                values = self.world.values
                after = self.chance.lasting(values.deletion / values.endpoints)
                self.world.time.later(after, lambda: self.answered(effect))
            case _:
                self.world.time.later(self.chance.call(), lambda: self.answered(effect))

    def answered(self, effect: Effect) -> None:
        """A call takes effect and is answered."""
        world = self.world
        match effect:
            case ReadDns():
                self.dns, self.seen[0] = dict(world.domain), world.versions[0]
                self.told(DnsRead())
            case ReadRows():
                self.rows, self.seen[1] = dict(world.newest), world.versions[1]
                self.told(RowsRead())
            case ReadHead():
                self.rows, self.seen[1] = dict(world.newest), world.versions[1]
                self.told(HeadRead(world.head))
            case ReadInputs():
                self.wanted, self.seen[2] = world.wanted, world.versions[2]
                self.told(InputsRead(world.inputs))
            case Publish(plan=plan):
                self.told(Published() if world.publish(plan) else Outrun())
            case ReadSpent():
                self.told(SpentRead(self.spent()))
            case DeleteRow():
                world.delete(effect)
                self.told(Deleted())
            case _:
                raise TypeError(f"no part calls {type(effect).__name__}")

    def compared(self, effect: Compare) -> Compared:
        """DNS and rows side by side, but for what is in order."""
        state = tuple(self.seen[:2])
        if state == self.calm:
            return Compared(())
        pairs = [Pair(live, self.rows.get(name)) for name, live in self.dns.items() if not self.in_order(name, live)]
        after = [pair for pair in pairs if pair.live.name > effect.cursor]
        after += [pair for pair in pairs if pair.live.name <= effect.cursor]
        self.calm = () if after else state
        return Compared(tuple(after[: effect.limit]), more=len(after) > effect.limit)

    def in_order(self, name: str, live: Live) -> bool:
        """Whether the row stands there as it is."""
        row = self.rows.get(name)
        return (
            row is not None and isinstance(live.marker, Marker) and same(live.marker, row) and live.holds(row.content)
        )

    def surveyed(self) -> Surveyed:
        """Inputs, rows and DNS side by side, but for what agrees, or did and hasn't changed."""
        state, known = tuple(self.seen), self.agreed_dns
        changed = [(name, live) for name, live in self.dns.items() if known.get(name) is not live]
        for _, live in changed:
            if isinstance(live.marker, Marker):
                self.highest = max(self.highest, live.marker.generation.number)
        looked = changed if state[1:] == self.calm[1:] else self.dns.items()
        standings = tuple(
            Standing(name, live, self.rows.get(name), self.wanted.get(name))
            for name, live in looked
            if not self.agreed(name, live)
        )
        self.calm, self.agreed_dns = ((), {}) if standings else (state, self.dns)
        return Surveyed(standings, self.highest)

    def agreed(self, name: str, live: Live) -> bool:
        """Whether an endpoint's row is what is wanted, and nothing newer stands in DNS."""
        row, wanted, marker = self.rows.get(name), self.wanted.get(name), live.marker
        if row is None or wanted is None or row.content is not wanted.content:
            return False
        return not isinstance(marker, Marker) or marker.generation < row.generation or same(marker, row)

    def spent(self) -> tuple[Spent, ...]:
        """Rows older than the newest, with what was live when DNS was read."""
        listed = []
        for name, rows in self.world.rows.items():
            marker = self.dns[name].marker
            live = marker.generation if isinstance(marker, Marker) else None
            listed += [Spent(row, place, rows[0].generation, live) for place, row in enumerate(rows) if place]
        return tuple(listed)

    def commit(self, batch: tuple[Change, ...]) -> None:
        """Only enactors write."""
        raise TypeError(f"{self.name} commits {len(batch)} changes")


class EnactorPart(Part):
    """An enactor: each endpoint's write is a transaction of its own, one after the other."""

    def __init__(
        self, world: World, at: int, order: tuple[int, ...], chance: Chance, late: dict[int, Duration]
    ) -> None:
        """``late``: how long after its reading each write of the slow pass arrives; only enactor A has one."""
        settings = EnactorSettings(
            ENACTORS[at], OWNER, batch=len(order), room=Room(endpoints=1, octets=0), at_once=len(order),
            cursor=world.names[order[-1]] if order[0] else "",
        )  # fmt: skip
        self.late = late
        self.unlucky = at == 0
        self.awaited = self.missed = 0
        self.read_at: Instant = 0
        super().__init__(world, ENACTORS[at], DnsEnactor(settings, settings.batch, settings.cursor), chance)

    def answered(self, effect: Effect) -> None:
        """As any part's; a read of the rows is what its next writes rest on."""
        if isinstance(effect, ReadRows):
            self.read_at = self.world.time.now
        super().answered(effect)

    def commit(self, batch: tuple[Change, ...]) -> None:
        """Send them, each in its turn; answer once the last has arrived."""
        world = self.world
        now = world.time.now
        slow = self.unlucky and not world.spell and now >= world.values.slow_begins * SECOND and bool(self.late)
        if slow:
            world.spell = True
            plan = batch[0].marker.generation.number
            world.time.tell(self.name, f"reads DNS and plan {plan}; each write requires exactly what it has read")
            world.time.tell(self.name, f"slows down: its calls take {world.values.slow:g} times as long")
        self.awaited, self.missed = len(batch), 0
        most = max(self.late.values(), default=0)
        after: Duration = 0
        for change in batch:
            after += self.chance.call() + self.chance.call()
            late = self.late.get(world.places[change.name], most) if slow else 0
            due = max(0, self.read_at + late - now) if slow else after
            world.time.later(due, partial(self.arrived, change, slow))

    def arrived(self, change: Change, slow: bool) -> None:
        """One write reaches the provider, in the slow pass or another; the last one's arrival answers them all."""
        world = self.world
        applied = world.write(change)
        self.missed += not applied
        self.awaited -= 1
        if slow and change.name == world.regional:
            self.tell_of(change, applied)
        if self.awaited:
            return
        if slow:
            world.time.end = min(world.time.end, world.time.now + int(SETTLED_PLANS * world.values.plans * SECOND))
            world.time.tell(self.name, f"had {self.missed} writes refused; reads again, goes on from what is there")
        self.told(Changed() if self.missed else Committed())

    def tell_of(self, change: Change, applied: bool) -> None:
        """The late write of the regional endpoint."""
        marker = self.world.domain[change.name].marker
        stands = marker.generation.number if isinstance(marker, Marker) else 0
        number = change.marker.generation.number
        after = f"{(self.world.time.now - self.read_at) / MINUTE:.0f} min after its reading"
        came = "nothing newer stands there" if applied else f"refused, plan {stands} stands there"
        self.world.time.tell(self.name, f"comes to {REGIONAL_NAME} {after} with plan {number}: {came}")


def fenced(values: DnsValues, seed: int, end: Instant, late: dict[int, Duration]) -> Fenced:
    """Run production's deciders; ``late`` is how late enactor A was at each endpoint."""
    time = Timeline(min(end, int(values.slow_begins * SECOND) + SPELL_MOST))
    world = World(values, time)
    world.shift()
    for at in plan_times(values, seed, time.end):
        time.later(at, world.shift)
    streams = [Chance(values, seed, purpose) for purpose in (0, 1, 2, 4, 5)]
    Part(world, "planner", DnsPlanner(PlannerSettings("planner", OWNER)), streams[3])
    for at, order in enumerate(orders(values)):
        EnactorPart(world, at, order, streams[at], late if at == 0 else {})
    kept = JanitorSettings(keep_generations=values.generations, keep_for=0, idle=int(values.plans * SECOND))
    Part(world, "janitor", Janitor(kept), streams[4])
    time.run()
    if world.empty_at is None:
        words = f"has answered all the time; {world.refused} writes older than what stood there were refused"
        time.tell(REGIONAL_NAME, words)
    return Fenced(
        world.empty_at,
        world.mended_at,
        len(world.empties),
        world.stale,
        world.refused,
        world.beaten,
        world.writes,
        tuple(time.lines),
    )
