"""Traps: guards that look right, and what comes of them; each a named run that has to show it.

A trap is a change to the scenario, to the guards or to one part (:mod:`.trap_parts`), two or three runs side by side,
and a statement about their figures. ``holds`` says whether the runs showed it: a trap that no longer does is a fault of
the replay, or has been mended in what ships.
"""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import numpy as np
from msgspec import Struct, structs

from fencepost.incident.replay.guards import NONE, Guard, Guards
from fencepost.incident.replay.leases import Leases, LeaseValues
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome, happened_by
from fencepost.incident.replay.paths import NEVER, Paths
from fencepost.incident.replay.production_leases import ProductionLeases
from fencepost.incident.replay.region import STEP_S, Region
from fencepost.incident.replay.run import RegionOf, replay
from fencepost.incident.replay.scenario import Scenario, Tick
from fencepost.incident.replay.scenario_file import set_values
from fencepost.incident.replay.trap_parts import CarelessRegion, CountingRegion
from fencepost.incident.replay.workers import WorkerValues

HOSTS = 5_000
"""Enough: every rate scales with them."""
HOUR = 3600
LEASES_S = 8 * HOUR
"""So long a scenario where only leases are looked at."""
DARK = 0.02
DARK_AT: Tick = 1800
CLOCK = frozenset({Guard.LEASE_CLOCK})


class Run(Struct, frozen=True):
    """One of the runs side by side, and its figures by what they are (minutes or shares); None: it never came."""

    name: str
    figures: dict[str, float | None]


class Shown(Struct, frozen=True):
    """What came of a trap's runs. ``so``: what to do instead."""

    name: str
    statement: str
    so: str
    runs: tuple[Run, ...]
    holds: bool


class Trap(Struct, frozen=True):
    """One trap. ``run`` takes the scenario, options (hosts, seed) and how long the outage is, in seconds."""

    statement: str
    so: str
    run: Callable[[Scenario, Options, int], tuple[tuple[Run, ...], bool]]


def show_trap(name: str, scenario: Scenario, options: Options, outage_s: int) -> Shown:
    """Run it. Raises ``KeyError`` for a name that isn't in :data:`TRAPS`."""
    trap = TRAPS[name]
    runs, holds = trap.run(scenario, structs.replace(options, hosts=options.hosts or HOSTS), outage_s)
    return Shown(name, trap.statement, trap.so, runs, holds)


class _Runs:
    """Runs of one scenario after one outage."""

    def __init__(self, scenario: Scenario, options: Options, outage_s: int, *, lasts_s: int = 0) -> None:
        self.scenario = structs.replace(scenario, lasts_s=lasts_s or scenario.lasts_s)
        self.options = structs.replace(options, outage_s=outage_s, guards=NONE, operators=True)

    def go(
        self,
        guards: Guards = NONE,
        region_of: RegionOf = Region,
        *,
        operators: bool = True,
        changes: dict[str, str] | None = None,
    ) -> Outcome:
        options = structs.replace(self.options, guards=guards, operators=operators)
        return replay(set_values(self.scenario, changes or {}), options, region_of)


MISSING, FAILING, OUT = "leases missing, min", "launches failing, min", "capacity out, min"
BACK = "leases back, min after the store"


def _minutes(outcome: Outcome, *names: str) -> dict[str, float | None]:
    figures, happened = outcome.figures, outcome.happened
    restored = happened_by(outcome, "restore-store") or 0

    def after(event: str) -> float | None:
        return (happened[event] - restored) / 60 if event in happened else None

    every: dict[str, float | None] = {
        MISSING: (figures["leases_missing_s"] or 0.0) / 60,
        FAILING: (figures["launch_failing_s"] or 0.0) / 60,
        OUT: (figures["capacity_out_s"] or 0.0) / 60,
        BACK: after("leases-back"),
        "zones out, min after the store": after("zones-removed"),
    }
    return {name: None if every[name] is None else round(every[name] or 0.0, 1) for name in names}


def _less(one: float | None, other: float | None) -> bool:
    """Whether one came sooner than the other; what never came is latest."""
    return one is not None and (other is None or one < other)


def _one_stage(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s)
    shown = (BACK, "zones out, min after the store", OUT)
    bare = _minutes(runs.go(), *shown)
    alone = _minutes(runs.go(frozenset({Guard.ADMISSION})), *shown)
    both = _minutes(runs.go(frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE})), *shown)
    holds = _less(alone[BACK], bare[BACK]) and _less(alone[shown[1]], bare[shown[1]])
    holds = holds and (alone[OUT] or 0.0) >= (bare[OUT] or 0.0) > (both[OUT] or 0.0)
    return (Run("as it was", bare), Run("admission alone", alone), Run("and the network throttle", both)), holds


def _long_back_off(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s, lasts_s=LEASES_S)
    length = int(scenario.amount("leases.length"))
    capped, long = (
        _minutes(runs.go(CLOCK, partial(CarelessRegion, back_off_s=most), operators=False), MISSING)
        for most in (length // 2, 2 * length)
    )
    found = (Run(f"pauses of at most {length // 2} s", capped), Run(f"of at most {2 * length} s", long))
    return found, capped[MISSING] == 0 and (long[MISSING] or 0.0) > 60


def _single_checks(scenario: Scenario, options: Options, _: int) -> tuple[tuple[Run, ...], bool]:
    what = "hosts that are gone keep a lease, min"
    amount, scale = scenario.amount, options.hosts / 100_000
    chance = np.random.default_rng(options.seed)
    gone = np.sort(chance.choice(options.hosts, max(1, int(options.hosts * DARK)), replace=False)).astype(np.int64)
    costs = (amount("workers.renew_cost"), amount("workers.establish_cost"), int(amount("workers.patience")))
    knee, pool = amount("workers.knee") * scale, amount("workers.pool") * scale
    length = int(amount("leases.length"))
    paths = Paths(options.hosts, 0.0, 0.0, chance)
    cell = ProductionLeases(length, paths, WorkerValues(knee, pool, amount("workers.contention"), *costs))
    cell.darken(gone, DARK_AT, NEVER)
    now = DARK_AT
    while cell.holding > options.hosts - len(gone) and now < DARK_AT + HOUR:
        now += STEP_S
        cell.step(now, STEP_S)
    paths.lost_at[gone] = DARK_AT
    values = LeaseValues(length, int(amount("leases.renewal")), amount("guards.grace"))
    single = float(Leases(values, paths, chance).lapse_times(DARK_AT)[gone].max() - DARK_AT)
    cell_s = float(now - DARK_AT)
    found = (
        Run("grace while the store is away (what ships)", {what: round(cell_s / 60, 1)}),
        Run("grace for each failed check", {what: round(single / 60, 1)}),
    )
    return found, cell_s < 3 * length and single > 10 * cell_s


def _counters_kept(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s)
    what = "capacity out as failover is switched on, %"
    found = []
    for cleared in (False, True):
        outcome = runs.go(NONE, partial(CountingRegion, cleared=cleared))
        on = happened_by(outcome, "failover-on")
        most = None if on is None else float(outcome.series["capacity_out"][outcome.times >= on].max()) * 100
        found.append(Run("counts cleared" if cleared else "counts kept", {what: most and round(most, 1)}))
    kept, cleared_out = (run.figures[what] for run in found)
    return tuple(found), kept is not None and kept > 10 and cleared_out is not None and cleared_out < 1


def _throttle_at_first(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s, lasts_s=LEASES_S)
    knee, cost = scenario.amount("workers.knee"), scenario.amount("workers.establish_cost")
    found = []
    for rate in ("33/s", "36/s"):
        outcome = runs.go(changes={"throttle.rate": rate})
        held = 100 * (1 - float(outcome.series["leases_missing"][_after(outcome, "throttle-leases", 45 * 60)]))
        figures = {"leases held 45 min on, %": round(held, 1)} | _minutes(outcome, BACK)
        found.append(Run(f"{rate} of {knee / cost:.0f}/s without renewals", figures))
    return tuple(found), found[0].figures[BACK] is not None and found[1].figures[BACK] is None


def _after(outcome: Outcome, deed: str, seconds: int) -> int:
    at = (happened_by(outcome, deed) or 0) + seconds
    return min(len(outcome.times) - 1, int(np.searchsorted(outcome.times, at)))


def _fixed_times(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s)
    spread = _minutes(runs.go(), BACK)
    step = int(scenario.amount("leases.renewal"))
    bunched = _minutes(runs.go(NONE, partial(CarelessRegion, fixed_s=step)), BACK)
    found = (Run("each at a time of its own", spread), Run(f"all every {step} s on the clock", bunched))
    late = bunched[BACK] is None or (spread[BACK] or 0.0) * 1.5 < (bunched[BACK] or 0.0)
    return found, spread[BACK] is not None and late


def _service_time(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s, lasts_s=LEASES_S)
    found = {}
    for believed in (0.5, 1.0, 4.0):
        outcome = runs.go(NONE, partial(CarelessRegion, believed=believed), operators=False)
        found[believed] = Run(f"believed to be {believed:g} times as long as it is", _minutes(outcome, BACK))
    half, right, four = (found[each].figures[BACK] for each in (0.5, 1.0, 4.0))
    holds = half is None and right is not None and four is not None and four <= 1.18 * right
    return tuple(found.values()), holds


def _grace_one_hour(scenario: Scenario, options: Options, outage_s: int) -> tuple[tuple[Run, ...], bool]:
    runs = _Runs(scenario, options, outage_s)
    bare = _minutes(runs.go(), MISSING, FAILING, OUT)
    hour = _minutes(runs.go(CLOCK, changes={"guards.grace": "1h"}), MISSING, FAILING, OUT)
    whole = _minutes(runs.go(CLOCK), MISSING, FAILING, OUT)
    saved = (bare[MISSING] or 0.0) - (hour[MISSING] or 0.0)
    found = (Run("as it was", bare), Run("grace of 1 h", hour), Run("grace as it ships", whole))
    return found, whole[MISSING] == 0 and 45 <= saved <= 75 and (hour[MISSING] or 0.0) > 60


TRAPS = MappingProxyType(
    {
        "one-stage": Trap(
            "Mending one stage moves the load to the next, and sooner: admission alone brings leases back hours "
            "earlier, and capacity leaves DNS earlier and for at least as long.",
            "bound every stage by what the next one drains",
            _one_stage,
        ),
        "long-back-off": Trap(
            "A back-off that grows longer than a lease defeats the grace: when the store is back, leases run out "
            "before their hosts ask.",
            "cap it at half of what is left of the lease",
            _long_back_off,
        ),
        "single-checks": Trap(
            "Grace for each failed check, instead of for the store's absence, keeps leases for hosts that are gone.",
            "stop the clock for the cell, when the store can't be reached, and only then",
            _single_checks,
        ),
        "counters-kept": Trap(
            "Failure counts that go on while failover is off take out a fifth of capacity as it is switched on.",
            "clear the counts when failover is switched on",
            _counters_kept,
        ),
        "throttle-at-first": Trap(
            "A fixed throttle that is safe at first is too high later: what is free for new leases falls as renewals "
            "return.",
            "let in by what is in flight, not by a rate",
            _throttle_at_first,
        ),
        "fixed-times": Trap(
            "Refused callers that retry at fixed times come all at once: most are refused again, and in between "
            "tokens overflow unused.",
            "let each retry at a time of its own",
            _fixed_times,
        ),
        "service-time": Trap(
            "Passing over calls that can't be done in time saves it, if it is known how long a call takes: half of "
            "that defeats it, four times as much costs at most 18 %.",
            "measure it under load, and round up",
            _service_time,
        ),
        "grace-one-hour": Trap(
            "A grace of one hour in an outage of two and a half buys that hour and nothing else.",
            "let the grace last as long as the store is away",
            _grace_one_hour,
        ),
    }
)  # fmt: skip
"""All of them by name."""
