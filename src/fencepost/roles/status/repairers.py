"""Who repaired what, and why: read from the history, for a repair's marker names nobody.

A repair goes straight to the DNS provider, so no order and no row of the store carries its author; the command writes a
line of history once the store takes one. A hold's id is the second in which it was placed, mostly, which is where that
line is looked for. Where it can't be found, nobody is named.
"""

from collections.abc import Mapping

from fencepost.core.fence import Hold, Marker
from fencepost.core.instant import SECOND, Instant
from fencepost.core.store import Row
from fencepost.core.zone import Live
from fencepost.ports import StorePort

AT_ONCE = 5
"""So many unknown repairs are looked for each time."""
SETTLED_S = 120
"""A repair this old that has no line won't get one."""
MOST = 10_000
BEFORE = "repair: "
REASON = "; reason: "


class Repairers:
    """What is known, by endpoint and hold: (who, why)."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], tuple[str, str]] = {}

    async def look(
        self, store: StorePort, lives: Mapping[str, Live], rows: Mapping[str, Row], owner: str, now: Instant
    ) -> None:
        """Find the authors of the repairs that stand. Raises a ``PortError``."""
        standing = {(name, hold.id) for name, hold in repairs(lives, owner)}
        self.known = {key: found for key, found in self.known.items() if key in standing}
        unknown = sorted(
            key for key in standing - set(self.known) if not (rows.get(key[0]) is not None and rows[key[0]].by)
        )
        for name, hold in unknown[:AT_ONCE]:
            found = await author(store, name, hold)
            if found is not None:
                self.known[name, hold] = found
            elif now // SECOND - hold > SETTLED_S:
                self.known[name, hold] = ("", "")


def repairs(lives: Mapping[str, Live], owner: str) -> list[tuple[str, Hold]]:
    """Each endpoint of ours that is held by a repair."""
    found = []
    for name, live in lives.items():
        marker = live.marker
        if isinstance(marker, Marker) and marker.owner == owner and marker.hold and marker.hold.kind == "repair":
            found.append((name, marker.hold))
    return found


async def author(store: StorePort, name: str, hold: int) -> tuple[str, str] | None:
    """Who placed this repair and why, as the first such line since says. Raises a ``PortError``."""
    for row in await store.history(since=(hold - 1) * SECOND, most=MOST):
        if row.kind == "operator" and row.on == name and row.text.startswith(BEFORE):
            return row.by, row.text.partition(REASON)[2]
    return None
