"""Outcomes for tests of what is shown: real small runs, and one made up whose picture one can do in one's head."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from fencepost.incident.replay.guards import PRODUCTION, Guard
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Line, Outcome
from fencepost.incident.replay.quantities import QUANTITIES
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import (
    Act,
    Cause,
    Dependent,
    Down,
    Event,
    Kind,
    Phase,
    Rule,
    Scenario,
    Value,
    Watched,
)
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.phases import Span

HOSTS = 2_000
MINUTE = 60
HOUR = 3600
STEP_S = 12


@cache
def as_it_was() -> Outcome:
    """October 2025 with few hosts."""
    return replay(find_scenario("aws-2025-10-19"), Options(hosts=HOSTS))


@cache
def guarded() -> Outcome:
    """The same outage, with every guard but the fence."""
    return replay(
        find_scenario("aws-2025-10-19"),
        Options(hosts=HOSTS, guards=PRODUCTION - {Guard.FENCE}, outage_s=157 * MINUTE),
    )


def made_up() -> Outcome:
    """Four hours from 22:00: away 22:30 to 23:00, standing still until 00:00 by hand, back at 01:00, errors till 01:30.

    Of 1,000 hosts all lose their lease; the queue grows to 10,000 calls; a fifth of capacity goes from 00:30 to 01:00.
    """
    published, fitted = Kind.PUBLISHED, Kind.CALIBRATED
    scenario = Scenario(
        "made-up", "A made-up evening", "Something & <something> else.", Cause.STORE_AWAY, "2026-02-28T22:00:00+01:00",
        "CET", 4 * HOUR,
        {"a.b": Value(90.0, "seconds", published, "paper"), "a.c": Value(0.25, "share", fitted, "us")},
        (
            Act("repaired", "somebody repairs it", "restore-store", Rule(at=HOUR), HOUR, published, "paper"),
            Act("helped", "somebody helps", "throttle-leases", Rule(at=2 * HOUR), 2 * HOUR, published, "paper"),
        ),
        (
            Event("gone", "it is gone", Rule(seen=Watched("dns_empty", True, 0.0)), 1800, 60, published, "paper"),
            Event("leases-back", "all leases are back", Rule(seen=Watched("leases_missing", False, 0.002)),
                  165 * MINUTE, 600, published, "paper"),
            Event("whole", "all is well", Rule(follows="leases-back", after_s=1800), None, None, fitted, "us"),
        ),
        (Phase("away", "away", "gone", "repaired"), Phase("storm", "storm", "repaired", "leases-back"),
         Phase("rest", "rest", "leases-back", "whole")),
        (Dependent("shop", "Shop", ("store",), (Down(Rule(follows="gone"), Rule(follows="leases-back"), False),),
                   ((30 * MINUTE, 4 * HOUR + 5 * MINUTE),), published, "paper"),),
        {"paper": "A paper", "us": "fitted here"},
    )  # fmt: skip
    times = np.arange(1, 4 * HOUR // STEP_S + 1, dtype=np.int64) * STEP_S
    series = {name: np.zeros(len(times), np.float32) for name in QUANTITIES}

    def between(begins: int, ends: int) -> NDArray[np.bool_]:
        return (times >= begins) & (times < ends)

    series["dns_empty"][between(30 * MINUTE, HOUR)] = 1
    series["store_access"][:] = 1 - series["dns_empty"]
    series["leases_missing"][:] = 0.001
    series["leases_missing"][between(30 * MINUTE, 2 * HOUR)] = 1
    series["leases_missing"][between(2 * HOUR, 3 * HOUR)] = 0.5
    line = between(HOUR, 2 * HOUR)
    series["lease_queue"][line] = np.linspace(100, 10_000, int(line.sum()))
    series["capacity_out"][between(150 * MINUTE, 3 * HOUR)] = 0.2
    series["results_late"][between(150 * MINUTE, 3 * HOUR)] = 0.4
    series["connection_errors"][between(150 * MINUTE, 210 * MINUTE)] = 0.1
    happened = {
        "gone": 30 * MINUTE,
        "repaired": HOUR,
        "helped": 2 * HOUR,
        "leases-back": 3 * HOUR,
        "whole": 210 * MINUTE,
    }
    figures: dict[str, float | None] = {
        "broken_leases_max": 1000.0, "leases_back": 3.0 * HOUR, "leases_missing_s": 9000.0, "launch_failing_s": 0.0,
        "capacity_out_s": 360.0, "capacity_out_max": 0.2, "dns_empty_s": 1800.0, "cpu_s": 0.5, "walked_s": 1.0,
    }  # fmt: skip
    down: dict[str, tuple[Span, ...]] = {"shop": ((30 * MINUTE, 3 * HOUR),)}
    lines = (Line(30 * MINUTE, "writer A", "writes nothing"), Line(30 * MINUTE, "writer A", "is content"))
    return Outcome(scenario, Options(hosts=1000), times, series, happened, down, lines, figures)
