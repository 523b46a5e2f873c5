"""What a file changes that no record shows at once: targets that it lists anew, and those that it takes off its lists.

A target that is new waits until it has passed its checks, so no plan made now has it, and yet the file brings it into
DNS within a minute. A reviewer has to see that, and CI has to count it. One that leaves without having been in service
changes no record either, and is named too. What this file already was when it was loaded is no change by it.
"""

from typing import Any, NamedTuple

from fencepost.cli.check import counted
from fencepost.cli.plan_changes import changing, line_of
from fencepost.cli.preview import Preview
from fencepost.core.traffic.membership import SERVING, Member, State


class Later(NamedTuple):
    """A target that the file adds to a pool (``joins``) or takes off it, and when that shows in DNS.

    ``endpoints`` are those on its pool. ``waits``: it is pending, as the ``?`` lines of its endpoints say too.
    """

    pool: str
    address: str
    zone: str
    joins: bool
    when: str
    line: str
    endpoints: tuple[str, ...]
    waits: bool = False


def later(found: Preview) -> tuple[Later, ...]:
    """Every such target of a pool that an endpoint answers from, pool by pool as the file has them."""
    if found.loaded is None:
        return ()  # a first start serves what it doesn't know yet, so its plan has them all
    before = {pool.name: pool for pool in found.loaded.region.pools}
    said: list[Later] = []
    for pool in found.region.pools:
        names = tuple(each.name for each in found.region.endpoints if each.pool == pool.name)
        if not names or pool.name not in before:
            continue
        new = {each.address: each.zone for each in pool.targets}
        old = {each.address: each.zone for each in before[pool.name].targets}
        row, was = ({m.key: m for m in rows[pool.name].members} if pool.name in rows else {} for rows in both(found))
        for address in (each for each in new if each not in old):
            who = row.get(address)
            if who is None or who.state not in SERVING:
                told = joins_when(found, who, names), line_of(found, names[0], address, new=True)
                waits = who is not None and who.state is State.PENDING
                said.append(Later(pool.name, address, new[address], True, *told, names, waits))
        for address in (each for each in old if each not in new):
            why = leaves_when(found, row.get(address), was.get(address))
            if why:
                line = line_of(found, names[0], address, new=False)
                said.append(Later(pool.name, address, old[address], False, why, line, names))
    return tuple(said)


def both(found: Preview) -> tuple[Any, Any]:
    """The membership rows as the file would make them, and as they are."""
    return found.after, found.before


def joins_when(found: Preview, who: Member | None, names: tuple[str, ...]) -> str:
    """When a target that is new would serve."""
    if who is None:
        return "once its pool takes up the list"
    if who.state is State.DRAINED:
        when = "once a person's drain of it ends"
    else:
        when = f"once ready: {who.cause or 'to pass everywhere'}; then starts at 10 %"
    return when + ("; and once the hold ends" if all(name in found.held for name in names) else "")


def leaves_when(found: Preview, who: Member | None, was: Member | None) -> str:
    """How a target leaves that no record shows going; "" for one that the plan takes out of its records."""
    if who is not None:
        return "only with --yes" if found.refusals else "once its pool lets it go"
    return "at once; it isn't in service" if was is None or was.state not in SERVING else ""


def changes_something(found: Preview) -> bool:
    """Whether the file changes what DNS answers: at once, or as soon as its new targets are ready."""
    return bool(changing(found) or later(found))


def headline(found: Preview) -> str:
    """What would change, in a line."""
    rows, soon = changing(found), counts(later(found))
    if rows:
        number = found.plan.number if found.plan else 0
        known = {each.name for each in found.region.endpoints} | {
            row.name for row in rows
        }  # left the file, and is ours
        said = f"plan {number} would change {len(rows)} of {counted(len(known), 'endpoint')}"
        return f"{said}; {soon}" if soon else said
    return f"no record changes at once; {soon}" if soon else "nothing would change"


def counts(targets: tuple[Later, ...]) -> str:
    """How many come and go: "2 new targets would serve once ready"; "" for none."""
    come = sum(each.joins for each in targets)
    parts = [f"{counted(come, 'new target')} would serve once ready"] if come else []
    if len(targets) > come:
        parts.append(f"{counted(len(targets) - come, 'target')} would leave the list")
    return ", ".join(parts)


def rows_of(found: Preview, name: str, *, waiting: bool) -> list[tuple[str, ...]]:
    """An endpoint's such targets as a table's rows; ``waiting``: also those that its ``?`` lines would name."""
    return [
        ("?" if each.joins else "-", each.address, each.zone, words(each), each.line)
        for each in later(found)
        if name in each.endpoints and (waiting or not each.waits)
    ]


def words(each: Later) -> str:
    """What becomes of it."""
    return f"serves {each.when}" if each.joins else f"leaves the list {each.when}"


def document(found: Preview) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "pool": each.pool,
            "address": each.address,
            "zone": each.zone,
            "change": "add" if each.joins else "remove",
            "when": each.when,
            "endpoints": list(each.endpoints),
        }
        for each in later(found)
    ]
