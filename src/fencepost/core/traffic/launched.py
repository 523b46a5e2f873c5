"""Which launched instances a pool has: the fleet's rows beside the membership row, as a part of the owner's list.

An attempt joins when it is placed, and is pending until its network state is acknowledged (asked once, at the moment it
is let in: later versions take nothing away) and it has passed its probes. How it leaves depends on whose act that is:

- *Terminated* is the owner's act, like a target that leaves the file: it costs no budget, and the last one stays.
- *Moved*, because a person drains its host, is his act too: it serves until its successor does, and then leaves.
- *Over*: its host said that it ended, or it was given up and its next attempt has a place. It isn't a sick target,
  which might get well: it is gone, and never starts again. So it leaves like one that was terminated, whatever limits
  say and fail open too, and only the last of a family stays.
- An attempt whose host's lease has lapsed, and that has no successor yet, must not serve either: its host may be cut
  off and go on with an old copy, whatever the probes say. But that is automation's judgement, and it may be wrong about
  a thousand hosts at once. So it counts as dead, whatever its probes say, and is taken out under the same limits as any
  dead target: a mass lapse can't empty a name.
- An address that the file lists too is served from the start and then by its probes, as any that is listed: that is the
  owner's word, and a pool need not be empty until its first instances are ready. But it must not serve while the hosts
  that have it to give have lapsed. And where a person drains its host, it leaves as a moved instance does: once the
  next attempt serves, before the one there is stopped, and free of the budget. One that is terminated there leaves at
  once. Either way it stays out until something is placed there: what still answers is being stopped.
- Rows that are missing say nothing: a fleet's store that was wiped, or isn't read, takes nobody out.

Awkward truth: a lapsed host's instance that a limit keeps goes on being answered, and does harm if its copy is harmful.
That is the price of never emptying a name on one store's word; `fencepost drain` takes it out at once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from fencepost.core.capacity.messages import Instance
from fencepost.core.capacity.network_state import missing
from fencepost.core.capacity.rows import HostRow, InstanceRow
from fencepost.core.traffic.fleet_rows import FleetRows
from fencepost.core.traffic.membership import (
    FORSAKEN,
    SERVING,
    Fate,
    Member,
    Membership,
    OverrideKind,
    State,
    Target,
)


class Becomes(NamedTuple):
    """What becomes of a target, whatever its checks say, and why in words for people."""

    fate: Fate
    why: str

    def of(self, target: Target) -> Target:
        """The target with that fate."""
        return structs.replace(target, fate=self.fate, why=self.why)


class Launched(NamedTuple):
    """A pool's instances as its owner lists them, and the addresses of those that have ended, or are over.

    An address is in both if an attempt is over there, and another has its place that may not serve yet.
    """

    targets: tuple[Target, ...] = ()
    ended: frozenset[str] = frozenset()


def launched(pool: str, rows: FleetRows, row: Membership | None, taken: frozenset[str] = frozenset()) -> Launched:
    """The instances of a pool; ``taken`` are addresses that are listed otherwise."""
    members = {member.key: member for member in row.members} if row is not None else {}
    targets: dict[str, Target] = {}
    for instance in rows.of_pool(pool):
        address = instance.address
        if not address or address in targets or address in taken:
            continue
        targets[address] = placed(instance, rows, members.get(address))
    ended = [key for key, each in targets.items() if key in members and outlived(each, members[key])]
    former_ones = [
        each for each in members.values() if each.source and each.key not in targets and each.key not in taken
    ]
    holders = rows.holder({each.source for each in former_ones}) if former_ones else {}
    placed_now = {each.source: each for each in targets.values()} if former_ones else {}
    for member in former_ones:
        stays = former(member, rows, holders.get(member.source), members, placed_now)
        if stays is None:
            ended.append(member.key)
        else:
            targets[member.key] = stays
    return Launched(tuple(targets.values()), frozenset(ended))


def by_hosts(listed: Sequence[Target], rows: FleetRows, row: Membership | None = None) -> tuple[Target, ...]:
    """Targets of the file; those whose address only hosts have that must not serve are marked so, or as moved.

    Without a ``row`` nobody serves yet, so nothing is moved. It looks at what the rows have at these addresses only.
    """
    members = {member.key: member for member in row.members} if row is not None else {}
    return tuple(_by_hosts(target, rows, members) for target in listed)


def _by_hosts(target: Target, rows: FleetRows, members: Mapping[str, Member]) -> Target:
    hosts = rows.giving(target.key)
    if not hosts:
        return target
    fates = [each for host in hosts if (each := forsaken(host, rows.life)) is not None]
    if len(fates) == len(hosts):
        return fates[-1].of(target)
    here = rows.of_address(target.key) if target.key in members else []
    if target.key not in members or any(each.state == "placed" for each in here):
        return target
    ending = here[0].instance if here else ""
    left = next((each for host in hosts if (each := vacated(target.key, host, rows, members, ending))), None)
    return left.of(target) if left is not None else target


def vacated(address: str, host: HostRow, rows: FleetRows, members: Mapping[str, Member], ending: str) -> Becomes | None:
    """How a listed address, where nothing is placed, leaves with what a person took from there; None if it doesn't.

    At once where the instance there is ``ending`` ("" for none), which is a person's act. With a drain of the host not
    before each attempt there has a successor that serves. Afterwards until something is placed there.
    """
    here = [each for each in host.set.instances if each.address == address]
    member = members.get(address)
    if member is None:
        return None
    if ending:
        return Becomes(Fate.TERMINATED, f"{ending} there was terminated")
    follows = [successor(each, rows, members) for each in here]
    if here and all(follows):
        return Becomes(Fate.MOVED, f"host {host.host} is drained; {' and '.join(follows)} instead")
    if member.state is not State.DRAINED or member.forced is OverrideKind.DRAIN:
        return None
    drained = f"host {host.host} is drained, and nothing"
    return Becomes(Fate.MOVED, f"{drained if host.word == 'drain' else 'nothing'} is placed there")


def successor(moved: Instance, rows: FleetRows, members: Mapping[str, Member]) -> str:
    """Which attempt serves in a moved one's place, and where; "" while none does."""
    instance = rows.instances.get(moved.name)
    if instance is None or instance.state != "placed" or instance.attempt <= moved.attempt:
        return ""
    member = members.get(instance.address)
    if member is None or member.state is not State.IN or member.source not in ("", instance.id):
        return ""
    return f"{instance.id} serves at {instance.address}" if member.healthy else ""


def placed(instance: InstanceRow, rows: FleetRows, member: Member | None) -> Target:
    """An attempt that runs as far as the rows know; ``member`` is what the pool has at its address."""
    host = rows.hosts.get(instance.host)
    lacks = missing(rows.networks.get(instance.id), host, rows.life)
    gone = forsaken(host, rows.life)
    ready = not lacks
    if member is not None and member.served:
        if member.source == instance.id:
            ready = True  # once ready, it stays so
        elif lacks:
            gone = gone or Becomes(Fate.OVER, f"attempt {instance.id} took its place, and {lacks}")
    zone = instance.zone or (host.zone if host is not None else "")
    target = Target(instance.address, zone, None, ready, instance.id, instance.port)
    return gone.of(target) if gone is not None else target


def former(
    member: Member,
    rows: FleetRows,
    holder: HostRow | None,
    members: Mapping[str, Member],
    placed_now: Mapping[str, Target],
) -> Target | None:
    """What becomes of a member whose attempt is the present one of no placed instance; None: it leaves the list.

    ``holder`` is the host whose set still has the attempt: it was moved, and goes on until its successor serves.
    ``placed_now`` are the targets of placed instances, by attempt.
    """
    name, _, attempt = member.source.rpartition(".")
    instance = rows.instances.get(name)
    stays = Target(member.key, member.zone, None, member.served, member.source, member.port)
    if instance is None:
        # Its row may have been cleared away while it was the last that could leave.
        return stays if member.listed else None
    later = instance.attempt > int(attempt)
    if instance.state in ("ending", "ended") or (holder is None and (later or instance.ends)):
        return None
    replaced = instance.state == "waiting" or later
    gone = forsaken(holder, rows.life)
    if holder is None and replaced:
        gone = Becomes(Fate.OVER, f"{member.source} is over" + (f": {instance.why}" if instance.why else ""))
    stays = gone.of(stays) if gone is not None else stays
    successor = placed_now.get(instance.id)
    follows = members.get(successor.key) if successor is not None else None
    served = follows is not None and follows.source == instance.id and follows.state in SERVING
    moved = replaced and holder is not None and not stays.gone and served
    idle = stays.gone and member.state not in SERVING and (served or not member.served)
    return None if moved or idle else stays


def retold(pool: str, rows: FleetRows) -> bool:
    """Whether each attempt of a pool that a host with a lease has told is an instance's row again.

    After a lost store hosts tell first what they run, and rows are made of it right after that.
    """
    held = (host for host in rows.hosts.values() if host.held(rows.life))
    return all(each.name in rows.instances for host in held for each in host.set.instances if each.pool == pool)


def outlived(target: Target, member: Member) -> bool:
    """Whether what serves at an address is over, and the attempt that has its place may not serve yet."""
    return target.gone and member.served and member.source not in ("", target.source)


def why_dead(member: Member) -> str:
    """What a member that counts as dead is, in a word for people.

    "lapsed", "gone" or "over" where its host's lease, a person's word or its attempt's end says that it must not serve
    and its checks may well pass: "dead" is then said of nothing that anybody saw.
    """
    return str(member.fate) if member.fate is not None and member.fate in FORSAKEN else "dead"


def forsaken(host: HostRow | None, life: str) -> Becomes | None:
    """Why what runs on a host must not serve, as the rows know for certain; None if nothing speaks against it."""
    if host is None:
        return None
    if host.word == "gone":
        return Becomes(Fate.GONE, f"host {host.host} is gone, as a person said")
    if host.lease == "lapsed" and host.life == life:
        return Becomes(Fate.LAPSED, f"the lease of host {host.host} has lapsed")
    return None
