"""Ways out of a limit: the line to paste for a dead target that is still answered, and only one that would be taken."""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from fencepost.core.traffic.limits import above_min_in
from fencepost.core.traffic.membership import MICRO, SERVING, Member, Membership, OverrideKind, Rule, State, family
from fencepost.core.traffic.operator_word import FREEZING
from fencepost.core.traffic.quorum import LEAST_VOTES
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.answered import served_by
from fencepost.roles.status.facts import Facts
from fencepost.settings.core_settings import safety_settings
from fencepost.settings.meaning import Scale
from fencepost.settings.schema import Pool

SPARE = "SPARE"
"""Stands for an address that only a person knows."""


class Drained(NamedTuple):
    """A pool once some of its targets were drained: how many stay in, of how many, and ``least``, min_in in targets.

    ``under``: below min_in, so a person must name the pool. ``empties``: a family would lose its last; always refused.
    """

    leaving: tuple[Member, ...]
    stay: int
    of: int
    least: int
    under: bool
    empties: bool


class Way(NamedTuple):
    """A line to paste, and what to know of it ("" for nothing).

    ``kind`` is "act" for one that does something, "spare" for one that lacks an address, "look" for one that explains.
    """

    line: str
    note: str = ""
    kind: Literal["act", "spare", "look"] = "act"


def drained(pool: Pool, row: Membership, keys: Collection[str]) -> Drained:
    """What draining these targets of a pool does."""
    leaving = tuple(each for each in row.members if each.state in SERVING and each.key in keys)
    stays = [each for each in row.members if each.state in SERVING and each.key not in keys]
    counted = [each for each in row.members if each.state is not State.PENDING]
    whole, left = (sum(each.capacity for each in members) * MICRO for members in (counted, stays))
    under = not above_min_in(len(stays), left, whole, safety_settings(pool.safety))
    lost = {family(each.key) for each in leaving} - {family(each.key) for each in stays}
    launched = [(each.capacity, each.key) for each in counted] if pool.launch is not None else []
    least = Scale(pool, launched).least_in() if launched or pool.targets else 0
    return Drained(leaving, len(stays), len(counted), least, under, bool(lost))


def way_out(facts: Facts, pool: Pool, row: Membership, member: Member) -> Way:
    """What a person can do about a dead target that is kept."""
    word = keeper(facts, pool, member)
    if word is not None:
        return Way(f"fencepost resume {scope(word)}")
    passes = member.rule is Rule.FAILING_NOW and member.votes.fresh >= LEAST_VOTES
    if member.rule is Rule.OPERATOR or passes:
        # What passes again may well be on its way back: nobody is to be led to take it out for an hour.
        return Way(f"fencepost explain {member.key}", kind="look")
    rows = facts.store.pools if facts.store else {}
    having = [(each, rows[each.name]) for each in facts.region.pools if each.name in rows]
    effects = [drained(each, found, (member.key,)) for each, found in having]
    if member.source and any(effect.empties for effect in effects):
        # Its successor mends it, and comes by itself once it can: what hinders that is the thing to see.
        return Way(f"fencepost fleet instances --pool {pool.name}")
    if any(effect.empties for effect in effects):
        names = served_by(facts, pool.name, member)
        note = "no other serves: mend it, or answer with a spare until then"
        if names:
            return Way(f"fencepost repair {names[0].name} --address {SPARE}", note, "spare")
        return Way(f"fencepost explain {member.key}", note, "look")
    effect = drained(pool, row, (member.key,))
    stay = f"{effect.stay} of {effect.of} stay in; min_in {effect.least}"
    confirm = f" --confirm {pool.name}" if effect.under else ""
    return Way(f"fencepost drain {member.key} --for 1h{confirm}", stay)


def keeper(facts: Facts, pool: Pool, member: Member) -> StoredOverride | None:
    """The word that keeps a member in service, the nearest first; None if it isn't a person's, or not in the store."""
    kinds: Iterable[OverrideKind] = (OverrideKind.KEEP,) if member.forced is OverrideKind.KEEP else FREEZING
    if member.forced is not OverrideKind.KEEP and member.rule is not Rule.OPERATOR:
        return None
    found = [
        word
        for word in (facts.store.overrides if facts.store else ())
        if word.what in kinds and word.pool in ("", pool.name) and (not word.until or word.until > facts.now)
        if (word.target == member.key if word.target else word.zone in ("", member.zone))
    ]
    return max(found, key=lambda word: (bool(word.target), bool(word.zone)), default=None)


def scope(word: StoredOverride) -> str:
    """An override's scope as ``fencepost resume`` takes it."""
    if word.target:
        return word.target
    if word.zone:
        return f"{word.pool} --zone {word.zone}" if word.pool else f"--zone {word.zone}"
    return word.pool or "region"
