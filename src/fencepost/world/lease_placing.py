"""What is placed on the watched host and taken off it, in the leases' world: each one transaction under the claim.

The rules are those of :mod:`fencepost.core.capacity.placement`, for one host and one instance.
"""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core.capacity.fleet_store import Claim
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import HostRow
from fencepost.world.leases import Fault, Rows, Shared, Slot, attempt, has_lapsed
from fencepost.world.model import Move


def placing(slot: Slot, shared: Shared) -> Iterator[Move]:
    """What is placed and ended under the manager's claim: each one transaction on the row as it stands."""
    rows, row = shared.rows, shared.rows.host
    if row is None or not slot.decider.acting or not claim(slot).stands(rows.shard, rows.name):
        return

    def placed(label: str, ids: frozenset[str], event: str, **changes: object) -> Move:
        kept = tuple(each for each in row.set.instances if each.id not in ids)
        after = structs.replace(rows, host=structs.replace(row, set=InstanceSet(row.set.version + 1, kept)))
        return Move(label, slot, structs.replace(shared, rows=after, **changes), event=event)

    opened = rows.shard is not None and rows.shard.open == rows.name
    if opened and row.placeable(rows.name) and shared.budgeted(Fault.LAUNCH):
        yield place(slot, shared, row)
    if opened and rows.life > 1 and shared.budgeted(Fault.LAUNCH) and not has_lapsed(row, rows.name):
        yield place_elsewhere(slot, shared)
    if has_lapsed(row, rows.name) and row.set.instances:
        gone = row.set.ids
        yield placed("places what had lapsed elsewhere", gone, "replaced", over=shared.over | gone)
    version, down = slot.down
    gone = row.set.ids & frozenset(down)
    if gone and version == row.set.version:
        yield placed("places anew what doesn't run", gone, "replaced", over=shared.over | gone)
    if shared.budgeted(Fault.TERMINATE) and row.set.instances:
        ending = structs.replace(rows, ending=rows.ending | row.set.ids)
        move = placed("ends what was placed", row.set.ids, "ending")
        after = structs.replace(
            move.shared.spent(Fault.TERMINATE), rows=structs.replace(move.shared.rows, ending=ending.ending)
        )
        yield move._replace(shared=after, calm=False)
    hosts = slot.decider.hosts
    told = bool(hosts.size and hosts.fresh[0] and hosts.host_version[0] >= row.set.version and slot.host == row)
    lapsed = has_lapsed(row, rows.name)
    done = rows.ending - row.set.ids
    if done and (told or lapsed):
        after = structs.replace(shared, rows=structs.replace(rows, ending=rows.ending - done), over=shared.over | done)
        broken = "ended_stays_ended" if done & shared.running and not lapsed else None
        yield Move("says that it has ended", slot, after, broken, event="ended")


def place(slot: Slot, shared: Shared, row: HostRow) -> Move:
    """The next attempt joins the host's set."""
    number = shared.rows.attempts + 1
    new = structs.replace(row, set=InstanceSet(row.set.version + 1, (*row.set.instances, attempt(number))))
    after = structs.replace(shared.spent(Fault.LAUNCH), rows=written(shared.rows, new))
    return Move(f"places attempt {number}", slot, after, calm=False, event="placed")


def place_elsewhere(slot: Slot, shared: Shared) -> Move:
    """The next attempt joins another host's set: it must not be one that this host runs or ran.

    Asked only where the store was lost: before, the rows know every attempt. And not of a host that has lapsed since:
    that one has been waited for. Nor of what had ended here before: a wiped store counts a name's attempts anew.
    """
    number = shared.rows.attempts + 1
    here = attempt(number).id
    rows = structs.replace(shared.rows, attempts=number)
    after = structs.replace(shared.spent(Fault.LAUNCH), rows=rows, over=shared.over | {here})
    broken = "started_once" if here in shared.started and not has_ended(shared, here) else None
    return Move(f"places attempt {number} elsewhere", slot, after, broken, calm=False, event="placed elsewhere")


def has_ended(shared: Shared, id_: str) -> bool:
    """Whether an attempt is over here, and has left the host's set too."""
    return id_ in shared.started and id_ not in shared.running | shared.memory.set.ids


def written(rows: Rows, row: HostRow) -> Rows:
    """The store with this row; attempts that a host told of are known from then on."""
    told = max((each.attempt for each in row.set.instances), default=0)
    return structs.replace(rows, host=row, attempts=max(rows.attempts, told))


def claim(slot: Slot) -> Claim:
    """Under whose name a manager writes."""
    owner = slot.decider.owner
    return Claim(1, slot.name, owner.epoch, owner.life)
