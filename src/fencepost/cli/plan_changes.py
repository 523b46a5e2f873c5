"""What a preview's plan does to each address: which comes, goes or is kept, why, and where in the file it stands."""

from pathlib import Path
from typing import Any

from fencepost.cli.preview import Preview, marker_of
from fencepost.cli.regions import shown
from fencepost.cli.terminal import ago
from fencepost.core.store import Row
from fencepost.core.traffic.launched import why_dead
from fencepost.core.traffic.membership import Member, Membership, Rule, State
from fencepost.core.zone import Live
from fencepost.settings.schema import Endpoint


def changing(found: Preview) -> tuple[Row, ...]:
    """The rows that enactors would carry out: what is left alone doesn't change, planned or not."""
    rows = found.plan.rows if found.plan else ()
    return tuple(row for row in rows if row.name not in found.left_alone)


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
    if who.state is State.KEPT:
        why = kept_because(who)
    elif who.votes.fresh:
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
    return shown(Path(found.region.path))


def kept_lines(found: Preview, name: str) -> list[tuple[str, ...]]:
    """Addresses that stay although they look dead, and those that wait to come in."""
    endpoint = endpoint_of(found, name)
    pool = found.after.get(endpoint.pool) if endpoint else None
    said: list[tuple[str, ...]] = []
    for each in pool.members if pool else ():
        if each.state is State.KEPT:
            said.append(("!", each.key, each.zone, kept_because(each), ""))
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


def kept_because(each: Member) -> str:
    """How long it has looked dead, and which rule keeps it."""
    return f"{why_dead(each)} for {dead_for(each)}, kept: {rule_text(each.rule)}"


def dead_for(each: Member) -> str:
    """How long it has looked dead."""
    return ago(each.dead_since).removesuffix(" ago") if each.dead_since else "a moment"


def rule_text(rule: Rule) -> str:
    """A rule as region.toml and status name it."""
    return {Rule.BUCKET: "removal budget (rate)"}.get(rule, str(rule))


def unseen(live: Live, row: Row) -> str:
    """What differs where no address comes or goes."""
    marker = marker_of(live)
    if (live.a or live.aaaa) and live.ttl != row.content.ttl:  # 0 is a TTL, too
        return f"ttl {live.ttl} s -> {row.content.ttl} s"
    if marker is None:
        return "its marker is written"
    if (marker.content.srv if marker.content is not None else None) != row.content.srv:
        return "its SRV records"
    if (marker.content.weights if marker.content is not None else ()) != row.content.weights:
        return "weights"
    return "only its marker; callers see no change"
