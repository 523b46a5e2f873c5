"""Each rule of network state, taken out: a named function replaced, so that the explorer finds what it is there for.

As in ``mutants.py``: what is replaced, the smallest shape that shows it, the promise that breaks there, and the length
of the shortest way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import structs

from fencepost.core.capacity import fleet_store, network_manager, network_state
from fencepost.core.capacity.fleet_store import Claim
from fencepost.core.capacity.host import Host, HostEffect, HostMemory, Reply, Started
from fencepost.core.capacity.messages import NetworkAnswer, NetworkOrder, NetworkState
from fencepost.core.capacity.network_manager import NetworkManager, PlacesRead, ReadPlaces, ReadStates, StatesRead
from fencepost.core.capacity.network_state import Outcome
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.effects import Effect
from fencepost.core.events import Event, Woke
from fencepost.world import network, network_moves
from fencepost.world.model import Move
from fencepost.world.network import Fault, Shape, Shared, Slot

Patch = tuple[Any, str, Callable[..., Any]]


class Mutant(NamedTuple):
    """A rule taken out, where that shows, the promise it breaks there, and the steps of the shortest way."""

    rule: str
    patches: tuple[Patch, ...]
    shape: Shape
    breaks: str
    steps: int


def shape(managers: int, *faults: Fault) -> Shape:
    """So many managers, each fault as often as it is named."""
    return Shape(managers, tuple((fault, faults.count(fault)) for fault in dict.fromkeys(faults)))


real_network, real_start, real_on = Host.network, Host.start, NetworkManager.on
real_outcome, real_perform = network_state.outcome, network_moves.perform

# What the host refuses ------------------------------------------------------------------------------------------------


def forgetting(memory: HostMemory, order: NetworkOrder, there: Callable[[NetworkState, NetworkState], bool]) -> Any:
    """The memory without those states that the order has something for which it is to be taken over."""
    sent = {state.id: state for state in order.states}
    kept = tuple(each for each in memory.network if each.id not in sent or not there(each, sent[each.id]))
    return structs.replace(memory, network=kept)


def takes_older(self: Host, memory: HostMemory, order: NetworkOrder, now: int) -> tuple[HostEffect, ...]:
    """A lower version is put in place as any other."""
    return real_network(self, forgetting(memory, order, lambda has, new: new.version < has.version), order, now)


def goes_by_the_number(self: Host, memory: HostMemory, order: NetworkOrder, now: int) -> tuple[HostEffect, ...]:
    """A state of the number that is in place is taken for the one in place, whatever its digest."""
    sent = {state.id: state for state in order.states}
    effects = []
    for effect in real_network(self, memory, order, now):
        if isinstance(effect, Reply) and isinstance(effect.message, NetworkAnswer):
            has = tuple(
                (id_, version, sent[id_].digest if version == sent[id_].version else digest)
                for id_, version, digest in effect.message.has
            )
            effect = Reply(structs.replace(effect.message, has=has))
        effects.append(effect)
    return tuple(effects)


def takes_any_token(self: Host, memory: HostMemory, order: NetworkOrder, now: int) -> tuple[HostEffect, ...]:
    """The token isn't looked at."""
    return real_network(self, memory, structs.replace(order, token=memory.token), now)


def starts_without_versions(self: Host, event: Started, now: int) -> tuple[HostEffect, ...]:
    """Which versions are in place is known in memory only: an agent that starts anew has to be told."""
    memory = event.memory and structs.replace(event.memory, network=())
    return real_start(self, structs.replace(event, memory=memory), now)


# What is published ----------------------------------------------------------------------------------------------------


def hears_nothing(heard: Any, row: Any, life: str) -> bool:
    """What the host says it has raises no version."""
    return False


def writes_over_anything(table: Any, group: Any) -> bool:
    """A row is written whatever has become of the one it was compared with."""
    return True


def stands_in_any_life(self: Claim, row: ShardRow | None, life: str) -> bool:
    """What was made in one life of the store may be written in another."""
    return True


def places_first(self: NetworkManager, event: Event, now: int) -> tuple[Effect, ...]:
    """The inputs are read before the row that they are compared with."""
    match event:
        case Woke():
            return (ReadPlaces(),)
        case StatesRead():
            raise TypeError("the states are read last")
    return real_on(self, event, now)


def perform_places_first(slot: Slot, shared: Shared) -> Move:
    """The world for such a pass."""
    match slot.pending:
        case ReadPlaces():
            read = (shared.fleet.life, shared.asked, None)
            slot = slot._replace(read=read, pending=ReadStates())
            return network_moves.told(f"reads what is asked: {shared.asked}", slot, shared)
        case ReadStates():
            life, asked, _ = slot.read
            host, shard = shared.host(), shared.fleet.shard(1)
            if life != shared.fleet.life or host is None or shard is None:
                return network_moves.told("begins again", network_moves.restart(slot), shared)
            pairs = tuple(network_manager.Pair(want, shared.row()) for want in network.asks(host, asked))
            event = PlacesRead(network_manager.claim_of(shard, life), asked, pairs)
            return network_moves.told("reads the state's row", network_moves.advance(slot, event), shared)
    return real_perform(slot, shared)


# What counts as acknowledged ------------------------------------------------------------------------------------------


def of_any_boot(row: NetworkRow, host: HostRow, life: str) -> bool:
    """An acknowledgement outlives the agent's start that it was given in."""
    version, digest, _, of = row.acked
    return of == life and (version, digest) == (row.version, row.digest)


def of_any_life(row: NetworkRow, host: HostRow, life: str) -> bool:
    """An acknowledgement outlives the store that it was written into."""
    version, digest, boot, _ = row.acked
    return boot == host.boot and (version, digest) == (row.version, row.digest)


def of_any_version(row: NetworkRow, host: HostRow, life: str) -> bool:
    """An acknowledgement of any version will do."""
    version, _, boot, of = row.acked
    return version > 0 and (boot, of) == (host.boot, life)


def writes_the_same_again(answer: NetworkAnswer, sent: Any, life: str) -> Outcome:
    """An acknowledgement is written though the row has it."""
    bare = [structs.replace(row, acked=(0, "", 0, "")) for row in sent]
    return real_outcome(answer, bare, life)


def commands_unreported(host: HostRow | None, life: str) -> bool:
    """A host is sent states as soon as it holds a lease, though it hasn't met its token yet."""
    return host is not None and host.held(life)


def higher_is_as_good(answer: NetworkAnswer, sent: Any, life: str) -> Outcome:
    """A host that has a higher version than it was sent is taken to have what it was sent."""
    rows = {row.id: row for row in sent}
    has = tuple(
        (id_, rows[id_].version, rows[id_].digest) if version > rows[id_].version else (id_, version, digest)
        for id_, version, digest in answer.has
    )
    return real_outcome(structs.replace(answer, has=has), sent, life)


def equal_is_as_good(answer: NetworkAnswer, sent: Any, life: str) -> Outcome:
    """A host that has that number is taken to have what it was sent, whatever its digest."""
    rows = {row.id: row for row in sent}
    has = tuple(
        (id_, version, rows[id_].digest if version == rows[id_].version else digest)
        for id_, version, digest in answer.has
    )
    return real_outcome(structs.replace(answer, has=has), sent, life)


MUTANTS = (
    Mutant(
        "an older version is refused",
        ((Host, "network", takes_older),),
        shape(1, Fault.INPUT, Fault.REPEAT),
        "network_never_backward",
        14,
    ),
    Mutant(
        "another state of the same number is refused",
        ((Host, "network", goes_by_the_number),),
        shape(1, Fault.INPUT, Fault.WIPE),
        "ready_before_serving",
        22,
    ),
    Mutant(
        "the current token",
        ((Host, "network", takes_any_token),),
        shape(1, Fault.INPUT, Fault.WIPE),
        "network_never_backward",
        27,
    ),
    Mutant(
        "the versions in place outlive the agent",
        ((Host, "start", starts_without_versions),),
        shape(1, Fault.INPUT, Fault.RESTART),
        "network_never_backward",
        15,
    ),
    Mutant(
        "published above what the host has",
        ((network_state, "overtakes", hears_nothing),),
        shape(1, Fault.INPUT, Fault.WIPE),
        "converges",
        8,
    ),
    Mutant(
        "compare-and-set",
        ((fleet_store, "fits", writes_over_anything),),
        shape(2, Fault.INPUT),
        "inputs_never_backward",
        7,
    ),
    Mutant(
        "one life's rows stay out of the next",
        ((Claim, "stands", stands_in_any_life),),
        shape(2, Fault.INPUT, Fault.WIPE),
        "inputs_never_backward",
        14,
    ),
    Mutant(
        "inputs are read after the row",
        ((NetworkManager, "on", places_first), (network_moves, "perform", perform_places_first)),
        shape(2, Fault.INPUT),
        "inputs_never_backward",
        9,
    ),
    Mutant(
        "a host reports first",
        ((network_state, "commands", commands_unreported), (network_moves, "commands", commands_unreported)),
        shape(1, Fault.RESTORE),
        "ready_before_serving",
        18,
    ),
    Mutant(
        "an acknowledgement is of one boot",
        ((network_state, "acknowledged", of_any_boot),),
        shape(1, Fault.REBOOT),
        "ready_before_serving",
        10,
    ),
    Mutant(
        "an acknowledgement is of one life",
        ((network_state, "acknowledged", of_any_life),),
        shape(1, Fault.INPUT, Fault.RESTORE),
        "ready_before_serving",
        12,
    ),
    Mutant(
        "an acknowledgement is of the row or newer",
        ((network_state, "acknowledged", of_any_version),),
        shape(1, Fault.INPUT),
        "ready_before_serving",
        12,
    ),
    Mutant(
        "a higher version is no acknowledgement",
        ((network_manager, "outcome", higher_is_as_good),),
        shape(1, Fault.INPUT, Fault.WIPE),
        "ready_before_serving",
        28,
    ),
    Mutant(
        "an equal number is no acknowledgement",
        ((network_manager, "outcome", equal_is_as_good),),
        shape(1, Fault.INPUT, Fault.WIPE),
        "ready_before_serving",
        22,
    ),
    Mutant(
        "what is no news isn't written",
        ((network_manager, "outcome", writes_the_same_again),),
        shape(1, Fault.RESTART),
        "converges",
        185,
    ),
)
