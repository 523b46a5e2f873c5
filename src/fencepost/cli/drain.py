"""``fencepost drain`` and ``keep``: a person's word about targets, beside what their checks say, never over it."""

import time
from collections.abc import Coroutine
from typing import Any

from fencepost.cli import scopes
from fencepost.cli.flags import (
    Config,
    Confirm,
    For,
    Json,
    Reason,
    Timeout,
    Yes,
    agree,
    confirm,
    duration,
    reason,
    until,
)
from fencepost.cli.scopes import Effect, Pools, Scope
from fencepost.cli.talk import Talk, answer, talk
from fencepost.cli.terminal import note, until_text
from fencepost.cli.unwell import reason as reason_of
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND
from fencepost.core.traffic.membership import SERVING, Membership, OverrideKind
from fencepost.core.traffic.operator_word import FREEZING
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, PortError, Refused
from fencepost.settings.schema import Endpoint
from fencepost.settings.units import spoken


def drain(
    *targets: str,
    zone: str | None = None,
    reason: Reason = None,
    for_: For = None,
    confirm: Confirm = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Take targets, or a failure zone, out of service, however well they are. They come back by themselves.

    Parameters
    ----------
    targets
        Addresses.
    zone
        A whole failure zone instead.
    """
    ends = until(for_, "1h")

    def work(ports: Talk) -> Coroutine[Any, Any, int]:
        return force(
            ports, OverrideKind.DRAIN, targets, zone, why=reason, ends=ends, said=confirm, yes=yes, as_json=json
        )

    return talk(config, duration(timeout, "--timeout"), work)


def keep(
    *targets: str,
    zone: str | None = None,
    reason: Reason = None,
    for_: For = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Keep targets, or a failure zone, in service, however sick they look.

    Parameters
    ----------
    targets
        Addresses.
    zone
        A whole failure zone instead.
    """
    ends = until(for_, "1h")

    def work(ports: Talk) -> Coroutine[Any, Any, int]:
        return force(ports, OverrideKind.KEEP, targets, zone, why=reason, ends=ends, said=None, yes=yes, as_json=json)

    return talk(config, duration(timeout, "--timeout"), work)


async def force(
    talk: Talk,
    kind: OverrideKind,
    targets: tuple[str, ...],
    zone: str | None,
    *,
    why: str | None,
    ends: int,
    said: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Show the effect, ask, place, wait."""
    if bool(targets) == bool(zone):
        raise Misconfigured(f"{kind} takes addresses, or --zone", hint=f"fencepost {kind} --help")
    known = await scopes.pools(talk)
    where = scopes.target_scopes(known, targets) if targets else [scopes.zone_scope(known, zone or "")]
    effects = scopes.effect_of_drain(known, where)
    words = " ".join(targets) or f"--zone {zone}"
    under = show_drain(effects, words, ends) if kind is OverrideKind.DRAIN else show_keep(known, where, ends)
    for text in replaced(known, where):
        note(text)
    if kind is OverrideKind.DRAIN:
        await say_apart(talk, known, effects)
    why = reason(why, f"{kind} {words}")
    if under:
        for pool in under:
            confirm(f"That is under min_in of pool {pool}.", pool, said)
    else:
        agree("Do it?", yes=yes or not needs_asking())
    for scope in where:
        await scopes.place(talk, known, kind, scope, why, ends)
    await applied(talk, kind, where)
    if kind is OverrideKind.DRAIN:
        await gone_from_dns(talk, known, effects)
    told = [*placed(kind, where, ends), f"  back     fencepost resume {words}"]
    answer("\n".join(told), {"done": str(kind), "on": [str(scope) for scope in where]}, as_json=as_json)
    return 0


def placed(kind: OverrideKind, where: list[Scope], ends: int) -> list[str]:
    """What is so now, once for all pools that an address is in."""
    now = "is out" if kind is OverrideKind.DRAIN else "stays in"
    return [f"{on} {now} {until_text(ends)}" for on in dict.fromkeys(map(str, where))]


def replaced(known: Pools, where: list[Scope]) -> list[str]:
    """What stands on the same targets or zones and is replaced, and what on single targets stays in force, as lines."""
    said = [
        f"This replaces the {word.what} of {word.on}, {until_text(word.until)} (by {word.by}: {word.reason})."
        for word in known.words
        if word.what not in FREEZING and Scope(word.pool, word.target, word.zone) in where
    ]
    covered = [
        (scope, pool, member)
        for pool, row in sorted(known.rows.items())
        for member in row.members
        for scope in where
        if scope.covers(pool, member)
    ]
    own = {word.id: word for each in covered if (word := known.nearer(*each)) is not None}
    said += [f"The {word.what} of {word.on} stays in force, {until_text(word.until)}." for word in own.values()]
    return said


def needs_asking() -> bool:
    """Drains and keeps within the limits end by themselves, so they are asked about only where somebody sits."""
    from fencepost.cli.flags import asking

    return asking()


def show_drain(effects: list[Effect], words: str, ends: int) -> list[str]:
    """Say what a drain does; the pools it takes under min_in. Raises ``Refused`` if a family would lose its last."""
    for each in effects:
        who = ", ".join(f"{member.key} ({member.zone})" for member in each.leaving) or "nobody who serves"
        go = "go" if len(each.leaving) > 1 else "goes"
        note(f"pool {each.pool}: {who} {go} out of service; {each.stay} of {each.of} stay in (min_in {each.least})")
        if each.empties:
            hint = "to take an endpoint away: fencepost withdraw NAME"
            raise Refused(f"drain {words} would leave pool {each.pool} without an address", hint=hint)
    note(f"They stay out {until_text(ends)}, however well they are.")
    return [each.pool for each in effects if each.under and each.leaving]


def show_keep(known: Pools, where: list[Scope], ends: int) -> list[str]:
    """Say what a keep does."""
    for pool, row in sorted(known.rows.items()):
        kept = [member for member in row.members if known.moves(where, pool, member)]
        if kept:
            back = [member.key for member in kept if member.state not in SERVING]
            more = f"; {', '.join(back)} come{'s' if len(back) == 1 else ''} back into service" if back else ""
            note(f"pool {pool}: {len(kept)} of {len(row.members)} stay in service however sick they look{more}")
            for member in kept:
                why = reason_of(member, pool, known.words, time.time_ns()) if member.healthy is False else None
                if why is not None:
                    does = "comes back" if member.key in back else "stays answered"
                    note(f"   ! {member.key} ({member.zone}) {does}: {why[1]}")
    note(f"So it stays {until_text(ends)}.")
    return []


async def applied(talk: Talk, kind: OverrideKind, where: list[Scope]) -> None:
    """Wait until the membership of each pool shows the word."""

    async def look() -> bool | None:
        known = await scopes.pools(talk)
        for pool, row in known.rows.items():
            for member in row.members:
                if known.moves(where, pool, member) and member.forced is not kind:
                    return None
        return True

    from fencepost.cli.holds import planner_hint, planner_word

    word = await planner_word(talk)
    what = f"{kind} of {', '.join(str(scope) for scope in where)}: not taken up yet{word}"
    await talk.until(look, what, hint=planner_hint(talk, word))


def concerned(known: Pools, effects: list[Effect]) -> list[Endpoint]:
    """The endpoints of pools that lose somebody."""
    pools = {each.pool for each in effects if each.leaving}
    return [each for each in known.region.endpoints if each.pool in pools]


def held_apart(live: Live, owner: str) -> str:
    """Why an endpoint doesn't follow its pool, in words that follow its name; "" if it does.

    A hold answers its own addresses until it ends, and what isn't marked as ours is left alone.
    """
    marker = live.marker
    if not isinstance(marker, Marker) or marker.owner != owner:
        return "" if live.empty and marker is None else "isn't marked as ours, so it is left alone"
    if marker.hold is None:
        return ""
    what = "is withdrawn" if marker.hold.kind == "withdraw" else f"is held by a {marker.hold.kind}"
    return f"{what}, {until_text(marker.hold.until_s * SECOND)}"


async def say_apart(talk: Talk, known: Pools, effects: list[Effect]) -> None:
    """Say which endpoints a drain doesn't change, and if they answer those drained; nothing where DNS can't be read."""
    leaving = {member.key for each in effects for member in each.leaving}
    try:
        dns = await talk.read_dns()
    except PortError:
        return
    for endpoint in concerned(known, effects):
        live = dns.live(endpoint.name)
        why = held_apart(live, talk.region.owner)
        if why:
            still = [each for each in live.a + live.aaaa if each in leaving]
            goes_on = f"goes on answering {', '.join(still)}" if still else "its answer doesn't change"
            note(f"{endpoint.name} {why}: {goes_on}")


async def gone_from_dns(talk: Talk, known: Pools, effects: list[Effect]) -> None:
    """Wait until no endpoint that follows its pool answers those drained; says what callers' caches add."""
    leaving = {each.pool: {member.key for member in each.leaving} for each in effects}
    endpoints = concerned(known, effects)

    async def look() -> list[Endpoint] | None:
        dns, rows = await talk.read_dns(), (await scopes.pools(talk)).rows
        following = [each for each in endpoints if not held_apart(dns.live(each.name), talk.region.owner)]
        for endpoint in following:
            live = dns.live(endpoint.name)
            if leaving[endpoint.pool] & set(live.a + live.aaaa) - still_serving(rows.get(endpoint.pool)):
                return None
        return following

    if not endpoints:
        return
    names = ", ".join(endpoint.name for endpoint in endpoints[:3]) + (", …" if len(endpoints) > 3 else "")
    left = await talk.until(look, f"{names}: not out of DNS yet")
    if left:
        longest = max(endpoint.ttl_s for endpoint in left)
        of = "" if len(left) == len(endpoints) else f" of {', '.join(endpoint.name for endpoint in left[:3])}"
        note(f"out of DNS{of}; callers' caches add up to {spoken(longest * SECOND)} (ttl)")


def still_serving(row: Membership | None) -> set[str]:
    """Members that serve in spite of a drain: the last of their family waits until another serves."""
    return {member.key for member in row.members if member.state in SERVING} if row else set()
