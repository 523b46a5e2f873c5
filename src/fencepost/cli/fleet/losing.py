"""What callers lose when instances are terminated: said before it is asked for, since no limit stands in its way.

A terminate is a person's act. It costs no budget, and neither ``max_out`` nor ``min_in`` keeps anybody in; only the
last of a family stays answered, with nothing running there. So whoever does it sees the numbers that would have been
kept; and who sits at a terminal types the pool's name where they aren't, as for a drain. Scripts go on with ``--yes``.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from fencepost.cli import flags, scopes
from fencepost.cli.check import counted
from fencepost.cli.drain import concerned, held_apart
from fencepost.cli.scopes import Effect, Pools
from fencepost.cli.talk import Talk
from fencepost.core.traffic.membership import Member, Membership, State, family
from fencepost.core.zone import Live
from fencepost.ports import PortError
from fencepost.roles.fleet.view import InstanceSeen
from fencepost.roles.status.ways import drained

NAMED = 8
"""So many addresses or endpoints are named in a line."""


class Losses(NamedTuple):
    """What would be lost: lines for a person, and each pool's numbers."""

    lines: list[str]
    effects: list[Effect]


async def losses(talk: Talk, ending: Sequence[InstanceSeen]) -> Losses:
    """What terminating these does to their pools and to what callers get."""
    try:
        known = await scopes.pools(talk)
    except PortError:
        return Losses([], [])  # no role has made a row yet: nobody serves
    effects = []
    for pool in known.region.pools:
        row = known.rows.get(pool.name)
        lives = [each for each in ending if each.pool == pool.name and each.state not in ("ending", "ended")]
        keys = leaving(row, lives) if row is not None else set()
        if row is not None and keys:
            effects.append(Effect(pool.name, *drained(pool, row, keys)))
    effects = [each for each in effects if each.leaving]
    lines = [line for each in effects for line in of_pool(each, known.rows[each.pool])]
    return Losses([*lines, *await answers(talk, known, effects)], effects)


def leaving(row: Membership, ending: Sequence[InstanceSeen]) -> set[str]:
    """The members that such instances are: by their attempts, or by the address that the file lists too."""
    names = {each.instance for each in ending}
    there = {each.address for each in ending if each.address}
    return {m.key for m in row.members if (m.source.rpartition(".")[0] in names if m.source else m.key in there)}


def of_pool(effect: Effect, row: Membership) -> list[str]:
    """A pool's line: who goes, how many are left of how many, and what no limit holds back."""
    going = named([f"{member.key} ({member.zone})" for member in effect.leaving])
    keys = {member.key for member in effect.leaving}
    dead = sum(member.state is State.KEPT and member.key not in keys for member in row.members)
    kept = f", {dead} of them dead and kept" if dead else ""
    go = "goes" if len(effect.leaving) == 1 else "go"
    stay = f"{effect.stay} of {effect.of} stay in{kept} (min_in {effect.least})"
    lines = [f"pool {effect.pool}: {going} {go} out of service; {stay}"]
    first = f"fencepost fleet launch {effect.pool} --count {len(effect.leaving)} --wait"
    if effect.empties:
        last = named(sorted(lasts(effect.leaving, row)))
        lines.append(f"  ! of {last} the last stays answered though nothing runs there, until another serves")
    if effect.under or effect.empties:
        under = "that is under min_in, and " if effect.under else ""
        lines.append(f"  ! {under}no limit holds a terminate back; what replaces them first:  {first}")
    return lines


def lasts(going: Sequence[Member], row: Membership) -> set[str]:
    """The members that go and whose family nobody else serves."""
    keys = {member.key for member in going}
    left = {family(each.key) for each in row.members if each.key not in keys and each.state in (State.IN, State.KEPT)}
    return {member.key for member in going if family(member.key) not in left}


async def answers(talk: Talk, known: Pools, effects: Sequence[Effect]) -> list[str]:
    """What each endpoint answers then, those alike in one line."""
    gone = {each.pool: {member.key for member in each.leaving} for each in effects}
    endpoints = concerned(known, list(effects))
    if not endpoints:
        return []
    try:
        dns = await talk.read_dns()
    except PortError as error:
        return [f"what callers get now isn't known: {error}"]
    alike: dict[str, list[str]] = {}
    for endpoint in endpoints:
        live = dns.live(endpoint.name)
        text = answer(live, gone[endpoint.pool], held_apart(live, talk.region.owner))
        if text:
            alike.setdefault(text, []).append(endpoint.name)
    return [f"{named(names)}{text}" for text, names in alike.items()]


def answer(live: Live, gone: Collection[str], apart: str) -> str:
    """What an endpoint answers then, in words that follow its name; "" for no change. ``apart``: why by itself."""
    now = live.a + live.aaaa
    left = [each for each in now if each not in gone]
    if len(left) == len(now):
        return ""
    if apart:
        return f" {apart}: goes on answering {counted(len(now) - len(left), 'address')} where nothing will run"
    last = len({family(each) for each in now} - {family(each) for each in left})
    more = f", and {last} where nothing will run" if last else ""
    return f": {len(left)} of {counted(len(now), 'address')} {'stays' if len(left) == 1 else 'stay'} answered{more}"


def agreed(effects: Sequence[Effect], question: str, *, yes: bool, said: str | None) -> None:
    """Go on only with a yes, or with the name of each pool that goes under ``min_in`` (``said``: by ``--confirm``).

    Raises as ``agree`` and ``confirm`` do.
    """
    under = [each.pool for each in effects if each.under or each.empties]
    if not under:
        flags.agree(question, yes=yes)
    for pool in under:
        flags.confirm(f"That is under min_in of pool {pool}. {question}", pool, said)


def named(names: Collection[str]) -> str:
    """Some of many."""
    some = list(names)
    return ", ".join(some[:NAMED]) + (f" and {len(some) - NAMED} more" if len(some) > NAMED else "")


def document(effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """The pools' numbers for programs."""
    return [
        {
            "pool": each.pool,
            "leaving": [member.key for member in each.leaving],
            "in": each.stay,
            "targets": each.of,
            "min_in": each.least,
            "under_min_in": each.under,
        }
        for each in effects
    ]
