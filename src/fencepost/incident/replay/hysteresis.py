"""Hysteresis: the load at which an outage of some length tips the region, and the lower one at which it comes back.

Load is workers needed ÷ workers at the knee (:func:`.recovery.workers_needed`). Below the first number the region is
well again by itself after that outage; above it never is. Once it has tipped, a load just below the first number is
far too much: what was given up is still in line, and whoever gave up asks again. So it has to fall to the second.
Between the two both states last, and which one it is in only its past says.
"""

from msgspec import Struct

from fencepost.incident.replay.boundary import boundary
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.recovery import Intervention, recovery, with_workers, workers_needed
from fencepost.incident.replay.scenario import Scenario

LOADS = (8.0, 4.0, 2.0, 1.0, 0.5)
"""Tried from above: the most that is borne is looked for."""
BEYOND = 1.1
"""The tipped region has so many times the load that tips it, or its own where that is more."""
TIMES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Times the workers, an hour after the store's return."""


class Hysteresis(Struct, frozen=True):
    """For one outage, loads as numbers of one.

    ``borne``: the most after which the region is well again by itself; None: not even the least that was tried.
    ``tipped``: the load at which it was tipped for ``returns``, None if nothing that was tried tips it. ``returns``:
    the most to which that load has to fall an hour later; None: no fall that was tried is enough.
    """

    outage_s: int
    borne: float | None
    tipped: float | None
    returns: float | None


def hysteresis(scenario: Scenario, options: Options) -> Hysteresis:
    """Both loads for the options' outage."""
    needed = workers_needed(scenario)

    def bears(load: float) -> bool:
        return recovery(with_workers(scenario, needed / load), options).minutes is not None

    length, own = options.outage_s or 0, needed / scenario.amount("workers.knee")
    borne = boundary(bears, LOADS)
    if borne == LOADS[0]:
        return Hysteresis(length, borne, None, None)
    tipped = max(own, BEYOND * (borne or own))
    at_load = with_workers(scenario, needed / tipped)
    if borne is not None and tipped > BEYOND * borne and bears(tipped):  # the ladder's boundary isn't the only one
        tipped = BEYOND * borne
        at_load = with_workers(scenario, needed / tipped)
    least = boundary(lambda times: recovery(at_load, options, Intervention(workers=times)).minutes is not None, TIMES)
    return Hysteresis(length, _short(borne), _short(tipped), None if least is None else _short(tipped / least))


def _short(load: float | None) -> float | None:
    return None if load is None else round(load, 2)
