"""Host leases as a region of their own: managers of one shard, one watched host, the store's rows, messages in flight.

Managers, host, and what is written into rows are the very classes and functions that run in production. What is
modelled is what is around them: a call to the store takes effect at any later moment; a message is lost, late,
overtaken or repeated; a part is paused as long as one likes; machines, memories and stores are lost.

Time is counted in renewals (R = 1), and every part's clock says the same number for ever: when time passes, what each
part remembers becomes older instead, at once. An order's stamp is worth something for three, a lease ends after four:
three and a margin of one, which is what a host's clock may lose meanwhile. Another host, where things are placed when
this one has lapsed, isn't modelled: from the moment they may be placed there, starting them here is the violation.
"""

from collections.abc import Hashable
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, structs

from fencepost.core.capacity.host import Host, HostMemory, HostSettings
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Facts, Lease, LeaseSettings
from fencepost.core.capacity.messages import Answer, FromHost, Instance, InstanceSet, Order, ToHost
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.capacity.token import NO_TOKEN, Token
from fencepost.world.lease_minds import FRESH, LEASE, NOW, Mind, Minds

HOST = "h"
PROMISES = {
    "single_holder": "a host never answers under an earlier token than before, and one grant is one manager's",
    "started_once": "an attempt is started at most once",
    "ended_stays_ended": "no attempt is started that was replaced, or was reported as ended",
    "lapsed_until_heard": "a lease that has lapsed isn't given again before the host has answered",
    "converges": "from everywhere the host can come to hold its lease and to run what its row says; dead, to lapse",
}
"""Name to meaning, of what is promised here."""
FIRST_BOOT = 1
FIRST_MEMORY = 1
NO_TIME = (0, 0)
NONE_REFUSED: tuple[int, int, tuple[str, ...]] = (0, 0, ())


class Fault(Enum):
    """What may happen besides the parts' own steps. Messages are lost and late in any case, as often as may be."""

    LAUNCH = "launch"
    TERMINATE = "terminate"
    CORDON = "cordon"
    TAKE = "take-over"
    REPEAT = "repeat"
    CRASH = "crash"
    RESTART = "restart"
    MIDWAY = "crash-midway"
    REBOOT = "reboot"
    FORGET = "host-memory-lost"
    DIE = "host-dies"
    SKEW = "skew"
    SILENT = "silent"
    UNKNOWN = "outcome-unknown"
    WIPE = "store-wiped"
    RESTORE = "store-restored"
    FULL = "disk-full"


MEANING = {
    Fault.LAUNCH: "an attempt is placed on the host, if the row allows it",
    Fault.TERMINATE: "a person ends what was placed",
    Fault.CORDON: "a person lets nothing more be placed on the host",
    Fault.TAKE: "another manager takes the shard over, while the first may go on",
    Fault.REPEAT: "a message arrives a second time, any time later",
    Fault.CRASH: "a manager dies and is started anew",
    Fault.RESTART: "the host's agent starts anew; what it started goes on",
    Fault.MIDWAY: "the agent dies after writing its memory, before doing what it wrote, and starts anew",
    Fault.REBOOT: "the host starts anew: nothing runs on it",
    Fault.FORGET: "the host's memory is gone: another incarnation, on which nothing runs",
    Fault.DIE: "the host dies and stays dead",
    Fault.SKEW: "the host's clock loses the margin in one lease",
    Fault.SILENT: "the host doesn't answer in time, and is marked as a suspect",
    Fault.UNKNOWN: "the answer to a write is lost, whether it applied or not",
    Fault.WIPE: "the store is lost, and a new one has nothing",
    Fault.RESTORE: "the store is put back from a copy made at any time before",
    Fault.FULL: "the host can't write its memory for one message; it tries again at any later time",
}
"""Each fault in words."""
BESIDES = tuple(fault for fault in Fault if fault is not Fault.TAKE)
"""What may happen where there is one manager, and so nobody to take over."""


class Flying(NamedTuple):
    """A message from or to the manager ``who``."""

    who: str
    message: ToHost | FromHost
    to_host: bool


class Rows(Struct, frozen=True, gc=False):
    """What is in the store: the shard's row, the host's, how many attempts were ever made, and which are to end."""

    life: int = 1
    shard: ShardRow | None = None
    host: HostRow | None = None
    attempts: int = 0
    ending: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The store's identity."""
        return str(self.life)


class Shared(Struct, frozen=True, gc=False):
    """All but the managers. ``memory``, ``boot``, ``running`` and ``alive`` are the host's.

    ``unable`` and ``refused`` are the host's too, and lost with its agent.
    ``passed`` is how much time has just passed, managers' and the host's, in units of R: parts are told of it at once.
    ``over`` are attempts that run or ran elsewhere, or were reported as ended: starting one is the violation.
    ``started`` are those that were ever started here. ``acked`` is the token the host's memory last answered under,
    and whose grant it was ("" while none stood). ``unheard``: no manager has heard of the host since one let it lapse.
    ``dead`` are managers that died. ``grants`` is how high grants' numbers go, at most, ``room`` how many messages are
    in flight, and ``time`` how often time may still pass (-1: for ever).
    """

    rows: Rows
    memory: HostMemory
    boot: int = FIRST_BOOT
    running: frozenset[str] = frozenset()
    alive: bool = True
    flight: tuple[Flying, ...] = ()
    passed: tuple[int, int] = NO_TIME
    over: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()
    acked: tuple[Token, str] = (NO_TOKEN, "")
    unheard: bool = False
    budget: tuple[tuple[Fault, int], ...] = ()
    copied: Rows | None = None
    dead: frozenset[str] = frozenset()
    grants: int = 3
    room: int = 2
    time: int = -1
    unable: str = ""
    refused: frozenset[str] = frozenset()

    def budgeted(self, fault: Fault) -> bool:
        """Whether this may happen once more."""
        return dict(self.budget).get(fault, 0) > 0

    def spent(self, fault: Fault) -> "Shared":
        """The same with one less of a fault."""
        left = tuple((each, count - (each is fault)) for each, count in self.budget)
        return structs.replace(self, budget=tuple(each for each in left if each[1]))

    def flying(self, *messages: Flying) -> "Shared":
        """The same with these messages in flight, in one order whatever came first.

        One too many is lost, and so is what is for a manager that died.
        """
        heard = [each for each in messages if each.to_host or each.who not in self.dead]
        return structs.replace(self, flight=tuple(sorted(heard[: self.room], key=written_out)))

    def host_decider(self) -> Host:
        """The host as it is."""
        settings = HostSettings(HOST, fresh_for=FRESH, ended_kept=None)
        return Host(settings, self.memory, self.boot, self.running, 0, self.unable, self.refused)


@cache
def written_out(value: Hashable) -> str:
    """A value as text, by which such values are put in order."""
    return repr(value)


def with_host(shared: Shared, host: Host) -> Shared:
    """The same with the host as it is now."""
    if host.memory is None:
        raise TypeError("a host that was started has a memory")
    return structs.replace(
        shared,
        memory=host.memory,
        boot=host.boot,
        running=host.running,
        unable=host.unable,
        refused=host.refused,
    )


class Pending(NamedTuple):
    """A call to the store that a manager has begun. ``row`` is what it is about, ``numbers`` what it needs."""

    call: str
    row: ShardRow | None = None
    numbers: tuple[int, ...] = ()


class Slot(NamedTuple):
    """A part. A manager has its decider's state, its calls under way, and its copies of the rows.

    ``told`` is the set that the host last told whole, ``down`` what it said doesn't run, of which version;
    ``refused`` what it said that it refused for good: which start of its agent, of which version, and what.
    """

    name: str
    kind: str
    mind: Mind | None = None
    pending: tuple[Pending, ...] = ()
    shard: ShardRow | None = None
    host: HostRow | None = None
    told: InstanceSet | None = None
    down: tuple[int, tuple[str, ...]] = (0, ())
    refused: tuple[int, int, tuple[str, ...]] = NONE_REFUSED

    def key(self) -> tuple[object, ...]:
        """What tells it from another."""
        return self

    @property
    def thinks(self) -> Mind:
        """A manager's state. Raises ``TypeError`` for a part that has none."""
        if self.mind is None:
            raise TypeError(f"{self.name} is no manager")
        return self.mind

    @property
    def decider(self) -> HostLeases:
        """A manager's decider, to be looked at only."""
        return self.thinks.decider


class Shape(Struct, frozen=True, gc=False):
    """How many managers, and what may happen how often.

    ``held``: it begins with the host's lease given to the first manager (:mod:`fencepost.world.lease_begin`), and not
    with nothing; ``placed``: also with an attempt placed there that the host wasn't told of. ``expected``: the
    configuration names the host. No more than ``grants`` are given to it, no more than ``room`` messages are in flight,
    and time passes ``time`` times (-1: for ever): the bounds of this world.
    """

    managers: int = 2
    budget: tuple[tuple[Fault, int], ...] = ()
    expected: bool = True
    grants: int = 2
    room: int = 2
    time: int = -1
    held: bool = False
    placed: bool = False
    decider: type[HostLeases] = HostLeases
    margin: int = 1


def manager(shape: Shape, name: str, minds: Minds) -> Slot:
    """A manager just started; the name says whose it is."""
    settings = LeaseSettings(name, 1, 1, 1, 1, 1, 0, expect=int(shape.expected))
    if shape.margin != 1:
        settings = Narrow(*structs.astuple(settings))
    decider = shape.decider(settings)
    decider.owner.claimed = 0
    return Slot(name, "manager", minds.of(decider))


class Narrow(LeaseSettings, frozen=True, gc=False):
    """Settings without a margin, which the real ones refuse: to show what it is there for."""

    def __post_init__(self) -> None:
        """Refuse nothing."""

    @property
    def lease(self) -> int:
        """As long as a stamp, and no longer."""
        return FRESH


def start(shape: Shape, minds: Minds | None = None) -> tuple[tuple[Slot, ...], Shared]:
    """A shard that nobody owns yet, with a host that was never granted anything. ``minds``: of walks before this."""
    shared = Shared(
        Rows(host=registered()),
        HostMemory(FIRST_MEMORY),
        budget=tuple(sorted(shape.budget, key=lambda each: each[0].value)),
        grants=shape.grants,
        room=shape.room,
        time=shape.time,
    )
    minds = Minds() if minds is None else minds
    managers = tuple(manager(shape, "AB"[n], minds) for n in range(shape.managers))
    return (*managers, Slot("host", "host"), Slot("time", "time")), shared


def registered() -> HostRow:
    """The row of a host that nobody knows anything of."""
    return HostRow(HOST, "a", "h:1")


def attempt(number: int) -> Instance:
    """The ``number``-th attempt."""
    return Instance(f"w.{number}")


def nonce(life: int, number: int) -> int:
    """What stands for a grant's drawn nonce: no two grants have one."""
    return life << 16 | number


def has_lapsed(row: HostRow, life: str) -> bool:
    """Whether the host's lease has run out in this life of the store. Of another life nothing is known."""
    return row.lease == "lapsed" and row.life == life


def facts(row: HostRow | None, life: str) -> Facts:
    """What a manager's port tells of the host's row."""
    rows = [row] if row is not None else []

    def lease(row: HostRow) -> Lease:
        return Lease.LAPSED if has_lapsed(row, life) else Lease.HELD if row.held(life) else Lease.UNKNOWN

    def column(values: list[Any], kind: Any) -> Any:
        return np.array(values, kind)

    return Facts(
        column([0] * len(rows), np.int64),
        column([each.number for each in rows], np.int64),
        column([each.nonce for each in rows], np.uint64),
        column([lease(each) for each in rows], np.int8),
        column([each.incarnation for each in rows], np.uint64),
        column([each.boot for each in rows], np.uint64),
        column([each.left for each in rows], np.int64),
        column([each.reported and each.life == life for each in rows], np.bool_),
        column([each.set.version for each in rows], np.int64),
        column([each.word == "gone" for each in rows], np.bool_),
    )


def caught_up(slot: Slot, passed: tuple[int, int], boot: int) -> Slot:
    """A part once what it remembers has become older by so much time; ``boot`` is the host's."""
    return slot if slot.mind is None or passed == NO_TIME else slot._replace(mind=slot.mind.aged(passed, boot))


def rested(shared: Shared) -> Shared:
    """The same once all parts were told what time has passed."""
    return shared if shared.passed == NO_TIME else structs.replace(shared, passed=NO_TIME)


def aged_message(flying: Flying, boot: int) -> Flying:
    """A message once the host's clock has moved on.

    A stamp of another boot may seem as young at any later time as it did at first: that clock began anew.
    """
    message = flying.message
    if isinstance(message, Order | Answer) and message.boot == boot:
        message = structs.replace(message, stamp=max(message.stamp - 1, NOW - FRESH))
    return flying._replace(message=message)


def without_old_answers(shared: Shared) -> Shared:
    """The same without answers under tokens that are no host's any more.

    A manager passes them over: its own token is never older than the rows', but for one that has yet to hear of it, and
    then it can do no more than the same manager could with the answer lost. Where a store is put back from a copy old
    tokens may come again, so there it isn't used.
    """
    rows, row = shared.rows, shared.rows.host
    if row is None or rows.shard is None:
        return shared
    place = (rows.shard.epoch, row.number)
    kept = tuple(
        each for each in shared.flight if not isinstance(each.message, Answer) or each.message.token.place >= place
    )
    return shared if len(kept) == len(shared.flight) else structs.replace(shared, flight=kept)


def at_bound(shared: Shared) -> bool:
    """Whether no further grant is given, or not enough time is left, because of this world's bounds.

    A dead host needs a lease's time to lapse, and a tick; to notice that the store is another one takes a tick. An
    answer that a memory gave before it was lost may earn a grant that is worth nothing, and the new memory needs one
    more. Where time passes for ever, leases lapse until there is but one left.
    """
    row = shared.rows.host
    late = 0 <= shared.time < (2 if shared.alive else LEASE + 1)
    wasted = int(shared.time < 0 and shared.memory.incarnation > FIRST_MEMORY)
    return late or (row is not None and row.number + wasted >= shared.grants)


def converged(shared: Shared) -> bool:
    """Whether the host holds its lease in this life of the store and runs what its row says; or, dead, has lapsed.

    A dead host that a wiped store knows nothing of can't lapse: then placing goes on without it.
    """
    rows, row = shared.rows, shared.rows.host
    if rows.shard is None:
        return False
    if not shared.alive:
        return has_lapsed(row, rows.name) if row is not None else rows.shard.open == rows.name
    if row is None:
        return False
    token = Token(rows.shard.epoch, row.number, row.nonce)
    held = row.held(rows.name) and row.reported and row.incarnation == shared.memory.incarnation
    runs = shared.memory.set == row.set and shared.running == row.set.ids
    return held and runs and shared.memory.token == token and not row.left
