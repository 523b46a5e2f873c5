"""Each rule of host leases, taken out: a named function replaced, so that the explorer finds what it is there for.

As in ``network_mutants.py``: what is replaced, the smallest world that shows it, the promise that breaks there, and the
length of the shortest way. Most ways begin where the host's lease is held (``held``), or where an attempt is placed
there besides (``placed``): the two dozen steps up to there are always the same, and aren't counted.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from fencepost.core.capacity import lease_rows, token
from fencepost.core.capacity.fleet_store import Claim
from fencepost.core.capacity.host import Host, HostMemory, Persist
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Due, Lease, Outdated, SendOrders
from fencepost.core.capacity.lease_state import LeaseState
from fencepost.core.capacity.messages import Answer
from fencepost.core.capacity.rows import HostRow, ShardRow
from fencepost.core.capacity.shard_owner import ShardOwner
from fencepost.world import lease_placing, leases
from fencepost.world.lease_minds import NOW
from fencepost.world.leases import Fault, Shape

Patch = tuple[Any, str, Any]
LAUNCH, TERMINATE, TAKE, REPEAT, CRASH = Fault.LAUNCH, Fault.TERMINATE, Fault.TAKE, Fault.REPEAT, Fault.CRASH
MIDWAY, REBOOT, FORGET, SKEW, SILENT = Fault.MIDWAY, Fault.REBOOT, Fault.FORGET, Fault.SKEW, Fault.SILENT
WIPE, RESTORE, RESTART, FULL = Fault.WIPE, Fault.RESTORE, Fault.RESTART, Fault.FULL


class Mutant(NamedTuple):
    """A rule taken out, where that shows, the promise it breaks there, and the steps of the shortest way."""

    rule: str
    patches: tuple[Patch, ...]
    shape: Shape
    breaks: str
    steps: int = 0


def shape(managers: int, *faults: Fault, grants: int = 1, room: int = 1, time: int = -1, **begun: Any) -> Shape:
    """A world with each fault as often as it is named; see :class:`~fencepost.world.leases.Shape` for the bounds."""
    often = tuple((fault, faults.count(fault)) for fault in dict.fromkeys(faults))
    return Shape(managers, often, grants=grants, room=room, time=time, **begun)


real_answered, real_on, real_orderable = HostLeases.answered, HostLeases.on, HostLeases.orderable
real_hosts_read, real_settle, real_lapse, real_silent = (
    HostLeases.hosts_read, HostLeases.settle, HostLeases.lapse, HostLeases.silent,
)  # fmt: skip
real_placing: Callable[[HostLeases], bool] = LeaseState.__dict__["placing"].fget
real_order, real_answer, real_host_on = Host.order, Host.answer, Host.on

# Tokens ---------------------------------------------------------------------------------------------------------------


def same_epoch(self: ShardOwner) -> ShardRow:
    """A taker keeps the epoch."""
    row = self.row or ShardRow(self.settings.shard, self.settings.of, epoch=1)
    return structs.replace(row, of=self.settings.of, owner=self.settings.owner, beat=row.beat + 1)


def any_nonce(self: token.Token, other: token.Token) -> bool:
    """Only epochs and numbers are compared."""
    return other.place < self.place


def no_raise(self: ShardOwner, event: Outdated, number: int, nonce: int) -> Any:
    """Told of something newer, a manager goes on."""
    return ()


def any_token(self: Host, memory: HostMemory, order: Any, now: int) -> Any:
    """A host obeys an order under any token."""
    return real_order(self, memory, structs.replace(order, token=memory.token), now)


# What a host looks at -------------------------------------------------------------------------------------------------


def looking_away_from(what: str) -> Callable[..., bool]:
    """A host that looks at all but one thing."""

    def obeys(self: Host, memory: Any, order: Any, now: int) -> bool:
        looks = {
            "token": order.token == memory.token,
            "boot": order.boot == self.boot,
            "stamp": 0 <= now - order.stamp < self.settings.fresh_for,
            "version": order.set.version > memory.set.version,
        }
        return all(seen for each, seen in looks.items() if each != what)

    return obeys


def writes_last(self: Host, event: Any, now: int) -> Any:
    """The memory is written after all else."""
    effects = real_host_on(self, event, now)
    return tuple(sorted(effects, key=lambda each: isinstance(each, Persist)))


def nothing_is_over(self: HostMemory) -> frozenset[str]:
    """A host forgets what ended."""
    return frozenset()


def tells_nothing_down(self: Host, memory: HostMemory, now: int, *, whole: bool = False) -> Answer:
    """A host doesn't tell what doesn't run."""
    return structs.replace(real_answer(self, memory, now, whole=whole), down=())


def forgets_refusals(self: Host, memory: HostMemory, order: Any, now: int) -> Any:
    """What an order would have started is started when it comes again."""
    self.refused = frozenset()
    return real_order(self, memory, order, now)


# Orders ---------------------------------------------------------------------------------------------------------------


def orders_without_proof(self: HostLeases, ids: Any, now: int, effects: list[Any]) -> None:
    """The order goes out on the rows as last read."""
    sent = ids[self.orderable(ids, now)]
    if len(sent):
        self.hosts.fresh[sent] = False
        effects.append(SendOrders(sent, self.hosts.boot[sent].copy(), self.hosts.stamp[sent].copy()))


def claimed_in_any_life(self: ShardOwner, life: str, row: ShardRow | None) -> bool:
    """A proof isn't asked which life of the store it is from."""
    return self.owning and row is not None and self.is_mine(row) and row.epoch == self.epoch


def any_incarnation(self: HostLeases, ids: Any, now: int) -> Any:
    """A new memory needs no new grant."""
    known = ids[self.hosts.lease[ids] == Lease.HELD]
    self.hosts.host_incarnation[known] = self.hosts.incarnation[known]
    return real_settle(self, ids, now)


def unmarked(function: Any) -> Any:
    """A step that sees no marks."""

    def looks(self: HostLeases, ids: Any, now: int) -> Any:
        before = self.hosts.left.copy()
        self.hosts.left[:] = 0
        found = function(self, ids, now)
        self.hosts.left[:] = before
        return found

    return looks


# When a lease ends ----------------------------------------------------------------------------------------------------


def answer_lengthens_nothing(self: HostLeases, event: Any, now: int) -> Any:
    """An answer doesn't lengthen the lease."""
    before = self.hosts.ends.copy()
    effects = real_answered(self, event, now)
    self.hosts.ends[:] = before
    return effects


def check_lengthens(self: HostLeases, event: Any, now: int) -> Any:
    """A lease's end is counted from when the check was sent."""
    if isinstance(event, Due) and self.loaded:
        self.hosts.ends[event.ids] = np.maximum(self.hosts.ends[event.ids], NOW + self.settings.lease)
        return self.send(event.ids)
    return real_on(self, event, now)


def waits_not(self: HostLeases, event: Any, now: int) -> Any:
    """A taker takes every lease for over."""
    first = not self.loaded
    effects = real_hosts_read(self, event, now)
    if first and self.loaded:
        self.hosts.ends[:] = now
    return effects


def stands_always(self: Claim, row: Any, life: str) -> bool:
    """A write asks nobody."""
    return True


def lapsed_in_any_life(row: HostRow, life: str) -> bool:
    """What had lapsed in another life of the store has lapsed."""
    return row.lease == "lapsed"


def only_held_are_checked(self: HostLeases, event: Any, now: int) -> Any:
    """What has lapsed is left alone."""
    if isinstance(event, Due) and self.hosts.size and self.hosts.lease[0] == Lease.LAPSED:
        return ()
    return real_on(self, event, now)


def answered_once(function: Any) -> Any:
    """An answer counts until the next one, whatever has happened since."""

    def looks(self: HostLeases, given: Any, now: int = NOW) -> Any:
        before = self.hosts.fresh.copy()
        effects = function(self, given) if function is real_lapse else function(self, given, now)
        self.hosts.fresh[:] = before
        return effects

    return looks


# A lost store ---------------------------------------------------------------------------------------------------------


def rows_win(row: Any, life: str, theirs: Any) -> Any:
    """What the host holds is of no interest."""
    return structs.replace(row, reported=True) if row.held(life) and not row.reported else None


def open_at_once(self: HostLeases) -> bool:
    """Placing begins before hosts have told what they hold."""
    return self.acting


def opens_unread(self: HostLeases) -> bool:
    """Placing begins once the wait is over, on the rows as last read."""
    before, self.waited = self.waited, self.wait_over(NOW)
    found = real_placing(self)
    self.waited = before
    return found


STARTS, TWICE, HOLDER = "ended_stays_ended", "started_once", "single_holder"
FULL_ONCE, FULL_AND_RESTART = (
    shape(1, FULL, time=0, placed=True),
    shape(1, FULL, RESTART, room=2, time=1, placed=True),
)
ANY_BOOT: tuple[Patch, ...] = ((lease_placing, "refused_for_good", lambda row, boot, _: row.boot == boot),)
MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "the epoch is in the token", ((ShardOwner, "raised", same_epoch),), shape(2, TAKE, time=0, held=True), HOLDER, 7
    ),
    Mutant(
        "a grant has a nonce",
        ((token.Token, "outdates", any_nonce),),
        shape(1, WIPE, CRASH, room=2, time=0),
        HOLDER,
        25,
    ),
    Mutant(
        "the epoch is raised above what a host has met",
        ((ShardOwner, "outdated", no_raise),),
        shape(1, CRASH, WIPE, grants=2, time=2, held=True),
        "converges",
        2,
    ),
    Mutant(
        "only the newest token is obeyed",
        ((Host, "order", any_token),),
        shape(1, CRASH, room=2, time=0, placed=True),
        HOLDER,
        10,
    ),
    Mutant(
        "an order carries a stamp",
        ((Host, "obeys", looking_away_from("stamp")),),
        shape(1, time=3, placed=True),
        STARTS,
        9,
    ),
    Mutant(
        "the stamp has the boot",
        ((Host, "obeys", looking_away_from("boot")),),
        shape(1, REBOOT, time=3, placed=True),
        STARTS,
        10,
    ),
    Mutant(
        "a proof after the stamp",
        ((HostLeases, "prove", orders_without_proof),),
        shape(2, TAKE, time=4, placed=True),
        STARTS,
        16,
    ),
    Mutant(
        "the proof has the store's life",
        ((ShardOwner, "is_claimed", claimed_in_any_life),),
        shape(2, TAKE, RESTORE, time=4, placed=True),
        STARTS,
        19,
    ),
    Mutant(
        "the proof has the memory's incarnation",
        ((HostLeases, "settle", any_incarnation),),
        shape(1, FORGET, time=0, placed=True),
        TWICE,
        10,
    ),
    Mutant(
        "a lease ends after the answer's arrival",
        ((HostLeases, "answered", answer_lengthens_nothing), (HostLeases, "on", check_lengthens)),
        shape(1, time=3, placed=True),
        STARTS,
        12,
    ),
    Mutant("a taker waits", ((HostLeases, "hosts_read", waits_not),), shape(1, CRASH, time=1, placed=True), STARTS, 12),
    Mutant("a margin for clocks that run apart", (), shape(1, SKEW, time=3, placed=True, margin=0), STARTS, 8),
    Mutant(
        "writes are under the claim",
        ((Claim, "stands", stands_always),),
        shape(2, TAKE, time=3, placed=True),
        STARTS,
        18,
    ),
    Mutant(
        "a host's set has a version",
        ((Host, "obeys", looking_away_from("version")),),
        shape(1, TERMINATE, room=2, time=0, placed=True),
        STARTS,
        10,
    ),
    Mutant(
        "a lapse of another life is none",
        ((leases, "has_lapsed", lapsed_in_any_life), (lease_placing, "has_lapsed", lapsed_in_any_life)),
        shape(1, LAUNCH, RESTORE, grants=2, time=3, held=True),
        STARTS,
        25,
    ),
    Mutant(
        "placing waits for reports",
        ((HostLeases, "placing", property(open_at_once)),),
        shape(1, LAUNCH, WIPE, grants=2, time=1, placed=True),
        TWICE,
        13,
    ),
    Mutant(
        "rows are read again after the wait",
        ((HostLeases, "placing", property(opens_unread)),),
        shape(1, LAUNCH, WIPE, grants=2, time=4, placed=True),
        TWICE,
        16,
    ),
    Mutant(
        "the host's set wins",
        ((lease_rows, "adopted", rows_win),),
        shape(1, WIPE, grants=2, time=2, placed=True),
        "converges",
        3,
    ),
    Mutant(
        "what doesn't run is over",
        ((Host, "answer", tells_nothing_down),),
        shape(1, REBOOT, grants=2, time=2, placed=True),
        "converges",
        3,
    ),
    Mutant(
        "lapsed hosts are checked",
        ((HostLeases, "on", only_held_are_checked),),
        shape(1, grants=2, time=5, held=True),
        "converges",
        6,
    ),
    Mutant(
        "an answer from before earns no grant",
        ((HostLeases, "lapse", answered_once(real_lapse)), (HostLeases, "silent", answered_once(real_silent))),
        shape(1, grants=2, time=3, held=True),
        "lapsed_until_heard",
        7,
    ),
    Mutant(
        "a mark goes before the next order",
        ((HostLeases, "orderable", unmarked(real_orderable)), (HostLeases, "settle", unmarked(real_settle))),
        shape(1, SILENT, CRASH, time=3, placed=True),
        STARTS,
        19,
    ),
    Mutant(
        "memory is written before answering",
        ((Host, "on", writes_last),),
        shape(1, CRASH, MIDWAY, room=2, time=0, held=True),
        HOLDER,
        10,
    ),
    Mutant(
        "what has ended is remembered",
        ((HostMemory, "over", property(nothing_is_over)),),
        shape(1, TERMINATE, WIPE, LAUNCH, time=1, placed=True),
        TWICE,
        31,
    ),
    Mutant("what couldn't be written is refused for good", ((Host, "order", forgets_refusals),), FULL_ONCE, STARTS, 8),
    Mutant("the row has had the boot that refused ever since", ANY_BOOT, FULL_AND_RESTART, STARTS, 14),
)
"""Each rule that something breaks without."""
