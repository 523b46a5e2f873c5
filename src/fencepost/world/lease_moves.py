"""The moves of the leases' world: managers' calls and messages, what is placed and ended, deliveries, time."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from msgspec import structs

from fencepost.core.capacity import lease_rows
from fencepost.core.capacity.lease_calls import (
    NO_IDS,
    Answered,
    Away,
    Due,
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
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.world.lease_acts import NOTHING, Act, Effect, Seen, Store, applied, seen
from fencepost.world.lease_hosts import hosting, passing
from fencepost.world.lease_minds import NOW
from fencepost.world.lease_placing import claim, placing, written
from fencepost.world.leases import (
    HOST,
    NONE_REFUSED,
    Fault,
    Flying,
    Pending,
    Rows,
    Shape,
    Shared,
    Slot,
    facts,
    manager,
    nonce,
    written_out,
)
from fencepost.world.model import Move

ZERO = np.zeros(1, np.int64)
SHARD_CALLS = ("read shard", "write shard")
NEEDED = {Op.GRANT: ("incarnation", "boot"), Op.MARK: ("left",), Op.BOOT: ("boot",)}
"""What of a write's numbers its kind makes use of: the others would only make more states of the same."""

Done = tuple[Slot, Effect]
"""What has become of a manager, and of all else."""


def moves(slot: Slot, shared: Shared, shape: Shape) -> Iterator[Move]:
    """What one part may do now."""
    match slot.kind:
        case "host":
            yield from hosting(slot, shared)
        case "time":
            yield from passing(slot, shared)
        case _:
            for thing in seen(shared):
                for act in acts(slot, thing, shape):
                    move = applied(shared, act.effect)
                    if move is not None:
                        yield move._replace(label=act.label, slot=act.slot)


def acts(slot: Slot, thing: Seen, shape: Shape) -> Iterator[Act]:
    """What a manager may do about one thing that it sees."""
    if isinstance(thing, Flying):
        if thing.who == slot.name:
            yield hear(slot, thing)
        return
    yield from managing(slot, thing, shape)
    fresh = manager(shape, slot.name + "'", slot.thinks.minds)
    yield Act("crash", fresh, Effect(event="crashed", calm=False, spends=(Fault.CRASH,), dies=slot.name))


# Managers


def managing(slot: Slot, store: Store, shape: Shape) -> Iterator[Act]:
    """A call takes effect, the host is checked, time is noticed; something is placed or ended."""
    for at, pending in enumerate(slot.pending):
        rest = slot._replace(pending=slot.pending[:at] + slot.pending[at + 1 :])
        yield from perform(rest, store, pending, shape)
    leases = slot.decider
    if leases.owner.owning and leases.loaded and leases.hosts.size:
        asks = Effect(event="checked", asks=slot.name)
        yield Act("checks the host", *tell(slot, asks, "due", lambda: Due(ZERO)))
        if leases.hosts.busy[0] == Op.NONE:
            silent = Effect(event="silent", calm=False, spends=(Fault.SILENT,))
            yield Act("takes it for silent", *tell(slot, silent, "silent", lambda: Silent(ZERO)))
    if leases.ticked != NOW:
        yield Act("notices the time", *tell(slot, NOTHING, "tick", Tick))
    news = slot.host != store.rows.host or leases.owner.life != store.rows.name
    if news and leases.acting and not any(each.call == "read hosts" for each in slot.pending):
        yield Act("looks at rows", *perform_read(slot, store.rows, waited=False))
    yield from placing(slot, store.rows)


def tell(slot: Slot, effect: Effect, news: Hashable, event: Callable[[], Event]) -> Done:
    """A manager once told an event: its calls begin, its messages go out. ``news`` is what tells the event apart."""
    mind, wanted = slot.thinks.on(news, event)
    slot = slot._replace(mind=mind)
    for each in wanted:
        match each:
            case Forget():
                kept = tuple(pending for pending in slot.pending if pending.call in SHARD_CALLS)
                slot = slot._replace(pending=kept, host=None, told=None, down=(0, ()), refused=NONE_REFUSED)
            case ReadShard():
                slot = begun(slot, Pending("read shard"))
            case WriteShard(row=row):
                row = structs.replace(row, beat=0, room=0)
                if row == slot.shard:
                    # A beat, which says nothing but that it lives: as if it had been written at once.
                    slot, effect = shard_written(slot, effect, row)
                else:
                    slot = begun(slot, Pending("write shard", row))
            case ReadHosts(waited=waited):
                slot = reading(slot, waited=waited)
            case Write():
                numbers = tuple(int(getattr(each, name)[0]) for name in NEEDED.get(each.op, ()))
                slot = begun(slot, Pending(each.op.name, numbers=numbers))
                if each.op is Op.LAPSE:
                    effect = structs.replace(effect, unheard=True)
            case Prove():
                slot = begun(slot, Pending("PROVE"))
            case Send(whole=whole):
                effect = sent(slot, effect, Check(HOST, token(slot), whole))
            case SendOrders():
                stamp, boot = int(each.stamp[0]), int(each.boot[0])
                effect = sent(slot, effect, Order(HOST, token(slot), boot, stamp, known(slot).set))
    return slot, effect


def shard_written(slot: Slot, effect: Effect, row: ShardRow) -> Done:
    """A manager once told that the shard's row stands as it wrote it."""
    return tell(slot, effect, ("shard written", row), lambda: ShardWritten(row))


def wrote(slot: Slot, effect: Effect, op: Op, life: str, *, stands: bool = True) -> Done:
    """A manager once told what became of a write: the row is now as it has it."""
    row = slot.host
    return tell(slot, effect, ("wrote", op, stands, row, life), lambda: Wrote(op, stands, facts(row, life)))


def went_away(slot: Slot, effect: Effect, op: Op) -> Done:
    """A manager once told that the store doesn't answer."""
    return tell(slot, effect, ("away", op), lambda: Away(op, NO_IDS if op is Op.NONE else ZERO))


def begun(slot: Slot, pending: Pending) -> Slot:
    """The slot with one more call under way; the same one again is one."""
    return slot._replace(pending=tuple(sorted({*slot.pending, pending}, key=written_out)))


def reading(slot: Slot, *, waited: bool) -> Slot:
    """The slot that reads the hosts' rows: here as they are when it is answered, so two readings are one."""
    waited = waited or Pending("read hosts", numbers=(1,)) in slot.pending
    others = tuple(each for each in slot.pending if each.call != "read hosts")
    return begun(slot._replace(pending=others), Pending("read hosts", numbers=(1,) if waited else ()))


def known(slot: Slot) -> HostRow:
    """The host's row as a manager has it."""
    if slot.host is None:
        raise TypeError("a manager acts on rows that it has read")
    return slot.host


def token(slot: Slot) -> Token:
    """The token that a manager speaks under."""
    hosts = slot.decider.hosts
    return Token(slot.decider.owner.epoch, int(hosts.number[0]), int(hosts.nonce[0]))


def sent(slot: Slot, effect: Effect, message: Check | Order) -> Effect:
    """A message goes out."""
    return structs.replace(effect, sends=(*effect.sends, Flying(slot.name, message, to_host=True)))


def hear(slot: Slot, flying: Flying) -> Act:
    """A host's answer arrives."""
    message, effect = flying.message, Effect(event="heard", heard=flying)
    if isinstance(message, Newer):
        met = message.token
        outdated = structs.replace(effect, event="outdated")
        done = tell(slot, outdated, ("outdated", met), lambda: Outdated(0, met.epoch, met.number, met.nonce))
        return Act(f"hears that it has met {met.place}", *done)
    if not isinstance(message, Answer) or not slot.decider.hosts.size:
        return Act("hears an answer it never asked for", slot, structs.replace(effect, event=""))
    if message.set is not None:
        slot = slot._replace(told=message.set)
    if message.token == token(slot):
        effect = structs.replace(effect, unheard=False)
        slot = slot._replace(
            down=(message.version, message.down) if message.down else (0, ()),
            refused=(message.boot, message.version, message.refused) if message.refused else NONE_REFUSED,
        )
    whole = slot.told is not None and slot.told.version == message.version
    label = f"hears of version {message.version} under {message.token.place}, {NOW - message.stamp} old"
    slot, effect = tell(slot, effect, ("answered", message, whole), lambda: answered(message, whole=whole))
    if slot.decider.hosts.reported.all():
        slot = slot._replace(told=None)
    return Act(label, slot, effect)


def answered(message: Answer, *, whole: bool) -> Answered:
    """An answer as a manager's port tells it."""

    def one(value: object, kind: type[np.generic] = np.int64) -> Any:
        return np.array([value], kind)

    met = message.token
    return Answered(
        ZERO, one(met.epoch), one(met.number), one(met.nonce, np.uint64), one(message.boot, np.uint64),
        one(message.stamp), one(message.incarnation, np.uint64), one(message.version), one(whole, np.bool_),
    )  # fmt: skip


# Calls to the store


def perform(slot: Slot, store: Store, pending: Pending, shape: Shape) -> Iterator[Act]:
    """A manager's call takes effect and is answered; or takes effect or not, and the answer is lost."""
    rows = store.rows
    match pending.call:
        case "read shard":
            shard = rows.shard
            slot = slot._replace(shard=shard)
            event = ShardRead(rows.name, shard)
            yield Act("reads the shard's row", *tell(slot, NOTHING, event, lambda: event))
        case "write shard":
            yield from perform_shard(slot, store, pending)
        case "read hosts":
            yield Act("reads the hosts' rows", *perform_read(slot, rows, waited=bool(pending.numbers)))
        case "PROVE":
            yield Act("reads a proof", *perform_proof(slot, rows))
        case _:
            if pending.call != Op.GRANT.name or slot.host is None or slot.host.number < shape.grants:
                yield from perform_write(slot, rows, pending, refusing=dict(shape.budget).get(Fault.FULL, 0) > 0)


def perform_shard(slot: Slot, store: Store, pending: Pending) -> Iterator[Act]:
    """The shard's row is written, if it is as it was read."""
    rows, row = store.rows, pending.row
    if row is None:
        raise TypeError("a shard's row is written as a row")
    if rows.shard != slot.shard:
        changed = tell(slot, NOTHING, "shard changed", ShardChanged)
        yield Act("can't write the shard's row, it has changed", *changed)
        return
    other = rows.shard is not None and rows.shard.owner not in ("", row.owner, *store.dead)
    after, spends = structs.replace(rows, shard=row), (Fault.TAKE,) if other else ()
    label = f"writes the shard's row: epoch {row.epoch}{', open' if row.open else ''}"
    done = Effect(event="took over" if other else "", calm=not other, spends=spends, rows=after)
    yield Act(label, *shard_written(slot._replace(shard=row), done, row))
    lost = Effect(event="answer lost", calm=False, spends=(*spends, Fault.UNKNOWN), rows=after)
    yield Act(label + "; the answer is lost", *went_away(slot, lost, Op.NONE))


def perform_proof(slot: Slot, rows: Rows) -> Done:
    """Shard and host are read in one look."""
    slot = slot._replace(host=rows.host or slot.host)
    row, life = slot.host, slot.decider.owner.life
    shard = rows.shard if rows.host is not None else None
    news = ("proven", rows.name, shard, row)
    return tell(slot, Effect(event="proven"), news, lambda: Proven(rows.name, shard, facts(row, life)))


def perform_read(slot: Slot, rows: Rows, *, waited: bool) -> Done:
    """The host's row is read."""
    slot = slot._replace(host=rows.host or slot.host)
    row, life = slot.host, slot.decider.owner.life
    size = int(row is not None)
    news = ("read", rows.name, row, waited)
    return tell(slot, NOTHING, news, lambda: HostsRead(rows.name, size, facts(row, life), waited))


def composed(slot: Slot, pending: Pending) -> HostRow | None:
    """What a write makes of the row that the manager has: the production's own function."""
    op, row, life = Op[pending.call], known(slot), slot.decider.owner.life
    needed = dict(zip(NEEDED.get(op, ()), pending.numbers, strict=True))
    drawn = nonce(int(life), row.number + 1) if op is Op.GRANT else 0
    return lease_rows.composed(op, row, life, nonce=drawn, theirs=slot.told, **needed)


def perform_write(slot: Slot, rows: Rows, pending: Pending, *, refusing: bool) -> Iterator[Act]:
    """The host's row is written under the claim, if it is as it was read.

    Since when its boot has been this one isn't kept where nothing is ever refused, as nobody asks then.
    """
    op, life = Op[pending.call], slot.decider.owner.life
    new, label = composed(slot, pending), f"writes {pending.call.lower()}"
    if new is None:
        yield Act(f"{label}: nothing to do", *wrote(slot, NOTHING, op, life))
        return
    if not claim(slot).stands(rows.shard, rows.name):
        fallen = wrote(slot, Effect(event="refused"), op, life, stands=False)
        yield Act(f"{label}: refused, the shard isn't its own", *fallen)
        return
    if rows.host != slot.host:
        slot = slot._replace(host=rows.host or slot.host)
        yield Act(f"{label}: the row had changed", *wrote(slot, NOTHING, op, life))
        return
    over: frozenset[str] = frozenset()
    if op is Op.ADOPT and slot.host is not None:
        over = slot.host.set.ids - new.set.ids
    new = new if refusing else structs.replace(new, steady=(0, 0))
    after = written(rows, new)
    event = {Op.LAPSE: "lapsed", Op.GRANT: "granted", Op.MARK: "marked", Op.ADOPT: "adopted"}.get(op, "")
    done = Effect(event=event, rows=after, over=over, grants=op is Op.GRANT)
    yield Act(label, *wrote(slot._replace(host=new), done, op, life))
    lost = Effect(event="answer lost", calm=False, spends=(Fault.UNKNOWN,), rows=after, over=over)
    yield Act(f"{label}; the answer is lost", *went_away(slot, lost, op))
    never = Effect(event="write lost", calm=False, spends=(Fault.UNKNOWN,))
    yield Act(f"{label}; it never arrives", *went_away(slot, never, op))
