"""What is placed on the watched host and taken off it, in the leases' world: each one transaction under the claim.

The rules are those of :mod:`fencepost.core.capacity.placement`, for one host and one instance.
"""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core.capacity.attempts import refused_for_good
from fencepost.core.capacity.fleet_store import Claim
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import HostRow
from fencepost.world.lease_acts import Act, Effect
from fencepost.world.leases import Fault, Rows, Slot, attempt, has_lapsed


def placing(slot: Slot, rows: Rows) -> Iterator[Act]:
    """What is placed and ended under the manager's claim: each one transaction on the row as it stands."""
    row = rows.host
    if row is None or not slot.decider.acting or not claim(slot).stands(rows.shard, rows.name):
        return
    opened = rows.shard is not None and rows.shard.open == rows.name
    lapsed = has_lapsed(row, rows.name)
    if opened and row.placeable(rows.name):
        yield place(slot, rows, row)
    if opened and rows.life > 1 and not lapsed:
        yield place_elsewhere(slot, rows)

    ids = row.set.ids
    if lapsed and ids:
        label = "places what had lapsed elsewhere"
        yield Act(label, slot, Effect(event="replaced", rows=without(rows, row, ids), over=ids))
    version, down = slot.down
    gone = ids & frozenset(down)
    if gone and version == row.set.version:
        label = "places anew what doesn't run"
        yield Act(label, slot, Effect(event="replaced", rows=without(rows, row, gone), over=gone))
    boot, version, refused = slot.refused
    never = ids & frozenset(refused)
    if never and refused_for_good(row, boot, version):
        label = "places anew what the host refused for good"
        yield Act(label, slot, Effect(event="refused for good", rows=without(rows, row, never), over=never))
    if ids:
        after = structs.replace(without(rows, row, ids), ending=rows.ending | ids)
        effect = Effect(event="ending", calm=False, spends=(Fault.TERMINATE,), rows=after)
        yield Act("ends what was placed", slot, effect)
    yield from ending(slot, rows, row, lapsed=lapsed)


def without(rows: Rows, row: HostRow, ids: frozenset[str]) -> Rows:
    """The store once these have left the host's set."""
    kept = tuple(each for each in row.set.instances if each.id not in ids)
    return structs.replace(rows, host=structs.replace(row, set=InstanceSet(row.set.version + 1, kept)))


def ending(slot: Slot, rows: Rows, row: HostRow, *, lapsed: bool) -> Iterator[Act]:
    """What was to end is reported as ended, once the host has told so, or has lapsed."""
    hosts = slot.decider.hosts
    told = bool(hosts.size and hosts.fresh[0] and hosts.host_version[0] >= row.set.version and slot.host == row)
    done = rows.ending - row.set.ids
    if done and (told or lapsed):
        after = structs.replace(rows, ending=rows.ending - done)
        ended: frozenset[str] = frozenset() if lapsed else done
        yield Act("says that it has ended", slot, Effect(event="ended", rows=after, over=done, ended=ended))


def place(slot: Slot, rows: Rows, row: HostRow) -> Act:
    """The next attempt joins the host's set."""
    number = rows.attempts + 1
    new = structs.replace(row, set=InstanceSet(row.set.version + 1, (*row.set.instances, attempt(number))))
    effect = Effect(event="placed", calm=False, spends=(Fault.LAUNCH,), rows=written(rows, new))
    return Act(f"places attempt {number}", slot, effect)


def place_elsewhere(slot: Slot, rows: Rows) -> Act:
    """The next attempt joins another host's set: it must not be one that this host runs or ran.

    Asked only where the store was lost: before, the rows know every attempt. And not of a host that has lapsed since:
    that one has been waited for. Nor of what had ended here before: a wiped store counts a name's attempts anew.
    """
    number = rows.attempts + 1
    here = attempt(number).id
    effect = Effect(
        event="placed elsewhere",
        calm=False,
        spends=(Fault.LAUNCH,),
        rows=structs.replace(rows, attempts=number),
        over=frozenset((here,)),
        elsewhere=here,
    )
    return Act(f"places attempt {number} elsewhere", slot, effect)


def written(rows: Rows, row: HostRow) -> Rows:
    """The store with this row; attempts that a host told of are known from then on."""
    told = max((each.attempt for each in row.set.instances), default=0)
    return structs.replace(rows, host=row, attempts=max(rows.attempts, told))


def claim(slot: Slot) -> Claim:
    """Under whose name a manager writes."""
    owner = slot.decider.owner
    return Claim(1, slot.name, owner.epoch, owner.life)
