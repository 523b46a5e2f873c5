"""What callers get at an endpoint, which need not be what its pool has in service.

Three things stand between the two: a person's hold (a repair or rollback answers its own addresses, a withdrawal none),
a name that is left alone (another owner's, or unmarked and not known as ours), and time. The first two last until a
person ends them, so whoever explains an endpoint from its pool must ask here first.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from fencepost.core.fence import Foreign, Hold, Marker
from fencepost.core.instant import DAY, SECOND, Instant
from fencepost.core.traffic.membership import Member
from fencepost.core.zone import Live
from fencepost.roles.status.document import BEYOND, TIMES_END, is_time
from fencepost.roles.status.facts import Facts
from fencepost.settings.schema import Endpoint


def foreign(live: Live, owner: str) -> bool:
    """Whether the name is somebody else's: a marker that isn't ours, or a record type that we don't write."""
    if isinstance(live.marker, Foreign) or live.other:
        return True
    return live.marker is not None and live.marker.owner != owner


def hold_at(facts: Facts, name: str) -> Hold | None:
    """The hold that stands at an endpoint: as its marker says, or its row where DNS wasn't read."""
    row = facts.store.rows.get(name) if facts.store else None
    live = facts.dns.lives.get(name) if facts.dns else None
    if live is None:
        return row.hold if row is not None else None
    ours = isinstance(live.marker, Marker) and live.marker.owner == facts.region.owner
    if isinstance(live.marker, Marker) and ours:
        return live.marker.hold
    # A marker that is gone is written again as the row says.
    return row.hold if row is not None and not left_alone(facts, name) else None


def answered(facts: Facts, name: str) -> tuple[str, ...] | None:
    """The addresses that callers get; where DNS wasn't read, those that are planned; None if neither is known."""
    live = facts.dns.lives.get(name) if facts.dns else None
    if live is not None:
        return live.a + live.aaaa
    row = facts.store.rows.get(name) if facts.store else None
    return row.content.addresses if row is not None else None


def left_alone(facts: Facts, name: str) -> bool:
    """Whether what stands at a name isn't ours, so that nothing here is written to it."""
    live = facts.dns.lives.get(name) if facts.dns else None
    if live is None:
        return False
    if foreign(live, facts.region.owner) or asked(facts, name, "foreign") is not None:
        return True
    if live.marker is not None or live.empty:
        return False
    known = facts.store is not None and name in facts.store.rows
    return not known or asked(facts, name) is not None


def asked(facts: Facts, name: str, as_verdict: str = "ask") -> str | None:
    """What enactors ask a person about an endpoint, if they do; or why they found it to be another's ("foreign")."""
    found = None
    for _, findings in sorted((facts.store.findings if facts.store else {}).items(), reverse=True):
        verdict, why = findings.get(name, ("", ""))
        found = why if verdict == as_verdict else found
    return found


def followers(facts: Facts, pool: str) -> list[Endpoint]:
    """The endpoints that answer what their pool has in service."""
    return [each for each in of_pool(facts, pool) if follows(facts, each.name)]


def follows(facts: Facts, name: str) -> bool:
    """Whether an endpoint answers what its pool has in service: nobody holds it, and it isn't left alone."""
    return hold_at(facts, name) is None and not left_alone(facts, name)


def of_pool(facts: Facts, pool: str) -> Iterable[Endpoint]:
    """The endpoints of a pool."""
    return (each for each in facts.region.endpoints if each.pool == pool)


def of_family(member: Member, settings: Endpoint) -> bool:
    """Whether an endpoint publishes addresses like this one's."""
    return ("AAAA" if ":" in member.key else "A") in settings.records


def served_by(facts: Facts, pool: str, member: Member) -> list[Endpoint]:
    """The endpoints whose callers get a member for as long as its pool has it in service."""
    return [each for each in followers(facts, pool) if of_family(member, each)]


def held_with(facts: Facts, address: str) -> list[tuple[str, Hold]]:
    """The endpoints that answer an address because a person's hold says so."""
    names = {each.name for each in facts.region.endpoints}
    names.update(facts.store.rows if facts.store else ())
    names.update(facts.dns.lives if facts.dns else ())
    found = ((name, hold_at(facts, name)) for name in sorted(names))
    return [(name, hold) for name, hold in found if hold is not None and address in (answered(facts, name) or ())]


def until(hold: Hold, now: Instant) -> str:
    """How long a hold stands."""
    return f"until {clock(hold.until_s * SECOND, now)}" if hold.until_s else "until resumed"


def clock(at: Instant, now: Instant, *, fraction: bool = False) -> str:
    """A time of day, UTC; with its date if it is a day or more away."""
    if not is_time(at):
        return BEYOND if isinstance(at, int) and at >= TIMES_END else "?"
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    text = moment.strftime("%Y-%m-%d %H:%M:%S" if abs(now - at) >= DAY else "%H:%M:%S")
    return f"{text}.{at % SECOND // 1_000_000:03}" if fraction else text
