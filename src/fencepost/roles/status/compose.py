"""From facts to the status document: a pure function, so the same facts always make the same bytes."""

from collections.abc import Iterable

from fencepost import __version__
from fencepost.core.instant import SECOND
from fencepost.core.orders import plain
from fencepost.core.traffic.membership import Voter
from fencepost.roles.status.breaches import breaches
from fencepost.roles.status.document import (
    SCHEMA,
    Ages,
    CheckerStatus,
    Config,
    EndpointStatus,
    Observed,
    OverrideStatus,
    PoolStatus,
    Problem,
    Promise,
    StageStatus,
    Status,
    Verdict,
    Violation,
    seconds,
    when,
)
from fencepost.roles.status.endpoints import endpoint_statuses, standing_holds
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.fleet import fleet_problems, fleet_status
from fencepost.roles.status.pools import pool_statuses
from fencepost.roles.status.problems import endpoint_problems, pool_problems
from fencepost.roles.status.promise_watch import WATCHED
from fencepost.roles.status.rejected import standing_refusal
from fencepost.roles.status.running import all_restarts, role_statuses, warming
from fencepost.roles.status.upkeep import upkeep_problems
from fencepost.roles.status.waiting import pending_problems
from fencepost.settings.schema import Pool


def compose(facts: Facts) -> Status:
    """The document of these facts."""
    store = facts.store
    endpoints, pools, roles = endpoint_statuses(facts), pool_statuses(facts), role_statuses(facts)
    problems = sort_out(
        (
            *upkeep_problems(facts, roles),
            *pool_problems(facts),
            *pending_problems(facts),
            *endpoint_problems(facts, roles),
            *fleet_problems(facts, roles),
        )
    )
    overrides = standing_overrides(facts)
    return Status(
        schema_=SCHEMA,
        version=__version__,
        region=facts.region.name,
        owner=facts.region.owner,
        at=when(facts.now) or "",
        source=facts.source,
        verdict=verdict(endpoints, pools, problems, overrides),
        mode=store.loaded.region.mode if store and store.loaded else facts.region.mode,
        provider=facts.region.dns.provider,
        plan=store.head.number if store else None,
        config=config(facts),
        endpoints=endpoints,
        pools=pools,
        roles=roles,
        overrides=overrides,
        problems=problems,
        promises=promises(facts),
        restarts=all_restarts(facts.processes.items()),
        fenced=store.fenced if store else None,
        violations=violations(facts),
        checkers=checkers(facts),
        ages=ages(facts),
        observed=observed(facts),
        stages=stages(facts),
        fleet=fleet_status(facts, roles),
    )


def stages(facts: Facts) -> tuple[StageStatus, ...]:
    """What waits in the stages of the fleet's work."""
    return tuple(
        StageStatus(row.stage, row.depth, row.bound, row.rate, row.oldest / SECOND, when(row.at))
        for row in (facts.store.stages if facts.store else ())
    )


def verdict(
    endpoints: Iterable[EndpointStatus],
    pools: Iterable[PoolStatus],
    problems: Iterable[Problem],
    overrides: Iterable[OverrideStatus],
) -> Verdict:
    """ok: all in. working: something is out, kept, held or healing, and nobody need come. attention: somebody must."""
    problems = tuple(problems)
    if any(problem.needs_person for problem in problems):
        return "attention"
    healing = any(each.as_planned is not True and each.state not in ("withdrawn", None) for each in endpoints)
    missing = any(pool.in_ != pool.targets for pool in pools)
    return "working" if problems or healing or missing or any(True for _ in overrides) else "ok"


def sort_out(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sorted; of several with one id about one thing the first."""
    found: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        found.setdefault((problem.id, problem.on), problem)
    return tuple(found[key] for key in sorted(found))


def config(facts: Facts) -> Config:
    """The file: when what runs was loaded, and whether a newer text was refused since."""
    loaded = facts.store.loaded if facts.store else None
    refused = standing_refusal(facts)
    return Config(
        path=facts.region.path,
        loaded_at=when(loaded.loaded_at) if loaded else None,
        rejected_at=when(refused.at) if refused else None,
        rejected_for=refused.text if refused else None,
    )


def standing_overrides(facts: Facts) -> tuple[OverrideStatus, ...]:
    """Everything a person said that hasn't ended."""
    said = [
        OverrideStatus(
            str(word.what),
            plain(word.on),
            plain(word.by) or None,
            plain(word.reason) or None,
            when(word.until),
            word.id,
        )
        for word in (facts.store.overrides if facts.store else ())
        if not word.until or word.until > facts.now
    ]
    said.extend(standing_holds(facts))
    return tuple(sorted(said, key=lambda each: (each.on, each.what, each.id or "")))


def promises(facts: Facts) -> dict[str, Promise]:
    """The promises that are judged from outside; unknown where nobody looks.

    One that was seen broken before the observer's last start stays broken, though its counts begin anew.
    """
    seen, earlier = facts.observer, {each.promise for each in breaches(facts)}
    if seen is None:
        return {name: Promise(False if name in earlier else None, None) for name in WATCHED}
    found = {}
    for name in WATCHED:
        checked, broken, unsure = seen.checked[name], seen.broken[name], seen.unsure.get(name, 0)
        held = False if broken or name in earlier else None if unsure or not checked else True
        found[name] = Promise(held, checked, broken, unsure)
    return found


def violations(facts: Facts) -> tuple[Violation, ...]:
    """What was seen broken, in the order it was seen."""
    return tuple(Violation(each.promise, each.on, each.what, when(each.at) or "") for each in breaches(facts))


def checkers(facts: Facts) -> tuple[CheckerStatus, ...]:
    """The checkers as each pool's load balancer heard them."""
    rows = facts.store.pools if facts.store else {}
    pools = {pool.name: pool for pool in facts.region.pools}
    found = [
        CheckerStatus(voter.zone, name, heard(facts, pools.get(name), voter))
        for name, row in rows.items()
        for voter in row.voters
    ]
    return tuple(sorted(found, key=lambda each: (each.zone, each.pool)))


def heard(facts: Facts, pool: Pool | None, voter: Voter) -> str:
    """A checker's state; one that has only just started isn't stale for not having spoken yet."""
    young = voter.state == "stale" and pool is not None and warming(facts, pool, voter.zone)
    return "warming" if young else voter.state


def ages(facts: Facts) -> Ages:
    """How old each source is."""
    at = [source.at if source is not None else 0 for source in (facts.store, facts.dns, facts.observer)]
    return Ages(*(seconds(facts.now - each) if each else None for each in at))


def observed(facts: Facts) -> Observed | None:
    """What the observer asked so far."""
    seen = facts.observer
    return Observed(seen.looks, seen.unanswered, seen.altered, when(seen.since)) if seen else None
