"""Where a region should end up: what ``converges`` means, as a question about one state."""

from msgspec import structs

from fencepost.core import judge as judging
from fencepost.core.fence import Foreign, Marker
from fencepost.core.instant import SECOND, Instant
from fencepost.core.judge import Pair
from fencepost.core.promises import Memory
from fencepost.core.record_set import record_digest
from fencepost.core.store import Tables, Wanted
from fencepost.core.zone import Live
from fencepost.world.region import OWNER, Shared


def converged(shared: Shared, *, planned: bool = True) -> bool:
    """Whether every endpoint answers what its newest row says, and that row what is wanted or held.

    Endpoints that wait for a person (another's marker, unmarked records not known as ours) count: their records serve.
    With two stores of one owner, one of the two must have its way and the other stand aside, or agree (both hold what a
    repair says). Where no planner lives (``planned=False``), each endpoint must hold what its marker says.
    """
    if not planned:
        return all(live.verified() for live in shared.domain if isinstance(live.marker, Marker))
    return any(
        reigns(shared, tables)
        and all(stands_aside(shared, other) or reigns(shared, other) for other in shared.stores if other is not tables)
        for tables in shared.stores
    )


def near_the_end(shared: Shared) -> bool:
    """Whether the bound on plan numbers, rather than a rule, may be what keeps this state from its goal."""
    return shared.last > 0 and any(2 * tables.head.number > shared.last for tables in shared.stores)


def timed_out(shared: Shared, at: int) -> Memory:
    """What is remembered of an endpoint, once a hold in its marker or newest row is over by its time.

    A hold that is over has ended all that it replaced, for good: its end brings none back. Else a withdrawal that a
    repair replaced would count as standing, if a late write made it live once the repair is over and its marker gone.
    """
    memory, name = shared.memory[at], shared.domain[at].name
    rows = [tables.newest(name) for tables in shared.stores]
    holds = [memory.held, *(row.hold for row in rows if row is not None)]
    over = max((hold.id for hold in holds if hold is not None and hold.ended(0, shared.judged_at)), default=0)
    return structs.replace(memory, released=over) if over > memory.released else memory


def reigns(shared: Shared, tables: Tables) -> bool:
    """Whether the domain is as this store would have it."""
    if tables.orders:
        return False
    wanted = dict(tables.wanted)
    return all(settled(tables, live, wanted.get(live.name), shared.judged_at) for live in shared.domain)


def stands_aside(shared: Shared, tables: Tables) -> bool:
    """Whether this store has given the endpoints up to the other. Another's endpoints are nobody's here."""
    return all(
        isinstance(live.marker, Foreign) or ((row := tables.newest(live.name)) is not None and row.contested)
        for live in shared.domain
    )


def settled(tables: Tables, live: Live, wanted: Wanted | None, now: Instant) -> bool:
    """Whether one endpoint is where it should be, or waits for a person. A hold that was ended is nowhere to stay."""
    if isinstance(live.marker, Foreign):
        return True
    row = tables.newest(live.name)
    if row is None or row.contested:
        return False
    if live.marker is None:
        kept = {record_digest(r.content.a, r.content.aaaa) for r in tables.rows if r.name == live.name}
        return judging.judge(Pair(live, row, ours=frozenset(kept)), OWNER).kind is judging.Kind.ASK
    if row.hold is None:
        meant = wanted is not None and row.content == wanted.content
    else:
        # Said again here, not asked of the hold: what is judged isn't to be its own judge.
        meant = row.hold.id > row.released and not 0 < row.hold.until_s * SECOND <= now
    return meant and judging.same(live.marker, row) and live.holds(row.content)
