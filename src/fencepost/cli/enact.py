"""``fencepost enact FILE``: exactly the plan that was saved, or nothing.

Planners are level-based: they plan from what is, and would plan the same again in a moment. So enacting is one
planner's pass with its outcome known beforehand. The plan is made anew by the same deciders; if anything that it was
made from has moved, or it comes out otherwise, it is refused and nothing was done. Else the file is loaded, the pools'
rows follow and the plan is published, each by compare-and-set, and enactors write it. Whether a planner runs or not.

The awkward truth: these are three writes and no single one. A change of health that comes in between is the planner's
business, as it is a moment later; then what is published may be its own. It is said if that isn't what was saved.
"""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

from fencepost.cli import plan_later, saved_plan
from fencepost.cli.flags import Config, Json, Timeout, Yes, agree, duration
from fencepost.cli.holds import planner_word
from fencepost.cli.loaded import pools_in
from fencepost.cli.plan import lines
from fencepost.cli.plan_changes import changing
from fencepost.cli.preview import Preview, preview
from fencepost.cli.regions import region_of, shown
from fencepost.cli.reload import refuse_fixed
from fencepost.cli.saved_plan import Basis
from fencepost.cli.talk import LOOK_EVERY_S, Talk, answer, talk_about
from fencepost.cli.terminal import note
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.store import Plan, Row
from fencepost.ports import HistoryRow, Refused
from fencepost.roles import configuration
from fencepost.settings.changes import changes

PATIENCE: Duration = 3 * SECOND
"""How long a planner that was first may take to have published it all: it plans several times a second."""


class Outcome(NamedTuple):
    """What was published: by us, or by the region's own planner, which then was first with the very same."""

    plan: Plan
    ours: bool


def enact(
    file: str, /, *, yes: Yes = False, timeout: Timeout = "10s", config: Config = None, json: Json = False
) -> int:
    """Do what a saved plan says, and nothing else; refused if anything has moved since it was saved.

    Parameters
    ----------
    file
        As `fencepost plan --save` wrote it.
    """
    saved = saved_plan.load(Path(file))
    return talk_about(
        region_of(config), duration(timeout, "--timeout"), lambda ports: work(ports, file, saved, yes=yes, as_json=json)
    )


async def work(talk: Talk, file: str, saved: Basis, *, yes: bool, as_json: bool) -> int:
    """Compare, show, ask, load, publish, wait."""
    if (saved.region, saved.owner) != (talk.region.name, talk.region.owner):
        what = f"is a plan of region {saved.region}, and this is {talk.region.name}"
        raise Refused(what, where=file, hint="--config says which region is meant")
    found = await preview(talk)
    refuse_moved(file, saved, found)
    loads = found.loaded is not None and found.loaded.region != found.region
    if found.plan is None and not loads:
        answer("nothing to do: the saved plan changes nothing", {"done": "enact", "on": []}, as_json=as_json)
        return 0
    for line in lines(found, asking=True)[1:]:
        note(line)
    if found.refusals and not yes:
        raise Refused("; ".join(found.refusals), where=file, hint=f"if you mean it:  fencepost enact {file} --yes")
    agree("Do exactly this?", yes=yes)
    if loads:
        await take_up(talk, found)
    done = await publish(talk, found, saved, file) if found.plan is not None else None
    if done is not None and done.ours:
        await tell(talk, file, done.plan)
    rows = changing(found)
    for row in rows:
        await shows(talk, row)
    names = [row.name for row in rows]
    answer(
        said(found, done, rows),
        {"done": "enact", "on": names, "plan": done.plan.number if done is not None else None},
        as_json=as_json,
    )
    return 0


def refuse_moved(file: str, saved: Basis, found: Preview) -> None:
    """Raise ``Refused`` if the world isn't the one that the plan was made in."""
    moved = saved_plan.moved(saved, saved_plan.basis_of(found))
    if moved:
        hint = f"fencepost plan --save {file}    makes it anew; look at it again"
        raise Refused(f"is stale: {'; '.join(moved)}. Nothing was done", where=file, hint=hint)


async def take_up(talk: Talk, found: Preview) -> None:
    """Load the file and write the pools' rows that follow from it. Raises ``Refused`` if another load comes first."""
    if found.inputs is None or found.loaded is None:
        raise AssertionError("a plan was compared without its store")
    await refuse_fixed(talk, found.region, changes(found.loaded.region, found.region))
    put = configuration.put(talk.store, found.region, confirmed=bool(found.refusals), seen=found.inputs, by=talk.by)
    await talk.within(put, "the store")
    for pool, row in found.after.items():
        if row != found.before.get(pool):
            version = found.inputs.membership.get(pool, (0, b""))[0]
            await talk.within(talk.store.put_membership(pool, version, msgspec.json.encode(row)), "the store")


async def publish(talk: Talk, found: Preview, saved: Basis, file: str) -> Outcome:
    """Publish the plan by compare-and-set on the head that was saved.

    Raises ``Refused`` if another plan came first that isn't the same.
    """
    if found.plan is None:
        raise AssertionError("there is no plan to publish")
    inputs = await talk.within(talk.store.inputs(), "the store")
    now = pools_in(inputs)
    unchanged = all(now.get(pool) == row for pool, row in found.after.items())
    plan = structs.replace(found.plan, expected=saved.head, inputs=inputs.snapshot)
    if unchanged and await talk.within(talk.store.publish(plan), "the store") is not None:
        return Outcome(plan, ours=True)
    await same_by_another(talk, found.plan.rows, file)
    return Outcome(plan, ours=False)


async def same_by_another(talk: Talk, rows: tuple[Row, ...], file: str) -> None:
    """Wait until the region's own planner has published the very contents of the plan. Raises ``Refused`` if not."""

    async def look() -> bool | None:
        newest = {row.name: row for row in (await talk.store.newest_rows(None))[1]}
        same = all(row.name in newest and newest[row.name].digest == row.digest for row in rows)
        return True if same else None

    wait = min(talk.timeout, PATIENCE)
    began = time.monotonic_ns()
    while time.monotonic_ns() - began < wait:
        if await talk.within(look(), "the store"):
            return
        await asyncio.sleep(LOOK_EVERY_S)
    what = "another plan was published first, and isn't this one; the region goes on from region.toml by itself"
    raise Refused(what, where=file, hint="fencepost plan    shows what is still to come")


async def shows(talk: Talk, row: Row) -> None:
    """Wait until DNS shows a row, or something newer with the same content."""

    async def look() -> bool | None:
        live = (await talk.read_dns()).live(row.name)
        marker = live.marker
        enacted = isinstance(marker, Marker) and marker.owner == talk.region.owner and marker.digest == row.digest
        return True if enacted and live.holds(row.content) else None

    await talk.until(look, f"{row.name}: isn't in DNS yet{await planner_word(talk)}")


async def tell(talk: Talk, file: str, plan: Plan) -> None:
    """The history's line of a plan, as planners write it, and who had it done."""
    names = ", ".join(row.name.partition(".")[0] for row in plan.rows[:5]) + (" ..." if len(plan.rows) > 5 else "")
    reasons = sorted({why.partition(": ")[2] for why in plan.why}) or ["orders carried out"]
    text = f"plan {plan.number}: {'; '.join(reasons)} ({names}), as saved"
    await talk.within(talk.store.note([HistoryRow("plan", names, talk.by, text, time.time_ns())]), "the store")
    await talk.tell_history(names, f"enacted plan {plan.number} from {Path(file).name}", "")


def said(found: Preview, done: Outcome | None, rows: tuple[Row, ...]) -> str:
    """What was done, in words."""
    if done is None:
        soon = plan_later.counts(plan_later.later(found))
        changes_ = f"no record changes at once; {soon}" if soon else "no endpoint changes by it"
        return f"{shown(Path(found.region.path))} is loaded; {changes_}"
    by = f"plan {done.plan.number}" if done.ours else "the region's own planner, which was first with the very same"
    if not rows:
        return f"done by {by}; no endpoint changes"
    return "\n".join(f"{row.name} is as saved: {len(row.content.addresses)} in DNS, by {by}" for row in rows)
