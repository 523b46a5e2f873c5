"""Which targets the pool has: the owner's list against the row.

Absence is not removal. A source that errs, stops halfway or says nothing takes nobody out (external-dns #2677, #2858):
the last known good stay. Only two things take a target off: its name in `deregistered`, or a whole, valid, *newer*
list without it. Both are the owner's act, so they cost no budget; but taking off the last target, more than half at
once, or so many that what is left in service is under `min_in`, needs a yes.

Launched instances that ended aren't there any more, yes or no, so no share in service keeps them: that would be a share
of nothing. They leave at most half of the pool in one pass, and the last of a family never.
"""

from collections import Counter

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.limits import SafetySettings, above_min_in, burst, cost, standing
from fencepost.core.traffic.membership import SERVING, Listing, Member, Membership, Rule, State, Target, family


def first_row(
    pool: str, listing: Listing, published: frozenset[str], now: Instant, settings: SafetySettings
) -> Membership | None:
    """The row of a pool that has none; None while its source says nothing or errs.

    And while DNS holds what isn't listed and hosts have yet to speak: it may well be theirs, and would be taken out for
    no more than that the store was lost. Until then callers get what the marker says, by its own word.
    If DNS holds some of the targets the store was lost: those are in, the others count as held out, and the budget
    starts full minus them. If DNS holds none the pool is new: all are in, since unknown serves.
    Launched instances and targets whose network state isn't acknowledged are pending in a new pool.
    """
    if not listing.targets or listing.error or not listing.complete:
        return None
    if listing.unheard and not published <= {target.key for target in listing.targets}:
        return None
    lost = any(target.key in published for target in listing.targets)
    members = []
    for target in listing.targets:
        state, rule = State.IN, Rule.LOST_STORE if lost else Rule.START
        if lost and target.key not in published:
            state = State.OUT
        elif (target.source or not target.network_ready) and not lost:
            state, rule = State.PENDING, Rule.READINESS  # a new instance is never served before its verdict
        members.append(
            Member(
                target.key,
                target.zone,
                state,
                rule=rule,
                since=now,
                capacity=target.weight or 1,
                listed_at=now,
                served=state is not State.PENDING,
                source=target.source,
                port=target.port,
            )
        )
    total = standing(members)
    full = burst(total.count, total.capacity, settings)
    spent = sum(cost(member, total.count, total.capacity, full) for member in members if member.state is State.OUT)
    return Membership(
        pool,
        urgent=1,
        members=tuple(members),
        tokens=max(0, full - spent),
        refilled_at=now,
        verdicts_changed_at=now,
        revision=listing.revision,
    )


LAST_ONE = "it is the last in service, until another is"


class Roster(msgspec.Struct, frozen=True, gc=False):
    """The members after the owner's acts: in listed order, then those that are no longer listed.

    error: why the list (or a part of it) was not followed; empty when it was.
    last_over: `error` is that the last of a family is over, and stays until another serves.
    """

    members: tuple[Member, ...]
    revision: int
    error: str
    last_over: bool = False


def roster(row: Membership, listing: Listing, now: Instant, settings: SafetySettings) -> Roster:
    """Apply the owner's list to the row's members. Returns the row's own members where nothing changed."""
    if listing.revision < row.revision:
        return Roster(row.members, row.revision, row.source_error, row.last_over)
    if not listing.targets and not listing.deregistered:
        # A pool is never emptied by silence.
        return Roster(row.members, row.revision, listing.error or "the source lists no target; the last known stay")
    listed = {target.key: target for target in listing.targets}
    whole = listing.complete and not listing.error and bool(listing.targets)
    taken_off = frozenset(member.key for member in row.members if member.key in listing.deregistered)
    over = frozenset(member.key for member in row.members if member.key in taken_off and member.source)
    leaving = taken_off - over
    if whole and listing.revision > row.revision:
        leaving |= frozenset(member.key for member in row.members if member.key not in listed) - over
    error, revision = listing.error, row.revision
    refusal = "" if listing.confirmed or not leaving else _too_much(row, leaving | over, settings)
    if refusal:
        error, leaving = refusal, frozenset()
    elif whole:
        revision = listing.revision
    going, last = _over(row, leaving, over)
    leaving |= going
    last_over = bool(last) and not error
    error = error or last
    known: dict[str, Member] = {member.key: member for member in row.members if member.key not in leaving}
    members = [
        known.pop(key) if key in known else _joining(target, now)
        for key, target in listed.items()
        if key not in listing.deregistered or key in known
    ]
    members = [_as_listed(member, listed[member.key], True) for member in members]
    # Absence is only told as such by a whole list.
    members += [_as_listed(member, None, member.listed and not whole) for member in known.values()]
    if not members:
        return Roster(row.members, row.revision, "the last target can't leave; withdraw the endpoint instead")
    return Roster(tuple(members), revision, error, last_over)


def _joining(target: Target, now: Instant) -> Member:
    return Member(
        target.key,
        target.zone,
        State.PENDING,
        0,
        Rule.READINESS,
        now,
        capacity=target.weight or 1,
        listed_at=now,
        source=target.source,
        port=target.port,
    )


def _as_listed(member: Member, target: Target | None, listed: bool) -> Member:
    """The member as its owner lists it. Another attempt at its address takes its place once that may serve."""
    zone, source, port = member.zone, member.source, member.port
    if target is not None:
        zone = target.zone
        if not target.gone:
            source, port = target.source, target.port
    if (member.zone, member.listed, member.source, member.port) == (zone, listed, source, port):
        return member
    return msgspec.structs.replace(member, zone=zone, listed=listed, source=source, port=port)


def _over(row: Membership, leaving: frozenset[str], over: frozenset[str]) -> tuple[frozenset[str], str]:
    """Of launched instances that ended, those that leave now beside ``leaving``; why the last of them can't, or "".

    All that aren't served, and of those that are at most half of the pool, the dead ones first.
    """
    staying = [member for member in row.members if member.key not in leaving]
    idle = [member.key for member in staying if member.key in over and member.state not in SERVING]
    going = dict.fromkeys(idle[: len(staying) - 1])
    serving = [member for member in staying if member.state in SERVING]
    families = Counter(family(member.key) for member in serving)
    most, last = (len(staying) - len(going)) // 2, ""
    for member in sorted(serving, key=lambda each: each.healthy is not False):
        if member.key not in over:
            continue
        kind = family(member.key)
        if families[kind] == 1:
            last = f"{member.key} stays, though {member.source} is over: {LAST_ONE}"
        elif most > 0:
            families[kind] -= 1
            most -= 1
            going[member.key] = None
    return frozenset(going), last


def _too_much(row: Membership, leaving: frozenset[str], settings: SafetySettings) -> str:
    """Why so many can't leave at once without a yes; empty if they can."""
    if not leaving:
        return ""
    count = len(row.members)
    if len(leaving) >= count:
        return f"all {count} targets would leave at once; say yes to it, or withdraw the endpoint"
    if len(leaving) * 2 > count:
        return f"{len(leaving)} of {count} targets would leave at once, more than half; say yes to it"
    left = standing(member for member in row.members if member.key not in leaving)
    if not above_min_in(left.in_count, left.in_capacity, left.capacity, settings, left.count):
        return f"with {len(leaving)} of {count} gone, {left.in_count} in service would be under min_in; say yes to it"
    return ""
