"""Each rule of the protocol, taken out: a named function replaced, so that the explorer finds what it is there for.

A mutant says what it replaces, in the smallest shape that shows it, and which promise breaks there. None of this is
reachable from any setting.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import structs

from fencepost.core import judge, promises, repair, store, zone
from fencepost.core.effects import Compare, Effect, ReadDns, ReadHead, ReadInputs, ReadRows
from fencepost.core.events import DnsRead, Event, HeadRead, InputsRead, RowsRead, Spent, Standing, Woke
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.instant import SECOND
from fencepost.core.judge import Judgement, Kind, Pair, Remembered
from fencepost.core.promises import Memory
from fencepost.core.record_set import Content
from fencepost.core.store import Order, Plan, Row, Tables
from fencepost.core.traffic import dns_planner, janitor
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.dns_planner import DnsPlanner, Ground
from fencepost.core.zone import Change, Live
from fencepost.world import calls, reads
from fencepost.world.faults import Fault
from fencepost.world.model import Move
from fencepost.world.region import Shape, Shared, Slot

Patch = tuple[Any, str, Callable[..., Any]]


class Mutant(NamedTuple):
    """A rule taken out, where that shows, the promise it breaks there, and how many steps the shortest way may have."""

    rule: str
    patches: tuple[Patch, ...]
    shape: Shape
    breaks: str
    steps: int


def may(*faults: Fault) -> tuple[tuple[Fault, int], ...]:
    """Each fault as often as it is named."""
    return tuple((fault, faults.count(fault)) for fault in dict.fromkeys(faults))


real_after, real_enact = zone.after, promises.enact
real_enactor_on, real_planner_on, real_perform = DnsEnactor.on, DnsPlanner.on, calls.perform
real_standing_on, real_carry_out, real_ended = dns_planner.standing_on, dns_planner.carry_out, dns_planner.ended
real_repair, real_restore, real_publish = repair.repair, judge.restore, store.publish

# tombstone ------------------------------------------------------------------------------------------------------------

REMOVED: list[Generation] = []


def after_without_tombstone(live: Live, change: Change) -> Live:
    """A withdrawal removes the marker too (and says to the promises at which generation)."""
    made = real_after(live, change)
    if not zone.withdraws(change.marker):
        return made
    REMOVED[:] = [change.marker.generation]
    return structs.replace(made, marker=None)


def enact_without_tombstone(memory: Memory, live: Live, now: int = 0) -> tuple[Memory, str | None]:
    """The promises' memory, where a withdrawal leaves no marker to read the generation from."""
    if live.marker is None:
        return structs.replace(memory, enacted=REMOVED[0], held=None, content=None), None
    return real_enact(memory, live, now)


# exact ----------------------------------------------------------------------------------------------------------------


def exact_marker_only(live: Live, change: Change) -> bool:
    """The transaction requires the marker, not the addresses."""
    return live.marker == change.seen.marker


def exact_not_at_all(live: Live, change: Change) -> bool:
    """The check was made once, before: nothing ties it to the write (October 2025, step 3)."""
    return True


# order ----------------------------------------------------------------------------------------------------------------


def rows_before_dns(self: DnsEnactor, event: Event, now: int) -> tuple[Effect, ...]:
    """A pass reads the rows first, then DNS."""
    match event:
        case Woke():
            return (ReadRows(),)
        case RowsRead():
            return (ReadDns(),)
        case DnsRead():
            return (Compare(self.limit, self.cursor),)
    effects = real_enactor_on(self, event, now)
    return (ReadRows(),) if effects == (ReadDns(),) else effects


def perform_rows_before_dns(slot: Slot, shared: Shared) -> Move:
    """The world for such a pass: whether an unmarked set is ours is looked up once it has been seen."""
    if isinstance(slot.decider, DnsEnactor):
        tables = shared.stores[slot.store]
        if isinstance(slot.pending, ReadRows):
            seen = structs.replace(slot.mirror, rows=reads.newest_rows(tables, shared.domain))
            return reads.thought("reads the rows", slot._replace(mirror=seen), RowsRead(), shared)
        if isinstance(slot.pending, ReadDns):
            slot = slot._replace(mirror=structs.replace(slot.mirror, dns=shared.domain))
            ours = tuple(reads.known_sets(tables, slot, at) for at in range(len(shared.domain)))
            slot = slot._replace(mirror=structs.replace(slot.mirror, ours=ours))
            return reads.thought("reads DNS", slot, DnsRead(), shared)
    return real_perform(slot, shared)


# adopt ----------------------------------------------------------------------------------------------------------------


def adopts_nothing(standing: Standing) -> bool:
    """The planner never looks at markers it doesn't know."""
    return False


def adopts_the_number(marker: Marker | None, row: Row | None, orders: tuple[Order, ...], now: int) -> Ground:
    """An adoption that takes the generation and leaves hold and content."""
    bare = structs.replace(marker, hold=None, content=None) if marker is not None else None
    return real_standing_on(bare, row, orders, now)


# epochs ---------------------------------------------------------------------------------------------------------------


def repair_by_number(live: Live, row: Row | None, value: Content, **words: Any) -> Change:
    """A repair takes the next number and leaves the epoch."""
    change = real_repair(live, row, value, **words)
    stood = live.marker.generation if isinstance(live.marker, Marker) else Generation()
    known = row.generation if row is not None else Generation()
    generation = Generation(max(stood.epoch, known.epoch), max(stood.number, known.number) + 1)
    return structs.replace(change, marker=structs.replace(change.marker, generation=generation))


def carry_out_without_epoch(
    orders: tuple[Order, ...], ground: Ground, marker: Marker | None, row: Row | None, now: int
) -> Ground:
    """A withdrawal or rollback leaves the epoch as it is."""
    return real_carry_out(orders, ground, marker, row, now)._replace(epoch=ground.epoch)


def repair_counts(live: Live, row: Row | None, value: Content, **words: Any) -> Change:
    """A repair's epoch is one more than what is known, whatever the time."""
    return real_repair(live, row, value, **(words | {"now": 0}))


# releases and healing -------------------------------------------------------------------------------------------------


def ended_by_any_release(hold: Hold, orders: tuple[Order, ...], released: int, now: int) -> bool:
    """A release ends whatever hold stands when it lands."""
    return any(order.kind == "release" for order in orders) or real_ended(hold, orders, released, now)


def restore_nothing(pair: Pair, marker: Marker, why: str) -> Judgement:
    """Without a row nothing is healed."""
    return Judgement(Kind.LEAVE, why=why)


def remember_anything(live: Live, families: str) -> Remembered | None:
    """The local file keeps what was read, whatever its digest."""
    if not isinstance(live.marker, Marker) or live.empty:
        return None
    return Remembered(live.marker.generation, live.marker.digest, live.content(), families, live.marker.hold)


def restore_unchecked(pair: Pair, marker: Marker, why: str) -> Judgement:
    """And what it keeps is put back without a look at the digest."""
    found, known = real_restore(pair, marker, why), pair.remembered
    if found.change is not None or known is None or not judge.recalls(known, marker) or not pair.live.empty:
        return found
    return Judgement(Kind.HEAL, Change(pair.live.name, pair.live, marker, known.content, known.families))


# publishing -----------------------------------------------------------------------------------------------------------


def publish_over_anything(tables: Tables, plan: Plan, nonce: str) -> Tables | None:
    """The head isn't compared: a plan published late counts all the same."""
    return real_publish(tables, structs.replace(plan, expected=tables.head), nonce)


def inputs_before_head(self: DnsPlanner, event: Event, now: int) -> tuple[Effect, ...]:
    """The inputs are read before the head that the plan is published on."""
    match event:
        case Woke():
            return (ReadInputs(),)
        case InputsRead(inputs=inputs):
            self.inputs = inputs
            return (ReadHead(),)
        case HeadRead(head=head):
            self.head = head
            return (ReadDns(),)
    effects = real_planner_on(self, event, now)
    return (ReadInputs(),) if effects == (ReadHead(),) else effects


# local files that are old, clocks that are wrong ----------------------------------------------------------------------


def restore_what_is_remembered(pair: Pair, marker: Marker, why: str) -> Judgement:
    """What the local file remembers is put back, whether or not it is what the marker names."""
    known = pair.remembered
    if known is None or not pair.live.empty or zone.withdraws(marker) or marker.content is not None:
        return real_restore(pair, marker, why)
    return Judgement(Kind.HEAL, Change(pair.live.name, pair.live, marker, known.content, known.families))


def repair_by_the_clock(live: Live, row: Row | None, value: Content, **words: Any) -> Change:
    """A repair's epoch is the time on the machine of who sends it, whatever stands."""
    change = real_repair(live, row, value, **words)
    assert change.marker.hold is not None
    hold = structs.replace(change.marker.hold, id=words["now"] // SECOND)
    generation = Generation(hold.id, change.marker.generation.number)
    marker = Marker.of(change.marker.owner, change.marker.store, generation, value, hold, 1)
    return structs.replace(change, marker=marker)


# the janitor, and two stores ------------------------------------------------------------------------------------------


def delete_any_nonce(tables: Tables, name: str, generation: Generation, nonce: str) -> Tables | None:
    """The row's nonce isn't compared."""
    kept = tuple(row for row in tables.rows if not (row.name == name and row.generation == generation))
    return structs.replace(tables, rows=kept) if len(kept) < len(tables.rows) else None


def superseded_by_age(spent: Spent) -> bool:
    """A row goes because it isn't the newest, whatever is live (October 2025, step 4)."""
    return True


def never_replaced(standing: Standing, marker: Marker | None, mark: str) -> int:
    """Nobody counts how often another store had its way."""
    return 0


MUTANTS = (
    Mutant(
        "tombstone",
        ((zone, "after", after_without_tombstone), (promises, "enact", enact_without_tombstone)),
        Shape(2, 1, budget=may(Fault.WITHDRAW)),
        "never_backward",
        15,
    ),
    Mutant(
        "exact",
        ((zone, "exact", exact_marker_only),),
        Shape(2, 1, budget=may(Fault.INPUT, Fault.MARKER_DELETED)),
        "never_backward",
        16,
    ),
    Mutant(
        "fenced at all",
        ((zone, "exact", exact_not_at_all),),
        Shape(2, 1, budget=may(Fault.INPUT)),
        "never_backward",
        15,
    ),
    Mutant(
        "order",
        ((DnsEnactor, "on", rows_before_dns), (calls, "perform", perform_rows_before_dns)),
        Shape(2, 1, budget=may(Fault.INPUT, Fault.MARKER_DELETED)),
        "never_backward",
        16,
    ),
    Mutant(
        "adopt",
        ((dns_planner, "needs_adoption", adopts_nothing),),
        Shape(1, 1, budget=may(Fault.REPAIR)),
        "converges",
        2,
    ),
    Mutant(
        "adopt the content",
        ((dns_planner, "standing_on", adopts_the_number),),
        Shape(1, 1, budget=may(Fault.REPAIR)),
        "hold_stands",
        9,
    ),
    Mutant(
        "epoch",
        ((repair, "repair", repair_by_number),),
        Shape(1, 1, budget=may(Fault.INPUT, Fault.REPAIR)),
        "hold_stands",
        14,
    ),
    Mutant(
        "epoch of a withdrawal",
        ((dns_planner, "carry_out", carry_out_without_epoch),),
        Shape(1, 1, budget=may(Fault.INPUT, Fault.WITHDRAW, Fault.STORE_WIPED)),
        "hold_stands",
        28,
    ),
    Mutant(
        "epoch not below the time",
        ((repair, "repair", repair_counts),),
        Shape(1, 1, budget=may(Fault.REPAIR, Fault.REPAIR, Fault.MARKER_DELETED)),
        "hold_stands",
        12,
    ),
    Mutant(
        "a release names its hold",
        ((dns_planner, "ended", ended_by_any_release),),
        Shape(1, 1, budget=may(Fault.REPAIR, Fault.REPAIR, Fault.RELEASE)),
        "hold_stands",
        12,
    ),
    Mutant(
        "heal a hold",
        ((judge, "restore", restore_nothing),),
        Shape(1, 0, budget=may(Fault.REPAIR, Fault.EMPTIED)),
        "converges",
        3,
    ),
    Mutant(
        "digest of the local file",
        ((judge, "remember", remember_anything), (judge, "restore", restore_unchecked)),
        Shape(1, 1, budget=may(Fault.ALTERED, Fault.EMPTIED, Fault.STORE_AWAY)),
        "never_torn",
        15,
    ),
    Mutant(
        "atomic",
        ((store, "publish", publish_over_anything),),
        Shape(1, 2, budget=may(Fault.INPUT)),
        "inputs_never_backward",
        9,
    ),
    Mutant(
        "newer inputs win",
        ((DnsPlanner, "on", inputs_before_head),),
        Shape(1, 2, budget=may(Fault.INPUT)),
        "inputs_never_backward",
        9,
    ),
    Mutant(
        "an old local file is no word",
        ((judge, "restore", restore_what_is_remembered),),
        Shape(1, 1, budget=may(Fault.INPUT, Fault.FILE_OLD, Fault.EMPTIED, Fault.STORE_AWAY)),
        "never_torn",
        20,
    ),
    Mutant(
        "epoch above what is known",
        ((repair, "repair", repair_by_the_clock),),
        Shape(1, 1, budget=may(Fault.REPAIR, Fault.SLOW_REPAIR)),
        "never_backward",
        4,
    ),
    Mutant(
        "the janitor's nonce",
        ((store, "delete_row", delete_any_nonce),),
        Shape(1, 1, 1, budget=may(Fault.INPUT, Fault.STORE_WIPED, Fault.BOTH)),
        "cleanup_spares_live",
        21,
    ),
    Mutant(
        "the janitor looks at what is live",
        ((janitor, "superseded", superseded_by_age),),
        Shape(1, 1, 1, budget=may(Fault.INPUT)),
        "cleanup_spares_live",
        15,
    ),
    Mutant(
        "two stores count",
        ((dns_planner, "times_replaced", never_replaced),),
        Shape(1, 1, stores=2, last=16),
        "converges",
        0,
    ),
)
