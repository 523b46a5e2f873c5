"""What ``fencepost plan`` says of endpoints it doesn't change: those held, and what follows the hold's end; orphans.

A plan changes nothing there, and ``fencepost resume`` may change everything. So both are shown before either is done.
"""

from typing import Any

from fencepost.cli.preview import Held, Preview, marker_of
from fencepost.cli.terminal import styled, until_text
from fencepost.core.instant import SECOND
from fencepost.core.zone import withdraws
from fencepost.roles.status.document import when


def held_line(found: Preview, name: str) -> str:
    """An endpoint's line: who stands in the planner's way, and until when."""
    held = found.held[name]
    word = "withdrawn" if held.hold.kind == "withdraw" else f"held by a {held.hold.kind}"
    until = until_text(held.hold.until_s * SECOND)
    stands = ", ".join(answered(found, name)) or "no address"
    return f" {styled(name, 'bold')}   {word}, {until}; it answers {stands}"


def orphan_line(found: Preview, name: str) -> str:
    """A name with a marker of ours that the file doesn't have (any more): an orphan."""
    marker = marker_of(found.lives[name])
    if marker is not None and withdraws(marker):
        return f" {name}   not in the file; withdrawn, so callers get no address"
    return f" {name}   not in the file; its records stay until  fencepost withdraw {name}"


def following(found: Preview, name: str) -> list[tuple[str, ...]]:
    """Each address that would come or go with the hold's end, as a table's rows."""
    held = found.held[name]
    if held.then is None:
        return [("", "nothing is wanted for it, so it stays as it is after that too", "", "", "")]
    before, after = answered(found, name), held.then.addresses
    rows: list[tuple[str, ...]] = [
        ("+", each, zone_of(found, name, each), "then", "") for each in after if each not in before
    ]
    rows += [("-", each, zone_of(found, name, each), "then", "") for each in before if each not in after]
    return rows or [("", "its end changes no address", "", "", "")]


def closing(found: Preview) -> list[str]:
    """What ends the holds."""
    if not found.held:
        return []
    return [f"Lines with then follow the hold's end:  fencepost resume {' '.join(sorted(found.held))}"]


def document(found: Preview) -> list[dict[str, Any]]:
    """The same for programs."""
    return [one(name, held, answered(found, name)) for name, held in sorted(found.held.items())]


def one(name: str, held: Held, before: tuple[str, ...]) -> dict[str, Any]:
    """One held endpoint for programs; ``then`` is null if nothing is wanted for it."""
    after = held.then.addresses if held.then else None
    then = None
    if after is not None:
        then = {"in": [each for each in after if each not in before], "out": [e for e in before if e not in after]}
    return {"name": name, "by": held.hold.kind, "until": when(held.hold.until_s * SECOND), "then": then}


def answered(found: Preview, name: str) -> tuple[str, ...]:
    """What stands there now."""
    live = found.lives[name]
    return live.a + live.aaaa


def zone_of(found: Preview, name: str, address: str) -> str:
    """An address's failure zone, "" for one that no pool has."""
    pools = {each.pool for each in found.region.endpoints if each.name == name}
    rows = (found.after[pool] for pool in pools if pool in found.after)
    return next((member.zone for row in rows for member in row.members if member.key == address), "")
