"""One replay, from a scenario to its outcome."""

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fencepost.incident.replay.automation import automation
from fencepost.incident.replay.guards import NONE, Guards
from fencepost.incident.replay.options import AS_IT_WAS, Options
from fencepost.incident.replay.outcome import Outcome, figures
from fencepost.incident.replay.quantities import QUANTITIES
from fencepost.incident.replay.region import STEP_S, Region
from fencepost.incident.replay.scenario import Scenario, Tick
from fencepost.incident.replay.watch import Watch

RegionOf: TypeAlias = Callable[[Scenario, int, int, Guards], Region]
"""Makes a region of a scenario, so many hosts, a seed and guards."""


def forced_at(scenario: Scenario, seed: int) -> Tick | None:
    """When a forced outage begins: as reported, or as it was; None if the scenario knows of none."""
    for event in scenario.events:
        if event.reported is not None and event.when.seen is not None and event.when.seen.quantity == "dns_empty":
            return event.reported
    return automation(scenario, NONE, seed).empty_at


def replay(scenario: Scenario, options: Options = AS_IT_WAS, region_of: RegionOf = Region) -> Outcome:
    """Run it. Deterministic: the same scenario and options give the same outcome, but for its CPU time.

    ``region_of``: a region that does something differently (:mod:`.trap_parts`).
    """
    begun = time.process_time()
    region = region_of(scenario, options.hosts, options.seed, options.guards)
    dns = automation(scenario, options.guards, options.seed)
    empty_at = dns.empty_at
    if options.outage_s is not None:
        empty_at = forced_at(scenario, options.seed)
    ends = None if options.outage_s is None or empty_at is None else empty_at + options.outage_s
    watch = Watch(scenario, options.operators, ends)
    steps = scenario.lasts_s // STEP_S
    series = {name: np.zeros(steps, np.float32) for name in QUANTITIES}
    for index in range(steps):
        now = (index + 1) * STEP_S
        if empty_at is not None and now >= empty_at:
            region.lose(empty_at)
            empty_at = None
        watch.act(region, now)
        region.step(now)
        watch.look(region, now)
        for name, values in series.items():
            values[index] = region.quantities[name]
    times = np.arange(1, steps + 1, dtype=np.int64) * STEP_S
    down = {
        name: tuple((spell.begun, spell.ended) for spell in spells if spell.begun is not None)
        for name, spells in watch.spells.items()
    }
    cpu_s = time.process_time() - begun
    counted = figures(series, watch.happened, options.hosts, STEP_S)
    counted |= {"cpu_s": cpu_s, "walked_s": float(region.leases.walked), "recovery_ratio": None}
    part = region.leases.part
    counted["work_ratio"] = round(part.spent / part.useful, 4) if part.useful else None
    restored, back = region.paths.restored_at, watch.happened.get("leases-back")
    if region.leases.ideal_s and restored is not None and back is not None:
        counted["recovery_ratio"] = round((back - restored) / region.leases.ideal_s, 4)
    return Outcome(scenario, options, times, series, watch.happened, down, dns.told, counted)
