"""``fencepost plan``: the preview (:mod:`fencepost.cli.preview`) in words and as a document."""

import json as json_text
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from fencepost.cli import plan_holds
from fencepost.cli.check import counted
from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.layout import table
from fencepost.cli.preview import Preview, marker_of, preview
from fencepost.cli.regions import region_of, shown
from fencepost.cli.talk import Talk, talk_about
from fencepost.cli.terminal import ago, say, styled
from fencepost.core.store import Row
from fencepost.core.traffic.membership import Member, Membership, Rule, State
from fencepost.core.zone import Live
from fencepost.settings import Region
from fencepost.settings.schema import Endpoint


def plan(
    *,
    format_: Annotated[Literal["text", "json"], Parameter(name="--format")] = "text",
    exit_code: bool = False,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """Say what region.toml, as it stands now, would change in DNS. Nothing is done.

    Parameters
    ----------
    format_
        text, or json for programs.
    exit_code
        Exit with 1 if something would change.
    """
    as_json = json or format_ == "json"

    async def work(talk: Talk) -> int:
        found = await preview(talk)
        say(json_text.dumps(document(found)) if as_json else "\n".join(lines(found)))
        return 1 if exit_code and changing(found) else 0

    return talk_about(region_of(config), duration(timeout, "--timeout"), work)


def lines(found: Preview) -> list[str]:
    """The preview in words."""
    region, rows = found.region, changing(found)
    place = region.dns.place
    managed = sum(marker_of(live) is not None for live in found.lives.values())
    known = f"{counted(len(region.endpoints), 'endpoint')}, {managed} managed"
    said = [
        f"{region.name} · {', '.join(region.dns.domains)} on {place} ({region.dns.provider}): {known},"
        f" read in {found.read_s:.1f} s · nothing is done now"
    ]
    if not found.has_store:
        ran = any(marker_of(live) for live in found.lives.values())
        said.append(
            "the store can't be read: this is what a start with a new one would do, which adopts what stands"
            if ran
            else "there is no store yet: this is what a first start would do"
        )
        said += [styled(f"a start would be refused: {why}", "yellow") for why in ([] if ran else taken(region))]
    said += [styled(f"a reload would be refused without --yes: {why}", "yellow") for why in found.refusals]
    if not rows:
        said.append("nothing would change" + (" while what people placed stands" if found.held else ""))
    else:
        number = found.plan.number if found.plan else 0
        said.append(f"plan {number} would change {len(rows)} of {counted(len(region.endpoints), 'endpoint')}")
    changed = {row.name: row for row in rows}
    listed = {each.name for each in region.endpoints}
    for name in sorted({*found.lives, *changed}):
        if name in found.left_alone:
            said.append(f" {name}   left alone: {found.left_alone[name]}")
        elif name in changed:
            said += endpoint_lines(found, changed[name])
        elif name not in listed:
            said.append(plan_holds.orphan_line(found, name))
        elif name in found.held:
            said += [plan_holds.held_line(found, name), *table(plan_holds.following(found, name), "   ")]
        else:
            marker = marker_of(found.lives[name])
            said.append(f" {name}   " + (f"gen {marker.generation}, no change" if marker else "not published yet"))
            said += table(kept_lines(found, name), "   ")
    return said + closing(found, rows) + plan_holds.closing(found)


def taken(region: Region) -> list[str]:
    """The places that a first start would listen on and that another process has."""
    from fencepost.cli.up_start import taken_by

    places = [(region.api.listen, "[api] listen", False)]
    if region.dns.provider == "embedded" and region.dns.listen is not None:
        places.insert(0, (region.dns.listen, "[dns] listen", True))
    found = ((what, taken_by(place.host, place.port, what, udp=udp)) for place, what, udp in places)
    return [f"{what}: {why}; write another port" for what, why in found if why]


def changing(found: Preview) -> tuple[Row, ...]:
    """The rows that enactors would carry out: what is left alone doesn't change, planned or not."""
    rows = found.plan.rows if found.plan else ()
    return tuple(row for row in rows if row.name not in found.left_alone)


def closing(found: Preview, rows: tuple[Row, ...]) -> list[str]:
    """How much is written, and how to have it done."""
    if not rows:
        return []
    said = [f"{counted(len(rows), 'endpoint')} written, each in one transaction."]
    if found.loaded is None:
        said.append("To do it:  fencepost up")
    elif found.loaded.region != found.region:
        said.append("To do it:  fencepost reload")
    else:
        said.append("A running planner does this by itself, at once (shifts of weights within gather).")
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
        why = "; ".join(each.partition(": ")[2] for each in (found.plan.why if found.plan else ()) if row.name in each)
        cells.append(("~", unseen(live, row), "", why, ""))
    return said + table(cells + kept_lines(found, row.name), "   ")


def unseen(live: Live, row: Row) -> str:
    """What differs where no address comes or goes."""
    marker = marker_of(live)
    if live.ttl and live.ttl != row.content.ttl:
        return f"ttl {live.ttl} s -> {row.content.ttl} s"
    if marker is None:
        return "its marker is written"
    if (marker.content.weights if marker.content is not None else ()) != row.content.weights:
        return "weights"
    return "only its marker; callers see no change"


def member(found: Preview, name: str, address: str, rows: dict[str, Membership]) -> Member | None:
    """An address's member in the pool of an endpoint."""
    endpoint = endpoint_of(found, name)
    pool = rows.get(endpoint.pool) if endpoint else None
    return next((each for each in pool.members if each.key == address), None) if pool else None


def endpoint_of(found: Preview, name: str) -> Endpoint | None:
    """An endpoint as the file has it, or else as it was loaded."""
    regions = [found.region] + ([found.loaded.region] if found.loaded else [])
    return next((each for region in regions for each in region.endpoints if each.name == name), None)


def came(found: Preview, name: str, address: str) -> tuple[str, str, str]:
    """Zone, why and whence of an address that comes."""
    who = member(found, name, address, found.after)
    if who is None:
        return "", "as the hold says", ""
    if who.votes.fresh:
        why = f"passed at {who.votes.healthy} of {who.votes.fresh} checkers"
    else:
        why = "not looked at yet; unknown serves"
    if who.joined:
        why += "; starts at 10 %"
    return who.zone, why, line_of(found, name, address, new=True)


def went(found: Preview, name: str, address: str) -> tuple[str, str, str]:
    """Zone, why and whence of an address that goes."""
    was, now = member(found, name, address, found.before), member(found, name, address, found.after)
    if now is None:
        zone = was.zone if was else ""
        return (
            zone,
            "left the file: your act, not counted against limits" if was else "isn't in the pool",
            line_of(found, name, address, new=False),
        )
    if now.state is State.DRAINED:
        return now.zone, "drained by a person", ""
    if now.state is State.OUT:
        return now.zone, f"dead since {ago(now.dead_since)}: {now.cause}" if now.dead_since else now.cause, ""
    return now.zone, now.cause or str(now.state), ""


def line_of(found: Preview, name: str, address: str, *, new: bool) -> str:
    """Where in the file a target stands, or stood, if that is what changed."""
    endpoint = endpoint_of(found, name)
    file, old = lines_in(found.region, endpoint), lines_in(found.loaded.region, endpoint) if found.loaded else {}
    path = shown_path(found)
    if new:
        return f"new, {path}:{file[address]}" if address in file and address not in old else ""
    return f"was {path}:{old[address]}" if address in old and address not in file else ""


def lines_in(region: Any, endpoint: Endpoint | None) -> dict[str, int]:
    """Each target's line in a file, for an endpoint's pool."""
    return {
        target.address: target.line
        for pool in region.pools
        if endpoint is not None and pool.name == endpoint.pool
        for target in pool.targets
    }


def shown_path(found: Preview) -> str:
    """The file, as a person would write it."""
    from pathlib import Path

    return shown(Path(found.region.path))


def kept_lines(found: Preview, name: str) -> list[tuple[str, ...]]:
    """Addresses that stay although they look dead, and those that wait to come in."""
    endpoint = endpoint_of(found, name)
    pool = found.after.get(endpoint.pool) if endpoint else None
    said: list[tuple[str, ...]] = []
    for each in pool.members if pool else ():
        if each.state is State.KEPT:
            said.append(("!", each.key, each.zone, f"dead for {dead_for(each)}, kept: {rule_text(each.rule)}", ""))
        elif each.state is State.PENDING:
            said.append(
                (
                    "?",
                    each.key,
                    each.zone,
                    f"waits: {each.cause or 'to pass everywhere'}; then starts at 10 %",
                    line_of(found, name, each.key, new=True),
                )
            )
    return said


def dead_for(each: Member) -> str:
    """How long it has looked dead."""
    return ago(each.dead_since).removesuffix(" ago") if each.dead_since else "a moment"


def rule_text(rule: Rule) -> str:
    """A rule as region.toml and status name it."""
    return {Rule.BUCKET: "removal budget (rate)"}.get(rule, str(rule))


def document(found: Preview) -> dict[str, Any]:
    """The preview for programs."""
    rows, listed = changing(found), {each.name for each in found.region.endpoints}
    return {
        "schema": "fencepost.plan/1",
        "region": found.region.name,
        "plan": found.plan.number if found.plan and rows else None,
        "refused_without_yes": list(found.refusals),
        "changes": [change(found, row) for row in rows],
        "left_alone": [{"name": name, "why": why} for name, why in sorted(found.left_alone.items())],
        "orphans": sorted(set(found.lives) - listed),
        "held": plan_holds.document(found),
        "unchanged": sorted(listed & set(found.lives) - {row.name for row in rows} - set(found.left_alone)),
    }


def moved(address: str, cells: tuple[str, str, str]) -> dict[str, str]:
    """An address that comes or goes, for programs."""
    return {"address": address, "zone": cells[0], "why": cells[1]}


def change(found: Preview, row: Row) -> dict[str, Any]:
    """One endpoint's change for programs."""
    live = found.lives.get(row.name, Live(row.name))
    marker = marker_of(live)
    before, after = live.a + live.aaaa, row.content.addresses
    return {
        "name": row.name,
        "from_generation": marker.generation.number if marker else None,
        "to_generation": row.generation.number,
        "add": [moved(each, came(found, row.name, each)) for each in after if each not in before],
        "remove": [moved(each, went(found, row.name, each)) for each in before if each not in after],
        "kept": [cells[1] for cells in kept_lines(found, row.name) if cells[0] == "!"],
        "addresses": list(after),
    }
