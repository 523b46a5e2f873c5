"""Why each address is in or out: an endpoint, a target or a failure zone, explained from the same facts as the status.

Pure: :func:`explain` finds the reasons, :func:`render` lays them out at 100 columns. Which plan took a target out, and
who enacted it, is read from the history where its lines still exist.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from fencepost.core.fence import Hold, Marker
from fencepost.core.instant import DAY, SECOND, Instant
from fencepost.core.names import normalise
from fencepost.core.orders import plain
from fencepost.core.traffic.allowance import allowance, why_kept
from fencepost.core.traffic.membership import MICRO, SERVING, Member, Membership, Move, OverrideKind, Rule, State
from fencepost.core.zone import withdraws
from fencepost.ports import HistoryRow, Refused
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.document import BEYOND, TIMES_END, is_time
from fencepost.roles.status.endpoints import endpoint_names, of_family, who_holds
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.headline import endpoint_headline
from fencepost.roles.status.nearest import really_near
from fencepost.settings.core_settings import health_settings, safety_settings
from fencepost.settings.schema import Endpoint, Pool

ORDER = (State.IN, State.OUT, State.KEPT, State.PENDING, State.DRAINED)
_ENACTED = re.compile(r"-> (\d+(?: \(epoch \d+\))?) in ")


class Detail(msgspec.Struct, frozen=True):
    """A labelled line: votes, limit, dns, try, moved, said."""

    label: str
    text: str


class Item(msgspec.Struct, frozen=True):
    """One target: where it stands, the reason in a line, and what is behind it."""

    address: str
    zone: str
    state: str
    text: str
    details: tuple[Detail, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """What was asked about, in a line; then its targets, in the order in, out, kept, pending, drained."""

    what: str
    kind: Literal["endpoint", "target", "zone", "pool"]
    headline: str
    items: tuple[Item, ...]
    details: tuple[Detail, ...] = ()


class Ground(msgspec.Struct, frozen=True):
    """What a target's reasons are found in. ``endpoint`` is None where more than one is meant."""

    facts: Facts
    pool: Pool
    row: Membership
    history: Sequence[HistoryRow]
    endpoint: Endpoint | None = None


def explain(facts: Facts, history: Sequence[HistoryRow], what: str) -> Explanation:
    """Explain an endpoint's name, a target's address, a pool or a zone. ``history``: lines of late, oldest first.

    Raises ``Refused`` if there is nothing of that name here, or pools haven't been judged yet.
    """
    region = facts.region
    history = [row for row in history if is_time(row.at) and isinstance(row.text, str)]
    if what in region.zones:
        return explain_zone(facts, history, what)
    if any(target.address == what for pool in region.pools for target in pool.targets) or member_pools(facts, what):
        return explain_target(facts, history, what)
    if any(pool.name == what for pool in region.pools):
        return explain_pool(facts, history, what)
    try:
        name = normalise(what)
    except ValueError:
        name = what
    known = endpoint_names(facts)
    if name in known:
        return explain_endpoint(facts, history, name)
    words = [*known, *region.zones, *(target.address for pool in region.pools for target in pool.targets)]
    near = really_near(what, words)
    others = [target.address for pool in region.pools for target in pool.targets] if is_address(what) else known
    hint = f"did you mean {near}?" if near else f"{'targets' if others is not known else 'names'}: {listed(others)}"
    raise Refused(f"{what} is no endpoint, target, pool or zone of {region.name}", hint=hint)


def explain_endpoint(facts: Facts, history: Sequence[HistoryRow], name: str) -> Explanation:
    """An endpoint, and each target of its families."""
    settings = next((each for each in facts.region.endpoints if each.name == name), None)
    row = facts.store.pools.get(settings.pool) if facts.store and settings else None
    items: tuple[Item, ...] = ()
    held = withdrawal(facts, name)
    if held is not None:
        return Explanation(name, "endpoint", endpoint_headline(facts, name, ()), (), withdrawn(facts, name, held))
    if settings is not None and row is not None:
        ground = Ground(facts, facts.region.pool(settings.pool), row, history, settings)
        items = in_order([item(ground, member) for member in row.members if of_family(member, settings)])
    return Explanation(name, "endpoint", endpoint_headline(facts, name, [each.state for each in items]), items)


def withdrawal(facts: Facts, name: str) -> Hold | None:
    """The withdrawal that stands at an endpoint: as its marker says, or its row where DNS wasn't read."""
    row = facts.store.rows.get(name) if facts.store else None
    live = facts.dns.lives.get(name) if facts.dns else None
    if live is not None:
        ours = live.marker if isinstance(live.marker, Marker) and live.marker.owner == facts.region.owner else None
        return ours.hold if ours is not None and withdraws(ours) else None
    return row.hold if row is not None and row.withdrawn else None


def withdrawn(facts: Facts, name: str, hold: Hold) -> tuple[Detail, ...]:
    """What a withdrawal means for callers, who said so, and the way back."""
    by, reason = who_holds(facts, name, hold)
    until = f"until {clock(hold.until_s * SECOND, facts.now)}" if hold.until_s else "until resumed"
    return (
        Detail("dns", "callers get no address, however well its targets are"),
        Detail("said", f"withdrawn by {by or 'someone'}, {until}: {reason or 'no reason is known'}"),
        Detail("try", f"fencepost resume {name}"),
    )


def explain_target(facts: Facts, history: Sequence[HistoryRow], address: str) -> Explanation:
    """A target in each of its pools, with its latest moves."""
    items, details = [], []
    for pool in facts.region.pools:
        row = facts.store.pools.get(pool.name) if facts.store else None
        for member in row.members if row is not None else ():
            if member.key == address and row is not None:
                items.append(item(Ground(facts, pool, row, history), member))
                details += [Detail("moved", moved(move, facts.now)) for move in row.moves if move.key == address][-5:]
    if not items:
        raise Refused(f"nothing is known of {address} yet", hint="its pool has no membership: is the planner running?")
    pools = member_pools(facts, address)
    names = ", ".join(sorted(each.name for each in facts.region.endpoints if each.pool in pools)) or "no endpoint"
    headline = f"zone {items[0].zone}, pool {', '.join(pools)}: {names}"
    return Explanation(address, "target", headline, tuple(items), tuple(details))


def is_address(text: str) -> bool:
    """Whether a word is written like an address."""
    return ":" in text or (text.count(".") == 3 and text.replace(".", "").isdecimal())


def listed(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def explain_pool(facts: Facts, history: Sequence[HistoryRow], name: str) -> Explanation:
    """A pool's targets, and the endpoints that they are answered for."""
    pool = facts.region.pool(name)
    row = facts.store.pools.get(name) if facts.store else None
    if row is None:
        raise Refused(f"nothing is known of pool {name} yet", hint="it has no membership: is the planner running?")
    ground = Ground(facts, pool, row, history)
    items = in_order([item(ground, member) for member in row.members])
    names = [each.name for each in facts.region.endpoints if each.pool == name]
    serving = sum(each.state in SERVING for each in items)
    headline = f"{serving} of {len(items)} targets in; answered for {listed(names) or 'no endpoint'}"
    return Explanation(name, "pool", headline, items)


def explain_zone(facts: Facts, history: Sequence[HistoryRow], zone: str) -> Explanation:
    """A zone's targets in all pools, and its checker and enactor."""
    items = []
    for pool in facts.region.pools:
        row = facts.store.pools.get(pool.name) if facts.store else None
        if row is not None:
            ground = Ground(facts, pool, row, history)
            items += [item(ground, member) for member in row.members if member.zone == zone]
    rows = facts.store.pools.values() if facts.store else ()
    standing = sorted({voter.state for row in rows for voter in row.voters if voter.zone == zone})
    beats = {beat.role: beat for beat in facts.store.beats} if facts.store else {}
    enactor = beats.get(f"enactor/{zone}")
    serving = sum(each.state in SERVING for each in items)
    headline = (
        f"{serving} of {len(items)} targets in; checker {', '.join(standing) or 'unknown'}; "
        f"enactor {enactor.state if enactor else 'unknown'}"
    )
    said = [Detail("said", spoken(word, facts.now)) for word in words(facts) if word.zone == zone]
    return Explanation(zone, "zone", headline, in_order(items), tuple(said))


def member_pools(facts: Facts, address: str) -> list[str]:
    """The pools that have a target, by name."""
    rows = facts.store.pools if facts.store else {}
    return sorted(pool for pool, row in rows.items() if any(member.key == address for member in row.members))


def in_order(items: list[Item]) -> tuple[Item, ...]:
    """By state, then as listed."""
    return tuple(sorted(items, key=lambda each: ORDER.index(State(each.state))))


def item(ground: Ground, member: Member) -> Item:
    """One target's place and the reasons for it."""
    now = ground.facts.now
    details = [Detail("votes", votes(ground, member))]
    match member.state:
        case State.OUT:
            text = f"dead since {clock(member.dead_since or member.since, now)}"
            if member.healthy is not False:
                text = f"passes again; out since {clock(member.since, now)}"
            details += [Detail("limit", allowed(ground, member)), Detail("dns", written(ground, member))]
        case State.KEPT:
            text = f"dead since {clock(member.dead_since or member.since, now)}, still answered: {share(ground)}"
            details += kept(ground, member)
        case State.PENDING:
            text = f"not in service yet: {member.cause or 'waiting for its first verdicts'}"
        case State.DRAINED:
            text = f"drained since {clock(member.since, now)}, however well"
        case _:
            text = f"{member.votes.healthy} of {member.votes.fresh} checkers pass"
            if member.healthy is None:
                text = "no verdict yet, so it serves"
    details += [Detail("said", spoken(word, now)) for word in words(ground.facts) if speaks_of(word, ground, member)]
    return Item(member.key, member.zone, str(member.state), text, tuple(each for each in details if each.text))


def votes(ground: Ground, member: Member) -> str:
    """What the checkers say, and how that is counted."""
    health = health_settings(ground.pool)
    text = f"{member.votes.healthy} of {member.votes.fresh} healthy ({health.quorum_ppm // 10_000} % or less = dead)"
    if member.votes.fresh < 2:
        text = f"{member.votes.fresh} fresh votes, two are needed: the last verdict holds"
    cause = f"; {member.cause}" if member.cause and member.state is not State.PENDING else ""
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
        Rule.LAST_OF_FAMILY: "until another serves",
    }.get(member.rule, "or you:")
    if member.forced is OverrideKind.KEEP:
        return [Detail("limit", "a person's keep"), Detail("try", f"fencepost resume {member.key}")]
    why = why_kept(member, ground.row, safety, ground.facts.now) or str(member.rule)
    stay = f"({limits.in_count - 1} of {limits.count} stay in; min_in {limits.min_in_count})"
    return [Detail("limit", f"{why}; {until}"), Detail("try", f"fencepost drain {member.key} --for 1h     {stay}")]


def share(ground: Ground) -> str:
    """What part of the answers it is, as the pool's targets stand."""
    serving = [member for member in ground.row.members if member.state in SERVING]
    if ground.endpoint is not None:
        serving = [member for member in serving if of_family(member, ground.endpoint)]
    return f"1 of the {len(serving)} addresses callers get"


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


def clock(at: Instant, now: Instant, *, fraction: bool = False) -> str:
    """A time of day, UTC; with its date if it is a day or more away."""
    if not is_time(at):
        return BEYOND if isinstance(at, int) and at >= TIMES_END else "?"
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    text = moment.strftime("%Y-%m-%d %H:%M:%S" if abs(now - at) >= DAY else "%H:%M:%S")
    return f"{text}.{at % SECOND // 1_000_000:03}" if fraction else text


def render(found: Explanation) -> list[str]:
    """The explanation in lines: targets that are in side by side, the first of each other state with its reasons."""
    kind = f"{found.kind} " if found.kind in ("zone", "pool") else ""
    lines = [f"{kind}{found.what}   {found.headline}"]
    full = found.kind == "target"
    told: set[Detail] = set()
    for state in ORDER:
        items = [each for each in found.items if each.state == state]
        if state is State.IN and not full:
            lines += side_by_side(items)
            continue
        for at, each in enumerate(items):
            label = f" {state:<6}".ljust(len(state) + 2) if at == 0 else " " * 7
            if at == 0 or full:
                lines.append(f"{label}{each.address} ({each.zone})  {each.text}")
                news = [detail for detail in each.details if detail.label != "votes" or detail not in told]
                lines += [f"         {detail.label:<7} {detail.text}" for detail in news]
                told.update(news)
            else:
                lines.append(f"{label}{each.address} ({each.zone})  {each.text}{plan_of(each)}")
    lines += [f" {d.label:<6}{d.text}" for d in found.details]
    return lines


def plan_of(each: Item) -> str:
    """By which plan it left, for a line that gives no more reasons."""
    dns = next((detail.text for detail in each.details if detail.label == "dns"), "")
    found = re.match(r"plan \d+(?: \(epoch \d+\))?, by [\w-]+(?: [\w-]+)?(?= )", dns)
    return f"; {found[0]}" if found else ""


def side_by_side(items: list[Item]) -> list[str]:
    """Targets in service, three to a line, those with the same votes together."""
    lines: list[str] = []
    for text in dict.fromkeys(each.text for each in items):
        alike = [f"{each.address} ({each.zone})" for each in items if each.text == text]
        for at in range(0, len(alike), 3):
            cells = "".join(f"{cell:<16}" for cell in alike[at : at + 3])
            label = " in    " if not lines else " " * 7
            lines.append(f"{label}{cells}".ljust(68) + text if at == 0 else f"{label}{cells}".rstrip())
    return lines
