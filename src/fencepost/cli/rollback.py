"""``fencepost rollback``: endpoints back to what an older plan gave them, held there for a time."""

from typing import Any, NamedTuple

from fencepost.cli import holds
from fencepost.cli import unwell as sick
from fencepost.cli.flags import Config, For, Json, Reason, Timeout, Yes, agree, duration, reason, until
from fencepost.cli.repair import launched_of, strangers
from fencepost.cli.talk import Talk, answer, endpoint_name, talk
from fencepost.cli.terminal import note, until_text
from fencepost.core.fence import Marker
from fencepost.core.record_set import Content
from fencepost.core.zone import Live, lacks_family
from fencepost.ports import Refused


class Step(NamedTuple):
    """One endpoint's way back."""

    name: str
    before: holds.Standing
    content: Content
    number: int


def rollback(
    plan: int,
    /,
    *names: str,
    reason: Reason = None,
    for_: For = None,
    yes: Yes = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Put endpoints back to what they had as of PLAN, a plan's number: those named, or all that have changed since.

    Refused whole if one of these sets is no longer kept, or would leave a published family without an address.
    """
    return talk(
        config,
        duration(timeout, "--timeout"),
        lambda ports: work(ports, plan, names, why=reason, ends=until(for_, "1h"), yes=yes, as_json=json),
    )


async def work(
    talk: Talk, generation: int, names: tuple[str, ...], *, why: str | None, ends: int, yes: bool, as_json: bool
) -> int:
    """Look up, show, ask, order, wait."""
    known = await talk.names() if names else ()
    chosen = [endpoint_name(talk.region, name, known) for name in names] or sorted(
        each.name for each in talk.region.endpoints
    )
    await issued(talk, generation)
    steps = [step for name in chosen if (step := await step_of(talk, name, generation, asked=bool(names)))]
    if not steps:
        raise Refused(f"nothing has changed since plan {generation}", hint="fencepost history    lists the plans")
    shown = [await show(talk, step) for step in steps]
    unwell = None if None in shown else [each for some in shown for each in some or ()]
    note(f"Held so {until_text(ends)}; health doesn't take addresses out of it meanwhile.")
    why = reason(why, f"rollback {generation}")
    agree(f"Roll back {len(steps)} endpoint{'s' if len(steps) > 1 else ''}?", yes=yes)
    for step in steps:
        placing = holds.order("rollback", step.name, talk, why, content=step.content, until=ends)
        await talk.within(talk.store.put_order(placing), "the store")
        await talk.tell_history(step.name, f"rollback to plan {step.number}", why)
    done = [await holds.placed(talk, step.name, "rollback", step.before.generation) for step in steps]
    lines = [
        f"{step.name} is as of plan {step.number} again (gen {marker.generation}) {until_text(ends)}"
        for step, marker in zip(steps, done, strict=True)
    ]
    lines.append(f"  back     fencepost resume {' '.join(step.name for step in steps)}")
    document = {"done": "rollback", "on": [step.name for step in steps], "unwell": unwell}
    answer("\n".join(lines), document, as_json=as_json)
    return 0


async def show(talk: Talk, step: Step) -> list[dict[str, Any]] | None:
    """Say what a step changes, and which of its addresses don't serve now; these for programs."""
    live = step.before.live
    now, then = set(live.a + live.aaaa), set(step.content.addresses)
    moved = [f"+{each}" for each in sorted(then - now)] + [f"-{each}" for each in sorted(now - then)]
    what = " ".join(moved) or other_change(live, step.content)
    note(f" {step.name}   gen {step.before.generation} -> as of plan {step.number}: {what}")
    found = await sick.unwell(talk, step.name, step.content.addresses)
    for line in sick.lines(step.name, step.content, now, found):
        note(line)
    for line in strangers(talk, step.name, step.content, await launched_of(talk, step.name)):
        note(f"   ! {line}")
    return sick.document(step.name, found)


def other_change(live: Live, then: Content) -> str:
    """What differs where the addresses don't. No weights are equal weights, whatever the number."""
    if live.ttl and live.ttl != then.ttl:
        return f"ttl {live.ttl} -> {then.ttl}"
    now = live.marker.content if isinstance(live.marker, Marker) else None
    if (had := now.srv if now is not None else None) != then.srv:
        return f"SRV {had or 'none'} -> {then.srv or 'none'}"
    old, new = now.weights if now is not None else (), then.weights
    if old == new:
        return "the same records, now held so"
    return "weights as of then" if new else "all weigh the same (now one differs: a target that comes back starts low)"


async def issued(talk: Talk, generation: int) -> None:
    """Raise ``Refused`` for a plan that never was."""
    newest = (await talk.within(talk.store.head(), "the store")).number
    if not 0 <= generation <= newest:
        has = f"the newest is {newest}" if newest else "none was ever made"
        raise Refused(f"there is no plan {generation}; {has}", hint="fencepost history --only plan    lists them")


async def step_of(talk: Talk, name: str, generation: int, *, asked: bool) -> Step | None:
    """One endpoint's way back; None if it hasn't changed since. Raises ``Refused`` if it can't go."""
    before = await holds.standing(talk, name)
    rows = await talk.within(talk.store.rows_of(name), "the store")
    if not rows:
        raise Refused("no plan of it is kept", where=name)
    then = next((row for row in rows if row.generation.number <= generation), None)
    if then is None:
        oldest = rows[-1].generation.number
        hint = f"the oldest kept is plan {oldest}; name the endpoints that can go back"
        raise Refused(f"what it had as of plan {generation} is no longer kept; nothing was done", where=name, hint=hint)
    if then.digest == rows[0].digest and rows[0].hold is None:
        if asked:
            raise Refused(f"has not changed since plan {generation}; nothing was done", where=name)
        return None
    if then.content.empty or lacks_family(then.content, rows[0].families):
        what = f"as of plan {generation} it had no address in a family it publishes now; nothing was done"
        raise Refused(what, where=name, hint=f"to take it away: fencepost withdraw {name}")
    return Step(name, before, then.content, then.generation.number)
