"""The moves of the leases' world: managers' calls and messages, what is placed and ended, deliveries, time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import structs

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Answered,
    Away,
    Due,
    Effect,
    Event,
    Forget,
    HostsRead,
    Op,
    Outdated,
    Prove,
    Proven,
    ReadHosts,
    ReadShard,
    Send,
    SendOrders,
    ShardChanged,
    ShardRead,
    ShardWritten,
    Silent,
    Tick,
    Write,
    WriteShard,
    Wrote,
)
from fencepost.core.capacity.messages import Answer, Check, Newer, Order
from fencepost.core.capacity.rows import HostRow
from fencepost.core.capacity.token import Token
from fencepost.world.lease_hosts import hosting, passing
from fencepost.world.lease_placing import claim, placing, written
from fencepost.world.leases import (
    HOST,
    NOW,
    Fault,
    Flying,
    Pending,
    Shape,
    Shared,
    Slot,
    facts,
    lean,
    manager,
    nonce,
)
from fencepost.world.model import Move

ZERO = np.zeros(1, np.int64)
SHARD_CALLS = ("read shard", "write shard")
NEEDED = {Op.GRANT: ("incarnation", "boot"), Op.MARK: ("left",), Op.BOOT: ("boot",)}
"""What of a write's numbers its kind makes use of: the others would only make more states of the same."""


def moves(slot: Slot, shared: Shared, shape: Shape) -> Iterator[Move]:
    """What one part may do now."""
    match slot.kind:
        case "host":
            yield from hosting(slot, shared)
        case "time":
            yield from passing(slot, shared)
        case _:
            yield from managing(slot, shared)
            if shared.budgeted(Fault.CRASH):
                after = structs.replace(shared.spent(Fault.CRASH), dead=shared.dead | {slot.name}).flying(
                    *shared.flight
                )
                fresh = manager(shape, slot.name + "'")._replace(at=slot.at)
                yield Move("crash", fresh, after, calm=False, event="crashed")


# Managers


def managing(slot: Slot, shared: Shared) -> Iterator[Move]:
    """A call takes effect, an answer arrives, the host is checked, time is noticed; something is placed or ended."""
    for at, pending in enumerate(slot.pending):
        rest = slot._replace(pending=slot.pending[:at] + slot.pending[at + 1 :])
        yield from perform(rest, shared, pending)
    for at, flying in enumerate(shared.flight):
        if not flying.to_host and flying.who == slot.name:
            yield hear(slot, shared.flying(*shared.flight[:at], *shared.flight[at + 1 :]), flying)
    leases = slot.decider
    if leases.owner.owning and leases.loaded and leases.hosts.size:
        if not any(each.who == slot.name and isinstance(each.message, Check) for each in shared.flight):
            yield Move("checks the host", *tell(slot, shared, Due(ZERO)), event="checked")
        if shared.budgeted(Fault.SILENT) and leases.hosts.busy[0] == Op.NONE:
            spent = shared.spent(Fault.SILENT)
            yield Move("takes it for silent", *tell(slot, spent, Silent(ZERO)), calm=False, event="silent")
    if leases.ticked != NOW:
        yield Move("notices the time", *tell(slot, shared, Tick()))
    news = slot.host != shared.rows.host or leases.owner.life != shared.rows.name
    if news and leases.acting and not any(each.call == "read hosts" for each in slot.pending):
        yield Move("looks at rows", *perform_read(slot, shared))
    yield from placing(slot, shared)


def tell(slot: Slot, shared: Shared, event: Event) -> tuple[Slot, Shared]:
    """A manager once told an event: its calls begin, its messages go out."""
    decider = slot.decider.copy()
    effects: tuple[Effect, ...] = decider.on(event, NOW)
    slot = slot._replace(decider=decider)
    for effect in effects:
        match effect:
            case Forget():
                kept = tuple(each for each in slot.pending if each.call in SHARD_CALLS)
                slot = slot._replace(pending=kept, host=None, told=None, down=(0, ()))
            case ReadShard():
                slot = begun(slot, Pending("read shard"))
            case WriteShard(row=row):
                row = structs.replace(row, beat=0, room=0)
                if row == slot.shard:
                    # A beat, which says nothing but that it lives: as if it had been written at once.
                    slot, shared = tell(slot, shared, ShardWritten(row))
                else:
                    slot = begun(slot, Pending("write shard", row))
            case ReadHosts():
                slot = begun(slot, Pending("read hosts"))
            case Write():
                numbers = tuple(int(getattr(effect, name)[0]) for name in NEEDED.get(effect.op, ()))
                slot = begun(slot, Pending(effect.op.name, numbers=numbers))
                if effect.op is Op.LAPSE:
                    shared = structs.replace(shared, unheard=True)
            case Prove():
                slot = begun(slot, Pending("PROVE"))
            case Send(whole=whole):
                shared = sent(slot, shared, Check(HOST, token(slot), whole))
            case SendOrders():
                stamp, boot = int(effect.stamp[0]), int(effect.boot[0])
                shared = sent(slot, shared, Order(HOST, token(slot), boot, stamp, known(slot).set))
    lean(slot.decider)
    return slot, shared


def begun(slot: Slot, pending: Pending) -> Slot:
    """The slot with one more call under way; the same one again is one."""
    return slot._replace(pending=tuple(sorted({*slot.pending, pending}, key=repr)))


def known(slot: Slot) -> HostRow:
    """The host's row as a manager has it."""
    if slot.host is None:
        raise TypeError("a manager acts on rows that it has read")
    return slot.host


def token(slot: Slot) -> Token:
    """The token that a manager speaks under."""
    hosts = slot.decider.hosts
    return Token(slot.decider.owner.epoch, int(hosts.number[0]), int(hosts.nonce[0]))


def sent(slot: Slot, shared: Shared, message: Check | Order) -> Shared:
    """A message goes out; where too many are under way it is lost. The same one again is one."""
    flying = Flying(slot.name, message, to_host=True)
    if flying in shared.flight or len(shared.flight) >= shared.room:
        return shared
    return shared.flying(*shared.flight, flying)


def hear(slot: Slot, shared: Shared, flying: Flying) -> Move:
    """A host's answer arrives."""
    message = flying.message
    if isinstance(message, Newer):
        met = message.token
        after = tell(slot, shared, Outdated(0, met.epoch, met.number, met.nonce))
        return Move(f"hears that it has met {met.place}", *after, event="outdated")
    if not isinstance(message, Answer) or not slot.decider.hosts.size:
        return Move("hears an answer it never asked for", slot, shared)
    if message.set is not None:
        slot = slot._replace(told=message.set)
    if message.token == token(slot):
        shared = structs.replace(shared, unheard=False)
        slot = slot._replace(down=(message.version, message.down) if message.down else (0, ()))

    def one(value: object, kind: type[np.generic] = np.int64) -> Any:
        return np.array([value], kind)

    whole = slot.told is not None and slot.told.version == message.version
    met = message.token
    event = Answered(
        ZERO, one(met.epoch), one(met.number), one(met.nonce, np.uint64), one(message.boot, np.uint64),
        one(message.stamp), one(message.incarnation, np.uint64), one(message.version), one(whole, np.bool_),
    )  # fmt: skip
    label = f"hears of version {message.version} under {met.place}, {NOW - message.stamp} old"
    slot, shared = tell(slot, shared, event)
    if slot.decider.hosts.reported.all():
        slot = slot._replace(told=None)
    return Move(label, slot, shared, event="heard")


# Calls to the store


def perform(slot: Slot, shared: Shared, pending: Pending) -> Iterator[Move]:
    """A manager's call takes effect and is answered; or takes effect or not, and the answer is lost."""
    match pending.call:
        case "read shard":
            slot = slot._replace(shard=shared.rows.shard)
            yield Move("reads the shard's row", *tell(slot, shared, ShardRead(shared.rows.name, shared.rows.shard)))
        case "write shard":
            yield from perform_shard(slot, shared, pending)
        case "read hosts":
            yield Move("reads the hosts' rows", *perform_read(slot, shared))
        case "PROVE":
            slot = slot._replace(host=shared.rows.host or slot.host)
            shard = shared.rows.shard if shared.rows.host is not None else None
            proven = Proven(shared.rows.name, shard, facts(slot.host, slot.decider.owner.life))
            yield Move("reads a proof", *tell(slot, shared, proven), event="proven")
        case _:
            if pending.call != Op.GRANT.name or slot.host is None or slot.host.number < shared.grants:
                yield from perform_write(slot, shared, pending)


def perform_shard(slot: Slot, shared: Shared, pending: Pending) -> Iterator[Move]:
    """The shard's row is written, if it is as it was read."""
    rows, row = shared.rows, pending.row
    if row is None:
        raise TypeError("a shard's row is written as a row")
    if rows.shard != slot.shard:
        yield Move("can't write the shard's row, it has changed", *tell(slot, shared, ShardChanged()))
        return
    other = rows.shard is not None and rows.shard.owner not in ("", row.owner, *shared.dead)
    if other and not shared.budgeted(Fault.TAKE):
        return
    after = structs.replace(shared.spent(Fault.TAKE) if other else shared, rows=structs.replace(rows, shard=row))
    label = f"writes the shard's row: epoch {row.epoch}{', open' if row.open else ''}"
    done = slot._replace(shard=row)
    yield Move(label, *tell(done, after, ShardWritten(row)), calm=not other, event="took over" if other else "")
    if shared.budgeted(Fault.UNKNOWN):
        away = Away(Op.NONE, NO_IDS)
        yield Move(
            label + "; the answer is lost",
            *tell(slot, after.spent(Fault.UNKNOWN), away),
            calm=False,
            event="answer lost",
        )


def perform_read(slot: Slot, shared: Shared) -> tuple[Slot, Shared]:
    """The host's row is read."""
    slot = slot._replace(host=shared.rows.host or slot.host)
    size = int(slot.host is not None)
    found = facts(slot.host, slot.decider.owner.life)
    return tell(slot, shared, HostsRead(shared.rows.name, size, found))


def composed(slot: Slot, pending: Pending) -> HostRow | None:
    """What a write makes of the row that the manager has: the production's own function."""
    op, row, life = Op[pending.call], known(slot), slot.decider.owner.life
    needed = dict(zip(NEEDED.get(op, ()), pending.numbers, strict=True))
    drawn = nonce(int(life), row.number + 1) if op is Op.GRANT else 0
    return lease_rows.composed(op, row, life, nonce=drawn, theirs=slot.told, **needed)


def perform_write(slot: Slot, shared: Shared, pending: Pending) -> Iterator[Move]:
    """The host's row is written under the claim, if it is as it was read."""
    op, life, rows = Op[pending.call], slot.decider.owner.life, shared.rows
    new, label = composed(slot, pending), f"writes {pending.call.lower()}"
    if new is None:
        yield Move(f"{label}: nothing to do", *tell(slot, shared, Wrote(op, True, facts(slot.host, life))))
        return
    if not claim(slot).stands(rows.shard, rows.name):
        fallen = tell(slot, shared, Wrote(op, False, facts(slot.host, life)))
        yield Move(f"{label}: refused, the shard isn't its own", *fallen, event="refused")
        return
    if rows.host != slot.host:
        slot = slot._replace(host=rows.host or slot.host)
        yield Move(f"{label}: the row had changed", *tell(slot, shared, Wrote(op, True, facts(slot.host, life))))
        return
    after = structs.replace(shared, rows=written(rows, new))
    if op is Op.ADOPT and slot.host is not None:
        after = structs.replace(after, over=after.over | (slot.host.set.ids - new.set.ids))
    done = slot._replace(host=new)
    event = {Op.LAPSE: "lapsed", Op.GRANT: "granted", Op.MARK: "marked", Op.ADOPT: "adopted"}.get(op, "")
    broken = "lapsed_until_heard" if op is Op.GRANT and shared.unheard else None
    yield Move(label, *tell(done, after, Wrote(op, True, facts(new, life))), broken, event=event)
    if shared.budgeted(Fault.UNKNOWN):
        lost = Away(op, ZERO)
        yield Move(
            f"{label}; the answer is lost",
            *tell(slot, after.spent(Fault.UNKNOWN), lost),
            calm=False,
            event="answer lost",
        )
        yield Move(
            f"{label}; it never arrives", *tell(slot, shared.spent(Fault.UNKNOWN), lost), calm=False, event="write lost"
        )
