"""Addresses that a hold would have callers get though they don't serve now: each with its reason, before one says yes.

Health takes nothing out of what is held. So a dead address that a rollback or a repair answers is answered for as long
as that stands, however many checkers see it dead; a plan of an hour ago knows nothing of who has died since.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from fencepost.cli.check import counted
from fencepost.cli.loaded import pools_in
from fencepost.cli.scopes import words_in
from fencepost.cli.talk import Talk
from fencepost.cli.terminal import until_text
from fencepost.core.instant import Instant
from fencepost.core.record_set import Content
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import Fate, Member, OverrideKind, State, family
from fencepost.core.traffic.quorum import LEAST_VOTES
from fencepost.ports import PortError
from fencepost.roles.load_balancer import sight
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.answered import clock

PATIENCE_S = 1.0
"""A repair must do without the store, so nobody waits longer for it than that."""
NAMED = 12
"""Beyond so many addresses the line to paste is longer than what it saves."""


class Unwell(NamedTuple):
    """An address that doesn't serve: its zone, what it is ("dead", "pending", "drained" …), and why in words."""

    address: str
    zone: str
    state: str
    why: str


async def unwell(talk: Talk, name: str, addresses: Sequence[str]) -> list[Unwell] | None:
    """Which of an endpoint's addresses don't serve, as its pool's row says; None if the store is away."""
    pools = {each.pool for each in talk.region.endpoints if each.name == name}
    try:
        async with asyncio.timeout(PATIENCE_S):
            inputs = await talk.store.inputs()
        rows = [row for pool, row in pools_in(inputs).items() if pool in pools]
    except (PortError, TimeoutError):
        return None
    words, now = words_in(inputs.overrides), time.time_ns()
    members = {member.key: (row.pool, member) for row in rows for member in row.members if member.key in addresses}
    found = ((address, *members[address]) for address in addresses if address in members)
    said = ((member, reason(member, pool, words, now)) for _, pool, member in found)
    return [Unwell(member.key, member.zone, *why) for member, why in said if why is not None]


def reason(member: Member, pool: str, words: Sequence[StoredOverride], now: Instant) -> tuple[str, str] | None:
    """What a target is that doesn't serve, and why; None for one that does, or could."""
    if member.state is State.DRAINED and member.fate is Fate.TERMINATED:
        return "terminated", member.cause
    if member.healthy is False:
        saw = sight(member) if member.votes.fresh >= LEAST_VOTES else "its last verdict; there is no quorum now"
        return why_dead(member), f"{why_dead(member)} since {clock(member.dead_since or member.since, now)}: {saw}"
    if member.state is State.PENDING:
        return "pending", f"pending: {member.cause or 'it has no verdict yet'}"
    if member.state is State.DRAINED:
        return "drained", drained_by(member, pool, words)
    return None


def drained_by(member: Member, pool: str, words: Sequence[StoredOverride]) -> str:
    """Whose drain it is, and until when."""
    for word in words:
        on = word.pool in ("", pool) and word.target in ("", member.key) and word.zone in ("", member.zone)
        if on and word.what is OverrideKind.DRAIN:
            return f"drained by {word.by}, {until_text(word.until)}: {word.reason}"
    return f"drained: {member.cause}" if member.cause else "drained"


def lines(name: str, value: Content, now: Collection[str], found: Sequence[Unwell] | None) -> list[str]:
    """What to know before the set is answered, and what to do; ``now`` is what callers get now."""
    if found is None:
        return ["   Whether these serve isn't known: the store can't be read."]
    if not found:
        return []
    told = [f"   ! {each.address} ({each.zone}) {fate(each, now)}: {each.why}" for each in found]
    bad = {each.address for each in found}
    rest = [each for each in value.addresses if each not in bad]
    lost = {family(each) for each in bad} - {family(each) for each in rest}
    they, them = ("It stays", "it") if len(found) == 1 else ("They stay", "them")
    part = f"{len(found)} of the {counted(len(value.addresses), 'address')} that callers get"
    told.append(f"   {they} answered until the hold ends, whatever checks say: {part}.")
    if lost or len(rest) > NAMED:
        return [*told, f"   Mend {them} first, or look for another plan:  fencepost history {name} --only plan"]
    flags = " ".join(f"--address {each}" for each in rest)
    return [*told, f"   Without {them}:  fencepost repair {name} {flags}"]


def fate(each: Unwell, now: Collection[str]) -> str:
    """What the hold does to an address that doesn't serve."""
    return "stays answered" if each.address in now else "would be answered again"


def document(name: str, found: Sequence[Unwell] | None) -> list[dict[str, Any]] | None:
    """The same for programs; None where it isn't known."""
    return None if found is None else [{"on": name, **each._asdict()} for each in found]
