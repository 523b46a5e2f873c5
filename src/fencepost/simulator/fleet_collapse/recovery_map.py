"""``fencepost simulate --map``: how large a loss, at what load, and how long until leases are held *for good* again.

In each cell all hosts hold leases and renew them; then some lose theirs, all at once. *Load* is what renewals alone
take of the service. Recovered means that 99 % hold a lease from then on and still do a whole lease later: leases that
have not yet expired look recovered. The fleet is small (2,000 hosts, 16 slots, 0.5 s a call), its proportions are those
of the large one: at best 62.5 s for all.

At each load the old deciders show *hysteresis*: the same fleet, service and load stay well after a small loss and stay
down for ever after a large one, though nothing is broken any more.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from fencepost.core.instant import MILLISECOND, SECOND, Duration
from fencepost.simulator.fleet_collapse.production import settings_for, shock
from fencepost.world.fleet_load import Load, Outcome

SCHEMA = "fencepost.recovery-map/1"
LOADS = (10, 25, 40, 55, 70, 80, 90, 94)
"""Per cent of the service that renewals take."""
LOSSES = (2, 5, 10, 15, 20, 30, 50, 100)
"""Per cent of the hosts that lose their leases."""
HOSTS, SLOTS = 2_000, 16
MEAN: Duration = 500 * MILLISECOND
MOST = 6
"""A cell is walked for so many leases at the most."""

OldShock = Callable[[Load, int, list[int], Duration], Outcome]
"""A loss under a decider of the time: load, seed, who lost a lease, how long at the most."""
Told = Callable[[str], None]

Cells = tuple[tuple[float | None, ...], ...]
"""Seconds to sustained recovery by loss (rows) and load (columns); None: it doesn't recover."""


class RecoveryMap(Struct, frozen=True):
    """Two maps over the same cells. Loads and losses in per cent."""

    seed: int
    loads: tuple[int, ...]
    losses: tuple[int, ...]
    as_was: Cells
    production: Cells

    @property
    def hysteresis(self) -> tuple[int, ...]:
        """Loads at which, as it was, a small loss is made good and a larger one never is."""
        columns = list(zip(*self.as_was, strict=True))
        both = [None in column and any(cell is not None for cell in column) for column in columns]
        return tuple(load for load, found in zip(self.loads, both, strict=True) if found)

    @property
    def stuck(self) -> int:
        """In how many cells production doesn't recover."""
        return sum(cell is None for row in self.production for cell in row)


def load_of(per_cent: int) -> Load:
    """The small fleet, with renewals taking so much of the service."""
    load = Load(hosts=HOSTS, slots=SLOTS, mean=MEAN)
    return Load(hosts=HOSTS, slots=SLOTS, mean=MEAN, period=int(load.ideal * 100 / per_cent * SECOND))


def lost_of(per_cent: int) -> list[int]:
    """Which hosts lose their leases, evenly among all."""
    return [host for host in range(HOSTS) if host * 37 % 100 < per_cent]


def mapped(
    old: OldShock,
    told: Told,
    seed: int = 0,
    loads: tuple[int, ...] = LOADS,
    losses: tuple[int, ...] = LOSSES,
) -> RecoveryMap:
    """Walk every cell, both ways."""
    before, now = [], []
    for loss in losses:
        lost = lost_of(loss)
        cells: tuple[list[float | None], list[float | None]] = ([], [])
        for per_cent in loads:
            load = load_of(per_cent)
            most = MOST * load.lease
            cells[0].append(old(load, seed, lost, most).recovered())
            cells[1].append(shock(load, settings_for(load), seed, lost, most).recovered())
            told(f"a loss of {loss} % at a load of {per_cent} %")
        before.append(tuple(cells[0]))
        now.append(tuple(cells[1]))
    return RecoveryMap(seed, loads, losses, tuple(before), tuple(now))


def document(found: RecoveryMap) -> dict[str, Any]:
    """As plain JSON values."""
    return {
        "schema": SCHEMA,
        "seed": found.seed,
        "verdict": "violated" if found.stuck else "holds",
        "unit": "seconds until 99 % hold leases, and still do a whole lease later; null: never",
        "hosts": HOSTS,
        "loads_percent": list(found.loads),
        "losses_percent": list(found.losses),
        "as_was": [list(row) for row in found.as_was],
        "production": [list(row) for row in found.production],
        "hysteresis_at_loads_percent": list(found.hysteresis),
        "production_cells_that_fail": found.stuck,
    }
