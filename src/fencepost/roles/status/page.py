"""The status document as one HTML page: no scripts or styles from elsewhere, dark or light as the reader's system says.

On a narrow screen a table's rows become blocks, a cell a line with its column's name before it: a table that is wider
than the screen hides what is out, and says nowhere that it does.

The page is made here, whole, from the document; a dozen lines of script fetch it anew every two seconds and swap its
body, and say so when no answer comes. Without script the browser reloads it. So it also serves as a file.
"""

import base64
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Any

from fencepost.roles.status.document import (
    EndpointStatus,
    FleetStatus,
    PoolStatus,
    Problem,
    RoleStatus,
    ShardStatus,
    Status,
)
from fencepost.roles.status.recovery import recovery_words

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5b6570; --paper: #fbfbf9; --line: #d9dcd6; --card: #fff;
  --ok: #1a7f4b; --working: #8a5a00; --attention: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #9aa4ae; --paper: #14171a; --line: #2f353b;
  --card: #1b1f23; --ok: #5fd08f; --working: #e6b450; --attention: #ff8a80; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.2rem; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; align-items: baseline; }
h1 { font-size: 1.7rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
.verdict { font-size: 1.4rem; font-weight: 700 } .ok { color: var(--ok) } .working { color: var(--working) }
.attention, .broken { color: var(--attention) } .dim { color: var(--dim) }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--card) }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .45rem .8rem; vertical-align: top }
th { font-size: .8rem; font-weight: 600; color: var(--dim); white-space: nowrap }
tbody tr { border-top: 1px solid var(--line) } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code, .mono { font: .92em/1.4 ui-monospace, monospace; } code { user-select: all; overflow-wrap: anywhere }
ul { list-style: none; padding: 0; margin: 0; display: grid; gap: .6rem }
li { border: 1px solid var(--line); border-left: .35rem solid var(--working); border-radius: .4rem;
  padding: .6rem .9rem; background: var(--card) } li.person { border-left-color: var(--attention) }
#late { position: sticky; top: 0; background: var(--attention); color: var(--paper); padding: .4rem 1.2rem }
time, .mono span { white-space: nowrap } .note { margin: .5rem 0 0 }
@media (max-width: 45rem) {
  main { padding: .8rem } thead { display: none } table, tbody { display: block }
  tbody tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); padding: .6rem 0 .7rem }
  tbody tr:first-child { border-top: 0 }
  td, td.n { grid-column: 1 / -1; position: relative; padding: .08rem .9rem .08rem 6.9rem; text-align: left;
    min-width: 0; overflow-wrap: anywhere } td:empty { display: none }
  td.n, td.half { grid-column: auto; padding-right: .2rem } td.n { white-space: nowrap; font-size: .95rem }
  td::before { content: attr(data-label); position: absolute; left: .9rem; font: .75rem/2 system-ui, sans-serif;
    color: var(--dim) }
  td.head { grid-column: 1 / -1; padding: 0 .9rem .15rem; font-weight: 600 } td.head::before { content: none }
}
"""

SCRIPT = """
let last = Date.now();
setInterval(async () => {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (!page) throw 0;
    if (!String(getSelection())) document.querySelector("main").replaceWith(page);
    last = Date.now();
  } catch { }
  const late = document.getElementById("late"), s = Math.round((Date.now() - last) / 1000);
  late.hidden = s < 6; late.textContent = `No answer for ${s} s: what is below is that old.`;
}, 2000);
"""

ANSWER = {
    "ok": "ok: all in",
    "working": "working: something is out, kept or healing; nobody need come",
    "attention": "attention: a person is needed",
}


def hash_of(text: str) -> str:
    """How a content security policy names an inline script or style (W3C CSP 2, section 4.2.3)."""
    return "'sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {hash_of(STYLE)}; script-src {hash_of(SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's content security policy."""


def page(status: Status) -> str:
    """The whole page."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(status.region)}: {status.verdict}'
        '</title><meta name="viewport" content="width=device-width"><noscript><meta http-equiv="refresh" content="5">'
        f'</noscript><style>{STYLE}</style></head><body><div id="late" role="status" hidden></div>{body(status)}'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def body(status: Status) -> str:
    """What is swapped when the page refreshes itself."""
    parts = [head(status), problems(status.problems), endpoints(status.endpoints), pools(status.pools)]
    parts += [fleet(status.fleet), roles(status.roles), overrides(status), promises(status)]
    return f"<main>{''.join(parts)}</main>"


def head(status: Status) -> str:
    """Region and verdict, readable from across the room."""
    known = "the rest isn't known" if status.ages.store_s is None else f"the rest is {status.ages.store_s:.0f} s old"
    away = f" · the store doesn't answer; endpoints are read from DNS, {known}"
    source = {"api": "", "store": " · read from the store", "dns": away}
    facts = [f"plan {shown(status.plan)}", f"mode {status.mode}", status.provider, f"fenced {shown(status.fenced)}"]
    facts += [f"restarts {shown(status.restarts)}"]
    return (
        f"<header><h1>{escape(status.region)}</h1>"
        f'<span class="verdict {status.verdict}">{ANSWER[status.verdict]}</span></header><p class="dim">'
        f"{escape(' · '.join(facts))} · as of <time>{status.at}</time>{escape(source[status.source])}</p>"
    )


def problems(found: Iterable[Problem]) -> str:
    """Problems, those that need a person first."""
    items = [
        f"<li{' class=person' if each.needs_person else ''}><b>{escape(each.on)}</b> {escape(each.what)} "
        f'<span class="dim">{each.id}{f" since <time>{each.since}</time>" if each.since else ""}'
        f"{' · a person is needed' if each.needs_person else ''}</span><br><code>{escape(each.try_)}</code></li>"
        for each in sorted(found, key=lambda each: not each.needs_person)
    ]
    return f"<h2>Problems</h2><ul>{''.join(items)}</ul>" if items else ""


def endpoints(found: Iterable[EndpointStatus]) -> str:
    """What callers get."""
    rows = []
    for each in found:
        addresses = (
            None
            if each.addresses is None
            else [
                f'<span class="working">{address} (kept)</span>' if address in each.kept else address
                for address in each.addresses
            ]
        )
        standing: str = each.state or "not published"
        if each.as_planned is False:
            standing += ", not as planned"
        gone = "<br>".join(escape(f"{out.address} {out.reason} ({out.rule})") for out in each.out)
        rows.append(
            [
                *cells(each.name, standing, each.generation),
                f'<td class="mono">{"?" if addresses is None else ", ".join(addresses) or "none"}</td>',
                f'<td class="working">{gone}</td>',
                *cells(each.written_by),
            ]
        )
    return table("Endpoints", ("name", "state", "#generation", "in DNS", "out", "written by"), rows)


def pools(found: Iterable[PoolStatus]) -> str:
    """Targets and limits."""
    rows = []
    for each in found:
        alarm = "fail open" if each.panic else "suspect" if each.suspect else ""
        counts = cells(each.name, each.targets, each.in_, each.dead, each.kept, each.out, each.pending)
        rows.append(counts + cells(each.may_be_out, each.min_in, each.budget, each.weight, alarm))
    counted = ("name", "#targets", "#in", "#dead", "#kept", "#out", "#pending", "max_out")
    return table("Pools", (*counted, "#min_in, weight", "#budget, weight", "#of weight", "alarm"), rows)


def fleet(found: FleetStatus | None) -> str:
    """Hosts by their leases, and what runs on them: a row a shard. Nothing without a fleet."""
    if found is None:
        return ""
    rows = [shard(each) for each in found.shards]
    leases = ("#hosts", "#held", "#suspect", "#lapsed", "#with room")
    work = ("#ready", "#pending", "#waiting", "#ending", "#told, s ago", "placing")
    shards = table("Fleet: host leases and instances", ("shard", "manager", *leases, *work), rows)
    if found.recovery is not None:
        shards += f'<p class="working">{escape(recovery_words(found.recovery))}</p>'
    if found.limit is None or found.calibrated_s is None:
        return shards or '<h2>Fleet</h2><p class="note dim">not known: the store has not been read</p>'
    together = " by all shards together" if len(found.shards) > 1 else ""
    asked = f"{found.limit} hosts may be asked at once{together}, as measured {found.calibrated_s:.0f} s ago"
    return f'{shards}<p class="note dim">{asked}</p>'


def shard(each: ShardStatus) -> list[str]:
    """One shard. A suspect host still holds its lease and is among the held for programs; here each counts once."""
    held = None if each.held is None else max(0, each.held - (each.suspect or 0))
    placing = {None: "?", True: "open", False: f"closed: it waits for {each.waits_for}"}[each.placing]
    if each.mass:
        placing += "; many fell silent at once, so no lease lapses"
    well = each.placing is not False and not each.mass
    return [
        *cells(f"shard {each.shard}"),
        f'<td class="half {"ok" if each.state == "up" else "working"}">{shown(each.state)}</td>',
        *cells(each.hosts, held, each.suspect, each.lapsed, each.room),
        *cells(each.ready, each.pending, each.waiting, each.ending),
        *cells(each.told_s),
        f"<td{'' if well else ' class=working'}>{escape(placing)}</td>",
    ]


def roles(found: Iterable[RoleStatus]) -> str:
    """Processes."""
    rows = [
        [
            *cells(each.name),
            f'<td class="half {"ok" if each.state == "up" else "working"}">{each.state}</td>',
            *cells(f"{each.pid} on {each.host}" if each.host else each.pid),
            *cells(each.restarts, each.seen_s, each.last_error or ""),
        ]
        for each in found
    ]
    return table("Roles", ("name", "state", "#pid", "#restarts", "#seen, s ago", "last error"), rows)


def overrides(status: Status) -> str:
    """What people said."""
    rows = [cells(o.what, o.on, o.by, o.reason, o.until or "until resumed") for o in status.overrides]
    return table("Overrides", ("what", "on", "by", "reason", "until"), rows)


def promises(status: Status) -> str:
    """The promises, as checked from outside."""
    words = {
        True: '<td class="half ok">held</td>',
        False: '<td class="half broken">broken</td>',
        None: "<td>not looked yet</td>",
    }
    rows = [
        [
            *cells(name),
            "<td>can't be told</td>" if each.held is None and each.times_unsure else words[each.held],
            *cells(each.times_checked),
        ]
        for name, each in status.promises.items()
    ]
    for seen in status.violations:
        told = f'<td class="broken">{escape(seen.on)}: {escape(seen.what)}</td>'
        rows.append([*cells(seen.promise), told, *cells(seen.at)])
    return table("Promises, as a caller of DNS sees them", ("promise", "result", "#times checked"), rows)


def shown(value: Any) -> str:
    """A value for people: unknown is a question mark, never 0."""
    return "?" if value is None else str(value)


def cells(*values: Any) -> list[str]:
    """Table cells; numbers to the right."""
    return [
        f"<td{' class=n' if isinstance(value, (int, float)) else ''}>{escape(shown(value))}</td>" for value in values
    ]


def table(title: str, names: Iterable[str], rows: list[list[str]]) -> str:
    """A table, or nothing if it has no rows. A column whose name begins with # holds numbers; the first heads its row.

    Each cell carries its column's name, for screens too narrow for columns.
    """
    if not rows:
        return ""
    names = tuple(names)
    header = "".join(f'<th class="n">{n[1:]}</th>' if n.startswith("#") else f"<th>{n}</th>" for n in names)
    lines = "".join(f"<tr>{labelled(names, row)}</tr>" for row in rows)
    return (
        f'<h2>{title}</h2><div class="scroll"><table><thead><tr>{header}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def labelled(names: tuple[str, ...], row: list[str]) -> str:
    """A row's cells, each with its column's name; an unknown number stands where a number would."""
    head, *others = zip(names, row, strict=True)
    marked = ["<td class=head" + head[1].removeprefix("<td")]
    for name, cell in others:
        kind = " class=n" if name.startswith("#") and cell.startswith("<td>") else ""
        marked.append(f'<td data-label="{name.removeprefix("#")}"{kind}{cell.removeprefix("<td")}')
    return "".join(marked)
