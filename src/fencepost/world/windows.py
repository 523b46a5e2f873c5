"""Several transactions of one enactor under way at once: each reaches the provider by itself, in any order.

In between everybody else may move; any of them may be refused, delivered twice, or its answer be lost while the others
apply. Where a connection ends, the answers to all that was left are lost at once. The enactor is told only when nothing
is left: what applied is noted then, so that an end before leaves writes that nobody noted, and others still on the way.
"""

from collections.abc import Iterator
from itertools import chain, combinations

from msgspec import structs

from fencepost.core.effects import Commit, Effect
from fencepost.core.events import Changed, Committed, Event, Failed, Failure
from fencepost.core.judge import Remembered
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.room import transactions
from fencepost.core.zone import Batch, Change
from fencepost.world import calls
from fencepost.world.faults import Fault
from fencepost.world.model import Move
from fencepost.world.reads import keep
from fencepost.world.region import Shared, Slot, advance


class Window(Effect, frozen=True, gc=False):
    """What is under way: ``left`` haven't reached the provider; ``applied`` is known to have, in name order.

    ``refused`` and ``unknown``: whether any was, and whether any answer was lost.
    """

    left: tuple[Batch, ...]
    applied: tuple[Change, ...] = ()
    refused: bool = False
    unknown: bool = False


def window(slot: Slot) -> Window | None:
    """What an enactor has under way, or is about to send, in several transactions; None for any other call."""
    if isinstance(slot.pending, Window):
        return slot.pending
    if not isinstance(slot.pending, Commit) or not isinstance(slot.decider, DnsEnactor):
        return None
    parts = transactions(slot.pending.batch, slot.decider.settings.room)
    return Window(parts) if len(parts) > 1 else None


def moves(slot: Slot, shared: Shared, now: Window) -> Iterator[Move]:
    """Each step that an enactor may take with transactions under way: one of them arrives, goes wrong, or it ends."""
    budget = dict(shared.budget)
    for part in now.left:
        left = structs.replace(now, left=tuple(other for other in now.left if other is not part))
        yield arrives(slot, shared, left, part)
        if budget.get(Fault.DUPLICATE):
            once = arrives(slot, shared, left, part)
            again = calls.fly(calls.spend(once.shared, Fault.DUPLICATE), part)
            yield once._replace(shared=again, calm=False, event="delivered twice")
        if budget.get(Fault.UNKNOWN) or now.unknown:
            spent = shared if now.unknown else calls.spend(shared, Fault.UNKNOWN)
            yield from unanswered(slot, spent, structs.replace(left, unknown=True), part)
    yield from ends(slot._replace(pending=now), shared, budget, now)


def arrives(slot: Slot, shared: Shared, left: Window, part: Batch) -> Move:
    """One transaction applies or is refused, and the answer comes."""
    landed, broken, applied = calls.land(shared, part)
    if applied:
        left = structs.replace(left, applied=tuple(sorted((*left.applied, *part), key=lambda change: change.name)))
    else:
        left = structs.replace(left, refused=True)
    event = calls.kind_of(shared, part, applied)
    if left.left:
        event = "refused beside another" if not applied else event
        return Move(calls.sends(part, applied), slot._replace(pending=left), landed, broken, event=event)
    told, landed = over(slot, landed, left)
    return Move(calls.sends(part, applied), told, landed, broken, event=event)


def unanswered(slot: Slot, shared: Shared, left: Window, part: Batch) -> Iterator[Move]:
    """The answer to one transaction is lost: it applied, never does, or will later."""
    landed, broken, applied = calls.land(shared, part)
    label = calls.sends(part, applied) + ", but the answer is lost"
    outcomes = (
        (label, landed, broken, "answer lost"),
        ("one of its writes is lost", shared, None, "write lost"),
        ("gives up waiting; one of its writes is still on the way", calls.fly(shared, part), None, "given up"),
    )
    for what, after, wrong, event in outcomes:
        told, after = (slot._replace(pending=left), after) if left.left else over(slot, after, left)
        if left.applied or left.left:
            event = event if event != "answer lost" or not left.applied else "answer lost beside another"
        yield Move(what, told, after, wrong, calm=False, event=event)


def over(slot: Slot, shared: Shared, done: Window) -> tuple[Slot, Shared]:
    """Nothing is left: what applied is noted, and the enactor is told."""
    file, enacted = list(slot.file), list(shared.enacted[slot.store]) if shared.enacted else []
    places = {live.name: at for at, live in enumerate(shared.domain)}
    for change in done.applied:
        at, marker = places[change.name], change.marker
        if file:
            file[at] = Remembered(marker.generation, marker.digest, change.content, change.families, marker.hold)
        if enacted and marker.store == shared.stores[slot.store].head.mark:
            enacted[at] = marker.generation
    if enacted:
        every = shared.enacted
        shared = structs.replace(shared, enacted=every[: slot.store] + (tuple(enacted),) + every[slot.store + 1 :])
    event: Event = Changed() if done.refused else Committed()
    if done.unknown:
        event = Failed("Commit", Failure.UNAVAILABLE)
    return advance(keep(slot, tuple(file)), event, shared.now), shared


def ends(slot: Slot, shared: Shared, budget: dict[Fault, int], now: Window) -> Iterator[Move]:
    """The enactor dies with transactions under way: each that is left is lost, or still on the way."""
    late = list(chain.from_iterable(combinations(now.left, count) for count in range(1, len(now.left) + 1)))
    for move in calls.crashes(slot, shared, budget):
        yield move
        for some in late:
            after = move.shared
            for part in some:
                after = calls.fly(after, part)
            label = f"{move.label}, {len(some)} of its writes still on the way"
            yield move._replace(label=label, shared=after, event=f"{move.event} while writing")
