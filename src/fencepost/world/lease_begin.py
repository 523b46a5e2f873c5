"""Where a walk of the leases' world begins: with nothing owned yet, or where everything is as it should be.

Most of what can go wrong goes wrong to a host that is held. The way there is always the same two dozen steps; beginning
behind them, walks of two managers fit into a test. The state is one that the deciders themselves reach, by a shortest
way without anything going wrong: none of it is made up.
"""

from collections.abc import Iterator

from msgspec import structs

from fencepost.world import lease_acts, lease_moves, lease_placing, leases
from fencepost.world.lease_minds import Minds
from fencepost.world.leases import Fault, Shape, Shared, Slot

World = tuple[tuple[Slot, ...], Shared]


def begin(shape: Shape, minds: Minds | None = None) -> World:
    """The first state of a walk of this shape. ``minds`` are those met in other walks with the same deciders."""
    slots, shared = leases.start(shape, minds)
    if shape.held or shape.placed:
        slots, shared = held(shape, slots, shared)
    return placed(slots, shared) if shape.placed else (slots, shared)


def held(shape: Shape, slots: tuple[Slot, ...], shared: Shared) -> World:
    """The first manager owns the shard, the host has its lease, has reported, and things may be placed on it."""
    first, others = slots[0], slots[shape.managers :]
    quiet = structs.replace(shared, budget=(), time=1)
    front, known = [(first, quiet)], {(first.key(), quiet)}
    while front:
        after = []
        for slot, here in front:
            if ready(slot, here):
                there = structs.replace(here, budget=shared.budget, time=shared.time)
                return (slot, *slots[1:]), there
            for found in steps(slot, others, here, shape):
                key = found[0].key(), found[1]
                if key not in known:
                    known.add(key)
                    after.append(found)
        front = after
    raise RuntimeError("no way leads to a host that is held")


def placed(slots: tuple[Slot, ...], shared: Shared) -> World:
    """An attempt is placed on the host, which the first manager knows; a copy of the store would have it."""
    row = shared.rows.host
    if row is None:
        raise TypeError("a host that is held has a row")
    again = any(fault is Fault.RESTORE for fault, _ in shared.budget)
    rows = lease_placing.place(slots[0], shared.rows, row).effect.rows
    if rows is None:
        raise TypeError("what is placed is written")
    slot, effect = lease_moves.perform_read(slots[0], rows, waited=False)
    read = lease_acts.applied(structs.replace(shared, rows=rows, copied=rows if again else None), effect)
    if read is None:
        raise TypeError("rows can be read at any time")
    return (slot, *slots[1:]), read.shared


def steps(slot: Slot, others: tuple[Slot, ...], shared: Shared, shape: Shape) -> Iterator[tuple[Slot, Shared]]:
    """What the manager, the host and time may do next."""
    for part in (slot, *others):
        for move in lease_moves.moves(part, shared, shape):
            after = move.slot if part is slot and move.slot is not None else slot
            there = move.shared
            yield leases.caught_up(after, there.passed, there.boot), leases.rested(there)


def ready(slot: Slot, shared: Shared) -> bool:
    """Whether nothing is under way, and nothing left to do."""
    rows = shared.rows
    opened = rows.shard is not None and rows.shard.open == rows.name
    quiet = not shared.flight and not slot.pending
    return opened and quiet and leases.converged(shared) and slot.host == rows.host
