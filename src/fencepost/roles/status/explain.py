"""Why each address is in or out: an endpoint, a target or a failure zone, explained from the same facts as the status.

Pure: :func:`explain` finds what is asked about, :mod:`fencepost.roles.status.reasons` the reasons behind each target,
and :mod:`fencepost.roles.status.explanation` lays them out. Which plan took a target out, and who enacted it, is read
from the history where its lines still exist.

An endpoint is explained by what DNS answers. That is its pool's targets only while nobody holds it and it is ours.
"""

from collections.abc import Sequence

from fencepost.core.fence import Hold
from fencepost.core.instant import SECOND
from fencepost.core.names import normalise
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import SERVING, Member
from fencepost.ports import HistoryRow, Refused
from fencepost.roles.status.answered import (
    answered,
    clock,
    follows,
    held_with,
    hold_at,
    left_alone,
    of_family,
    of_pool,
    until,
)
from fencepost.roles.status.document import is_time
from fencepost.roles.status.endpoints import endpoint_names, who_holds
from fencepost.roles.status.explanation import ASIDE, HELD, ORDER, Detail, Explanation, Item
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.headline import endpoint_headline
from fencepost.roles.status.nearest import really_near
from fencepost.roles.status.problems import why_alone
from fencepost.roles.status.reasons import Ground, item, moved, of_hold, spoken, votes, words


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
    if is_address(what) and any(what in (answered(facts, each) or ()) for each in known):
        return explain_stray(facts, known, what)
    addresses = [target.address for pool in region.pools for target in pool.targets]
    pools = [pool.name for pool in region.pools]
    near = really_near(what, [*known, *region.zones, *pools, *addresses])
    hint = f"endpoints: {listed(known)}; pools: {listed(pools)}; zones: {listed(region.zones)}; or a target's address"
    if near or is_address(what):
        hint = f"did you mean {near}?" if near else f"targets: {listed(addresses)}"
    fleet = ", host, instance" if region.fleet is not None else ""
    raise Refused(f"{what} is no endpoint, target{fleet}, pool or zone of {region.name}", hint=hint)


def explain_endpoint(facts: Facts, history: Sequence[HistoryRow], name: str) -> Explanation:
    """An endpoint: by what a person's hold says, or what stands there of others, else each target of its families."""
    settings = next((each for each in facts.region.endpoints if each.name == name), None)
    row = facts.store.pools.get(settings.pool) if facts.store and settings else None
    hold = hold_at(facts, name)
    ground = None
    if settings is not None and row is not None:
        ground = Ground(facts, facts.region.pool(settings.pool), row, history, settings)
    if hold is not None and hold.kind == "withdraw":
        return Explanation(name, "endpoint", endpoint_headline(facts, name, ()), (), withdrawn(facts, name, hold))
    if hold is not None:
        items = in_order(held_items(facts, ground, name, hold))
        details = held_details(facts, ground, name, hold)
    elif left_alone(facts, name):
        items, (why, try_) = (), why_alone(facts, name)
        details = (Detail("dns", callers_get(facts, name)), Detail("why", why), Detail("try", try_))
    else:
        members = [each for each in ground.row.members if of_family(each, settings)] if ground and settings else []
        items = in_order([item(ground, member) for member in members]) if ground else ()
        serving = {member.key for member in members if member.state in SERVING}
        known = answered(facts, name) if facts.dns and name in facts.dns.lives else None
        details = (Detail("dns", callers_get(facts, name)),) if known is not None and set(known) != serving else ()
    headline = endpoint_headline(facts, name, [each.state for each in items])
    return Explanation(name, "endpoint", headline, items, tuple(each for each in details if each.text))


def callers_get(facts: Facts, name: str) -> str:
    """What DNS answers now."""
    found = answered(facts, name)
    return f"callers get {', '.join(found or ()) or 'no address'}" if found is not None else ""


def held_items(facts: Facts, ground: Ground | None, name: str, hold: Hold) -> list[Item]:
    """The addresses that a repair or rollback answers, then the targets that it leaves aside."""
    members = {member.key: member for member in ground.row.members} if ground else {}
    found = []
    stands = answered(facts, name) or ()
    for address in stands:
        member = members.get(address)
        if member is None or ground is None:
            zone, text = unseen(facts, ground, address)
            found.append(Item(address, zone, HELD, text))
        else:
            found.append(held_item(ground, member, hold))
    for key, member in members.items():
        if key not in stands and ground is not None and ground.endpoint and of_family(member, ground.endpoint):
            says = f"{member.state} in pool {ground.pool.name}; not answered while the {hold.kind} stands"
            found.append(Item(key, member.zone, ASIDE, says))
    return found


def unseen(facts: Facts, ground: Ground | None, address: str) -> tuple[str, str]:
    """The zone, "" if unknown, of an address that no membership at hand has; and what is known of who checks it.

    Without a membership (the store is away, or its pool was never judged) the file still lists targets, and a launched
    one can't be told from a stranger.
    """
    if ground is not None:
        return "", f"no target of pool {ground.pool.name}: nobody checks it"
    why = "the store isn't read" if facts.store is None else "its pool has no membership yet"
    for pool in facts.region.pools:
        target = next((each for each in pool.targets if each.address == address), None)
        if target is not None:
            return target.zone, f"a target of pool {pool.name}; {why}, so how its checkers see it isn't known"
    if facts.store is None:
        return "", "listed in no pool; the store isn't read, so whether it was launched, and is checked, isn't known"
    return "", "listed in no pool: nobody checks it"


def held_item(ground: Ground, member: Member, hold: Hold) -> Item:
    """A target that is answered because a person's hold says so, with how its checks see it."""
    if member.healthy is False:
        since = clock(member.dead_since or member.since, ground.facts.now)
        text = f"{why_dead(member)} since {since}, answered as the {hold.kind} says"
        return Item(member.key, member.zone, HELD, text, (Detail("votes", votes(ground, member)),))
    text = f"{member.votes.healthy} of {member.votes.fresh} checkers pass"
    return Item(member.key, member.zone, HELD, "no verdict yet" if member.healthy is None else text)


def held_details(facts: Facts, ground: Ground | None, name: str, hold: Hold) -> tuple[Detail, ...]:
    """Who said so, until when, and what follows the hold's end."""
    by, reason = who_holds(facts, name, hold)
    said = Detail(
        "said", f"{hold.kind} by {by or 'someone'}, {until(hold, facts.now)}: {reason or 'no reason is known'}"
    )
    then = ""
    if ground is not None and ground.endpoint is not None:
        serving = [m.key for m in ground.row.members if m.state in SERVING and of_family(m, ground.endpoint)]
        then = f"once it ends, as pool {ground.pool.name} then is; now: {listed(serving) or 'nobody serves'}"
    return said, Detail("then", then), Detail("try", f"fencepost resume {name}")


def explain_stray(facts: Facts, known: Sequence[str], address: str) -> Explanation:
    """An address that callers get and that no pool has: a repair's or rollback's own, or what stands unmarked."""
    held = dict(held_with(facts, address))
    details = []
    for name in known:
        if address in (answered(facts, name) or ()):
            if name in held:
                details.append(Detail("held", f"{name} {of_hold(held[name], facts.now)}: it answers this address"))
                details.append(Detail("try", f"fencepost resume {name}"))
            else:
                details.append(Detail("dns", f"it stands at {name}"))
                details.append(Detail("try", f"fencepost explain {name}"))
    headline = "no target of any pool, so nobody checks it; callers get it"
    if facts.store is None:
        headline = "listed in no pool; the store isn't read, so whether it was launched isn't known; callers get it"
    return Explanation(address, "address", headline, (), tuple(details))


def withdrawn(facts: Facts, name: str, hold: Hold) -> tuple[Detail, ...]:
    """What a withdrawal means for callers, who said so, and the way back."""
    by, reason = who_holds(facts, name, hold)
    ends = f"until {clock(hold.until_s * SECOND, facts.now)}" if hold.until_s else "until resumed"
    return (
        Detail("dns", "callers get no address, however well its targets are"),
        Detail("said", f"withdrawn by {by or 'someone'}, {ends}: {reason or 'no reason is known'}"),
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
        if facts.store is None:
            what = f"{address} is a target, and how it is seen stands in the store, which can't be read"
            raise Refused(f"{what} ({facts.store_error})" if facts.store_error else what, hint="fencepost status")
        raise Refused(f"nothing is known of {address} yet", hint="its pool has no membership: is the planner running?")
    pools = member_pools(facts, address)
    names = ", ".join(sorted(each.name for each in facts.region.endpoints if each.pool in pools)) or "no endpoint"
    headline = f"zone {items[0].zone}, pool {', '.join(pools)}: {names}"
    held = [(each.name, hold_at(facts, each.name)) for pool in pools for each in of_pool(facts, pool)]
    for name, hold in held:
        if hold is not None:
            does = "answers" if address in (answered(facts, name) or ()) else "doesn't answer"
            details.append(Detail("held", f"{name} {of_hold(hold, facts.now)}: it {does} this address"))
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
    names = [each.name for each in of_pool(facts, name) if follows(facts, each.name)]
    serving = sum(each.state in SERVING for each in items)
    headline = f"{serving} of {len(items)} targets in; answered for {listed(names) or 'no endpoint'}"
    holds = [(each.name, hold) for each in of_pool(facts, name) if (hold := hold_at(facts, each.name)) is not None]
    return Explanation(
        name,
        "pool",
        headline,
        items,
        tuple(Detail("held", f"{each} {of_hold(hold, facts.now)}") for each, hold in holds),
    )


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
    return tuple(sorted(items, key=lambda each: ORDER.index(each.state)))
