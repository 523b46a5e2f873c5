"""Targets that are listed or launched and don't come into service: told once a pool, however many there are.

A start takes its time: an image is fetched, a cache is warmed. So nothing is said before ``PATIENCE`` more than the
checks take at best. What waits only for automation that is off, or that too few checkers see, is told as that.
"""

from collections import Counter
from collections.abc import Iterator

from fencepost.core.instant import MINUTE, Duration
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.traffic.quorum import LEAST_VOTES
from fencepost.roles.status import kinds
from fencepost.roles.status.document import Problem
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.problems import problem
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.schema import Pool

PATIENCE: Duration = 5 * MINUTE
NAMED = 3


def pending_problems(facts: Facts) -> Iterator[Problem]:
    """One for each pool in which targets have been pending for too long."""
    for pool in facts.region.pools:
        row = facts.store.pools.get(pool.name) if facts.store else None
        late = overdue(facts, pool, row) if row is not None else []
        if late:
            yield not_in_service(facts, pool, late)


def overdue(facts: Facts, pool: Pool, row: Membership) -> list[Member]:
    """The targets that should have come into service by now and fail to, those that wait longest first."""
    at_best = max(safety_settings(pool.safety).ready_age_ns, pool.probe.rise * pool.probe.interval_ns)
    found = [
        member
        for member in row.members
        if member.state is State.PENDING and member.listed and member.would is None
        if member.votes.fresh >= LEAST_VOTES and facts.now - member.since > at_best + PATIENCE
    ]
    return sorted(found, key=lambda member: (member.since, member.key))


def not_in_service(facts: Facts, pool: Pool, late: list[Member]) -> Problem:
    """Which they are, and what the most of them lack, with the line that shows it of one."""
    why, count = Counter(member.cause for member in late).most_common(1)[0]
    first = next(member for member in late if member.cause == why)
    way = f"mend {'it' if len(late) == 1 else 'them'}, or "
    way += "terminate what can't be mended" if first.source else "take off the list what isn't there"
    if len(late) == 1:
        text = f"{named(first)} doesn't come into service: {why}; {way}"
    else:
        names = ", ".join(named(member) for member in late[:NAMED])
        more = f" and {len(late) - NAMED} more" if len(late) > NAMED else ""
        of = "all" if count == len(late) else f"{count} of them"
        text = f"{len(late)} targets don't come into service ({names}{more}); {of}: {why}; {way}"
    return problem(facts, kinds.TARGETS_PENDING, pool.name, text, f"fencepost explain {first.key}", late[0].since)


def named(member: Member) -> str:
    """A target for people: its address, and which attempt was launched there."""
    return f"{member.key} ({member.source})" if member.source else member.key
