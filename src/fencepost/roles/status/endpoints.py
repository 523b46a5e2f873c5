"""The status of endpoints: what stands in DNS, beside what is planned and why targets are missing from it."""

from fencepost.core.fence import Hold, Marker
from fencepost.core.instant import SECOND
from fencepost.core.judge import same
from fencepost.core.orders import plain
from fencepost.core.store import Row
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.zone import Live, withdraws
from fencepost.roles.status.answered import answered, foreign, hold_at, left_alone, of_family
from fencepost.roles.status.document import EndpointState, EndpointStatus, Out, OverrideStatus, seconds, when
from fencepost.roles.status.facts import Facts
from fencepost.settings.schema import Endpoint


def endpoint_names(facts: Facts) -> list[str]:
    """Every endpoint there is something to say about: configured, planned, or marked as ours in DNS.

    A name that left the file and has no marker of ours isn't ours (any more), whatever was once planned for it.
    """
    names = {endpoint.name for endpoint in facts.region.endpoints}
    if facts.store is not None:
        names.update(name for name in facts.store.rows if name in names or not left(facts, name))
    if facts.dns is not None:
        names.update(name for name, live in facts.dns.lives.items() if ours(live, facts.region.owner))
    return sorted(names)


def left(facts: Facts, name: str) -> bool:
    """Whether DNS is known to hold no marker of ours at a name."""
    live = facts.dns.lives.get(name) if facts.dns else None
    return live is not None and not ours(live, facts.region.owner)


def endpoint_statuses(facts: Facts) -> tuple[EndpointStatus, ...]:
    """All endpoints, by name."""
    settings = {endpoint.name: endpoint for endpoint in facts.region.endpoints}
    return tuple(endpoint_status(facts, name, settings.get(name)) for name in endpoint_names(facts))


def endpoint_status(facts: Facts, name: str, settings: Endpoint | None) -> EndpointStatus:
    """One endpoint. Where DNS wasn't read, what it answers is unknown, whatever is planned."""
    store = facts.store
    row = store.rows.get(name) if store else None
    live = facts.dns.lives.get(name) if facts.dns else None
    marker = live.marker if live is not None and isinstance(live.marker, Marker) else None
    members = store.pools.get(settings.pool) if store and settings else None
    enacted = store.enacted.get(name) if store else None
    if enacted is not None and (marker is None or enacted.generation != marker.generation):
        enacted = None
    return EndpointStatus(
        name=name,
        state=state(live, row, facts.region.owner),
        epoch=marker.generation.epoch if marker else None,
        generation=marker.generation.number if marker else None,
        as_planned=as_planned(live, row),
        pool=settings.pool if settings else None,
        ttl_s=live.ttl if live is not None and not live.empty else settings.ttl_s if settings else None,
        addresses=live.a + live.aaaa if live is not None else None,
        kept=kept(facts, name, members),
        out=left_out(facts, name, members, settings),
        written_by=enacted.by if enacted else None,
        written_at=when(enacted.at) if enacted else None,
        writes=marker.writes if marker else None,
        emptied_by_others_s=emptied(facts, name),
        instead=live.other[0] if live is not None and live.other else None,
    )


def ours(live: Live, owner: str) -> bool:
    """Whether a marker of this region's stands there."""
    return isinstance(live.marker, Marker) and live.marker.owner == owner


def state(live: Live | None, row: Row | None, owner: str) -> EndpointState | None:
    """published, withdrawn or foreign; None if there is nothing, or nothing is known."""
    if live is not None and foreign(live, owner):
        return "foreign"
    if live is not None and isinstance(live.marker, Marker):
        return "withdrawn" if withdraws(live.marker) else "published"
    if live is not None and not live.empty:
        return "published" if row is not None else "foreign"
    if row is None:
        return None
    return "withdrawn" if row.withdrawn else "published"


def as_planned(live: Live | None, row: Row | None) -> bool | None:
    """Whether DNS holds exactly the newest row; None if either is unknown.

    SRV records beside it aren't in it: the observer counts what becomes of them, and the enactors see to them.
    """
    if live is None or row is None:
        return None
    return isinstance(live.marker, Marker) and same(live.marker, row) and live.answers(row.content)


def kept(facts: Facts, name: str, members: Membership | None) -> tuple[str, ...]:
    """Those of the addresses that callers get which look dead, by a limit's word or by a hold's."""
    if members is None or left_alone(facts, name):
        return ()
    held = hold_at(facts, name) is not None
    stands = answered(facts, name) or ()
    found = (
        member.key
        for member in members.members
        if (member.healthy is False if held else member.state is State.KEPT) and member.key in stands
    )
    return tuple(sorted(found))


def left_out(facts: Facts, name: str, members: Membership | None, settings: Endpoint | None) -> tuple[Out, ...]:
    """The targets of an endpoint's families that aren't answered; by address.

    Under a hold, those that it leaves aside, and none that it answers.
    """
    if members is None or settings is None or left_alone(facts, name):
        return ()
    gone = (State.OUT, State.DRAINED)
    hold = hold_at(facts, name)
    found = [each for each in members.members if of_family(each, settings)]
    if hold is None:
        found = [each for each in found if each.state in gone]
    else:
        stands = answered(facts, name) or ()
        found = [each for each in found if each.key not in stands and each.state is not State.PENDING]
    ordered = sorted(found, key=lambda member: member.key)
    return tuple(out(member) if member.state in gone or hold is None else aside(member, hold) for member in ordered)


def aside(member: Member, hold: Hold) -> Out:
    """A target that a person's hold doesn't answer."""
    return Out(member.key, f"left aside by a {hold.kind}", "hold", when(hold.id * SECOND))


def out(member: Member) -> Out:
    """Why a target isn't answered."""
    if member.state is State.DRAINED:
        return Out(member.key, "drained", str(member.rule), when(member.since))
    if member.healthy is False:
        return Out(member.key, why_dead(member), str(member.rule), when(member.dead_since or member.since))
    return Out(member.key, "not back yet", str(member.rule), when(member.since))


def emptied(facts: Facts, name: str) -> float | None:
    """See :class:`EndpointStatus`; None if nobody looked."""
    if facts.observer is None or name not in facts.observer.emptied:
        return None
    return seconds(facts.observer.emptied[name])


def who_holds(facts: Facts, name: str, hold: Hold) -> tuple[str | None, str | None]:
    """Who placed a hold and why, as its row has it, or else (a repair needs no row) the history."""
    row = facts.store.rows.get(name) if facts.store else None
    if row is not None and row.hold is not None and row.hold.id == hold.id and row.by:
        return plain(row.by), plain(row.reason) or None
    by, reason = facts.repairers.get((name, hold.id), ("", ""))
    return plain(by) or None, plain(reason) or None


def standing_holds(facts: Facts) -> tuple[OverrideStatus, ...]:
    """Repairs, rollbacks and withdrawals that stand: as the markers say, or the rows where DNS wasn't read."""
    found = []
    for name in endpoint_names(facts):
        row = facts.store.rows.get(name) if facts.store else None
        live = facts.dns.lives.get(name) if facts.dns else None
        hold: Hold | None = row.hold if row else None
        if live is not None and isinstance(live.marker, Marker):
            if live.marker.owner != facts.region.owner:
                continue
            hold = live.marker.hold
        if hold is None:
            continue
        by, reason = who_holds(facts, name, hold)
        found.append(OverrideStatus(hold.kind, name, by, reason, when(hold.until_s * 10**9), str(hold.id)))
    return tuple(found)
