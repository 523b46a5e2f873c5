"""``fencepost pause``: automation takes nothing out and puts nothing back; checks go on and are shown."""

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
from fencepost.cli.scopes import Pools, Scope
from fencepost.cli.talk import Talk, answer, talk
from fencepost.cli.terminal import note, until_text
from fencepost.core.traffic.membership import Mode, OverrideKind
from fencepost.ports import Misconfigured, Refused


def pause(
    pool: str | None = None,
    /,
    *,
    zone: str | None = None,
    region: bool = False,
    observe: bool = False,
    reason: Reason = None,
    for_: For = None,
    confirm: Confirm = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Freeze a pool, a failure zone or the region as it is: automation takes nothing out and puts nothing back.

    Your own drains and resumes still work.

    Parameters
    ----------
    pool
        The pool.
    zone
        A failure zone, in that pool or in all.
    region
        Everything; asks for the region's name (--confirm).
    observe
        Decide and show what would be done, and do nothing.
    """
    kind = OverrideKind.OBSERVE if observe else OverrideKind.PAUSE
    ends = until(for_, "1h")
    return talk(
        config,
        duration(timeout, "--timeout"),
        lambda ports: work(
            ports, kind, (pool, zone, region), why=reason, ends=ends, said=confirm, yes=yes, as_json=json
        ),
    )


async def work(
    talk: Talk,
    kind: OverrideKind,
    what: tuple[str | None, str | None, bool],
    *,
    why: str | None,
    ends: int,
    said: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Show the effect, ask, place, wait."""
    pool, zone, region = what
    if region == bool(pool or zone):
        raise Misconfigured("pause takes a pool, --zone or --region", hint="fencepost pause --help")
    known = await scopes.pools(talk)
    if pool is not None and pool not in known.rows:
        raise Refused(f"there is no pool {pool!r}", hint=f"pools are {', '.join(sorted(known.rows))}")
    scope = scopes.zone_scope(known, zone, pool or "") if zone else Scope(pool or "")
    does = (
        "is decided and shown, and not done"
        if kind is OverrideKind.OBSERVE
        else "stays as it is: automation takes nothing out and puts nothing back"
    )
    note(f"{scope} {does}, {until_text(ends)}.")
    note(
        "Repairs and your own acts still work: what you drain goes out, what you resume is answered again, dead or not."
    )
    command = f"pause {pool or ''}{f' --zone {zone}' if zone else ''}{' --region' if region else ''}"
    why = reason(why, command)
    if region:
        confirm("This stops all removals in the region, of dead targets too.", talk.region.name, said)
    else:
        from fencepost.cli.flags import asking

        agree("Do it?", yes=yes or not asking())
    await scopes.place(talk, known, kind, scope, why, ends)
    await applied(talk, kind, scope)
    back = "region" if region else " ".join(filter(None, [pool, f"--zone {zone}" if zone else ""]))
    answer(
        f"{scope} is {'observed' if kind is OverrideKind.OBSERVE else 'paused'} {until_text(ends)}\n"
        f"  back     fencepost resume {back}",
        {"done": str(kind), "on": [str(scope)]},
        as_json=as_json,
    )
    return 0


async def applied(talk: Talk, kind: OverrideKind, scope: Scope) -> None:
    """Wait until the membership rows show it."""

    async def look() -> bool | None:
        return shows(await scopes.pools(talk), scope) or None

    from fencepost.cli.holds import planner_hint, planner_word

    word = await planner_word(talk)
    await talk.until(look, f"{kind} of {scope}: not taken up yet{word}", hint=planner_hint(talk, word))


def shows(known: Pools, scope: Scope) -> bool:
    """Whether every row that it speaks of shows the word (a forced target shows its drain or keep instead)."""
    for pool, row in known.rows.items():
        if scope.pool not in ("", pool):
            continue
        if not scope.zone:
            if row.mode is Mode.ENABLED:
                return False
        elif any(member.zone == scope.zone and member.forced is None for member in row.members):
            return False
    return True
