"""``fencepost plan``: the preview (:mod:`fencepost.cli.preview`) in words, as Markdown and as a document.

With ``--save`` it is also written down, for ``fencepost enact`` to do exactly this or nothing
(:mod:`fencepost.cli.saved_plan`).
"""

import json as json_text
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fencepost.cli import plan_cost, plan_holds, plan_later, plan_markdown, saved_plan
from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.layout import table
from fencepost.cli.plan_changes import came, changing, kept_lines, unseen, went
from fencepost.cli.plan_document import document
from fencepost.cli.preview import Preview, marker_of, preview
from fencepost.cli.regions import region_of
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import note, say, styled
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.settings import Region, providers


def plan(
    *,
    save: str | None = None,
    format_: Annotated[Literal["text", "markdown", "json"], Parameter(name="--format")] = "text",
    exit_code: bool = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Say what region.toml, as it stands now, would change in DNS. Nothing is done.

    Parameters
    ----------
    save
        Write it to this file too, for `fencepost enact`, which does exactly this or nothing.
    format_
        text; markdown, for a pull request; or json, for programs.
    exit_code
        Exit with 1 if something would change, at once or as soon as new targets are ready.
    """
    as_json = json or format_ == "json"

    async def work(talk: Talk) -> int:
        found = await preview(talk)
        if save is not None:
            saved_plan.write(Path(save), found, document(found), by=talk.by)
            note(f"saved as {save}; to do exactly this and nothing else:  fencepost enact {save}")
        text = plan_markdown.lines(found) if format_ == "markdown" else lines(found, asking=save is not None)
        say(json_text.dumps(document(found)) if as_json else "\n".join(text))
        return 1 if exit_code and plan_later.changes_something(found) else 0

    return talk_about(region_of(config), duration(timeout, "--timeout"), work)


def lines(found: Preview, *, asking: bool = False) -> list[str]:
    """The preview in words; ``asking`` leaves out how to have it done, where that is asked next or was just said."""
    region, rows = found.region, changing(found)
    managed = sum(marker_of(live) is not None for live in found.lives.values())
    known = f"{counted(len(region.endpoints), 'endpoint')}, {managed} managed"
    said = [
        f"{region.name} · {', '.join(region.dns.domains)} on {place(region)}: {known},"
        f" read in {found.read_s:.1f} s · nothing is done now"
    ]
    if not found.has_store:
        ran = any(marker_of(live) for live in found.lives.values())
        said.append(
            "no store can be read: this is what a start with a new one would do, which adopts what stands"
            if ran
            else "there is no store yet: this is what a first start would do"
        )
        said += [styled(f"a start would be refused: {why}", "yellow") for why in ([] if ran else taken(region))]
    said += [styled(f"a reload would be refused without --yes: {why}", "yellow") for why in found.refusals]
    nothing = not plan_later.changes_something(found)
    said.append(plan_later.headline(found) + (" while what people placed stands" if nothing and found.held else ""))
    changed = {row.name: row for row in rows}
    listed = {each.name for each in region.endpoints}
    for name in sorted({*found.lives, *changed}):
        if name in found.left_alone:
            said.append(f" {name}   left alone: {found.left_alone[name]}{adoptable(found, name)}")
        elif name in changed:
            said += [*endpoint_lines(found, changed[name]), *soon(found, name)]
        elif name not in listed:
            said.append(plan_holds.orphan_line(found, name))
        elif name in found.held:
            said += [plan_holds.held_line(found, name), *table(plan_holds.following(found, name), "   ")]
            said += soon(found, name, waiting=True)
        else:
            marker = marker_of(found.lives[name])
            of_it = any(name in each.endpoints for each in plan_later.later(found))
            change = "no change at once" if of_it else "no change"
            said.append(f" {name}   " + (f"gen {marker.generation}, {change}" if marker else "not published yet"))
            said += [*table(kept_lines(found, name), "   "), *soon(found, name)]
    if rows:
        said.append(plan_cost.line(found))
    return said + ([] if asking else closing(found)) + plan_holds.closing(found)


def soon(found: Preview, name: str, *, waiting: bool = False) -> list[str]:
    """An endpoint's targets that come or go by the file without a record showing it at once."""
    return table(plan_later.rows_of(found, name, waiting=waiting), "   ")


def place(region: Region) -> str:
    """Where the domain is served, for people."""
    at = providers.where(region.dns)
    return at if providers.by_api(region.dns) else f"{at} ({region.dns.provider})"


def adoptable(found: Preview, name: str) -> str:
    """The line that takes over what stands there, where that can be done."""
    live = found.lives[name]
    if live.marker is not None or live.other or live.empty:
        return ""
    return f"; to take it over as it stands:  fencepost adopt {name}"


def taken(region: Region) -> list[str]:
    """The places that a first start would listen on and that another process has."""
    from fencepost.assembly.ports_in_use import taken_by

    places = [(region.api.listen, "[api] listen", False)]
    if region.dns.provider == "embedded" and region.dns.listen is not None:
        places.insert(0, (region.dns.listen, "[dns] listen", True))
    found = ((what, taken_by(place.host, place.port, what, udp=udp)) for place, what, udp in places)
    return [f"{what}: {why}; write another port" for what, why in found if why]


def closing(found: Preview) -> list[str]:
    """How to have it done."""
    if not plan_later.changes_something(found):
        return []
    if found.loaded is None:
        return ["To do it:  fencepost up"]
    said = []
    if found.loaded.region != found.region:
        said.append("To take the file up, and let the planner go on from there:  fencepost reload")
    else:
        said.append("A running planner does this by itself, at once (shifts of weights within gather).")
    if found.has_store:
        said.append("To do exactly this and nothing else:  fencepost plan --save p.json  then  fencepost enact p.json")
    return said


def endpoint_lines(found: Preview, row: Row) -> list[str]:
    """One endpoint's change: its generations and counts, then each address that comes, goes or is kept."""
    live = found.lives.get(row.name, Live(row.name))
    marker = marker_of(live)
    before, after = set(live.a + live.aaaa), set(row.content.addresses)
    kinds = " ".join(
        f"{kind}: {len(old)} addresses -> {len(new)}"
        for kind, old, new in (("A", live.a, row.content.a), ("AAAA", live.aaaa, row.content.aaaa))
        if old or new
    )
    if row.withdrawn:
        kinds = "is withdrawn: no address"
    said = [f" {styled(row.name, 'bold')}   gen {marker.generation if marker else '-'} -> {row.generation}   {kinds}"]
    cells: list[tuple[str, ...]] = [
        ("+", address, *came(found, row.name, address)) for address in row.content.addresses if address not in before
    ]
    cells += [("-", address, *went(found, row.name, address)) for address in live.a + live.aaaa if address not in after]
    if not cells:
        whys = [each.partition(": ") for each in (found.plan.why if found.plan else ())]
        why = "; ".join(what for name, _, what in whys if name == row.name)
        cells.append(("~", unseen(live, row), "", why, ""))
    told = {cell[1] for cell in cells}
    return said + table(cells + [kept for kept in kept_lines(found, row.name) if kept[1] not in told], "   ")
