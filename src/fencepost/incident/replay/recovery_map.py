"""How long it takes to recover for good, the outage's length against the load; and what would have brought it back.

Where a system has a knee, a small outage is over as soon as its cause is, and a little more of it is never over. The
map shows where that is, as it was and with guards, nobody at the keyboard. Beside it: how much of the work was of use
to anybody, the load that tips the region and the lower one at which it comes back (:mod:`.hysteresis`), and the least
that people could have done (:mod:`.least`).
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

from msgspec import Struct, structs

from fencepost.incident.replay.guards import NONE, PRODUCTION, Guards
from fencepost.incident.replay.hysteresis import Hysteresis, hysteresis
from fencepost.incident.replay.least import KINDS, Least, least, tips
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.parallel import in_parallel
from fencepost.incident.replay.recovery import recovery, with_workers, workers_needed
from fencepost.incident.replay.scenario import Scenario

HOSTS = 2_000
OUTAGES_S = tuple(60 * minutes for minutes in (5, 10, 15, 20, 30, 60, 157))
SHARES = (0.25, 0.34, 0.5, 0.7, 0.85, 1.0, 1.25)
"""Of the workers needed so many are there; in October 2025 a third."""
TRIGGERS_S = tuple(60 * minutes for minutes in (20, 60, 157))
"""Outages for which both loads are looked for."""


class Pane(Struct, frozen=True):
    """By outage and share: minutes (None: never), and the work done to the part of it that somebody still waited for
    (None: there was none). ``hysteresis`` by outage."""

    name: str
    guards: tuple[str, ...]
    minutes: tuple[tuple[float | None, ...], ...]
    work: tuple[tuple[float | None, ...], ...]
    hysteresis: tuple[Hysteresis, ...]


class RecoveryMap(Struct, frozen=True):
    """``needed`` workers for 100,000 hosts would give every host a lease anew while callers come back, renewals
    included. ``shares`` of that are the map's columns, ``outages_s`` its rows; ``load`` is needed ÷ those of the
    scenario. ``least``: after the outage of ``outage_s``, as it was; empty if that is over by itself."""

    needed: float
    load: float
    outages_s: tuple[int, ...]
    shares: tuple[float, ...]
    panes: tuple[Pane, ...]
    outage_s: int
    least: tuple[Least, ...]


def recovery_map(
    scenario: Scenario, options: Options, outage_s: int, told: Callable[[int, int], None] = lambda *_: None
) -> RecoveryMap:
    """As it was, and with the options' guards, or all that ship. On as many cores as there are."""
    needed = workers_needed(scenario)
    options = structs.replace(options, operators=False)
    bare = structs.replace(options, guards=NONE, outage_s=outage_s)
    panes: tuple[tuple[str, Guards], ...] = (("As it was", NONE),)
    if options.guards and options.guards != PRODUCTION:
        panes += (("With these guards", options.guards),)
    else:
        panes += (("With every guard", PRODUCTION),)
    kinds = KINDS if tips(scenario, bare) else ()
    long = [(hysteresis, scenario, _of(options, guards, each)) for _, guards in panes for each in TRIGGERS_S]
    tries = [
        (recovery, with_workers(scenario, needed * share), _of(options, guards, each))
        for _, guards in panes
        for each in OUTAGES_S
        for share in SHARES
    ]
    jobs: list[tuple[Any, ...]] = [(least, scenario, bare, kind.name) for kind in kinds]
    jobs += [*long, *tries]  # the longest first, so that no core waits for the last of them
    found = _each(jobs, told)
    leasts, loads = tuple(islice(found, len(kinds))), list(islice(found, len(long)))
    rows = [tuple(islice(found, len(SHARES))) for _ in range(len(tries) // len(SHARES))]
    made = []
    for at, (name, guards) in enumerate(panes):
        own = rows[len(OUTAGES_S) * at : len(OUTAGES_S) * (at + 1)]
        minutes = tuple(tuple(each.minutes for each in row) for row in own)
        work = tuple(tuple(each.work for each in row) for row in own)
        both = tuple(loads[len(TRIGGERS_S) * at : len(TRIGGERS_S) * (at + 1)])
        made.append(Pane(name, tuple(sorted(guard.value for guard in guards)), minutes, work, both))
    load = needed / scenario.amount("workers.knee")
    return RecoveryMap(round(needed, 1), round(load, 2), OUTAGES_S, SHARES, tuple(made), outage_s, leasts)


def _of(options: Options, guards: Guards, outage_s: int) -> Options:
    return structs.replace(options, guards=guards, outage_s=outage_s)


def _each(jobs: list[tuple[Any, ...]], told: Callable[[int, int], None]) -> Any:
    """Results in the jobs' order, each told."""
    for done, result in enumerate(in_parallel(_call, jobs), 1):
        told(done, len(jobs))
        yield result


def _call(asked: Callable[..., Any], *given: Any) -> Any:
    return asked(*given)
