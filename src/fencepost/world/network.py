"""Network state as a region of its own: managers, a host, the store with its rows, and messages in flight.

Host, managers, rows and commits are the very classes that run in production. What is modelled is what is around them: a
lease's manager that checks the host (one look, one step at a time), a wire that loses, repeats and delays, an agent
that starts anew, a host that reboots or whose memory is gone, a store that is wiped or put back from a copy.

One attempt runs on one host. What the inputs ask is a number; a store put back asks for what it asked for then.
"""

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from msgspec import Struct, structs

from fencepost.core.capacity.fleet_store import Fleet, Versioned
from fencepost.core.capacity.host import ApplyNetwork, Host, HostEvent, HostMemory, HostSettings, Reply
from fencepost.core.capacity.messages import FromHost, Instance, InstanceSet, NetworkOrder
from fencepost.core.capacity.network_manager import Look, NetworkManager, ReadStates
from fencepost.core.capacity.network_state import Wanted, ready, wanted
from fencepost.core.capacity.rows import HostRow, NetworkRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.core.effects import Effect
from fencepost.core.promises import ALWAYS, EVENTUALLY, NETWORK

HOST, SHARD = "h", 1
ATTEMPT = Instance("web-1.1", "web", "192.0.2.1", 80)
IN_FLIGHT = 2
PROMISES = NETWORK | {name: (ALWAYS | EVENTUALLY)[name] for name in ("inputs_never_backward", "converges")}
"""Name to meaning, of what is judged here."""


class Fault(Enum):
    """What may happen besides the parts' own steps. Messages are lost and late in any case, as often as may be."""

    INPUT = "input-change"
    REPEAT = "repeat"
    RESTART = "restart"
    REBOOT = "reboot"
    FORGET = "host-memory-lost"
    WIPE = "store-wiped"
    RESTORE = "store-restored"
    CRASH = "crash"


MEANING = {
    Fault.INPUT: "the inputs ask for another state",
    Fault.REPEAT: "an order arrives a second time, any time later",
    Fault.RESTART: "the host's agent starts anew; what it started goes on, what it put in place stays",
    Fault.REBOOT: "the host starts anew: nothing runs on it, and nothing is in place",
    Fault.FORGET: "the host's memory is gone: another incarnation, that holds nothing",
    Fault.WIPE: "the store is lost, and a new one has only the configuration",
    Fault.RESTORE: "the store is put back from a copy made at any time before",
    Fault.CRASH: "a manager dies and is started anew",
}
"""Each fault in words."""


class Flying(NamedTuple):
    """A message: an order, and the look it was made from (which its request's number stands for); or its answer.

    ``heeded`` says that somebody still waits for the answer; one that nobody waits for is dropped where it arrives.
    """

    order: NetworkOrder
    look: Look
    heeded: bool = True
    answer: FromHost | None = None


class Applied(NamedTuple):
    """What is in place on one boot of the host; ``rank`` is (number of the life it was sent in, number asked for)."""

    boot: int
    rank: tuple[int, int]
    version: int
    digest: str


class Shared(Struct, frozen=True, gc=False):
    """All but the managers.

    ``asked`` is what the configuration, which is in the store, asks for; ``made`` the highest ever asked. ``copied`` is
    the copy that may be put back, with its ``asked``. ``memory``, ``boot`` and ``running`` are the host's.
    """

    fleet: Fleet
    asked: int
    made: int
    memory: HostMemory
    boot: int
    running: frozenset[str]
    applied: tuple[Applied, ...] = ()
    flight: tuple[Flying, ...] = ()
    budget: tuple[tuple[Fault, int], ...] = ()
    copied: tuple[Fleet, int] | None = None

    def budgeted(self, fault: Fault) -> bool:
        """Whether this may happen once more."""
        return dict(self.budget).get(fault, 0) > 0

    def spent(self, fault: Fault) -> "Shared":
        """The same with one less of a fault."""
        left = tuple((each, count - (each is fault)) for each, count in self.budget)
        return structs.replace(self, budget=tuple(each for each in left if each[1]))

    def flying(self, *messages: Flying) -> "Shared":
        """The same with other messages in flight, in one order whatever came first."""
        return structs.replace(self, flight=tuple(sorted(messages, key=repr)))

    @property
    def life(self) -> int:
        """The number of the store's life."""
        return int(self.fleet.life)

    def row(self) -> Versioned | None:
        """The attempt's network row."""
        return self.fleet.table().get(("network", ATTEMPT.id))

    def state(self) -> NetworkRow | None:
        """The same without its revision."""
        found = self.row()
        return found.row if found is not None and isinstance(found.row, NetworkRow) else None

    def host(self) -> HostRow | None:
        """The host's row."""
        found = self.fleet.table().get(("host", HOST))
        return found.row if found is not None and isinstance(found.row, HostRow) else None


class Slot(NamedTuple):
    """A part. A manager has its decider, its pending call, whether that is out already, and what it has read."""

    name: str
    kind: str
    decider: NetworkManager | None = None
    pending: Effect = ReadStates()
    out: bool = False
    read: tuple[str, int, Versioned | None] = ("", 0, None)

    def key(self) -> tuple[object, ...]:
        """What tells it from another."""
        return (self.kind, self.decider.key() if self.decider else (), *self[3:])


class Shape(Struct, frozen=True, gc=False):
    """How many managers, and what may happen how often."""

    managers: int = 2
    budget: tuple[tuple[Fault, int], ...] = ((Fault.INPUT, 2),)


def start(shape: Shape) -> tuple[tuple[Slot, ...], Shared]:
    """A host that holds its lease and one attempt, whose network state nobody has made yet."""
    token, held = Token(1, 1, nonce(1, 1)), InstanceSet(1, (ATTEMPT,))
    row = HostRow(
        HOST, "a", "h:1", number=1, nonce=token.nonce, lease="held", life="1", incarnation=1, boot=1, reported=True,
        set=held,
    )  # fmt: skip
    shard = Versioned(ShardRow(SHARD, 1, "keeper", 1), 1)
    fleet = Fleet("1", 1, ((("host", HOST), Versioned(row, 1)), (("shard", str(SHARD)), shard)))
    shared = Shared(
        fleet, 1, 1, HostMemory(1, token, held), 1, held.ids,
        budget=tuple(sorted(shape.budget, key=lambda each: each[0].value)),
    )  # fmt: skip
    managers = tuple(Slot(f"manager {'AB'[n]}", "manager", NetworkManager()) for n in range(shape.managers))
    return (*managers, Slot("keeper", "keeper"), Slot("host", "host")), shared


def nonce(life: int, number: int) -> int:
    """What stands for a grant's drawn nonce: no two grants have one."""
    return life << 32 | number


@cache
def asks(host: HostRow, asked: int) -> tuple[Wanted, ...]:
    """What the inputs ask for: the production's own function."""
    return wanted(host, (str(asked),))


@cache
def asked_by(body: bytes, made: int) -> int:
    """Which number asked for this state."""
    return next(number for number in range(1, made + 1) if f'"accept":["{number}"]'.encode() in body)


def tell_host(shared: Shared, event: HostEvent, life: int) -> tuple[Shared, FromHost | None, str | None]:
    """The host once told something that was sent in a life of the store: what it answers, and the promise broken."""
    host = Host(HostSettings(HOST, ended_kept=None), shared.memory, shared.boot, shared.running)
    answer, applied, broken = None, shared.applied, None
    for effect in host.on(event, 0):
        match effect:
            case ApplyNetwork(states=states):
                for state in states:
                    rank = (life, asked_by(state.body, shared.made))
                    applied, wrong = put(applied, Applied(host.boot, rank, state.version, state.digest))
                    broken = broken or wrong
            case Reply(message=message):
                answer = message
    if host.memory is None:
        raise TypeError("a host that was started has a memory")
    after = structs.replace(
        shared, memory=host.memory, boot=host.boot, running=frozenset(host.running), applied=applied
    )
    return after, answer, broken


def put(applied: tuple[Applied, ...], new: Applied) -> tuple[tuple[Applied, ...], str | None]:
    """What is in place once this is; and the promise broken, if what was in place had been asked for later.

    The same state again was sent in the later of the two lives. On a new boot it goes on from what there was before.
    """
    last = applied[-1] if applied else None
    if last is not None and (last.version, last.digest) == (new.version, new.digest):
        new = new._replace(rank=max(last.rank, new.rank))
    broken = "network_never_backward" if last is not None and new.rank < last.rank else None
    return (*(each for each in applied if each.boot != new.boot), new), broken


def wrong(shared: Shared) -> str | None:
    """The promise that doesn't hold here, if any: who is called ready has at least the row's state in place."""
    row, host = shared.state(), shared.host()
    if not ready(row, host, shared.fleet.life) or row is None or host is None:
        return None
    there = next((each for each in shared.applied if each.boot == host.boot), None)
    if there is None or there.rank < (shared.life, row.inputs):
        return "ready_before_serving"
    return None


def converged(shared: Shared) -> bool:
    """Whether the newest that is asked for is in place and known to be, on a host that obeys; or nothing runs there."""
    row, host = shared.state(), shared.host()
    shard = shared.fleet.shard(SHARD)
    if host is None or shard is None or not host.held(shared.fleet.life) or not host.reported:
        return False
    if (shard.epoch, host.number, host.nonce) != structs.astuple(shared.memory.token) or host.boot != shared.boot:
        return False
    if ATTEMPT.id not in shared.running:
        return not ready(row, host, shared.fleet.life)
    (want,) = asks(host, shared.asked)
    there = shared.applied[-1] if shared.applied else None
    newest = row is not None and row.digest == want.digest and there is not None
    return newest and there is not None and there.digest == want.digest and ready(row, host, shared.fleet.life)


def title(shape: Shape) -> str:
    """The shape in words."""
    return f"{shape.managers} network manager{'s' * (shape.managers > 1)}, 1 host, 1 attempt"


def faults(shape: Shape) -> Iterator[str]:
    """What may happen, by name, each as often as it may."""
    for fault, count in shape.budget:
        yield from (fault.value,) * count
