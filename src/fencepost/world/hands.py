"""What persons and machines outside may do to a region: edits by hand, losses, orders, changed inputs."""

from collections.abc import Callable, Iterator

from msgspec import structs

from fencepost.core import promises, repair
from fencepost.core.fence import Foreign, Marker
from fencepost.core.instant import SECOND
from fencepost.core.record_set import record_digest
from fencepost.core.store import Head, Order, Row, Tables, Wanted
from fencepost.core.zone import Change
from fencepost.world import goals
from fencepost.world.calls import fly, spend
from fencepost.world.faults import MEANING, Fault
from fencepost.world.model import Move
from fencepost.world.region import ASKED, BETWEEN_HOLDS_S, DRAINED, OWNER, REPAIRS, STRANGE, Shared, life

LASTS_S = 100
"""How long a hold with an end lasts, seconds: far more than pass while holds are placed."""
AHEAD = 1000 * SECOND
"""How far a clock that is ahead is ahead."""


def adversary(shared: Shared) -> Iterator[Move]:
    """Each thing a person or machine outside may do now."""
    for fault, left in shared.budget:
        if left and fault in HANDS:
            for at in range(len(shared.domain)):
                after = HANDS[fault](shared, at)
                if after is not None:
                    lost = fault is Fault.STORE_WIPED and any(shared.words)
                    event = "a person's word lost" if lost else fault.value
                    yield Move(MEANING[fault], None, spend(after, fault), event=event)


def by_hand(shared: Shared, at: int, **what: object) -> Shared | None:
    """DNS after a careless or hostile hand has changed an endpoint's records, marker or both."""
    live = structs.replace(shared.domain[at], **what)
    if live == shared.domain[at]:
        return None
    memory = promises.destroy(goals.timed_out(shared, at), live, newest_row(shared, at))
    return structs.replace(
        shared,
        domain=shared.domain[:at] + (live,) + shared.domain[at + 1 :],
        memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :],
    )


def newest_row(shared: Shared, at: int) -> Row | None:
    """The newest row of an endpoint; of two stores' the older (or none), since each knows only of its own."""
    rows = [tables.newest(shared.domain[at].name) for tables in shared.stores]
    return min((row for row in rows if row), key=lambda row: row.generation, default=None) if all(rows) else None


def altered(shared: Shared, at: int, **what: object) -> Shared | None:
    """Addresses replaced by strange ones; an empty name is left alone."""
    if shared.domain[at].empty:
        return None
    return by_hand(shared, at, a=STRANGE.a, aaaa=(), **what)


def settled_on(shared: Shared, at: int) -> Shared | None:
    """Addresses without a marker come to stand where nothing stood."""
    live = shared.domain[at]
    if live.marker is not None or not live.empty:
        return None
    return by_hand(shared, at, a=STRANGE.a, ttl=STRANGE.ttl)


def wiped(shared: Shared, at: int) -> Shared | None:
    """The (first) store is lost: a new one with nothing but what the configuration asks."""
    if at or not shared.tables.rows:
        return None
    configured = shared.tables.wanted
    if shared.words:
        configured = tuple((name, Wanted(ASKED[n], "4")) for (name, _), n in zip(configured, shared.asked, strict=True))
    after = structs.replace(
        shared.with_tables(Tables(Head(life(shared.life + 1)), wanted=configured, inputs=1)),
        life=shared.life + 1,
        words=("",) * len(shared.words),
    )
    memory = tuple(
        promises.destroy(memory, live, newest_row(after, n))
        for n, (memory, live) in enumerate(zip(shared.memory, shared.domain, strict=True))
    )
    return structs.replace(after, memory=memory)


def repaired(shared: Shared, at: int, fault: Fault = Fault.REPAIR) -> Shared | None:
    """A person sends a repair; it arrives when it arrives."""
    live = shared.domain[at]
    if isinstance(live.marker, Foreign):
        return None
    row = shared.tables.newest(live.name)
    value, clock = REPAIRS[dict(shared.budget)[fault] - 1], shared.now
    until_s = 0
    if fault is Fault.BRIEF_REPAIR:
        value, until_s = REPAIRS[-1], shared.tick + LASTS_S
    elif fault is Fault.SLOW_REPAIR:
        value, clock = REPAIRS[-2], 0
    elif fault is Fault.FAST_REPAIR:
        value, clock = REPAIRS[-3], shared.now + AHEAD
    mark = shared.tables.head.mark
    change: Change = repair.repair(live, row, value, owner=OWNER, store=mark, now=clock, until_s=until_s)
    return structs.replace(fly(shared, (change,)), tick=shared.tick + BETWEEN_HOLDS_S)


def later(shared: Shared, at: int) -> Shared | None:
    """Time passes: every hold with an end that was placed before is over."""
    if at:
        return None
    after = structs.replace(shared, tick=shared.tick + 2 * LASTS_S)
    return structs.replace(after, memory=tuple(goals.timed_out(after, n) for n in range(len(after.domain))))


def ordered(shared: Shared, fault: Fault, order: Order, store: int = 0) -> Shared:
    """A person's order waits in the store."""
    named = structs.replace(order, id=f"{fault.value} {dict(shared.budget)[fault]}")
    tables = shared.stores[store]
    return shared.with_tables(structs.replace(tables, orders=(*tables.orders, named)), store)


def rolled_back(shared: Shared, at: int) -> Shared | None:
    """A person asks for the content of the oldest kept row."""
    name = shared.domain[at].name
    rows = [row for row in shared.tables.rows if row.name == name and row.hold is None]
    if len(rows) < 2:
        return None
    return ordered(shared, Fault.ROLLBACK, Order("", "rollback", name, content=rows[-1].content))


def withdrawn(shared: Shared, at: int) -> Shared | None:
    """The owner takes the endpoint away."""
    name = shared.domain[at].name
    if shared.tables.newest(name) is None:
        return None
    return ordered(shared, Fault.WITHDRAW, Order("", "withdraw", name))


def released(shared: Shared, at: int) -> Shared | None:
    """A person ends the hold that he sees in the marker."""
    marker = shared.domain[at].marker
    if not isinstance(marker, Marker) or marker.hold is None:
        return None
    memory = structs.replace(shared.memory[at], released=max(shared.memory[at].released, marker.hold.id))
    order = Order("", "release", shared.domain[at].name, hold=marker.hold.id)
    after = ordered(shared, Fault.RELEASE, order)
    return structs.replace(after, memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :])


def taken_over(shared: Shared, at: int) -> Shared | None:
    """A person lets us take over exactly the unmarked addresses that stand."""
    live = shared.domain[at]
    if live.marker is not None or live.empty:
        return None
    seen = record_digest(live.a, live.aaaa)
    memory = structs.replace(shared.memory[at], adopted=seen)
    after = ordered(shared, Fault.ADOPT, Order("", "adopt", live.name, adopt=seen))
    return structs.replace(after, memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :])


def claimed(shared: Shared, at: int) -> Shared | None:
    """A person lets the first store that has stopped writing an endpoint go on."""
    name = shared.domain[at].name
    for store, tables in enumerate(shared.stores):
        row = tables.newest(name)
        if row is not None and row.contested:
            return ordered(shared, Fault.CLAIM, Order("", "adopt", name, adopt="-"), store)
    return None


def asked(shared: Shared, at: int) -> Shared | None:
    """The inputs (of the first store) ask for the next content, if a person's word lets them."""
    if shared.words:
        times = shared.asked[at] + 1
        after = structs.replace(shared, asked=shared.asked[:at] + (times,) + shared.asked[at + 1 :])
        return after if shared.words[at] == "keep" else wants(after, at, shared.words[at])
    tables = shared.tables
    name, old = tables.wanted[at]
    new = Wanted(ASKED[ASKED.index(old.content) + 1], "4")
    wanted = tables.wanted[:at] + ((name, new),) + tables.wanted[at + 1 :]
    return shared.with_tables(structs.replace(tables, wanted=wanted, inputs=tables.inputs + 1))


def wants(shared: Shared, at: int, word: str) -> Shared:
    """The inputs as they are with a person's word about an endpoint, in a newer snapshot."""
    content = (DRAINED if word == "drain" else ASKED)[shared.asked[at]]
    tables = shared.tables
    wanted = tables.wanted[:at] + ((tables.wanted[at][0], Wanted(content, "4")),) + tables.wanted[at + 1 :]
    return shared.with_tables(structs.replace(tables, wanted=wanted, inputs=tables.inputs + 1))


def told(shared: Shared, at: int, word: str) -> Shared | None:
    """A person's word about an endpoint's targets: it changes nothing but what the inputs ask. "" takes it back."""
    if bool(word) == bool(shared.words[at]):
        return None
    after = structs.replace(shared, words=shared.words[:at] + (word,) + shared.words[at + 1 :])
    return after if word == "keep" else wants(after, at, word)


HANDS: dict[Fault, Callable[[Shared, int], Shared | None]] = {
    Fault.MARKER_DELETED: lambda shared, at: by_hand(shared, at, marker=None),
    Fault.EMPTIED: lambda shared, at: by_hand(shared, at, a=(), aaaa=(), ttl=0),
    Fault.BOTH: lambda shared, at: by_hand(shared, at, marker=None, a=(), aaaa=(), ttl=0),
    Fault.ALTERED: altered,
    Fault.UNMARKED: lambda shared, at: altered(shared, at, marker=None),
    Fault.FOREIGN: lambda shared, at: by_hand(shared, at, marker=Foreign("eu-2")),
    Fault.STORE_WIPED: wiped,
    Fault.REPAIR: repaired,
    Fault.BRIEF_REPAIR: lambda shared, at: repaired(shared, at, Fault.BRIEF_REPAIR),
    Fault.TIME: later,
    Fault.ROLLBACK: rolled_back,
    Fault.RELEASE: released,
    Fault.WITHDRAW: withdrawn,
    Fault.ADOPT: taken_over,
    Fault.INPUT: asked,
    Fault.STRANGER: settled_on,
    Fault.DRAIN: lambda shared, at: told(shared, at, "drain"),
    Fault.KEEP: lambda shared, at: told(shared, at, "keep"),
    Fault.RESUME: lambda shared, at: told(shared, at, ""),
    Fault.SLOW_REPAIR: lambda shared, at: repaired(shared, at, Fault.SLOW_REPAIR),
    Fault.FAST_REPAIR: lambda shared, at: repaired(shared, at, Fault.FAST_REPAIR),
    Fault.CLAIM: claimed,
}
"""What each does to endpoint ``at``; None where it can't be done or would change nothing."""
