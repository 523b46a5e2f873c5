"""The parts' own moves: each pending call takes effect in one step and is answered, or its part dies first."""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core import judge as judging
from fencepost.core import promises, store, zone
from fencepost.core.effects import Commit, DeleteRow, Publish, ReadDns, ReadHead, ReadInputs, ReadRows, ReadSpent
from fencepost.core.events import (
    Changed,
    Committed,
    Deleted,
    Failed,
    Failure,
    HeadRead,
    InputsRead,
    Outrun,
    Published,
    RowsRead,
    Spent,
    SpentRead,
)
from fencepost.core.fence import Marker
from fencepost.core.store import Plan, Tables
from fencepost.core.zone import Batch
from fencepost.world import goals, tears
from fencepost.world.faults import Fault
from fencepost.world.model import Move
from fencepost.world.reads import has_read_dns, keep, known_sets, newest_rows, thought
from fencepost.world.region import NOTHING_READ, STRANGE, Shared, Slot, advance, fresh

STORE_CALLS = (ReadRows, ReadHead, ReadInputs, ReadSpent)
"""Calls that a store which is away doesn't answer, and that change nothing."""


def moves(slot: Slot, shared: Shared) -> Iterator[Move]:
    """Each step that one part may take now: its pending call, that call gone wrong, or its end."""
    budget = dict(shared.budget)
    if isinstance(slot.pending, Publish) and 0 < shared.last < slot.pending.plan.number:
        return
    yield perform(slot, shared)
    if budget.get(Fault.DUPLICATE) and isinstance(slot.pending, Commit):
        yield twice(slot, shared, slot.pending.batch)
    if budget.get(Fault.STORE_AWAY) and isinstance(slot.pending, STORE_CALLS):
        yield unanswered(slot, spend(shared, Fault.STORE_AWAY))
    if budget.get(Fault.UNKNOWN) and isinstance(slot.pending, (Commit, Publish, DeleteRow)):
        yield from unknown(slot, spend(shared, Fault.UNKNOWN))
    if budget.get(Fault.TORN) or budget.get(Fault.TORN_STORE):
        yield from tears.begun(slot, shared)
    yield from crashes(slot, shared, budget)


def crashes(slot: Slot, shared: Shared, budget: dict[Fault, int]) -> Iterator[Move]:
    """The part dies and is started anew: with its local file, without, or with the first copy of it."""
    if slot.file and budget.get(Fault.FILE_LOST):
        bare = fresh(slot)._replace(file=(None,) * len(slot.file))
        yield from died(slot, bare, spend(shared, Fault.FILE_LOST), "crash; its local file is lost", "file lost")
    if slot.file and budget.get(Fault.FILE_OLD) and slot.first != slot.file:
        old = fresh(slot)._replace(file=slot.first)
        yield from died(slot, old, spend(shared, Fault.FILE_OLD), "crash; an older local file is put back", "file old")
    if budget.get(Fault.CRASH):
        yield from died(slot, fresh(slot), spend(shared, Fault.CRASH), "crash", "crashed")


def died(slot: Slot, anew: Slot, shared: Shared, label: str, event: str) -> Iterator[Move]:
    """A part's end and new beginning; a write that it had sent is lost, or still on the way."""
    yield Move(label, anew, shared, calm=False, event=event)
    if isinstance(slot.pending, Commit):
        late = fly(shared, slot.pending.batch)
        yield Move(f"{label}, its write still on the way", anew, late, calm=False, event=f"{event} while writing")


def perform(slot: Slot, shared: Shared) -> Move:
    """The pending call takes effect, and the part is told."""
    tables, mirror = shared.stores[slot.store], slot.mirror
    match slot.pending:
        case ReadDns():
            slot = slot._replace(mirror=structs.replace(mirror, dns=shared.domain))
            return has_read_dns("reads DNS", slot, shared)
        case ReadRows():
            ours = tuple(known_sets(tables, slot, at) for at in range(len(shared.domain)))
            seen = structs.replace(mirror, rows=newest_rows(tables, shared.domain), ours=ours)
            return thought("reads the rows", slot._replace(mirror=seen), RowsRead(), shared)
        case ReadHead():
            seen = structs.replace(mirror, rows=newest_rows(tables, shared.domain))
            return thought("reads the head", slot._replace(mirror=seen), HeadRead(tables.head), shared)
        case ReadInputs():
            seen = structs.replace(mirror, wanted=tables.wanted, orders=tables.orders)
            return thought("reads the inputs", slot._replace(mirror=seen), InputsRead(tables.inputs), shared)
        case ReadSpent():
            told = SpentRead(spent(slot, tables))
            return thought("lists old rows", slot._replace(mirror=NOTHING_READ), told, shared)
        case Commit(batch=batch):
            return commit(slot, shared, batch)
        case Publish(plan=plan):
            return published(slot, shared, plan)
        case DeleteRow():
            return deleted(slot, shared, slot.pending)
        case tears.Rest():
            return tears.went_on(slot, shared, slot.pending)
        case other:
            raise TypeError(f"no part calls {type(other).__name__}")


def spent(slot: Slot, tables: Tables) -> tuple[Spent, ...]:
    """Old rows of each endpoint, with what was live when DNS was read."""
    listed = []
    for live in slot.mirror.dns:
        rows = [row for row in tables.rows if row.name == live.name]
        marker = live.marker.generation if isinstance(live.marker, Marker) else None
        listed += [Spent(row, place, rows[0].generation, marker) for place, row in enumerate(rows) if place]
    return tuple(listed)


def commit(slot: Slot, shared: Shared, batch: Batch) -> Move:
    """A commit arrives: it applies or is refused, and its sender is told."""
    landed, broken, applied = land(shared, batch)
    if applied:
        slot, landed = written(slot, landed, batch)
    told = advance(slot, Committed() if applied else Changed(), shared.now)
    return Move(sends(batch, applied), told, landed, broken, event=kind_of(shared, batch, applied))


def written(slot: Slot, shared: Shared, batch: Batch) -> tuple[Slot, Shared]:
    """What is kept of a write that is known to have applied: the local file, and the store's note of who enacted."""
    file, enacted = list(slot.file), list(shared.enacted[slot.store]) if shared.enacted else []
    for change in batch:
        at = next(n for n, live in enumerate(shared.domain) if live.name == change.name)
        if file:
            file[at] = judging.remember(shared.domain[at], change.families) or file[at]
        if enacted and change.marker.store == shared.stores[slot.store].head.mark:
            enacted[at] = change.marker.generation
    if enacted:
        every = shared.enacted
        shared = structs.replace(shared, enacted=every[: slot.store] + (tuple(enacted),) + every[slot.store + 1 :])
    return keep(slot, tuple(file)), shared


def twice(slot: Slot, shared: Shared, batch: Batch) -> Move:
    """A commit arrives, and a copy of it is still on the way."""
    once = commit(slot, shared, batch)
    again = fly(spend(once.shared, Fault.DUPLICATE), batch)
    label = once.label + ", and a copy is on the way"
    return Move(label, once.slot, again, once.broken, calm=False, event="delivered twice")


def unanswered(slot: Slot, shared: Shared) -> Move:
    """A read of the store fails."""
    failed = Failed(type(slot.pending).__name__, Failure.UNAVAILABLE)
    told = advance(slot, failed, shared.now)
    event = "healed without the store" if isinstance(told.pending, Commit) else "store away"
    return Move("gets no answer from the store", told, shared, calm=False, event=event)


def unknown(slot: Slot, shared: Shared) -> Iterator[Move]:
    """The answer to a write is lost: it applied, or will later (a commit), or never does."""
    failed = Failed(type(slot.pending).__name__, Failure.UNAVAILABLE)
    told = advance(slot, failed, shared.now)
    done = perform(slot, shared)
    yield Move(done.label + ", but the answer is lost", told, done.shared, done.broken, calm=False, event="answer lost")
    yield Move("its write is lost", told, shared, calm=False, event="write lost")
    if isinstance(slot.pending, Commit):
        late = fly(shared, slot.pending.batch)
        yield Move("gives up waiting; its write is still on the way", told, late, calm=False, event="given up")


def fly(shared: Shared, batch: Batch) -> Shared:
    """One more commit on the way; which was sent first makes no difference."""
    return structs.replace(shared, flight=tuple(sorted((*shared.flight, batch), key=repr)))


def sends(batch: Batch, applied: bool) -> str:
    """Words for a commit."""
    what = ", ".join(f"{change.name} {change.marker.generation}" for change in batch)
    return f"writes {what}" if applied else f"is refused: {what} (something changed since it read)"


def kind_of(shared: Shared, batch: Batch, applied: bool) -> str:
    """What kind of commit it was: who was fenced, what was healed, which hold came to stand."""
    for change in batch:
        live = next(live for live in shared.domain if live.name == change.name)
        marker = live.marker
        if not applied:
            if isinstance(marker, Marker) and marker.generation > change.marker.generation:
                return "fenced"
            continue
        if isinstance(marker, Marker) and marker.generation == change.marker.generation:
            return "healed a hold" if marker.hold is not None and not zone.withdraws(marker) else "healed"
        if change.marker.hold is not None:
            return f"{change.marker.hold.kind} enacted"
        if isinstance(marker, Marker) and marker.hold is not None:
            return "hold ended"
    return "enacted" if applied else "drifted"


def land(shared: Shared, batch: Batch) -> tuple[Shared, str | None, bool]:
    """DNS after a transaction, the promise it broke, and whether it applied."""
    replaced = zone.transact({live.name: live for live in shared.domain}, batch)
    if replaced is None:
        return shared, None, False
    broken = None
    memory = list(shared.memory)
    domain = list(shared.domain)
    changes = {change.name: change for change in batch}
    for at, live in enumerate(shared.domain):
        if live.name in replaced:
            domain[at] = replaced[live.name]
            known = memory[at]
            over = promises.replaces(known, live, changes[live.name], ours=live.a != STRANGE.a)
            memory[at], wrong = promises.enact(known, domain[at], shared.judged_at)
            broken = broken or wrong or over
    return structs.replace(shared, domain=tuple(domain), memory=tuple(memory)), broken, True


def published(slot: Slot, shared: Shared, plan: Plan) -> Move:
    """A plan reaches the store."""
    tables = shared.stores[slot.store]
    after = store.publish(tables, plan, shared.nonce(tables, plan))
    if after is None:
        told = advance(slot, Outrun(), shared.now)
        return Move(f"plan {plan.number} is refused: another was first", told, shared, event="outrun")
    older = tables.head.store == after.head.store and plan.inputs < tables.head.inputs
    label = f"publishes plan {plan.number}: {'; '.join(plan.why) or 'orders only'}"
    event = "adopted" if any("adopts" in why for why in plan.why) else f"plan {plan.number} published"
    if any(row.contested for row in plan.rows):
        event = "stands aside"
    landed = shared.with_tables(after, slot.store)
    if any(row.hold is not None and row.hold.until_s for row in plan.rows):
        memory = tuple(goals.timed_out(landed, at) for at in range(len(landed.domain)))
        landed = structs.replace(landed, memory=memory)
    return Move(
        label,
        advance(slot, Published(), shared.now),
        landed,
        "inputs_never_backward" if older else None,
        event=event,
    )


def deleted(slot: Slot, shared: Shared, effect: DeleteRow) -> Move:
    """A clean-up reaches the store."""
    tables = shared.stores[slot.store]
    newest = tables.newest(effect.name)
    after = store.delete_row(tables, effect.name, effect.generation, effect.nonce) or tables
    at = next(n for n, live in enumerate(shared.domain) if live.name == effect.name)
    gone = newest is not None and len(after.rows) < len(tables.rows)
    broken = None
    if newest is not None and gone:
        broken = promises.cleaned(shared.memory[at], shared.domain[at], effect.generation, newest.generation)
    return Move(
        f"deletes row {effect.generation}",
        advance(slot, Deleted(), shared.now),
        shared.with_tables(after, slot.store),
        broken,
        event="row deleted" if gone else "row gone already",
    )


def spend(shared: Shared, fault: Fault) -> Shared:
    """One less of a fault."""
    return structs.replace(shared, budget=tuple((f, n - (f is fault)) for f, n in shared.budget))


def arrivals(shared: Shared) -> Iterator[Move]:
    """Commits in flight reach the provider; nobody waits for the answer."""
    for at, batch in enumerate(shared.flight):
        if at and batch == shared.flight[at - 1]:
            continue
        left = structs.replace(shared, flight=shared.flight[:at] + shared.flight[at + 1 :])
        landed, broken, applied = land(left, batch)
        event = kind_of(shared, batch, applied)
        yield Move("a late write: " + sends(batch, applied), None, landed, broken, event=event)
