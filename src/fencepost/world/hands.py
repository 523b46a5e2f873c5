"""What persons and machines outside may do to a region: edits by hand, losses, orders, changed inputs."""

from collections.abc import Callable, Iterator

from msgspec import structs

from fencepost.core import promises, repair
from fencepost.core.fence import Foreign, Marker
from fencepost.core.record_set import record_digest
from fencepost.core.store import Head, Order, Row, Tables, Wanted
from fencepost.core.zone import Change
from fencepost.world.calls import fly, spend
from fencepost.world.faults import MEANING, Fault
from fencepost.world.model import Move
from fencepost.world.region import ASKED, OWNER, REPAIRS, STRANGE, Shared, life

LASTS_S = 100
"""How long a hold with an end lasts, seconds: far more than pass while holds are placed."""


def adversary(shared: Shared) -> Iterator[Move]:
    """Each thing a person or machine outside may do now."""
    for fault, left in shared.budget:
        if left and fault in HANDS:
            for at in range(len(shared.domain)):
                after = HANDS[fault](shared, at)
                if after is not None:
                    yield Move(MEANING[fault], None, spend(after, fault), event=fault.value)


def by_hand(shared: Shared, at: int, **what: object) -> Shared | None:
    """DNS after a careless or hostile hand has changed an endpoint's records, marker or both."""
    live = structs.replace(shared.domain[at], **what)
    if live == shared.domain[at]:
        return None
    memory = promises.destroy(shared.memory[at], live, newest_row(shared, at))
    return structs.replace(
        shared,
        domain=shared.domain[:at] + (live,) + shared.domain[at + 1 :],
        memory=shared.memory[:at] + (memory,) + shared.memory[at + 1 :],
    )


def newest_row(shared: Shared, at: int) -> Row | None:
    """The newest row of an endpoint in any store."""
    rows = [row for tables in shared.stores if (row := tables.newest(shared.domain[at].name)) is not None]
    return max(rows, key=lambda row: row.generation, default=None)


def altered(shared: Shared, at: int, **what: object) -> Shared | None:
    """Addresses replaced by strange ones; an empty name is left alone."""
    if shared.domain[at].empty:
        return None
    return by_hand(shared, at, a=STRANGE.a, aaaa=(), **what)


def wiped(shared: Shared, at: int) -> Shared | None:
    """The (first) store is lost: a new one with nothing but what the configuration asks."""
    if at or not shared.tables.rows:
        return None
    after = structs.replace(
        shared.with_tables(Tables(Head(life(shared.life + 1)), wanted=shared.tables.wanted, inputs=1)),
        life=shared.life + 1,
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
    brief = fault is Fault.BRIEF_REPAIR
    value = REPAIRS[-1] if brief else REPAIRS[dict(shared.budget)[fault] - 1]
    until_s = shared.tick + LASTS_S if brief else 0
    mark = shared.tables.head.mark
    change: Change = repair.repair(live, row, value, owner=OWNER, store=mark, now=shared.now, until_s=until_s)
    placed = change.marker.hold.id if change.marker.hold is not None else 0
    return structs.replace(fly(shared, (change,)), tick=max(shared.tick + 1, placed))


def later(shared: Shared, at: int) -> Shared | None:
    """Time passes: every hold with an end that was placed before is over."""
    return None if at else structs.replace(shared, tick=shared.tick + 2 * LASTS_S)


def ordered(shared: Shared, fault: Fault, order: Order) -> Shared:
    """A person's order waits in the store."""
    named = structs.replace(order, id=f"{fault.value} {dict(shared.budget)[fault]}")
    tables = shared.tables
    return shared.with_tables(structs.replace(tables, orders=(*tables.orders, named)))


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
    return ordered(shared, Fault.ADOPT, Order("", "adopt", live.name, adopt=record_digest(live.a, live.aaaa)))


def asked(shared: Shared, at: int) -> Shared | None:
    """The inputs (of the first store) ask for the next content."""
    tables = shared.tables
    name, old = tables.wanted[at]
    new = Wanted(ASKED[ASKED.index(old.content) + 1], "4")
    wanted = tables.wanted[:at] + ((name, new),) + tables.wanted[at + 1 :]
    return shared.with_tables(structs.replace(tables, wanted=wanted, inputs=tables.inputs + 1))


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
}
"""What each does to endpoint ``at``; None where it can't be done or would change nothing."""
