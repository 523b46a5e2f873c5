"""``fencepost plan`` for programs: ``fencepost.plan/1``. Keys are only added while it is version 1."""

from typing import Any

from fencepost.cli import plan_cost, plan_holds, plan_later
from fencepost.cli.plan_changes import came, changing, kept_lines, went
from fencepost.cli.preview import Preview, marker_of
from fencepost.core.store import Row
from fencepost.core.zone import Live

SCHEMA = "fencepost.plan/1"


def document(found: Preview) -> dict[str, Any]:
    """The preview for programs."""
    rows, listed = changing(found), {each.name for each in found.region.endpoints}
    return {
        "schema": SCHEMA,
        "region": found.region.name,
        "plan": found.plan.number if found.plan and rows else None,
        "refused_without_yes": list(found.refusals),
        "changes": [change(found, row) for row in rows],
        "later": plan_later.document(found),
        "left_alone": [{"name": name, "why": why} for name, why in sorted(found.left_alone.items())],
        "orphans": sorted(set(found.lives) - listed),
        "held": plan_holds.document(found),
        "cost": plan_cost.document(found),
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
