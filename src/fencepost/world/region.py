"""A region as one value: deciders, what each has read, the store, the domain, and messages in flight.

The deciders are the very classes that run in production. What is modelled is everything around them: a call takes
effect in one step at any later moment, its answer may never come (a crash), a commit may arrive late or twice, a timer
may fire at any time. A decider's pass is therefore as many moves as it makes calls, and everything else may happen in
between. The moves are in :mod:`fencepost.world.calls` (the parts' own) and :mod:`fencepost.world.hands` (everybody
else's).

States are kept few by having each read's answer and the decider's next effect in one move: nothing shared can tell
when, between its answer and its next call, a decider thinks.
"""

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from fencepost.core.effects import Compare, Effect, Findings, Publish, ReadDns, ReadHead, SetAside, Survey, Wake
from fencepost.core.events import Compared, Event, Standing, Surveyed, Woke
from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND, Instant
from fencepost.core.judge import Pair, Remembered
from fencepost.core.promises import Memory
from fencepost.core.record_set import Content, content
from fencepost.core.store import Head, Order, Plan, Row, Tables, Wanted
from fencepost.core.traffic.dns_enactor import DnsEnactor, EnactorSettings
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.janitor import Janitor, JanitorSettings
from fencepost.core.traffic.room import Room
from fencepost.core.zone import Batch, Live
from fencepost.world.faults import Fault

OWNER = "demo"
ASKED: tuple[Content, ...] = tuple(content([f"192.0.2.{n}"], 30) for n in range(1, 9))
"""What the inputs ask for, one after the other; a second store begins at the other end."""
DRAINED: tuple[Content, ...] = tuple(content([f"192.0.2.{n}"], 30) for n in range(101, 109))
"""What the inputs ask for in place of each of these while a target is drained."""
REPAIRS: tuple[Content, ...] = tuple(content([f"198.51.100.{n}"], 30) for n in range(1, 7))
"""What each repair puts in place."""
BETWEEN_HOLDS_S = 10
"""So many seconds pass between two holds; two counted from the same epoch would otherwise meet one that wasn't."""
STRANGE = content(["203.0.113.9"], 30)
"""What a careless hand puts in place of our addresses."""

AnyDecider: TypeAlias = DnsEnactor | DnsPlanner | Janitor


class Shared(Struct, frozen=True, gc=False):
    """What all parts see: DNS, stores, commits in flight; what the adversary may still do; what the promises remember.

    There is one store but where two of one owner are tried. ``tick`` stands for the seconds since 1970: it rises with
    each hold placed, so no two are placed in one second by clocks that are right. ``enacted`` is, for each store and
    endpoint, the generation that its own enactors last wrote; kept only where there are two stores. ``life`` counts the
    stores ever made. No plan is published beyond number ``last`` (0: no end). ``asked`` is how often each endpoint's
    inputs changed, and ``words`` what a person has said about it ("", "drain" or "keep"): kept only where such words
    may be said.
    """

    domain: tuple[Live, ...]
    stores: tuple[Tables, ...]
    flight: tuple[Batch, ...] = ()
    budget: tuple[tuple[Fault, int], ...] = ()
    memory: tuple[Memory, ...] = ()
    tick: int = 0
    life: int = 1
    last: int = 0
    enacted: tuple[tuple[Generation, ...], ...] = ()
    asked: tuple[int, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def now(self) -> Instant:
        """The time at which the next hold would be placed."""
        return (self.tick + 1) * SECOND

    @property
    def judged_at(self) -> Instant:
        """The time by which holds that end by themselves are judged."""
        return self.tick * SECOND

    def nonce(self, tables: Tables, plan: Plan) -> str:
        """What stands for a plan's drawn nonce: no two plans of one store have one number here."""
        return f"{tables.head.store}-{plan.number}"

    @property
    def tables(self) -> Tables:
        """The first store."""
        return self.stores[0]

    def with_tables(self, tables: Tables, at: int = 0) -> "Shared":
        """The same with one store replaced."""
        return structs.replace(self, stores=self.stores[:at] + (tables,) + self.stores[at + 1 :])


class Mirror(Struct, frozen=True, gc=False):
    """What a pass has read so far."""

    dns: tuple[Live, ...] = ()
    rows: tuple[Row | None, ...] = ()
    ours: tuple[frozenset[str], ...] = ()
    wanted: tuple[tuple[str, Wanted], ...] = ()
    orders: tuple[Order, ...] = ()
    enacted: tuple[Generation, ...] = ()


NOTHING_READ = Mirror()


class Slot(NamedTuple):
    """One part: its decider (never changed in place), what it has read, the call it is about to make, its local file.

    ``store`` says which store it works with. A ``timed`` part's driver has clocks: timers and comparisons are its own.
    ``first`` is the first copy of the local file, where that may be put back.
    """

    name: str
    decider: AnyDecider
    mirror: Mirror
    pending: Effect
    file: tuple[Remembered | None, ...] = ()
    store: int = 0
    timed: bool = False
    first: tuple[Remembered | None, ...] = ()

    def key(self) -> tuple[object, ...]:
        """What tells this slot from another; the name doesn't, so that equal parts are interchangeable."""
        return (type(self.decider), structs.astuple(self.decider), *self[2:])


class Shape(Struct, frozen=True, gc=False):
    """How big a region: parts (of each store), endpoints, stores, the last plan number; what may happen how often.

    With ``at_once`` above 1 an enactor sends each endpoint's write as a transaction of its own, so many at once.
    """

    enactors: int = 2
    planners: int = 1
    janitors: int = 0
    endpoints: int = 1
    stores: int = 1
    last: int = 0
    budget: tuple[tuple[Fault, int], ...] = ()
    at_once: int = 1

    def may(self, *faults: Fault) -> bool:
        """Whether any of these may happen at all."""
        return any(fault in faults and count for fault, count in self.budget)


def title(shape: Shape) -> str:
    """A shape in words."""
    parts = [(shape.enactors, "enactor"), (shape.planners, "planner"), (shape.janitors, "janitor")]
    words = [f"{count} {word}{'s' * (count > 1)}" for count, word in parts if count]
    if shape.at_once > 1:
        words.append(f"{shape.at_once} transactions at once")
    if shape.stores > 1:
        words.append(f"each for {shape.stores} stores")
    return ", ".join([*words, f"{shape.endpoints} endpoint{'s' * (shape.endpoints > 1)}"])


def names(shape: Shape) -> tuple[str, ...]:
    """The endpoints' names."""
    return tuple(f"{word}.example.test" for word in ("api", "www", "db", "queue")[: shape.endpoints])


def start(shape: Shape) -> tuple[tuple[Slot, ...], Shared]:
    """A region before anything was planned."""
    told = shape.may(Fault.DRAIN, Fault.KEEP)
    shared = Shared(
        domain=tuple(Live(name) for name in names(shape)),
        stores=tuple(new_store(shape, at) for at in range(shape.stores)),
        budget=tuple(sorted(shape.budget, key=lambda item: item[0].value)),
        memory=(Memory(),) * shape.endpoints,
        tick=BETWEEN_HOLDS_S,
        life=shape.stores,
        last=shape.last,
        enacted=((Generation(),) * shape.endpoints,) * shape.stores if shape.stores > 1 else (),
        asked=(0,) * shape.endpoints if told else (),
        words=("",) * shape.endpoints if told else (),
    )
    return tuple(parts(shape)), shared


def parts(shape: Shape) -> Iterator[Slot]:
    """The parts, just started; those of one kind and store follow each other."""
    for store in range(shape.stores):
        place = f" of store {store + 1}" if shape.stores > 1 else ""
        for n in range(shape.enactors):
            file = (None,) * shape.endpoints
            first = file if shape.may(Fault.FILE_OLD) else ()
            name = f"enactor {'ABCDEF'[n]}{place}"
            yield fresh(Slot(name, enactor(shape.at_once), NOTHING_READ, ReadDns(), file, store, first=first))
        for n in range(shape.planners):
            yield fresh(Slot(f"planner {n + 1}{place}", planner(), NOTHING_READ, ReadHead(), (), store))
        for _ in range(shape.janitors):
            yield fresh(Slot(f"janitor{place}", janitor(), NOTHING_READ, ReadDns(), (), store))


def new_store(shape: Shape, at: int) -> Tables:
    """A store with nothing in it but what the configuration asks."""
    first = ASKED[-1] if at else ASKED[0]
    return Tables(Head(life(at + 1)), wanted=tuple((name, Wanted(first, "4")) for name in names(shape)), inputs=1)


def life(number: int) -> str:
    """The identity of the ``number``-th store ever made."""
    return f"{number:04x}"


def enactor(at_once: int = 1) -> DnsEnactor:
    """An enactor just started. All have one name here: names only spread jitter, and a timer may fire at any time."""
    settings = EnactorSettings("enactor", OWNER, batch=2)
    if at_once > 1:
        settings = structs.replace(settings, room=Room(endpoints=1), at_once=at_once)
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
            decider = enactor(slot.decider.settings.at_once)
        case DnsPlanner():
            decider = planner()
        case _:
            decider = janitor()
    return advance(slot._replace(decider=decider, mirror=NOTHING_READ), Woke(), 0, copied=True)


def advance(slot: Slot, event: Event, now: Instant, *, copied: bool = False) -> Slot:
    """The part once told an event, up to its next call to the outside.

    Timers and comparisons are no calls: a timer may fire at once, and comparing touches nothing shared.
    """
    decider = slot.decider if copied else copy(slot.decider)
    effects = decider.on(event, now)
    pending = effects[-1]
    if not all(isinstance(effect, (Findings, SetAside)) for effect in effects[:-1]):
        raise TypeError("a serial decider has one call outstanding")
    slot = slot._replace(decider=decider, pending=pending)
    if slot.timed:
        return slot
    match pending:
        case Wake():
            return advance(slot._replace(mirror=NOTHING_READ), Woke(), now, copied=True)
        case Compare():
            return advance(slot._replace(mirror=NOTHING_READ), compared(slot, pending), now, copied=True)
        case Survey():
            return advance(slot._replace(mirror=NOTHING_READ), surveyed(slot), now, copied=True)
    return slot


def compared(slot: Slot, effect: Compare) -> Compared:
    """DNS and rows side by side, as the port of an enactor lays them: in name order from after the cursor."""
    mirror = slot.mirror
    rows = mirror.rows if effect.rows_known else (None,) * len(mirror.dns)
    ours = mirror.ours if effect.rows_known else (frozenset[str](),) * len(mirror.dns)
    pairs = [Pair(*pair) for pair in zip(mirror.dns, rows, slot.file, ours, strict=True)]
    after = [pair for pair in pairs if pair.live.name > effect.cursor]
    pairs = after + [pair for pair in pairs if pair.live.name <= effect.cursor]
    return Compared(tuple(pairs[: effect.limit]), more=False)


def surveyed(slot: Slot) -> Surveyed:
    """Inputs, rows and DNS side by side, as the port of a planner lays them."""
    mirror = slot.mirror
    wanted = dict(mirror.wanted)
    standings = []
    for at, (live, row) in enumerate(zip(mirror.dns, mirror.rows, strict=True)):
        orders = tuple(order for order in mirror.orders if order.name == live.name)
        enacted = bool(mirror.enacted) and row is not None and mirror.enacted[at] >= row.generation
        standings.append(Standing(live.name, live, row, wanted.get(live.name), orders, enacted))
    numbers = [live.marker.generation.number for live in mirror.dns if isinstance(live.marker, Marker)]
    return Surveyed(tuple(standings), max(numbers, default=0))


def placed(pending: Effect, mirror: Mirror = NOTHING_READ) -> int:
    """The highest id of the holds in a plan about to be published that none of what was read has; 0 without any."""
    if not isinstance(pending, Publish):
        return 0
    holds = [row.hold for row in pending.plan.rows if row.hold is not None]
    read = {row.hold for row in mirror.rows if row is not None}
    read |= {live.marker.hold for live in mirror.dns if isinstance(live.marker, Marker)}
    return max((hold.id for hold in holds if hold not in read), default=0)
