"""The host's moves in the leases' world, and time's: messages arrive, what is started is judged."""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core.capacity.host import Again, Host, HostEffect, Persist, Reply, Start, Stop, Told, Unwritten
from fencepost.core.capacity.messages import Answer, Check, Order
from fencepost.core.capacity.token import Token
from fencepost.world.lease_minds import NOW
from fencepost.world.leases import Fault, Flying, Shared, Slot, aged_message, registered, with_host, written_out
from fencepost.world.model import Move


def hosting(slot: Slot, shared: Shared) -> Iterator[Move]:
    """A message arrives, once or twice; a host that the store forgot registers, and one that couldn't write can."""
    if not shared.alive:
        return
    if shared.rows.host is None:
        rows = structs.replace(shared.rows, host=registered())
        yield Move("registers", slot, structs.replace(shared, rows=rows), event="registered")
    if shared.unable:
        host = shared.host_decider()
        host.on(Again(), NOW)
        yield Move("can write again", slot, with_host(shared, host), event="wrote again")
    for at, flying in enumerate(shared.flight):
        if flying.to_host:
            rest = [*shared.flight[:at], *shared.flight[at + 1 :]]
            yield deliver(slot, shared, flying, rest, calm=True)
            if shared.budgeted(Fault.REPEAT):
                again = deliver(slot, shared.spent(Fault.REPEAT), flying, [*rest, flying], calm=False)
                yield again._replace(event="repeated")


def told(shared: Shared, flying: Flying) -> tuple[Host, tuple[HostEffect, ...]]:
    """The host once told a message, and what it does."""
    if not isinstance(flying.message, Check | Order):
        raise TypeError("a host is sent checks and orders")
    host = shared.host_decider()
    return host, host.on(Told(flying.message), NOW)


def deliver(slot: Slot, shared: Shared, flying: Flying, rest: list[Flying], *, calm: bool) -> Move:
    """The host obeys, or doesn't, and answers."""
    message = flying.message
    host, effects = told(shared, flying)
    after, broken = obeyed(shared, effects, flying.who)
    if isinstance(message, Order) and host.memory is not None and host.memory.set != shared.memory.set:
        met = shared.acked[0]
        older = message.token.place < met.place or (message.token.place == met.place and message.token != met)
        broken = broken or ("single_holder" if older else None)
    after = with_host(after, host)
    answers = [Flying(flying.who, each.message, to_host=False) for each in effects if isinstance(each, Reply)]
    after = after.flying(*rest, *answers)
    what = f"an order of version {message.set.version}" if isinstance(message, Order) else "a check"
    took = any(isinstance(each, Start) for each in effects)
    label = f"is sent {what} by {flying.who}{', and starts it' if took else ''}"
    return Move(label, slot, after, broken, calm=calm, event="started" if took else "delivered")


def obeyed(shared: Shared, effects: tuple[HostEffect, ...], who: str) -> tuple[Shared, str | None]:
    """What was started and answered, judged."""
    broken: str | None = None
    for effect in effects:
        match effect:
            case Start(instances=instances):
                ids = frozenset(each.id for each in instances)
                if ids & shared.started:
                    broken = "started_once"
                elif ids & shared.over:
                    broken = "ended_stays_ended"
                shared = structs.replace(shared, started=shared.started | ids)
            case Reply(message=Answer(token=met)):
                known, whose = shared.acked
                whose = whose if known.place == met.place else ""
                stands = granted(shared) == met
                other = known.place == met.place and known != met
                if known.place > met.place or other or (stands and whose not in ("", who)):
                    broken = broken or "single_holder"
                shared = structs.replace(shared, acked=(met, who if stands else whose))
    return shared, broken


def granted(shared: Shared) -> Token | None:
    """The token of the grant that stands in the store. Others grant nothing: no order is ever sent under them."""
    rows, row = shared.rows, shared.rows.host
    if row is None or rows.shard is None or not row.held(rows.name):
        return None
    return Token(rows.shard.epoch, row.number, row.nonce)


def unwritten(shared: Shared, flying: Flying, rest: list[Flying]) -> Shared | None:
    """What is left if the memory can't be written for a message; None where it needn't be."""
    host = shared.host_decider()
    _, effects = told(shared, flying)
    if not effects or not isinstance(effects[0], Persist) or not isinstance(flying.message, Check | Order):
        return None
    host.on(Unwritten("full", flying.message), NOW)
    return with_host(shared, host).flying(*rest)


def midway(shared: Shared, flying: Flying, rest: list[Flying]) -> Iterator[tuple[Shared, str | None]]:
    """What is left, and what is broken, if the agent dies between two things that it does, whichever they are."""
    _, effects = told(shared, flying)
    for done in range(1, len(effects)):
        before = effects[:done]
        after, broken = obeyed(shared, before, flying.who)
        memory, running = shared.memory, shared.running
        for effect in before:
            match effect:
                case Persist(memory=written):
                    memory = written
                case Stop(ids=ids):
                    running -= frozenset(ids)
                case Start(instances=instances):
                    running |= {each.id for each in instances}
        answers = [Flying(flying.who, each.message, to_host=False) for each in before if isinstance(each, Reply)]
        yield structs.replace(after, memory=memory, running=running).flying(*rest, *answers), broken


def passing(slot: Slot, shared: Shared) -> Iterator[Move]:
    """A renewal's time passes, for all; or for all but the host's clock. A host registers in less than that."""
    if not shared.time or (shared.alive and shared.rows.host is None):
        return
    shared = structs.replace(shared, time=max(-1, shared.time - 1))
    flight = tuple(sorted({aged_message(each, shared.boot) for each in shared.flight}, key=written_out))
    after = structs.replace(shared, flight=flight, passed=(1, 1))
    yield Move("time passes", slot, after, event="time")
    if shared.budgeted(Fault.SKEW):
        late = structs.replace(shared.spent(Fault.SKEW), passed=(1, 0))
        yield Move("time passes, the host's clock stands", slot, late, calm=False, event="skew")
