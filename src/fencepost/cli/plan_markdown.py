"""``fencepost plan --format markdown``: the preview as a comment on a pull request.

A table of the endpoints, then each address that comes, goes or is kept in a ``diff`` block, where forges colour lines
that begin with +, - and !.
"""

from fencepost.cli import plan_cost, plan_later
from fencepost.cli.plan_changes import came, changing, kept_lines, unseen, went
from fencepost.cli.preview import Preview, marker_of
from fencepost.core.orders import plain
from fencepost.core.store import Row
from fencepost.core.zone import Live


def lines(found: Preview) -> list[str]:
    """The preview as Markdown."""
    rows, region = changing(found), found.region
    said = [
        f"### {region.name}: {plan_later.headline(found)}",
        "",
        f"`{', '.join(region.dns.domains)}` · nothing is done by this",
        "",
    ]
    said += [f"> **a reload would be refused without `--yes`**: {inline(why)}\n" for why in found.refusals]
    if rows:
        said += ["| Endpoint | Generation | A | AAAA | + | - |", "| --- | --- | --- | --- | --- | --- |"]
        said += [table_row(found, row) for row in rows]
        said += ["", "```diff", *(line for row in rows for line in diff(found, row)), "```", "", plan_cost.line(found)]
    said += soon(found)
    if found.held:
        said += ["", "Held by a person, and left so: " + ", ".join(f"`{name}`" for name in sorted(found.held))]
    said += ["", *(f"- `{name}` is left alone: {inline(why)}" for name, why in sorted(found.left_alone.items()))]
    while said and not said[-1]:
        said.pop()
    return said


def soon(found: Preview) -> list[str]:
    """The targets that come or go by the file without a record showing it at once, as a table of their own."""
    targets = plan_later.later(found)
    if not targets:
        return []
    cells = [
        [f"`{each.address}`", f"`{each.pool}`", each.zone, plan_later.words(each), ", ".join(each.endpoints), each.line]
        for each in targets
    ]
    head = [
        "",
        "| Target | Pool | Zone | What becomes of it | Endpoints | Line |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return head + [f"| {' | '.join(inline(cell) for cell in row)} |" for row in cells]


def table_row(found: Preview, row: Row) -> str:
    """One endpoint's row of the table."""
    live = found.lives.get(row.name, Live(row.name))
    marker = marker_of(live)
    before, after = live.a + live.aaaa, row.content.addresses
    cells = [
        f"`{row.name}`" + (" is withdrawn" if row.withdrawn else ""),
        f"{marker.generation if marker else '-'} → {row.generation}",
        f"{len(live.a)} → {len(row.content.a)}",
        f"{len(live.aaaa)} → {len(row.content.aaaa)}",
        str(sum(each not in before for each in after)),
        str(sum(each not in after for each in before)),
    ]
    return f"| {' | '.join(cells)} |"


def diff(found: Preview, row: Row) -> list[str]:
    """One endpoint's addresses, a line each."""
    live = found.lives.get(row.name, Live(row.name))
    before, after = live.a + live.aaaa, row.content.addresses
    cells = [("+", each, *came(found, row.name, each)) for each in after if each not in before]
    cells += [("-", each, *went(found, row.name, each)) for each in before if each not in after]
    if not cells:
        cells = [("#", unseen(live, row), "", "", "")]
    kept = [line for line in kept_lines(found, row.name) if line[0] == "!"]
    return [f"  {row.name}", *("  ".join(quiet(part) for part in line if part) for line in [*cells, *kept])]


def quiet(text: str) -> str:
    """A text that can't end the block it stands in."""
    return plain(text).replace("```", "'''")


def inline(text: str) -> str:
    """A text that can't break out of its line."""
    return plain(text).replace("|", "\\|").replace("<", "&lt;")
