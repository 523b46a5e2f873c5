"""The rules of leases, each taken out by patching the deciders that ship; only for tests.

``steps`` is the length of the shortest story in which the promise breaks, in the world of the mutant's shape.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from fencepost.core.capacity import host_lease, lease_columns, lease_rows, shard_owner, token
from fencepost.core.capacity.fleet_store import Claim
from fencepost.core.capacity.host import Host
from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Due, Lease, Op, Outdated, SendOrders
from fencepost.core.capacity.shard_owner import ShardOwner
from fencepost.world import lease_hosts, lease_placing
from fencepost.world.leases import NOW, Fault, Shape

LAUNCH = (Fault.LAUNCH, 1)


def shape(
    managers: int, *faults: tuple[Fault, int], grants: int = 2, room: int = 2, time: int = -1, margin: int = 1
) -> Shape:
    """A world with these faults, each so often."""
    return Shape(managers, faults, grants=grants, room=room, time=time, margin=margin)


class Mutant(NamedTuple):
    """A rule, what is patched to take it out, in which world, and what breaks how soon."""

    rule: str
    patches: tuple[tuple[Any, str, Any], ...]
    shape: Shape
    breaks: str
    steps: int = 0
    most: int = 2_000_000


def same_epoch(self: ShardOwner) -> Any:
    """A taker keeps the epoch."""
    row = self.row or shard_owner.ShardRow(self.settings.shard, self.settings.of, epoch=1)
    return structs.replace(row, of=self.settings.of, owner=self.settings.owner, beat=row.beat + 1)


def any_nonce(self: token.Token, other: token.Token) -> bool:
    """Only numbers are compared."""
    return other.place < self.place


def always_obeys(checked: str) -> Callable[..., bool]:
    """A host that looks at all but one thing."""

    def obeys(self: Host, memory: Any, order: Any, now: int) -> bool:
        looks = {
            "token": order.token == memory.token,
            "boot": order.boot == self.boot,
            "stamp": 0 <= now - order.stamp < self.settings.fresh_for,
            "version": order.set.version > memory.set.version,
        }
        return all(looked for what, looked in looks.items() if what != checked)

    return obeys


def orders_without_proof(self: HostLeases, ids: Any, now: int, effects: list[Any]) -> None:
    """The order goes out on the rows as last read."""
    sent = ids[self.orderable(ids, now)]
    if len(sent):
        self.hosts.fresh[sent] = False
        effects.append(SendOrders(sent, self.hosts.boot[sent].copy(), self.hosts.stamp[sent].copy()))


def from_dispatch(event: Due, self: HostLeases) -> Any:
    """A lease's end is counted from when the check was sent."""
    self.hosts.ends[event.ids] = np.maximum(self.hosts.ends[event.ids], NOW + self.settings.lease)
    return self.send(event.ids)


_answered, _on, _looked, _orderable = (
    HostLeases.answered,
    HostLeases.on,
    HostLeases.looked,
    HostLeases.orderable,
)


def answered_from_dispatch(self: HostLeases, event: Any, now: int) -> Any:
    """An answer doesn't lengthen."""
    before = self.hosts.ends.copy()
    effects = _answered(self, event, now)
    self.hosts.ends[:] = before
    return effects


def on_from_dispatch(self: HostLeases, event: Any, now: int) -> Any:
    """See :func:`from_dispatch`."""
    if isinstance(event, Due) and self.loaded:
        return from_dispatch(event, self)
    return _on(self, event, now)


def taker_waits_not(self: HostLeases, event: Any, now: int) -> Any:
    """A taker takes every lease for over."""
    first = not self.loaded
    effects = _hosts_read(self, event, now)
    if first and self.loaded:
        self.hosts.ends[:] = now
    return effects


_hosts_read = HostLeases.hosts_read


def any_incarnation(self: HostLeases, ids: Any, now: int) -> Any:
    """A proof doesn't look at whose memory the lease was given to; nor does anything else."""
    hosts = self.hosts
    hosts.host_incarnation[ids] = hosts.incarnation[ids]
    return _orderable(self, ids, now)


def blind_settle(self: HostLeases, ids: Any, now: int) -> Any:
    """A new memory needs no new grant."""
    known = self.hosts.lease[ids] == Lease.HELD
    self.hosts.host_incarnation[ids[known]] = self.hosts.incarnation[ids[known]]
    return _settle(self, ids, now)


_settle = HostLeases.settle


def no_raise(self: ShardOwner, event: Outdated, number: int, nonce: int) -> Any:  # noqa: ARG001  the rule's shape
    """Told of something newer, a manager goes on."""
    return ()


def claims_nothing(self: Claim, row: Any, life: str) -> bool:  # noqa: ARG001  as above
    """A write asks nobody."""
    return True


def only_held_are_checked(self: HostLeases, event: Any, now: int) -> Any:
    """What has lapsed is left alone."""
    if isinstance(event, Due) and self.hosts.size and self.hosts.lease[0] == Lease.LAPSED:
        return ()
    return _on(self, event, now)


def rows_win(row: Any, life: str, theirs: Any) -> Any:  # noqa: ARG001  as above
    """What the host holds is of no interest."""
    return structs.replace(row, reported=True) if row.held(life) and not row.reported else None


def open_at_once(self: HostLeases, now: int) -> bool:  # noqa: ARG001  as above
    """Placing begins before hosts have told what they hold."""
    return self.acting


def marks_stay(self: HostLeases, ids: Any, now: int) -> Any:
    """An order goes out although the mark stands."""
    before = self.hosts.left.copy()
    self.hosts.left[ids] = 0
    found = _orderable(self, ids, now)
    self.hosts.left[:] = before
    return found


def silent_over(self: Any, shared: Any, ids: Any) -> Any:
    """Nothing."""


MUTANTS: tuple[Mutant, ...] = (
    Mutant("the epoch is in the token", ((ShardOwner, "raised", same_epoch),), shape(2, (Fault.TAKE, 1), time=0, room=1), "single_holder"),
    Mutant("a token has a nonce", ((token.Token, "outdates", any_nonce),), shape(1, (Fault.RESTORE, 1), (Fault.CRASH, 2), grants=2, room=1, time=0), "single_holder"),
    Mutant("the epoch is raised above what a host has met", ((ShardOwner, "outdated", no_raise),), shape(1, (Fault.CRASH, 1), (Fault.WIPE, 1), room=1, grants=3, time=0), "converges"),
    Mutant("an order carries a fresh stamp", ((Host, "obeys", always_obeys("stamp")),), shape(1, LAUNCH, room=1, time=5), "ended_stays_ended"),
    Mutant("an order carries the boot", ((Host, "obeys", always_obeys("boot")),), shape(1, LAUNCH, (Fault.REBOOT, 1), time=1), "ended_stays_ended"),
    Mutant("only the current token is obeyed", ((Host, "obeys", always_obeys("token")),), shape(1, LAUNCH, (Fault.TERMINATE, 1), (Fault.CRASH, 1), time=1), "ended_stays_ended"),
    Mutant("sets have versions", ((Host, "obeys", always_obeys("version")),), shape(1, LAUNCH, (Fault.TERMINATE, 1), (Fault.REPEAT, 1), time=1), "ended_stays_ended"),
    Mutant("the proof comes after the stamp", ((HostLeases, "prove", orders_without_proof),), shape(2, LAUNCH, (Fault.TAKE, 1), time=6, room=1), "ended_stays_ended"),
    Mutant("a lease ends after the answer's arrival", ((HostLeases, "answered", answered_from_dispatch), (HostLeases, "on", on_from_dispatch)), shape(1, LAUNCH, room=1, time=6), "ended_stays_ended"),
    Mutant("a taker waits", ((HostLeases, "hosts_read", taker_waits_not),), shape(1, LAUNCH, (Fault.CRASH, 1), time=1, room=1), "ended_stays_ended"),
    Mutant("a margin for clocks that run apart", (), shape(1, LAUNCH, (Fault.SKEW, 1), margin=0, room=1, time=5), "ended_stays_ended"),
    Mutant("a new memory needs a new grant", ((HostLeases, "settle", blind_settle),), shape(1, LAUNCH, (Fault.FORGET, 1), grants=2, time=1), "started_once"),
    Mutant("writes are under the claim", ((Claim, "stands", claims_nothing),), shape(2, LAUNCH, (Fault.TAKE, 1), time=6, room=1), "ended_stays_ended"),
    Mutant("lapsed hosts are checked", ((HostLeases, "on", only_held_are_checked),), shape(1, room=1), "converges"),
    Mutant("the host's set wins", ((lease_rows, "adopted", rows_win),), shape(1, LAUNCH, (Fault.WIPE, 1), grants=2, room=1, time=1), "converges"),
    Mutant("placing waits for reports", ((HostLeases, "placing", open_at_once),), shape(1, (Fault.LAUNCH, 2), (Fault.WIPE, 1), grants=2, time=1, room=1), "started_once"),
    Mutant("a mark is taken away before the next order", ((HostLeases, "orderable", marks_stay),), shape(1, LAUNCH, (Fault.SILENT, 1), (Fault.CRASH, 1), time=5, room=1), "ended_stays_ended"),
)
