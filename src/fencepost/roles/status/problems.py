"""What isn't as it should be, found in the facts: pools and endpoints here, processes and files in ``upkeep``."""

from collections.abc import Iterator

from msgspec import structs

from fencepost.core.fence import Marker
from fencepost.core.instant import MINUTE, Duration, Instant
from fencepost.core.store import Row, Wanted
from fencepost.core.traffic.allowance import allowance
from fencepost.core.traffic.allowance import why_kept as allowance_says
from fencepost.core.traffic.desired import desired
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import Member, Membership, Mode, Rule, State
from fencepost.core.traffic.quorum import LEAST_VOTES
from fencepost.core.zone import Live, withdraws
from fencepost.roles.status import kinds
from fencepost.roles.status.answered import asked, followers, foreign, held_with, of_pool, served_by, until
from fencepost.roles.status.breaches import breaches
from fencepost.roles.status.document import Problem, RoleStatus, when
from fencepost.roles.status.endpoints import as_planned, endpoint_names
from fencepost.roles.status.facts import Facts, StoreFacts
from fencepost.roles.status.kinds import Kind
from fencepost.roles.status.running import lives, warming
from fencepost.roles.status.ways import way_out
from fencepost.settings.core_settings import offer, safety_settings
from fencepost.settings.schema import Endpoint, Pool, Region

NEW_FOR: Duration = 2 * MINUTE
"""So long a target that was just listed may be without votes: checkers warm up first."""
UNSEEN_SHOWN = 3


def problem(
    facts: Facts, kind: Kind, on: str, what: str, try_: str, since: Instant = 0, *, person: bool = False
) -> Problem:
    """One problem. ``since`` is its own recorded beginning; else the first time it was seen counts, if it is known.

    ``person``: one is needed at once, whatever the kind's patience.
    """
    began = since or facts.first_seen.get((kind.id, on), 0)
    lasted = facts.now - began if began else 0
    needed = person or (kind.patience is not None and lasted >= kind.patience)
    return Problem(kind.id, kind.kind, on, what, try_, needed, when(began))


def pool_problems(facts: Facts) -> Iterator[Problem]:
    """What is wrong with pools."""
    for pool in facts.region.pools if facts.store else ():
        row = facts.store.pools.get(pool.name) if facts.store else None
        if row is None:
            continue
        for member in row.members:
            found = dead_and_answered(facts, pool, row, member)
            if found is not None:
                yield found
        yield from alarms(facts, pool, row)
        yield from checkers(facts, pool, row)


def dead_and_answered(facts: Facts, pool: Pool, row: Membership, member: Member) -> Problem | None:
    """A dead target that callers still get: kept by a limit where an endpoint follows its pool, else by a hold's word.

    Callers of an endpoint that a person holds get what the hold says, whatever is kept in its pool.
    """
    if member.state is State.KEPT and served_by(facts, pool.name, member):
        return kept(facts, pool, row, member)
    if member.healthy is not False:
        return None
    mine = {each.name for each in of_pool(facts, pool.name)}
    holds = [(name, hold) for name, hold in held_with(facts, member.key) if name in mine]
    if not holds:
        return None
    said: dict[str, list[str]] = {}
    for name, hold in holds:
        ends = until(hold, facts.now) + (" UTC" if hold.until_s else "")
        said.setdefault(f"held by a {hold.kind}, {ends}", []).append(name)
    parts = [f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {how}" for how, names in said.items()]
    text, line = f"{why_dead(member)}, still answered: {'; '.join(parts)}", f"fencepost explain {holds[0][0]}"
    return problem(facts, kinds.KEPT[Rule.OPERATOR], member.key, text, line, member.dead_since or member.since)


def kept(facts: Facts, pool: Pool, row: Membership, member: Member) -> Problem:
    """A dead target that callers still get, with the numbers of the limit that says so, and the way out."""
    kind = kinds.KEPT.get(member.rule, kinds.KEPT[Rule.FAILING_NOW])
    why, way = why_kept(pool, row, member, facts.now), way_out(facts, pool, row, member)
    more = f"; {way.note}" if way.kind == "spare" else ""
    return problem(facts, kind, member.key, f"{why_dead(member)}, kept: {why}{more}", way.line, member.since)


def why_kept(pool: Pool, row: Membership, member: Member, now: Instant) -> str:
    """The rule that keeps a dead target, with its numbers."""
    safety = safety_settings(pool.safety)
    if member.rule is Rule.MAX_OUT:
        allowed = allowance(row, safety, now)
        return f"max_out allows {allowed.max_out_count} of {allowed.count}"
    if member.rule is Rule.OPERATOR and member.forced:
        return f"a person's word ({member.forced}) keeps it"
    return allowance_says(member, row, safety, now) or str(member.rule)


def alarms(facts: Facts, pool: Pool, row: Membership) -> Iterator[Problem]:
    """The pool as a whole."""
    dead = sum(member.healthy is False for member in row.members)
    explain = f"fencepost explain {next((e.name for e in facts.region.endpoints if e.pool == pool.name), pool.name)}"
    if row.panic:
        yield fail_open(facts, pool, row, dead, explain)
    elif row.suspect:
        text = f"{row.suspect}: removals are slowed to a tenth"
        yield problem(facts, kinds.POOL_SUSPECT, pool.name, text, explain, row.suspect_since)
    if row.last_over:
        line = f"fencepost fleet instances --pool {pool.name}"
        yield problem(facts, kinds.LAST_ONE_OVER, pool.name, row.source_error, line)
    elif row.source_error:
        yield problem(facts, kinds.TARGETS_REFUSED, pool.name, row.source_error, "fencepost reload --yes")


def fail_open(facts: Facts, pool: Pool, row: Membership, dead: int, explain: str) -> Problem:
    """Fail open: it asks for a person while much looks dead and callers depend on it.

    Once less than its exit's share is sick it ends by itself, within some rounds; and where every endpoint of the pool
    is held, a person has seen to what callers get.
    """
    some = f"{dead} of {len(row.members)} look{'s' if dead == 1 else ''} dead"
    calm = row.sick < safety_settings(pool.safety).exit_ppm
    text = f"{some} at once, so nothing is removed: are targets sick, or checks?"
    if calm:
        text = f"fail open is ending: {some} now, and nothing is removed until that has lasted some rounds"
    found = problem(facts, kinds.FAIL_OPEN, pool.name, text, explain, row.panic_since)
    seen_to = any(True for _ in of_pool(facts, pool.name)) and not followers(facts, pool.name)
    return structs.replace(found, needs_person=False) if calm or seen_to else found


def checkers(facts: Facts, pool: Pool, row: Membership) -> Iterator[Problem]:
    """Who doesn't vote, and who is alone with its opinion."""
    voting = [voter.zone for voter in row.voters if voter.state == "ok"]
    soon = sum(warming(facts, pool, voter.zone) for voter in row.voters if voter.state != "ok")
    if len(voting) < LEAST_VOTES and len(voting) + soon < LEAST_VOTES:
        text = f"{len(voting)} of {len(row.voters)} checkers vote, two are needed: the last verdicts hold"
        yield problem(facts, kinds.NO_QUORUM, pool.name, text, "fencepost status -v")
    elif unseen := unseen_targets(row, facts.now):
        some = ", ".join(unseen[:UNSEEN_SHOWN]) + (
            f" and {len(unseen) - UNSEEN_SHOWN} more" * (len(unseen) > UNSEEN_SHOWN)
        )
        text = f"checkers vote, but fewer than two on {some}: the last verdicts hold there"
        yield problem(facts, kinds.TARGETS_UNSEEN, pool.name, text, f"fencepost explain {unseen[0]}")
    for voter in row.voters:
        if voter.state not in ("ok", "stale") and not (voter.state == "warming" and warming(facts, pool, voter.zone)):
            text = f"it distrusts itself ({voter.state}), so its votes on pool {pool.name} don't count"
            name = f"checker/{voter.zone}"
            yield problem(facts, kinds.CHECKER_SUSPECT, name, text, log_of(facts, name))
    outvoted = sorted({member.votes.outvoted for member in row.members if member.votes.outvoted})
    for zone in outvoted:
        keys = ", ".join(member.key for member in row.members if member.votes.outvoted == zone)
        text = f"it alone calls {keys} healthy, for over a minute, and is outvoted there"
        yield problem(facts, kinds.CHECKER_OUTVOTED, f"checker/{zone}", text, log_of(facts, f"checker/{zone}"))


def unseen_targets(row: Membership, now: Instant) -> list[str]:
    """Targets on which too few checkers say anything, although they vote: reports without them, or without verdicts."""
    return [
        member.key
        for member in row.members
        if member.listed and member.votes.fresh < LEAST_VOTES and now - member.listed_at > NEW_FOR
    ]


def endpoint_problems(facts: Facts, roles: tuple[RoleStatus, ...]) -> Iterator[Problem]:
    """What is wrong with endpoints."""
    healed = lives(roles, "enactor") or not roles
    settings = {endpoint.name: endpoint for endpoint in facts.region.endpoints}
    asks = Asks(facts.store, facts.region)
    for name in endpoint_names(facts):
        live = facts.dns.lives.get(name) if facts.dns else None
        row = facts.store.rows.get(name) if facts.store else None
        yield from endpoint_problem(facts, name, settings.get(name), live, row, asks)
        if name in settings and is_empty(live, row, settings[name]) and not foreign_at(live, facts):
            yield empty(facts, name, healed=healed)
    for broken in breaches(facts):
        text = f"{broken.promise}: {broken.what}"
        yield problem(facts, kinds.PROMISE_BROKEN, broken.on, text, f"fencepost history {broken.on}", broken.at)


def endpoint_problem(
    facts: Facts, name: str, settings: Endpoint | None, live: Live | None, row: Row | None, asks: "Asks"
) -> Iterator[Problem]:
    """One endpoint: the first that fits of what keeps it from being as planned, and whether it answers at all."""
    if live is not None and foreign(live, facts.region.owner):
        text = f"{whose(live)}; {alone(live, name)}"
        yield problem(facts, kinds.FOREIGN_RECORD, name, text, f"fencepost explain {name}")
        return
    if settings is None:
        if live is not None and isinstance(live.marker, Marker) and not withdraws(live.marker):
            text = "no endpoint of region.toml, and still answered: it stays until withdrawn"
            yield problem(facts, kinds.ORPHAN, name, text, f"fencepost withdraw {name}")
        return
    if row is not None and row.contested:
        text = "two stores with this owner replace each other's records; this one has stopped"
        yield problem(facts, kinds.CONTESTED, name, text, f"fencepost explain {name}", row.made_at)
    elif why := asked(facts, name):
        yield problem(facts, kinds.NEEDS_ADOPT, name, why, f"fencepost adopt {name}")
    elif settings.srv and (why := asked(facts, name, "foreign")):
        yield problem(facts, kinds.FOREIGN_RECORD, name, f"{why}; it is left alone", f"fencepost explain {name}")
    elif as_planned(live, row) is False and row is not None:
        text = f"generation {row.generation} is planned, {instead(live, row)}"
        yield problem(facts, kinds.ENACTORS_BEHIND, name, text, f"fencepost history {name}", late(row, live))
    elif row is None and facts.store is not None:
        yield problem(facts, kinds.NOT_PUBLISHED, name, not_yet(asks, settings), f"fencepost explain {name}")
    if facts.store is not None and is_behind(asks, settings, row, facts.region.dns.gather_ns, facts.now):
        text = "its pool's membership has changed and no plan has followed"
        yield problem(facts, kinds.PLANNER_BEHIND, name, text, log_of(facts, "planner"))


def why_alone(facts: Facts, name: str) -> tuple[str, str]:
    """Why a name is left alone, and the line that changes that, if a command can ("")."""
    live = facts.dns.lives.get(name) if facts.dns else None
    if live is not None and foreign(live, facts.region.owner):
        return f"{whose(live)}; {alone(live, name)}", ""
    if why := asked(facts, name, "foreign"):
        return f"{why}; it is left alone: remove that, or leave srv out", ""
    why = asked(facts, name) or "records without a marker stand here, and they aren't known as ours: left alone"
    return why, f"fencepost adopt {name}"


def foreign_at(live: Live | None, facts: Facts) -> bool:
    """Whether what stands is somebody else's."""
    return live is not None and foreign(live, facts.region.owner)


def empty(facts: Facts, name: str, *, healed: bool) -> Problem:
    """A published name that callers get nothing from. Where no enactor runs, nobody but a person puts it back."""
    since = facts.observer.empty_now.get(name, 0) if facts.observer else 0
    if healed:
        text = "callers get no address: enactors heal it; if they don't, repair it by hand"
        return problem(facts, kinds.EMPTY_NOW, name, text, f"fencepost repair {name}", since)
    text = "callers get no address, and no enactor runs to heal it: start the region, or write the addresses by hand"
    known = facts.store.rows.get(name) if facts.store else None
    said = "".join(f" --address {each}" for each in (known.content.addresses if known else ())[:8])
    return problem(facts, kinds.EMPTY_NOW, name, text, f"fencepost repair {name}{said}", since, person=True)


class Asks:
    """What is asked of endpoints by their pools: one value for all that are alike."""

    def __init__(self, store: StoreFacts | None, region: Region) -> None:
        self.region = region
        self.pools = store.pools if store else {}
        self._wanted: dict[tuple[str, tuple[str, ...], int, str], Wanted | None] = {}

    def wanted(self, settings: Endpoint) -> Wanted | None:
        """What the inputs ask of an endpoint; None if they don't say."""
        key = (settings.pool, settings.records, settings.ttl_s, settings.srv)
        if key not in self._wanted:
            row, asked = self.pools.get(settings.pool), offer(self.region, settings)
            self._wanted[key] = desired(settings.records, settings.ttl_s, row, asked)
        return self._wanted[key]


def whose(live: Live) -> str:
    """Whose a foreign name is."""
    if live.other:
        return f"a {live.other[0]} record stands here"
    owner = live.marker.owner if live.marker is not None else ""
    return f"its marker's owner is {owner!r}" if owner else "what stands at its marker's name is no marker"


def alone(live: Live, name: str) -> str:
    """What to do about a foreign name. Beside a CNAME no address can stand (RFC 1034 section 3.6.2)."""
    if live.other:
        rid = f"remove it at the provider, and the addresses follow; or take {name} out of region.toml"
        return f"no address can be written beside it: {rid}"
    return "it is left alone: find out whose it is"


def instead(live: Live | None, row: Row) -> str:
    """What is live instead of a row."""
    if live is None or not isinstance(live.marker, Marker):
        return "and no marker stands"
    if live.marker.generation != row.generation:
        return f"{live.marker.generation} is live"
    return "and the records that stand are not its own"


def late(row: Row, live: Live | None) -> Instant:
    """Since when enactors owe a row: since it was made, unless they had already enacted it and it drifted since."""
    enacted = live is not None and isinstance(live.marker, Marker) and live.marker.generation >= row.generation
    return 0 if enacted else row.made_at


def not_yet(asks: Asks, settings: Endpoint) -> str:
    """Why an endpoint has no row yet."""
    if settings.pool not in asks.pools:
        return f"not planned yet: pool {settings.pool} has no membership"
    if asks.wanted(settings) is None:
        return f"not planned: no target of pool {settings.pool} is ready in each of its families"
    return "not planned yet"


def is_behind(asks: Asks, settings: Endpoint, row: Row | None, gather: int, now: Instant) -> bool:
    """Whether the planner owes a plan: what its inputs ask isn't what the newest row says."""
    members = asks.pools.get(settings.pool)
    if row is None or row.hold is not None or row.contested or members is None or members.mode is Mode.DISABLED:
        return False
    if row.adopt:
        return False  # what stands is being taken over as it is; a plan follows once that is enacted
    wanted = asks.wanted(settings)
    if wanted is None or wanted.content == row.content:
        return False
    planned = row.content
    if (wanted.content.a, wanted.content.aaaa, wanted.content.ttl) != (planned.a, planned.aaaa, planned.ttl):
        return True
    return bool(members.shift_since) and now - members.shift_since > gather + MINUTE


def is_empty(live: Live | None, row: Row | None, settings: Endpoint) -> bool:
    """Whether callers of a published endpoint miss a family now."""
    if live is None or (row is not None and row.withdrawn):
        return False
    if isinstance(live.marker, Marker) and withdraws(live.marker):
        return False
    if row is None and live.marker is None:
        return False
    families = row.families if row is not None else ""
    if not families:
        return live.empty
    return ("4" in families and not live.a and "A" in settings.records) or (
        "6" in families and not live.aaaa and "AAAA" in settings.records
    )


def log_of(facts: Facts, role: str) -> str:
    """The line that shows a role's log."""
    file = f"{role.replace('/', '-')}.log"
    if not facts.processes and file not in facts.logs:
        return f"journalctl -u fencepost-{role.replace('/', '@')} -n 50"
    return f"tail {facts.folder}/{file}"
