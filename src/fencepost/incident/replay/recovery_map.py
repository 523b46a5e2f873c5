"""How long it takes to recover for good: the outage's length against the workers there are, nobody at the keyboard.

Where a system has a knee, a small outage is over as soon as its cause is, and a little more of it is never over. The
map shows where that is, as it was and with guards. *For good*: leases that haven't run out yet look like recovery, so a
moment counts only if everything after it is well, and for long enough.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from fencepost.incident.replay.guards import NONE, PRODUCTION, Guards
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import FAILING, Outcome
from fencepost.incident.replay.parallel import in_parallel
from fencepost.incident.replay.run import forced_at, replay
from fencepost.incident.replay.scenario import Scenario, Value

HOSTS = 2_000
WITHIN_S = 4 * 3600
"""Who hasn't recovered by then never does."""
SETTLED_S = 900
"""So long all has to be well at the end."""
MISSING = 0.01
OUTAGES_S = tuple(60 * minutes for minutes in (5, 10, 15, 20, 30, 60, 157))
SHARES = (0.25, 0.34, 0.5, 0.7, 0.85, 1.0, 1.25)
"""Of the workers needed so many are there; in October 2025 a third."""


class Pane(Struct, frozen=True):
    """Minutes by outage and share; None: never."""

    name: str
    guards: tuple[str, ...]
    minutes: tuple[tuple[float | None, ...], ...]


class RecoveryMap(Struct, frozen=True):
    """``needed`` workers for 100,000 hosts would give every host a lease anew while callers come back, renewals
    included. ``shares`` of that are the map's columns, ``outages_s`` its rows."""

    needed: float
    outages_s: tuple[int, ...]
    shares: tuple[float, ...]
    panes: tuple[Pane, ...]


def workers_needed(scenario: Scenario) -> float:
    """For 100,000 hosts: all leases anew within the time in which callers come back, and all renewals."""
    amount = scenario.amount
    back_s = max(amount("access.caches_return"), amount("leases.renewal"))
    anew, renewed = amount("workers.establish_cost") / back_s, amount("workers.renew_cost") / amount("leases.renewal")
    return 100_000 * (anew + renewed)


def recovery_map(
    scenario: Scenario, options: Options, told: Callable[[int, int], None] = lambda *_: None
) -> RecoveryMap:
    """As it was, and with the options' guards, or all that ship. On as many cores as there are."""
    needed = workers_needed(scenario)
    panes: tuple[tuple[str, Guards], ...] = (("As it was", NONE),)
    if options.guards and options.guards != PRODUCTION:
        panes += (("With these guards", options.guards),)
    else:
        panes += (("With every guard", PRODUCTION),)
    jobs = [
        (_with_workers(scenario, needed * share), structs.replace(options, guards=guards, operators=False, outage_s=s))
        for _, guards in panes
        for s in OUTAGES_S
        for share in SHARES
    ]
    found: list[float | None] = []
    for minutes in in_parallel(_minutes, jobs):
        found.append(minutes)
        told(len(found), len(jobs))
    rows = [tuple(found[at : at + len(SHARES)]) for at in range(0, len(found), len(SHARES))]
    each = len(OUTAGES_S)
    return RecoveryMap(
        round(needed, 1),
        OUTAGES_S,
        SHARES,
        tuple(
            Pane(name, tuple(sorted(guard.value for guard in guards)), tuple(rows[each * at : each * (at + 1)]))
            for at, (name, guards) in enumerate(panes)
        ),
    )


def recovered_after(outcome: Outcome, restored: int) -> float | None:
    """Seconds from the store's return until all is well for good; None if it isn't."""
    wrong = (outcome.series["leases_missing"] > MISSING) | (outcome.series["launches_failing"] > FAILING)
    last = int(outcome.times[np.nonzero(wrong)[0][-1]]) if wrong.any() else 0
    if last + SETTLED_S > int(outcome.times[-1]):
        return None
    return max(0.0, float(last - restored))


def _with_workers(scenario: Scenario, knee: float) -> Scenario:
    """Knee and pool, in their proportion."""
    over = scenario.amount("workers.pool") / scenario.amount("workers.knee")
    values: dict[str, Value] = dict(scenario.values)
    for key, amount in (("workers.knee", knee), ("workers.pool", knee * over)):
        values[key] = structs.replace(values[key], amount=amount)
    return structs.replace(scenario, values=values)


def _minutes(scenario: Scenario, options: Options) -> float | None:
    begins, length = forced_at(scenario, options.seed) or 0, options.outage_s or 0
    short = structs.replace(scenario, lasts_s=begins + length + WITHIN_S + SETTLED_S)
    after = recovered_after(replay(short, options), begins + length)
    return None if after is None else round(after / 60, 1)
