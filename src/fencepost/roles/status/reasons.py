"""The reasons behind one target: votes, the limit with its numbers, the write, and the way out."""

import re
from collections.abc import Sequence

import msgspec

from fencepost.core.fence import Hold
from fencepost.core.instant import SECOND, Instant
from fencepost.core.orders import plain
from fencepost.core.traffic.allowance import allowance, why_kept
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import MICRO, SERVING, Member, Membership, Move, OverrideKind, Rule, State
from fencepost.ports import HistoryRow
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.answered import clock, of_family, served_by, until
from fencepost.roles.status.explanation import Detail, Item
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.ways import way_out
from fencepost.settings.core_settings import health_settings, safety_settings
from fencepost.settings.schema import Endpoint, Pool

_ENACTED = re.compile(r"-> (\d+(?: \(epoch \d+\))?) in ")


class Ground(msgspec.Struct, frozen=True):
    """What a target's reasons are found in. ``endpoint`` is None where more than one is meant."""

    facts: Facts
    pool: Pool
    row: Membership
    history: Sequence[HistoryRow]
    endpoint: Endpoint | None = None


def item(ground: Ground, member: Member) -> Item:
    """One target's place and the reasons for it."""
    now = ground.facts.now
    details = [Detail("votes", votes(ground, member))]
    match member.state:
        case State.OUT:
            text = f"{why_dead(member)} since {clock(member.dead_since or member.since, now)}"
            if member.healthy is not False:
                text = f"passes again; out since {clock(member.since, now)}"
            details += [Detail("limit", allowed(ground, member)), Detail("dns", written(ground, member))]
        case State.KEPT:
            text = f"{why_dead(member)} since {clock(member.dead_since or member.since, now)}, {share(ground, member)}"
            details += kept(ground, member)
        case State.PENDING:
            text = f"not in service yet: {member.cause or 'waiting for its first verdicts'}"
        case State.DRAINED:
            text = f"drained since {clock(member.since, now)}, however well"
            if member.forced is None:
                text = f"moved away since {clock(member.since, now)}: {member.cause}"
        case _:
            text = f"{member.votes.healthy} of {member.votes.fresh} checkers pass"
            if member.healthy is None:
                text = "no verdict yet, so it serves"
    details += [Detail("said", spoken(word, now)) for word in words(ground.facts) if speaks_of(word, ground, member)]
    return Item(member.key, member.zone, str(member.state), text, tuple(each for each in details if each.text))


def votes(ground: Ground, member: Member) -> str:
    """What the checkers say, and how that is counted."""
    health = health_settings(ground.pool)
    if member.healthy is False and why_dead(member) != "dead":
        return f"{member.cause}, so they don't count: {member.votes.healthy} of {member.votes.fresh} healthy"
    text = f"{member.votes.healthy} of {member.votes.fresh} healthy ({health.quorum_ppm // 10_000} % or less = dead)"
    if member.votes.fresh < 2:
        text = f"{member.votes.fresh} fresh votes, two are needed: the last verdict holds"
    cause = f"; {member.cause}" if member.cause and member.state not in (State.PENDING, State.DRAINED) else ""
    outvoted = f"; checker {member.votes.outvoted} is outvoted" if member.votes.outvoted else ""
    return f"{text}{cause}{outvoted}"


def allowed(ground: Ground, member: Member) -> str:
    """Why taking it out was allowed, with the numbers of then."""
    if member.rule is Rule.ZONE_FAILOVER:
        return f"zone failover: the dead of zone {member.zone} leave together, outside max_out and budget"
    if member.rule is Rule.LOST_STORE:
        return "the store was lost, and DNS didn't hold this address: it counts as held out"
    moves = (move for move in reversed(ground.row.moves) if move.key == member.key and move.after is State.OUT)
    move = next(moves, None)
    limits = allowance(ground.row, safety_settings(ground.pool.safety), ground.facts.now)
    count = limits.count
    if move is None:
        return f"allowed when it left; {limits.out_count} of {count} are out now"
    before, after = (move.tokens + move.cost) / MICRO, move.tokens / MICRO
    return f"allowed: {out_at(ground.row, move)} of {count} out is within max_out; budget {before:.1f} -> {after:.1f}"


def out_at(row: Membership, move: Move) -> int:
    """How many were out just after a move: those of now, less what moved since."""
    out = {member.key for member in row.members if member.state is State.OUT}
    for later in reversed(row.moves):
        if later.number <= move.number:
            break
        (out.add if later.before is State.OUT else out.discard)(later.key)
    return len(out)


def written(ground: Ground, member: Member) -> str:
    """By which plan and whom it left DNS, and what it takes to come back."""
    health = health_settings(ground.pool)
    endpoints = (ground.endpoint,) if ground.endpoint else ground.facts.region.endpoints
    names = {each.name for each in endpoints if each.pool == ground.pool.name}
    after = (each for each in ground.history if each.kind == "enacted" and each.at >= member.since)
    line = next((each for each in after if each.on in names), None)
    found = _ENACTED.search(line.text) if line is not None else None
    by = ""
    if line is not None and found is not None:
        by = f"plan {found[1]}, by {line.by.replace('/', ' ')} {clock(line.at, ground.facts.now, fraction=True)}; "
    hold = min(health.hold_ns * member.flips, health.hold_max_ns) // SECOND
    held = f" and {hold} s ({member.flips} flip{'s' if member.flips != 1 else ''})" if hold else ""
    return f"{by}back after {health.rise} passes in a row{held}"


def kept(ground: Ground, member: Member) -> list[Detail]:
    """The limit that keeps it, until when, and the way out."""
    safety = safety_settings(ground.pool.safety)
    limits = allowance(ground.row, safety, ground.facts.now)
    until = {
        Rule.MAX_OUT: "until one is back, or you:",
        Rule.MIN_IN: "until one is back, or you:",
        Rule.BUCKET: f"the next in {(limits.next_ns or 0) // SECOND} s, or you:",
        Rule.FREEZE: "or you:",
        Rule.FAIL_OPEN: "until fewer are, or you:",
        Rule.LAST_OF_FAMILY: "until another serves, or you:",
        Rule.FAILING_NOW: "until that changes, or you:",
    }.get(member.rule, "or you:")
    if member.forced is OverrideKind.KEEP:
        text = "a person's keep"
    else:
        text = f"{why_kept(member, ground.row, safety, ground.facts.now) or member.rule}; {until}"
    served = ground.endpoint or served_by(ground.facts, ground.pool.name, member)
    way = way_out(ground.facts, ground.pool, ground.row, member) if served else None
    if way is None or way.kind == "look":
        return [Detail("limit", text.removesuffix(" or you:").removesuffix(";").removesuffix(","))]
    return [Detail("limit", text), Detail("try", f"{way.line}     ({way.note})" if way.note else way.line)]


def share(ground: Ground, member: Member) -> str:
    """What part of the answers it is, as the pool's targets stand; or that no endpoint answers with it now."""
    endpoint = ground.endpoint
    if endpoint is None and not served_by(ground.facts, ground.pool.name, member):
        return f"kept in pool {ground.pool.name}, which no endpoint follows now"
    serving = [each for each in ground.row.members if each.state in SERVING]
    if endpoint is not None:
        serving = [each for each in serving if of_family(each, endpoint)]
    share = f"1 of the {len(serving)} addresses" if len(serving) > 1 else "the only address"
    return f"still answered: {share} callers get"


def of_hold(hold: Hold, now: Instant) -> str:
    """A hold in words that follow the name of its endpoint."""
    return f"is {'withdrawn' if hold.kind == 'withdraw' else f'held by a {hold.kind}'}, {until(hold, now)}"


def words(facts: Facts) -> list[StoredOverride]:
    """The overrides that stand, by id."""
    found = facts.store.overrides if facts.store else ()
    return sorted((word for word in found if not word.until or word.until > facts.now), key=lambda each: each.id)


def speaks_of(word: StoredOverride, ground: Ground, member: Member) -> bool:
    """Whether an override is about this target."""
    if word.pool not in ("", ground.pool.name):
        return False
    return word.target == member.key if word.target else word.zone in ("", member.zone)


def spoken(word: StoredOverride, now: Instant) -> str:
    """An override in words."""
    until = f"until {clock(word.until, now)}" if word.until else "until resumed"
    return plain(f"{word.what} on {word.on} by {word.by or 'someone'}, {until}: {word.reason or 'no reason given'}")


def moved(move: Move, now: Instant) -> str:
    """A move in words."""
    cause = f": {move.cause}" if move.cause else ""
    return f"{clock(move.at, now)}  {move.before or 'new'} -> {move.after or 'gone'} ({move.rule}){cause}"
