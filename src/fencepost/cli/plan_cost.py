"""What carrying a preview's plan out takes, and the fewest healthy addresses on the way.

Each endpoint is written in one transaction, so callers see its old set or its new one and nothing between: the fewest
is the smaller of the two. It is said only where a checker has looked at every address of both.
"""

from typing import Any, NamedTuple

from fencepost.cli.check import counted
from fencepost.cli.plan_changes import changing, member
from fencepost.cli.preview import Preview
from fencepost.core.judge import Pair, judge
from fencepost.core.names import longest_domain
from fencepost.core.record_set import record_digest
from fencepost.core.store import Row
from fencepost.core.traffic.room import Load, load_of
from fencepost.core.zone import Change, Live
from fencepost.settings.providers import BY_UPDATE, PROVIDERS


class Cost(NamedTuple):
    """Endpoints written, transactions sent, and the fewest healthy addresses that an endpoint has meanwhile.

    ``calls`` is None where the provider isn't known to count so, ``healthy`` where somebody hasn't been looked at.
    """

    writes: int
    calls: int | None
    healthy: int | None


def cost(found: Preview) -> Cost:
    """What the plan takes."""
    rows = changing(found)
    fewest = [fewest_healthy(found, row) for row in rows if not row.withdrawn]
    known = [each for each in fewest if each is not None]
    healthy = min(known) if known and len(known) == len(fewest) == len(rows) else None
    return Cost(len(rows), transactions(found, rows), healthy)


def transactions(found: Preview, rows: tuple[Row, ...]) -> int | None:
    """So many transactions the enactors pack the changes into, as they pack them; None if one can't be told."""
    room = PROVIDERS[found.region.dns.provider].room
    loads: dict[str | None, list[Load]] = {}
    for row in rows:
        change = change_of(found, row)
        if change is None:
            return None
        loads.setdefault(longest_domain(row.name, found.region.dns.domains), []).append(load_of(change))
    total = 0
    for of_domain in loads.values():
        taken, count = Load(), 0
        for load in of_domain:
            if count and (count == room.endpoints or not room.holds(taken + load)):
                total, taken, count = total + 1, Load(), 0
            taken, count = taken + load, count + 1
        total += 1
    return total


def change_of(found: Preview, row: Row) -> Change | None:
    """What an enactor would send for a row; records that are the row's own are known as ours once it is published."""
    ours = frozenset({record_digest(row.content.a, row.content.aaaa)})
    return judge(Pair(found.lives.get(row.name, Live(row.name)), row, ours=ours), found.region.owner).change


def fewest_healthy(found: Preview, row: Row) -> int | None:
    """The fewest healthy addresses an endpoint has, before and after; None where one of them wasn't looked at."""
    live = found.lives.get(row.name, Live(row.name))
    sets = [each for each in (live.a + live.aaaa, row.content.addresses) if each]
    counts = []
    for addresses in sets:
        seen = [healthy(found, row.name, each) for each in addresses]
        if None in seen:
            return None
        counts.append(sum(each is True for each in seen))
    return min(counts, default=0)


def healthy(found: Preview, name: str, address: str) -> bool | None:
    """Whether checkers see an address well; None if none has looked."""
    who = member(found, name, address, found.after) or member(found, name, address, found.before)
    return who.healthy if who is not None else None


def line(found: Preview) -> str:
    """In a line: "1 write, 1 Route 53 call; at no moment fewer than 3 healthy addresses."."""
    writes, calls, fewest = cost(found)
    provider = found.region.dns.provider
    said = counted(writes, "write")
    if calls is not None:
        noun = "UPDATE" if provider in BY_UPDATE else f"{PROVIDERS[provider].label} call"
        said += f", {counted(calls, noun)}"
    if fewest is not None:
        said += f"; at no moment fewer than {counted(fewest, 'healthy address')}"
    return f"{said}."


def document(found: Preview) -> dict[str, Any]:
    """The same for programs; null where it isn't known."""
    writes, calls, fewest = cost(found)
    return {"writes": writes, "calls": calls, "fewest_healthy": fewest}
