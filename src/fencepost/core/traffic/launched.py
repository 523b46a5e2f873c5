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

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from fencepost.core.capacity.messages import Instance
from fencepost.core.capacity.network_state import missing
from fencepost.core.capacity.rows import HostRow, InstanceRow, NetworkRow
from fencepost.core.traffic.membership import SERVING, Member, Membership, OverrideKind, State, Target

_LEASE_OF, _LAPSED, _GONE = "the lease of host ", " has lapsed", " is gone, as a person said"
"""Of causes; `why_dead` knows them again."""


class FleetRows(Struct, frozen=True, gc=False):
    """The fleet's rows as read last, by key, all of one life of the store.

    ``holders`` is the host whose set has an attempt, by its id, ``placed`` the placed instances of each pool; None
    where nobody keeps that: they are then looked for.
    """

    life: str = ""
    instances: Mapping[str, InstanceRow] = {}
    hosts: Mapping[str, HostRow] = {}
    networks: Mapping[str, NetworkRow] = {}
    holders: Mapping[str, str] | None = None
    placed: Mapping[str, Mapping[str, InstanceRow]] | None = None

    def of_pool(self, pool: str) -> list[InstanceRow]:
        """The placed instances of a pool, in order of their names."""
        if self.placed is not None:
            found = self.placed.get(pool, {})
        else:
            rows = self.instances.items()
            found = {name: row for name, row in rows if row.pool == pool and row.state == "placed"}
        return [found[name] for name in sorted(found)]

    def holder(self, ids: Collection[str]) -> dict[str, HostRow]:
        """The hosts that have any of these attempts in their set, by the attempt's id."""
        if self.holders is None:
            return {id_: host for host in self.hosts.values() for id_ in host.set.ids if id_ in ids}
        names = {id_: self.holders[id_] for id_ in ids if id_ in self.holders}
        return {id_: self.hosts[name] for id_, name in names.items() if name in self.hosts}


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
    for member in former_ones:
        stays = former(member, rows, holders.get(member.source), members, targets)
        if stays is None:
            ended.append(member.key)
        else:
            targets[member.key] = stays
    return Launched(tuple(targets.values()), frozenset(ended))


def by_hosts(listed: Sequence[Target], rows: FleetRows, row: Membership | None = None) -> tuple[Target, ...]:
    """Targets of the file; those whose address only hosts have that must not serve are marked so, or as moved."""
    wanted = {target.key for target in listed}
    gone: dict[str, str] = {}
    moved: dict[str, str] = {}
    present = {each.address for each in rows.instances.values() if each.state == "placed"} if row is not None else set()
    ending = {each.address: each.instance for each in rows.instances.values() if each.state == "ending"}
    for name in sorted(rows.hosts):
        host = rows.hosts[name]
        for address in host.addresses:
            if address in wanted:
                why = forsaken(host, rows.life)
                gone[address] = why if why and gone.get(address, why) else ""
                if row is not None and address not in present:
                    moved[address] = moved.get(address) or vacated(address, host, rows, row, ending.get(address, ""))
    return tuple(_marked(target, gone.get(target.key, ""), moved.get(target.key, "")) for target in listed)


def vacated(address: str, host: HostRow, rows: FleetRows, row: Membership, ending: str) -> str:
    """Why a listed address, where nothing is placed, leaves with what a person took from there; "" if it doesn't.

    At once where the instance there is ``ending`` ("" for none), which is a person's act. With a drain of the host not
    before each attempt there has a successor that serves. Afterwards until something is placed there.
    """
    here = [each for each in host.set.instances if each.address == address]
    members = {member.key: member for member in row.members}
    member = members.get(address)
    if member is None:
        return ""
    if ending:
        return f"{ending} there was terminated"
    follows = [successor(each, rows, members) for each in here]
    if here and all(follows):
        return f"host {host.host} is drained; {' and '.join(follows)} instead"
    if member.state is not State.DRAINED or member.forced is OverrideKind.DRAIN:
        return ""
    drained = f"host {host.host} is drained, and nothing"
    return f"{drained if host.word == 'drain' else 'nothing'} is placed there"


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
            gone = gone or f"attempt {instance.id} took its place, and {lacks}"
    zone = instance.zone or (host.zone if host is not None else "")
    return Target(instance.address, zone, None, ready, instance.id, instance.port, gone)


def former(
    member: Member,
    rows: FleetRows,
    holder: HostRow | None,
    members: Mapping[str, Member],
    targets: Mapping[str, Target],
) -> Target | None:
    """What becomes of a member whose attempt is the present one of no placed instance; None: it leaves the list.

    ``holder`` is the host whose set still has the attempt: it was moved, and goes on until its successor serves.
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
    if holder is not None:
        stays = _gone(stays, forsaken(holder, rows.life))
    elif replaced:
        stays = _gone(stays, f"{member.source} is over" + (f": {instance.why}" if instance.why else ""))
    successor = next((each for each in targets.values() if each.source == instance.id), None)
    follows = members.get(successor.key) if successor is not None else None
    served = follows is not None and follows.source == instance.id and follows.state in SERVING
    moved = replaced and holder is not None and not stays.gone and served
    idle = bool(stays.gone) and member.state not in SERVING and (served or not member.served)
    return None if moved or idle else stays


def retold(pool: str, rows: FleetRows) -> bool:
    """Whether each attempt of a pool that a host with a lease has told is an instance's row again.

    After a lost store hosts tell first what they run, and rows are made of it right after that.
    """
    held = (host for host in rows.hosts.values() if host.held(rows.life))
    return all(each.name in rows.instances for host in held for each in host.set.instances if each.pool == pool)


def outlived(target: Target, member: Member) -> bool:
    """Whether what serves at an address is over, and the attempt that has its place may not serve yet."""
    return bool(target.gone) and member.served and member.source not in ("", target.source)


def why_dead(member: Member) -> str:
    """What a member that counts as dead is, in a word for people.

    "lapsed", "gone" or "over" where its host's lease, a person's word or its attempt's end says that it must not serve
    and its checks may well pass: "dead" is then said of nothing that anybody saw.
    """
    if member.cause.startswith(_LEASE_OF) and member.cause.endswith(_LAPSED):
        return "lapsed"
    if member.cause.startswith("host ") and member.cause.endswith(_GONE):
        return "gone"
    return "over" if member.source and member.cause.startswith(f"{member.source} is over") else "dead"


def forsaken(host: HostRow | None, life: str) -> str:
    """Why what runs on a host must not serve, as the rows know for certain; "" if nothing speaks against it."""
    if host is None:
        return ""
    if host.word == "gone":
        return f"host {host.host}{_GONE}"
    if host.lease == "lapsed" and host.life == life:
        return f"{_LEASE_OF}{host.host}{_LAPSED}"
    return ""


def _gone(target: Target, why: str) -> Target:
    return structs.replace(target, gone=why)


def _marked(target: Target, gone: str, moved: str) -> Target:
    return structs.replace(target, gone=gone, moved="" if gone else moved) if gone or moved else target
