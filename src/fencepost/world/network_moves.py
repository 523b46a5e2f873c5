"""The moves of the network's world: managers' calls, the host's deliveries, the lease's keeper, and what goes wrong."""

from collections.abc import Iterator
from copy import copy

from msgspec import structs

from fencepost.core.capacity import fleet_store
from fencepost.core.capacity.fleet_store import Change, Claim, Fleet
from fencepost.core.capacity.host import Started, Told
from fencepost.core.capacity.lease_rows import adopted, booted, granted
from fencepost.core.capacity.messages import Check, NetworkAnswer
from fencepost.core.capacity.network_manager import (
    Answered,
    Due,
    Look,
    NetworkManager,
    Pair,
    PlacesRead,
    Prove,
    Proven,
    Publish,
    Published,
    ReadPlaces,
    ReadStates,
    Record,
    SendNetwork,
    Settled,
    Silent,
    StatesRead,
    claim_of,
)
from fencepost.core.capacity.network_state import commands, ready
from fencepost.core.capacity.rows import FleetRow, HostRow, NetworkRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event, Woke
from fencepost.world.model import Move
from fencepost.world.network import (
    HOST,
    IN_FLIGHT,
    SHARD,
    Fault,
    Flying,
    Shared,
    Slot,
    asks,
    nonce,
    tell_host,
    wrong,
)


def told(label: str, slot: Slot | None, shared: Shared, broken: str | None = None, event: str = "") -> Move:
    """A part's own move, judged by what it led to."""
    return Move(label, slot, shared, broken or wrong(shared), event=event)


def moves(slot: Slot, shared: Shared) -> Iterator[Move]:
    """What one part may do now."""
    if slot.kind == "host":
        yield from deliveries(slot, shared)
    elif slot.kind == "keeper":
        yield from keeping(slot, shared)
    else:
        yield from managing(slot, shared)
        if shared.budgeted(Fault.CRASH):
            fresh, left = Slot(slot.name, slot.kind, NetworkManager()), unheeded(slot, shared.spent(Fault.CRASH))
            yield Move("crash", fresh, left, wrong(left), calm=False, event="crashed")


# Managers


def managing(slot: Slot, shared: Shared) -> Iterator[Move]:
    """A manager's pending call; or, while an order is out, its answer or the end of patience."""
    if not slot.out:
        if not isinstance(slot.pending, SendNetwork) or len(shared.flight) < IN_FLIGHT:
            yield perform(slot, shared)
        return
    mine = waited_for(slot, shared)
    if mine is not None and mine.answer is not None:
        rest = list(shared.flight)
        rest.remove(mine)
        after = advance(slot, Answered(mine.answer, mine.look))
        seen = "taken" if isinstance(after.pending, Record) else "heard"
        yield told("hears " + said(mine), after, shared.flying(*rest), event=seen)
    after, left = advance(slot, Silent(HOST)), unheeded(slot, shared)
    yield Move("gives up waiting", after, left, wrong(left), calm=mine is None, event="gave up")


def waited_for(slot: Slot, shared: Shared) -> Flying | None:
    """The message, in flight, that a manager waits for the end of."""
    if not slot.out or not isinstance(slot.pending, SendNetwork):
        return None
    order, look = slot.pending.order, slot.pending.look
    mine = (each for each in shared.flight if each.order == order and each.look == look and each.heeded)
    return next(mine, None)


def unheeded(slot: Slot, shared: Shared) -> Shared:
    """What is in flight once a manager waits no more: its order may still arrive, its answer is for nobody."""
    mine = waited_for(slot, shared)
    if mine is None:
        return shared
    rest = list(shared.flight)
    rest.remove(mine)
    return shared.flying(*rest, *(() if mine.answer is not None else (mine._replace(heeded=False),)))


def perform(slot: Slot, shared: Shared) -> Move:
    """A manager's pending call takes effect, and is answered."""
    match slot.pending:
        case ReadStates():
            return told("reads the state's row", read_states(slot, shared), shared)
        case ReadPlaces():
            return read_places(slot, shared)
        case Publish(claim=claim, changes=changes):
            return commit(slot, shared, claim, changes, Published())
        case Prove():
            look = look_of(shared)
            return told("looks at the host's rows", advance(slot, Proven(HOST, look)), shared)
        case SendNetwork(order=order, look=look):
            state = order.states[0]
            label = f"sends version {state.version} ({content(state.body)}) by token {order.token.place}"
            return told(label, slot._replace(out=True), shared.flying(*shared.flight, Flying(order, look)))
        case Record(claim=claim, changes=changes):
            return commit(slot, shared, claim, changes, Woke())
        case other:
            raise TypeError(f"no such call: {other}")


def read_states(slot: Slot, shared: Shared) -> Slot:
    """The manager's slot once it knows the row."""
    slot = slot._replace(read=(shared.fleet.life, 0, shared.row()))
    return advance(slot, StatesRead())


def read_places(slot: Slot, shared: Shared) -> Move:
    """Places and configuration are read, and laid beside the row as read before.

    A store of another life than the row's makes the port begin again.
    """
    life, _, row = slot.read
    fleet, host, shard = shared.fleet, shared.host(), shared.fleet.shard(SHARD)
    label = f"reads what is asked: {shared.asked}"
    if life != fleet.life:
        return told("finds another store, and begins again", restart(slot), shared)
    if host is None or shard is None or not commands(host, fleet.life):
        return told(label, advance(slot, Published()), shared)
    pairs = tuple(Pair(want, row) for want in asks(host, shared.asked))
    event = PlacesRead(claim_of(shard, fleet.life), shared.asked, pairs)
    return told(label, advance(slot, event), shared)


def look_of(shared: Shared) -> Look:
    """One look at shard, host and row."""
    row = shared.row()
    return Look(shared.fleet.life, shared.fleet.shard(SHARD), shared.host(), () if row is None else (row,))


def commit(slot: Slot, shared: Shared, claim: Claim, changes: tuple[Change, ...], event: Event) -> Move:
    """A commit of one row, each change a group of its own, as the fleet's store has it."""
    fleet, applied = fleet_store.commit(shared.fleet, claim, [(change,) for change in changes])
    before, row = shared.state(), changes[0].row
    if not isinstance(row, NetworkRow):
        raise TypeError("a network manager writes network rows")
    broken = None
    if applied == (True,) and before is not None and before.inputs > row.inputs:
        broken = "inputs_never_backward"
    acks = isinstance(slot.pending, Record)
    what = f"the acknowledgement of {row.version}" if acks else f"version {row.version} ({content(row.body)})"
    done = "not its life" if applied is None else "done" if applied == (True,) else "it had changed"
    seen = "published" if not acks else "acknowledged"
    if applied == (True,) and not acks and before is not None and before.digest == row.digest:
        seen = "published above what the host has"
    after = structs.replace(shared, fleet=fleet)
    if applied == (True,) and acks and ready(after.state(), after.host(), fleet.life):
        seen = "ready"
    verb = "records" if acks else "publishes"
    next_slot = restart(slot) if acks else advance(slot, event)
    return told(f"{verb} {what}: {done}", next_slot, after, broken, seen if applied == (True,) else "refused write")


def restart(slot: Slot) -> Slot:
    """The manager at the start of its next pass."""
    return advance(slot, Woke())


def advance(slot: Slot, event: Event) -> Slot:
    """A manager once told an event, up to its next call. Its clock is moves: sleeps end at once, and after each pass
    the host's turn comes."""
    if slot.decider is None:
        raise TypeError(f"{slot.name} is no manager")
    decider = copy(slot.decider)
    effects: tuple[Effect, ...] = decider.on(event, 0)
    pending = effects[0]
    slot = slot._replace(decider=decider, pending=pending, out=False)
    if not isinstance(event, StatesRead):
        slot = slot._replace(read=("", 0, None))
    match pending:
        case Wake():
            return advance(slot, Due(HOST))
        case Settled():
            return advance(slot, Woke())
    return slot


# The host


def deliveries(slot: Slot, shared: Shared) -> Iterator[Move]:
    """An order arrives, once or twice."""
    for at, each in enumerate(shared.flight):
        if each.answer is not None:
            continue
        rest = [*shared.flight[:at], *shared.flight[at + 1 :]]
        yield delivery(slot, shared, each, rest, twice=False)
        if shared.budgeted(Fault.REPEAT):
            late = each._replace(heeded=False)
            yield delivery(slot, shared.spent(Fault.REPEAT), each, [*rest, late], twice=True)


def delivery(slot: Slot, shared: Shared, each: Flying, rest: list[Flying], *, twice: bool) -> Move:
    """One order is obeyed or refused; its answer is under way."""
    after, answer, broken = tell_host(shared, Told(each.order), int(each.look.life))
    heard = each._replace(answer=answer)
    after = after.flying(*rest, *((heard,) if each.heeded and len(rest) < IN_FLIGHT else ()))
    state = each.order.states[0]
    label = f"is sent version {state.version} ({content(state.body)}): {said(heard)}"
    calm = not twice
    event = "repeated" if twice else "delivered"
    return Move(label, slot, after, broken or wrong(after), calm=calm, event=event)


def said(each: Flying) -> str:
    """An answer in words."""
    if not isinstance(each.answer, NetworkAnswer):
        return "refused, it knows a newer token"
    if not each.answer.has:
        return "it has no such attempt"
    return f"it has version {each.answer.has[0][1]}"


def content(body: str | bytes) -> str:
    """What a state was asked for by, in words."""
    text = body.decode() if isinstance(body, bytes) else body
    return "asked " + text.partition('"accept":["')[2].partition('"')[0]


# The lease's manager


def keeping(slot: Slot, shared: Shared) -> Iterator[Move]:
    """What brings the host to obey the rows' token, and the rows to say what the host is."""
    found = kept(shared)
    if found is not None:
        label, after = found
        yield told(label, slot, after, event=label)


def kept(shared: Shared) -> tuple[str, Shared] | None:
    """Its next step, and what it leads to; None if all is well."""
    fleet, host, shard, memory = shared.fleet, shared.host(), shared.fleet.shard(SHARD), shared.memory
    if host is None or shard is None:
        rows: tuple[FleetRow, ...] = (ShardRow(SHARD, 1, "keeper", 1), HostRow(HOST, "a", "h:1"))
        return "the host is registered", structs.replace(shared, fleet=written(fleet, *rows))
    token = Token(shard.epoch, host.number, host.nonce)
    if memory.token.outdates(token) and memory.token.epoch >= shard.epoch:
        raised = structs.replace(shard, epoch=memory.token.epoch + 1)
        return "raises the epoch", structs.replace(shared, fleet=written(fleet, raised))
    if not host.held(fleet.life) or host.incarnation != memory.incarnation:
        drawn = nonce(shared.life, host.number + 1)
        row = granted(host, fleet.life, drawn, memory.incarnation, shared.boot)
        return "grants a lease", structs.replace(shared, fleet=written(fleet, row))
    if memory.token != token:
        after, _, _ = tell_host(shared, Told(Check(HOST, token)), shared.life)
        return "checks the host", after
    row_after = booted(host, fleet.life, shared.boot) or adopted(host, fleet.life, memory.set)
    if row_after is None:
        return None
    return "notes what the host says", structs.replace(shared, fleet=written(fleet, row_after))


def written(fleet: Fleet, *rows: FleetRow) -> Fleet:
    """The fleet with these rows, whatever stood there."""
    table = fleet.table()
    changes = []
    for row in rows:
        change = Change(row, 0)
        found = table.get(change.place)
        changes.append(structs.replace(change, seen=found.revision if found is not None else 0))
    return fleet_store.commit(fleet, None, [tuple(changes)])[0]


# What goes wrong


def adversary(shared: Shared) -> Iterator[Move]:
    """Everything that may happen without any part."""
    for at, each in enumerate(shared.flight):
        rest = shared.flying(*shared.flight[:at], *shared.flight[at + 1 :])
        what = "the answer" if each.answer is not None else "the order"
        yield fault(f"{what} about version {each.order.states[0].version} is lost", rest, "lost")
    if shared.budgeted(Fault.INPUT):
        after = structs.replace(shared.spent(Fault.INPUT), asked=shared.made + 1, made=shared.made + 1)
        yield fault(f"the inputs ask for {after.asked}", after, "input changed")
    yield from host_faults(shared)
    yield from store_faults(shared)


def fault(label: str, shared: Shared, event: str) -> Move:
    """A move of the adversary."""
    return Move(label, None, shared, wrong(shared), calm=False, event=event)


def host_faults(shared: Shared) -> Iterator[Move]:
    """The agent starts anew, with what it started or without; or its memory is gone."""
    for name, running, memory in (
        (Fault.RESTART, tuple(sorted(shared.running)), shared.memory),
        (Fault.REBOOT, (), shared.memory),
        (Fault.FORGET, tuple(sorted(shared.running)), None),
    ):
        if shared.budgeted(name):
            began = Started(memory, shared.memory.incarnation + 1, shared.boot + 1, running)
            last = shared.applied[-1].rank[0] if shared.applied else shared.life
            after, _, broken = tell_host(shared.spent(name), began, last)
            move = fault(name.value, after, name.value)
            yield move._replace(broken=broken or move.broken)


def store_faults(shared: Shared) -> Iterator[Move]:
    """The store is wiped, copied or put back."""
    life = str(shared.life + 1)
    if shared.budgeted(Fault.WIPE):
        yield fault("the store is wiped", structs.replace(shared.spent(Fault.WIPE), fleet=Fleet(life)), "wiped")
    if shared.budgeted(Fault.RESTORE):
        if shared.copied is None:
            yield fault("the store is copied", structs.replace(shared, copied=(shared.fleet, shared.asked)), "copied")
        elif shared.copied != (shared.fleet, shared.asked):
            fleet, asked = shared.copied
            after = structs.replace(shared.spent(Fault.RESTORE), copied=None, asked=asked)
            yield fault(
                "the copy is put back", structs.replace(after, fleet=structs.replace(fleet, life=life)), "put back"
            )
