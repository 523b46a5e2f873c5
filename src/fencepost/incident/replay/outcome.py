"""What came of a replay: everything that is shown is made from this."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.options import Options
from fencepost.incident.replay.scenario import Scenario, Tick

Series = NDArray[np.float32]


class Line(Struct, frozen=True, gc=False):
    """One thing that was said or done by a part, for the page's "what each part believed"."""

    at: Tick
    who: str
    what: str


class Outcome(Struct, frozen=True):
    """A whole run. ``times`` are the ends of steps in ticks, each series has as many numbers.

    ``happened`` has acts and events by name; ``down`` each dependent's intervals, the last one open (None) if it didn't
    end. ``figures``: broken_leases_max, leases_back (a tick or None), launch_failing_s, capacity_out_s, dns_empty_s,
    recovery_ratio, work_ratio (work done in the lease managers, to the part of it that somebody still waited for),
    cpu_s, and what else was counted.
    """

    scenario: Scenario
    options: Options
    times: NDArray[np.int64]
    series: dict[str, Series]
    happened: dict[str, Tick]
    down: dict[str, tuple[tuple[Tick, Tick | None], ...]]
    lines: tuple[Line, ...]
    figures: dict[str, float | None]


def happened_by(outcome: Outcome, deed: str) -> Tick | None:
    """When people first did that (one of :data:`.operators.DEEDS`), whatever the scenario calls it."""
    times = [
        outcome.happened[act.name] for act in outcome.scenario.acts if act.does == deed and act.name in outcome.happened
    ]
    return min(times, default=None)


FAILING = 0.05
"""Launches count as failing beyond this share."""


def figures(series: dict[str, Series], happened: dict[str, Tick], hosts: int, step_s: int) -> dict[str, float | None]:
    """What is counted of a run."""
    back = happened.get("leases-back")
    return {
        "broken_leases_max": float(round(float(series["leases_missing"].max()) * hosts)),
        "leases_back": None if back is None else float(back),
        "leases_missing_s": float((series["leases_missing"] > 0.01).sum() * step_s),
        "launch_failing_s": float((series["launches_failing"] > FAILING).sum() * step_s),
        "capacity_out_s": float(series["capacity_out"].sum() * step_s),
        "capacity_out_max": float(series["capacity_out"].max()),
        "dns_empty_s": float((series["dns_empty"] > 0).sum() * step_s),
    }
