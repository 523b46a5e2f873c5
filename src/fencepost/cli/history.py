"""``fencepost history``: what happened, one line a thing."""

import asyncio
import json as json_text
import re
import sys
import time
from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

from fencepost.cli.acts import act, write
from fencepost.cli.flags import Config, Json, Timeout, duration
from fencepost.cli.layout import beside, width
from fencepost.cli.loaded import loaded_in
from fencepost.cli.talk import Talk, talk
from fencepost.cli.terminal import clock, say, styled
from fencepost.core.names import normalise
from fencepost.core.orders import plain
from fencepost.ports import HistoryRow, Misconfigured, PortError, Refused
from fencepost.roles.history import Following
from fencepost.roles.status.document import when
from fencepost.roles.status.nearest import really_near

KINDS = ("plan", "enacted", "healed", "fenced", "removed", "kept", "back", "refused", "operator", "role", "finding")
MOST = 10_000

_EPOCH = re.compile(r" (\(epoch \d+\))(?=[^;]*\1)")


def history(
    name: str | None = None,
    /,
    *,
    last: str = "1h",
    follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False,
    only: str | None = None,
    timeout: Timeout = "10s",
    config: Config = None,
    json: Json = False,
) -> int:
    """What happened: plans, writes, fenced writes, removals, operators' acts.

    Parameters
    ----------
    name
        An endpoint, pool, target or role; else everything.
    last
        How far back.
    follow
        Go on as things happen.
    only
        Kinds, joined by commas: plan, enacted, healed, fenced, removed, kept, back, refused, operator, role, finding.
    """
    kinds = frozenset(word.strip() for word in only.split(",")) if only else frozenset(KINDS)
    unknown = sorted(kinds - set(KINDS))
    if unknown:
        from difflib import get_close_matches

        close = get_close_matches(unknown[0], KINDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"kinds are {', '.join(KINDS)}"
        raise Misconfigured(f"--only {unknown[0]!r} is no kind of line", hint=hint)
    since = time.time_ns() - duration(last, "--last")
    return talk(
        config,
        duration(timeout, "--timeout"),
        lambda ports: work(ports, name, since, kinds, follow=follow, as_json=json),
    )


async def work(talk: Talk, name: str | None, since: int, kinds: frozenset[str], *, follow: bool, as_json: bool) -> int:
    """Print what there is; then what comes."""
    rows = await talk.within(talk.store.history(since=since, most=MOST), "the store")
    name = meant(talk, name)
    mine = [row for row in rows if about(row, name)]
    chosen = [row for row in mine if row.kind in kinds]
    if name is not None and not mine:
        await refuse_unknown(talk, name)
    if as_json and not follow:
        say(json_text.dumps({"history": [document(row) for row in chosen]}))
        return 0
    for row in chosen:
        say(json_text.dumps(document(row)) if as_json else line(row, name))
    if not follow:
        say(styled(await closing(talk, len(chosen), mine), "dim"))
        return 0
    following = Following(talk.store, since, rows[-1].id if rows else 0, max((row.at for row in rows), default=0))
    while True:
        await asyncio.sleep(0.1)
        try:
            rows = await following.new(MOST)
        except PortError:
            continue
        for row in rows:
            if row.kind in kinds and about(row, name):
                say(json_text.dumps(document(row)) if as_json else line(row, name))


def meant(talk: Talk, name: str | None) -> str | None:
    """An endpoint's first label stands for its name where it is the only one."""
    short = (name or "").lower()
    full = [each.name for each in talk.region.endpoints if each.name.partition(".")[0] == short]
    taken = {*talk.region.zones, *(pool.name for pool in talk.region.pools)}
    return full[0] if len(full) == 1 and short not in taken else name


async def refuse_unknown(talk: Talk, name: str) -> None:
    """Raise ``Refused`` for a name that nothing is known of: a slip mustn't look like a quiet hour."""
    regions = [talk.region]
    with suppress(PortError):
        loaded = loaded_in(await talk.within(talk.store.inputs(), "the store"))
        regions += [loaded.region] if loaded else []
    known = {each.name for region in regions for each in region.endpoints}
    known |= {each.name for region in regions for each in region.pools}
    known |= {target.address for region in regions for pool in region.pools for target in pool.targets}
    known |= {zone for region in regions for zone in region.zones} | {region.name for region in regions}
    roles = {f"{role}/{zone}" for region in regions for zone in region.zones for role in ("enactor", "checker")}
    known |= roles | {role.replace("/", " ") for role in roles} | {"planner", "janitor", "dns", "api", "observer"}
    if name.lower().rstrip(".") in known or any(each.partition(".")[0] == name for each in known):
        return
    if any(about(row, name) for row in await talk.within(talk.store.history(most=MOST), "the store")):
        return
    near = really_near(name, known)
    hint = f"did you mean {near}?" if near else "fencepost status    lists endpoints, pools and zones"
    raise Refused(f"{name} is no endpoint, pool, target or role of {talk.region.name}", hint=hint)


async def closing(talk: Talk, count: int, mine: list[HistoryRow]) -> str:
    """The last line: how many were shown, and how many were fenced since the store began.

    ``mine`` is all that happened to what was asked about, also what isn't shown: only so can it be said that callers
    saw no change.
    """
    every = await talk.within(talk.store.history(most=MOST), "the store")
    fenced = sum(row.kind == "fenced" for row in every)
    seen = len(mine) >= MOST or any(row.kind in ("enacted", "healed") for row in mine)
    quiet = " · callers saw no change" if mine and not seen else ""
    return f"{count} row{'' if count == 1 else 's'} · {fenced} fenced since the start{quiet}"


def about(row: HistoryRow, name: str | None) -> bool:
    """Whether a line is about an endpoint, pool, target or role."""
    if name is None:
        return True
    if (
        name in (row.on, row.by, row.by.replace("/", " "))
        or name in row.text.replace(",", " ").replace(";", " ").split()
    ):
        return True
    try:
        wanted = normalise(name)
    except ValueError:
        return False
    short = wanted.partition(".")[0]
    return row.on == wanted or (row.kind == "plan" and short in row.on.replace(" ...", "").split(", "))


def who(row: HistoryRow) -> str:
    """Whose line it is, as people say it."""
    if not row.by or (row.kind in ("removed", "kept", "back", "finding") and row.by == "load balancer"):
        return row.on  # what another writer did is told of the thing itself
    if row.kind == "plan":
        return row.text.partition(":")[0]
    return row.by.replace("/", " ")


def what(row: HistoryRow, name: str | None) -> str:
    """What happened, without what the line's first part says already."""
    said = once(row.text)
    if row.kind == "plan":
        return said.partition(": ")[2]
    if row.kind == "operator" and (sentence := act(row.on, said)):
        return sentence
    if who(row) == row.on:
        return said
    if row.kind == "enacted" and name == row.on:
        return write(said) or said
    text = f"FENCED: {said}" if row.kind == "fenced" else said
    return text if name == row.on else f"{row.on} {text}"


def line(row: HistoryRow, name: str | None = None) -> str:
    """A line, or two where it is long for the terminal: the rest stands under the text."""
    head = f"{clock(row.at, day=True) if isinstance(row.at, int) else '?'}  {plain(who(row)):<10} "
    style = "yellow" if row.kind in ("fenced", "kept", "refused") else ""
    return event(head, plain(what(row, name)), style)


def event(head: str, text: str, style: str = "") -> str:
    """What happened, under when and who."""
    return "\n".join(beside(styled(head, "dim"), styled(text, style) if style else text, width(sys.stdout)))


def once(text: str) -> str:
    """A text that doesn't say an epoch again that it says later: "2 -> 3 (epoch 9)"."""
    return _EPOCH.sub("", text)


def document(row: HistoryRow) -> dict[str, object]:
    """A line for programs."""
    return {"at": when(row.at), "kind": row.kind, "on": row.on, "by": row.by, "text": row.text, "id": row.id}
