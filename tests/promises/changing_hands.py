"""A dead host and managers that die one after the other: how long until its lease lapses?

Each manager owns the shard for at least a renewal's time before the next one takes it: if nobody ever does anything,
nothing ever happens. Between two renewals a manager does what it can at once: it is told that the host is silent, its
calls take effect. All that is left to chance is after which renewals it dies, and when time is noticed.
"""

from msgspec import structs

from fencepost.world import lease_begin, lease_moves, leases
from fencepost.world.leases import Fault, Shape, Shared, Slot

World = tuple[Slot, Shared]
FOR_EVER = -1


def longest(shape: Shape) -> int:
    """The most renewals that pass until the lease has lapsed, however often the shard changes hands.

    ``FOR_EVER`` (-1) where there is a way round on which it never does.
    """
    slots, shared = lease_begin.begin(shape)
    shared = structs.replace(shared, alive=False, flight=(), budget=((Fault.SILENT, 1),))
    return waits(settled(slots[0], shared, shape), slots[-1], shape, {}, frozenset())


def waits(world: World, time: Slot, shape: Shape, known: dict[object, int], path: frozenset[object]) -> int:
    """How many renewals pass at most from this world on."""
    slot, shared = world
    row = shared.rows.host
    if row is None or leases.has_lapsed(row, shared.rows.name):
        return 0
    key = slot.key(), shared
    if key in path:
        return FOR_EVER
    if key not in known:
        after = [waits(each, time, shape, known, path | {key}) for each in renewed(slot, time, shared, shape)]
        known[key] = FOR_EVER if FOR_EVER in after else 1 + max(after)
    return known[key]


def renewed(slot: Slot, time: Slot, shared: Shared, shape: Shape) -> list[World]:
    """A renewal's time later: the same manager, or another that has just taken over."""
    passed = next(move.shared for move in lease_moves.moves(time, shared, shape) if move.event == "time")
    same = settled(leases.caught_up(slot, passed.passed, passed.boot), leases.rested(passed), shape)
    # The names of those before don't matter any more, or no world would ever come again.
    row, shard = same[1].rows.host, same[1].rows.shard
    if row is None or shard is None:
        raise TypeError("both rows are there")
    rows = structs.replace(same[1].rows, shard=structs.replace(shard, owner="", epoch=1))
    other = leases.manager(shape, slot.name, slot.thinks.minds)
    return [same, settled(other, structs.replace(same[1], rows=rows), shape)]


def settled(slot: Slot, shared: Shared, shape: Shape) -> World:
    """Once the manager has done what it can: what it was told of first, time last, then that the host is silent."""
    silent = True
    while True:
        shared = structs.replace(shared, budget=((Fault.SILENT, 1),) if silent else ())
        moves = [move for move in lease_moves.moves(slot, shared, shape) if move.event != "checked"]
        calls = [move for move in moves if move.event != "silent"]
        if not moves:
            return slot, structs.replace(shared, budget=())
        move = (calls or moves)[0]
        silent = silent and move.event != "silent"
        slot, shared = move.slot or slot, move.shared
