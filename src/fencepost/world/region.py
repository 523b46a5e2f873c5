"""A region as one value: deciders, what each has read, the store, the domain, and messages in flight; and its moves.

The deciders are the very classes that run in production. What is modelled is everything around them: a call takes effect
in one step at any later moment, its answer may never come (a crash), a commit may arrive late or twice, a timer may fire
at any time. A decider's pass is therefore as many moves as it makes calls, and everything else may happen in between.

States are kept small by having each read's answer and the decider's next effect in one move: nothing shared can tell when,
between its answer and its next call, a decider thinks.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from fencepost.core import judge as judging
from fencepost.core import promises, repair, store, zone
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
from fencepost.core.fence import Foreign, Generation, Marker
from fencepost.core.instant import SECOND, Instant
from fencepost.core.judge import Pair, Remembered
from fencepost.core.promises import Memory
from fencepost.core.record_set import Content, content, record_digest
from fencepost.core.store import Head, Order, Row, Tables, Wanted
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.core.zone import Batch, Change, Live
from fencepost.world.faults import Fault

OWNER = "demo"
ADOPTED: tuple[Content, ...] = tuple(content([f"192.0.2.{n}"], 30) for n in range(1, 9))
"""What the inputs ask for, one after the other."""
REPAIRED = content(["198.51.100.1"], 30)

AnyDecider: TypeAlias = DnsEnactor | DnsPlanner | Janitor


class Shared(Struct, frozen=True, gc=False):
    """What all parts see: DNS, store, commits in flight; what the adversary may still do; what the promises remember.

    ``tick`` stands for the seconds since 1970: it rises with each hold placed, so no two are placed in one second.
    """

    domain: tuple[Live, ...]
    tables: Tables
    flight: tuple[Batch, ...] = ()
    budget: tuple[tuple[Fault, int], ...] = ()
    memory: tuple[Memory, ...] = ()
    tick: int = 0
    life: int = 1

    @property
    def now(self) -> Instant:
        """The time at which the next hold would be placed."""
        return (self.tick + 1) * SECOND


class Mirror(Struct, frozen=True, gc=False):
    """What a pass has read so far."""

    dns: tuple[Live, ...] = ()
    rows: tuple[Row | None, ...] = ()
    ours: tuple[frozenset[str], ...] = ()
    wanted: tuple[tuple[str, Wanted], ...] = ()
    orders: tuple[Order, ...] = ()


NOTHING_READ = Mirror()


class Slot(NamedTuple):
    """One part: its decider (never changed in place), what it has read, the call it is about to make, its local file."""

    name: str
    decider: AnyDecider
    mirror: Mirror
    pending: Effect
    file: tuple[Remembered | None, ...] = ()

    def key(self) -> tuple[object, ...]:
        """What tells this slot from another; the name doesn't, so that equal parts are interchangeable."""
        return (type(self.decider), structs.astuple(self.decider), self.mirror, self.pending, self.file)


class Move(NamedTuple):
    """One step: what it was, what it led to, the promise it broke, and whether it is the part's own (no fault in it)."""

    label: str
    slot: Slot | None
    shared: Shared
    broken: str | None = None
    calm: bool = True


class Shape(Struct, frozen=True, gc=False):
    """How big a region: parts, endpoints, and what may happen how often."""

    enactors: int = 2
    planners: int = 1
    janitors: int = 0
    endpoints: int = 1
    budget: tuple[tuple[Fault, int], ...] = ()


def names(shape: Shape) -> tuple[str, ...]:
    """The endpoints' names."""
    return tuple(f"{word}.example.test" for word in ("api", "www", "db", "queue")[: shape.endpoints])


def start(shape: Shape) -> tuple[tuple[Slot, ...], Shared]:
    """A region before anything was planned."""
    wanted = tuple((name, Wanted(ADOPTED[0], "4")) for name in names(shape))
    shared = Shared(
        domain=tuple(Live(name) for name in names(shape)),
        tables=Tables(Head(life(1)), wanted=wanted, inputs=1),
        budget=tuple(sorted(shape.budget, key=lambda item: item[0].value)),
        memory=(Memory(),) * shape.endpoints,
    )
    slots = [fresh(Slot(f"enactor {'ABCDEF'[n]}", enactor(), NOTHING_READ, ReadDns(), (None,) * shape.endpoints)) for n in range(shape.enactors)]
    slots += [fresh(Slot(f"planner {n + 1}", planner(), NOTHING_READ, ReadHead())) for n in range(shape.planners)]
    slots += [fresh(Slot("janitor", janitor(), NOTHING_READ, ReadDns())) for _ in range(shape.janitors)]
    return tuple(slots), shared


def life(number: int) -> str:
    """The identity of the store's ``number``-th life."""
    return f"{number:04x}"


def enactor() -> DnsEnactor:
    """An enactor just started. All have one name here: names only spread jitter, and a timer may fire at any time anyway."""
    settings = EnactorSettings("enactor", OWNER, batch=2)
    return DnsEnactor(settings, settings.batch)


def planner() -> DnsPlanner:
    """A planner just started."""
    return DnsPlanner(PlannerSettings("planner", OWNER, gather=0))


def janitor() -> Janitor:
    """A janitor that keeps nothing for rollback, so that only its safety rule holds it back."""
    return Janitor(JanitorSettings(keep_generations=0, keep_for=0))


def fresh(slot: Slot) -> Slot:
    """The part just (re)started: all forgotten but its local file."""
    decider: AnyDecider
    match slot.decider:
        case DnsEnactor():
            decider = enactor()
        case DnsPlanner():
            decider = planner()
        case _:
            decider = janitor()
    return advance(slot._replace(decider=decider, mirror=NOTHING_READ), Woke(), 0, copied=True)


def advance(slot: Slot, event: Event, now: Instant, *, copied: bool = False) -> Slot:
    """The part once told an event, up to its next call to the outside.

    Timers and comparisons are no calls: a timer may fire at once, and comparing touches nothing shared.
    """
    decider = slot.decider if copied else slot.decider.__copy__()
    effects = decider.on(event, now)
    pending = effects[-1]
    slot = slot._replace(decider=decider, pending=pending)
    match pending:
        case Wake():
            return advance(slot._replace(mirror=NOTHING_READ), Woke(), now, copied=True)
        case Compare():
            return advance(slot._replace(mirror=NOTHING_READ), compared(slot, pending), now, copied=True)
        case Survey():
            return advance(slot._replace(mirror=NOTHING_READ), surveyed(slot), now, copied=True)
    assert all(isinstance(effect, Findings) for effect in effects[:-1])
    return slot


def compared(slot: Slot, effect: Compare) -> Compared:
    """DNS and rows side by side, as the port of an enactor lays them."""
    mirror = slot.mirror
    pairs = [
        Pair(live, row if effect.rows_known else None, known, ours)
        for live, row, known, ours in zip(mirror.dns, mirror.rows, slot.file, mirror.ours, strict=True)
    ]
    return Compared(tuple(pairs[: effect.limit]), more=False)


def surveyed(slot: Slot) -> Surveyed:
    """Inputs, rows and DNS side by side, as the port of a planner lays them."""
    mirror = slot.mirror
    wanted = dict(mirror.wanted)
    standings = tuple(
        Standing(live.name, live, row, wanted.get(live.name), tuple(o for o in mirror.orders if o.name == live.name))
        for live, row in zip(mirror.dns, mirror.rows, strict=True)
    )
    numbers = [live.marker.generation.number for live in mirror.dns if isinstance(live.marker, Marker)]
    return Surveyed(standings, max(numbers, default=0))


def moves(slot: Slot, shared: Shared) -> Iterator[Move]:
    """Each step that one part may take now: its pending call, or its end."""
    budget = dict(shared.budget)
    yield from perform(slot, shared, budget)
    if budget.get(Fault.CRASH):
        left = spend(shared, Fault.CRASH)
        yield Move("crash", fresh(slot), left, calm=False)
        if isinstance(slot.pending, Commit):
            late = structs.replace(left, flight=tuple(sorted((*left.flight, slot.pending.batch), key=repr)))
            yield Move("crash, its write still on the way", fresh(slot), late, calm=False)


def perform(slot: Slot, shared: Shared, budget: dict[Fault, int]) -> Iterator[Move]:
    """The pending call takes effect, and the part is told."""
    tables, mirror = shared.tables, slot.mirror
    match slot.pending:
        case ReadDns():
            seen = structs.replace(mirror, dns=shared.domain)
            slot = slot._replace(mirror=seen)
            if slot.file:
                slot = slot._replace(file=recollect(slot.file, shared.domain))
            yield thought("reads DNS", slot, DnsRead(), shared)
        case ReadRows():
            rows = tuple(tables.newest(live.name) for live in shared.domain)
            seen = structs.replace(mirror, rows=rows, ours=tuple(known_sets(tables, slot, n) for n in range(len(rows))))
            yield thought("reads the rows", slot._replace(mirror=seen), RowsRead(), shared)
        case ReadHead():
            rows = tuple(tables.newest(live.name) for live in shared.domain)
            yield thought("reads the head", slot._replace(mirror=Mirror(rows=rows)), HeadRead(tables.head), shared)
        case ReadInputs():
            seen = structs.replace(mirror, wanted=tables.wanted, orders=tables.orders)
            yield thought("reads the inputs", slot._replace(mirror=seen), InputsRead(tables.inputs), shared)
        case ReadSpent():
            yield thought("lists old rows", slot._replace(mirror=NOTHING_READ), SpentRead(spent(slot, tables)), shared)
        case Commit(batch=batch):
            yield from commit(slot, shared, batch, budget)
        case Publish():
            yield published(slot, shared, slot.pending)
        case DeleteRow():
            yield deleted(slot, shared, slot.pending)
        case other:
            raise TypeError(f"no part calls {type(other).__name__}")


def thought(label: str, slot: Slot, event: Event, shared: Shared) -> Move:
    """The part thinks about an answer; if it decides to place a hold, a second passes."""
    told = advance(slot, event, shared.now)
    if isinstance(told.pending, Publish):
        placed = [row.hold.id for row in told.pending.plan.rows if row.hold is not None]
        if placed and max(placed) > shared.tick:
            shared = structs.replace(shared, tick=max(placed))
    return Move(label, told, shared)


def recollect(file: tuple[Remembered | None, ...], domain: tuple[Live, ...]) -> tuple[Remembered | None, ...]:
    """The local file after a read of DNS."""
    return tuple(judging.remember(live, "4") or known for live, known in zip(domain, file, strict=True))


def known_sets(tables: Tables, slot: Slot, at: int) -> frozenset[str]:
    """Digests of the address sets that kept rows or the local file know, where an unmarked set was seen."""
    live, known = slot.mirror.dns[at], slot.file[at]
    if live.marker is not None or live.empty:
        return frozenset()
    sets = {record_digest(row.content.a, row.content.aaaa) for row in tables.rows if row.name == live.name}
    return frozenset(sets | ({record_digest(known.content.a, known.content.aaaa)} if known else set()))


def spent(slot: Slot, tables: Tables) -> tuple[Spent, ...]:
    """Old rows of each endpoint, with what was live when DNS was read."""
    listed = []
    for live in slot.mirror.dns:
        rows = [row for row in tables.rows if row.name == live.name]
        marker = live.marker.generation if isinstance(live.marker, Marker) else None
        listed += [Spent(row, place, rows[0].generation, marker) for place, row in enumerate(rows) if place]
    return tuple(listed)


def commit(slot: Slot, shared: Shared, batch: Batch, budget: dict[Fault, int]) -> Iterator[Move]:
    """A commit arrives: it applies or is refused, and its sender is told. It may also come again later."""
    landed, broken, applied = land(shared, batch)
    if applied and slot.file:
        kept = list(slot.file)
        for change in batch:
            at = next(n for n, live in enumerate(shared.domain) if live.name == change.name)
            kept[at] = judging.remember(landed.domain[at], change.families) or kept[at]
        slot = slot._replace(file=tuple(kept))
    told = advance(slot, Committed() if applied else Changed(), shared.now)
    yield Move(sends(batch, applied), told, landed, broken)
    if budget.get(Fault.DUPLICATE):
        again = structs.replace(spend(landed, Fault.DUPLICATE), flight=(*landed.flight, batch))
        yield Move(sends(batch, applied) + ", and a copy is on the way", told, again, broken, calm=False)


def sends(batch: Batch, applied: bool) -> str:
    """Words for a commit."""
    what = ", ".join(f"{change.name} {change.marker.generation}" for change in batch)
    return f"writes {what}" if applied else f"is refused: {what} (something changed since it read)"


def land(shared: Shared, batch: Batch) -> tuple[Shared, str | None, bool]:
    """DNS after a transaction, the promise it broke, and whether it applied."""
    replaced = zone.transact({live.name: live for live in shared.domain}, batch)
    if replaced is None:
        return shared, None, False
    broken = None
    memory = list(shared.memory)
    domain = list(shared.domain)
    for at, live in enumerate(shared.domain):
        if live.name in replaced:
            domain[at] = replaced[live.name]
            memory[at], wrong = promises.enact(memory[at], domain[at], shared.now - SECOND)
            broken = broken or wrong
    return structs.replace(shared, domain=tuple(domain), memory=tuple(memory)), broken, True


def published(slot: Slot, shared: Shared, effect: Publish) -> Move:
    """A plan reaches the store."""
    plan, tables = effect.plan, shared.tables
    after = store.publish(tables, plan, f"{tables.head.store}-{plan.number}")
    if after is None:
        return Move(f"plan {plan.number} is refused: another was first", advance(slot, Outrun(), shared.now), shared)
    older = tables.head.store == after.head.store and plan.inputs < tables.head.inputs
    broken = "inputs_never_backward" if older else None
    label = f"publishes plan {plan.number}: {'; '.join(plan.why) or 'orders only'}"
    return Move(label, advance(slot, Published(), shared.now), structs.replace(shared, tables=after), broken)


def deleted(slot: Slot, shared: Shared, effect: DeleteRow) -> Move:
    """A clean-up reaches the store."""
    tables = shared.tables
    newest = tables.newest(effect.name)
    after = store.delete_row(tables, effect.name, effect.generation, effect.nonce) or tables
    live = next(live.marker for live in shared.domain if live.name == effect.name)
    pinned = {newest.generation if newest else None, live.generation if isinstance(live, Marker) else None}
    gone = {row.generation for row in tables.rows} - {row.generation for row in after.rows}
    broken = "cleanup_spares_live" if gone & pinned else None
    label = f"deletes row {effect.generation}"
    return Move(label, advance(slot, Deleted(), shared.now), structs.replace(shared, tables=after), broken)


def spend(shared: Shared, fault: Fault) -> Shared:
    """One less of a fault."""
    return structs.replace(shared, budget=tuple((f, n - (f is fault)) for f, n in shared.budget))


def arrivals(shared: Shared) -> Iterator[Move]:
    """Commits in flight reach the provider; nobody waits for the answer."""
    for at, batch in enumerate(shared.flight):
        left = structs.replace(shared, flight=shared.flight[:at] + shared.flight[at + 1 :])
        landed, broken, applied = land(left, batch)
        yield Move("a late write: " + sends(batch, applied), None, landed, broken)


def adversary(shared: Shared) -> Iterator[Move]:
    """Each thing a person or machine outside may do now."""
    for fault, left in shared.budget:
        if left:
            for at in range(len(shared.domain)):
                after = HANDS[fault](shared, at) if fault in HANDS else None
                if after is not None:
                    yield Move(fault.value, None, spend(after, fault))


def by_hand(shared: Shared, at: int, **what: object) -> Shared | None:
    """DNS after a careless or hostile hand has changed an endpoint's records, marker or both."""
    live = structs.replace(shared.domain[at], **what)
    if live == shared.domain[at]:
        return None
    memory = promises.destroy(shared.memory[at], live, shared.tables.newest(live.name))
    return structs.replace(
        shared,
        domain=shared.domain[:at] + (live,) + shared.domain[at + 1 :],
        memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :],
    )


def wiped(shared: Shared, at: int) -> Shared | None:
    """The store is lost: a new one with nothing but what the configuration asks."""
    if at or not shared.tables.rows:
        return None
    tables = Tables(Head(life(shared.life + 1)), wanted=shared.tables.wanted, inputs=1)
    memory = tuple(promises.destroy(m, live, None) for m, live in zip(shared.memory, shared.domain, strict=True))
    return structs.replace(shared, tables=tables, memory=memory, life=shared.life + 1)


def repaired(shared: Shared, at: int) -> Shared | None:
    """A person sends a repair; it arrives when it arrives."""
    live = shared.domain[at]
    if isinstance(live.marker, Foreign):
        return None
    row = shared.tables.newest(live.name)
    change: Change = repair.repair(live, row, REPAIRED, owner=OWNER, store=shared.tables.head.mark, now=shared.now)
    hold = change.marker.hold
    assert hold is not None
    return structs.replace(shared, flight=(*shared.flight, (change,)), tick=max(shared.tick + 1, hold.id))


def ordered(shared: Shared, order: Order) -> Shared:
    """A person's order waits in the store."""
    return structs.replace(
        shared, tables=structs.replace(shared.tables, orders=(*shared.tables.orders, order)), tick=shared.tick + 1
    )


def rolled_back(shared: Shared, at: int) -> Shared | None:
    """A person asks for the content of the oldest kept row."""
    name = shared.domain[at].name
    rows = [row for row in shared.tables.rows if row.name == name and row.hold is None]
    if len(rows) < 2:
        return None
    return ordered(shared, Order(f"o{shared.tick}", "rollback", name, content=rows[-1].content))


def withdrawn(shared: Shared, at: int) -> Shared | None:
    """The owner takes the endpoint away."""
    if shared.tables.newest(shared.domain[at].name) is None:
        return None
    return ordered(shared, Order(f"o{shared.tick}", "withdraw", shared.domain[at].name))


def released(shared: Shared, at: int) -> Shared | None:
    """A person ends the hold that he sees in the marker."""
    marker = shared.domain[at].marker
    if not isinstance(marker, Marker) or marker.hold is None:
        return None
    memory = structs.replace(shared.memory[at], released=max(shared.memory[at].released, marker.hold.id))
    after = ordered(shared, Order(f"o{shared.tick}", "release", shared.domain[at].name, hold=marker.hold.id))
    return structs.replace(after, memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :])


def asked(shared: Shared, at: int) -> Shared | None:
    """The inputs ask for the next content."""
    tables = shared.tables
    name, old = tables.wanted[at]
    new = Wanted(ADOPTED[ADOPTED.index(old.content) + 1], "4")
    wanted = tables.wanted[:at] + ((name, new),) + tables.wanted[at + 1 :]
    return structs.replace(shared, tables=structs.replace(tables, wanted=wanted, inputs=tables.inputs + 1))


HANDS = {
    Fault.MARKER_DELETED: lambda shared, at: by_hand(shared, at, marker=None),
    Fault.EMPTIED: lambda shared, at: by_hand(shared, at, a=(), aaaa=(), ttl=0),
    Fault.BOTH: lambda shared, at: by_hand(shared, at, marker=None, a=(), aaaa=(), ttl=0),
    Fault.FOREIGN: lambda shared, at: by_hand(shared, at, marker=Foreign("eu-2")),
    Fault.STORE_WIPED: wiped,
    Fault.REPAIR: repaired,
    Fault.ROLLBACK: rolled_back,
    Fault.RELEASE: released,
    Fault.WITHDRAW: withdrawn,
    Fault.INPUT: asked,
}


def converged(shared: Shared) -> bool:
    """Whether every endpoint answers what its newest row says, and that row what is wanted or held.

    Endpoints that wait for a person (another's marker, unmarked records not known as ours) count: their records serve.
    """
    if shared.tables.orders:
        return False
    wanted = dict(shared.tables.wanted)
    return all(settled(shared, live, wanted.get(live.name)) for live in shared.domain)


def settled(shared: Shared, live: Live, wanted: Wanted | None) -> bool:
    """Whether one endpoint is where it should be, or waits for a person."""
    if isinstance(live.marker, Foreign):
        return True
    row = shared.tables.newest(live.name)
    if row is None:
        return False
    if live.marker is None:
        kept = {record_digest(r.content.a, r.content.aaaa) for r in shared.tables.rows if r.name == live.name}
        return judging.judge(Pair(live, row, ours=frozenset(kept)), OWNER).kind is judging.Kind.ASK
    held = row.hold is not None or (wanted is not None and row.content == wanted.content)
    return held and judging.same(live.marker, row) and live.holds(row.content)


def newest_generation(shared: Shared, at: int) -> Generation | None:
    """The newest row's generation of the endpoint at ``at``."""
    row = shared.tables.newest(shared.domain[at].name)
    return row.generation if row is not None else None
