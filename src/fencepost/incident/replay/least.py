"""The least that brings the region back once it has tipped: by what people could have done, an hour after the store.

Each kind of intervention has one number, the gentlest of which is looked for (:mod:`.boundary`): the fastest throttle,
the smallest part of the line dropped, the fewest more workers. Alone and together, since two loops keep the region
down: work on calls that were given up, and renewals that starve behind new leases.
"""

from collections.abc import Callable

from msgspec import Struct

from fencepost.incident.replay.boundary import boundary
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.recovery import MANAGERS, Intervention, recovery
from fencepost.incident.replay.scenario import Scenario

RATES = (2.0, 1.0, 0.5, 0.25)
"""Of new leases a second, to those that all workers could give if they did nothing else; a fifth takes hours."""
TIMES = (1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
PARTS = tuple(MANAGERS * each for each in (0.25, 0.5, 0.75, 1.0))


class Kind(Struct, frozen=True):
    """One number to turn. ``ladder``: from the gentlest; ``unit``: what the number is."""

    name: str
    words: str
    unit: str
    ladder: tuple[float, ...]
    done: Callable[[float, float], Intervention]
    """Of the number and the rate at which all workers could give new leases, for 100,000 hosts."""


class Least(Struct, frozen=True):
    """``amount``: new leases a second for 100,000 hosts, a share of the line, or times the workers; None: nothing that
    was tried is enough. ``minutes`` and ``work`` as :class:`.recovery.Recovery`."""

    name: str
    words: str
    unit: str
    amount: float | None
    minutes: float | None
    work: float | None


KINDS = (
    Kind("throttle", "throttle new leases", "per second", RATES, lambda of, full: Intervention(rate=of * full)),
    Kind("drop", "drop a part of the line", "share", PARTS, lambda of, _: Intervention(managers=round(of))),
    Kind("workers", "more workers", "times", TIMES, lambda of, _: Intervention(workers=of)),
    Kind("drop-and-throttle", "drop the whole line and throttle", "per second", RATES,
         lambda of, full: Intervention(managers=MANAGERS, rate=of * full)),
    Kind("drop-and-workers", "drop the whole line and have more workers", "times", TIMES,
         lambda of, _: Intervention(managers=MANAGERS, workers=of)),
    Kind("throttle-and-drop", "throttle to half of what workers can give, and drop a part", "share", PARTS,
         lambda of, full: Intervention(managers=round(of), rate=full / 2)),
    Kind("throttle-and-workers", "throttle to half of what workers can give, and have more", "times", TIMES,
         lambda of, full: Intervention(rate=full / 2, workers=of)),
)  # fmt: skip
"""What was within reach in October 2025; the people of that night dropped the whole line and throttled."""


def tips(scenario: Scenario, options: Options) -> bool:
    """Whether the options' outage tips the region at all."""
    return recovery(scenario, options).minutes is None


def least(scenario: Scenario, options: Options, name: str) -> Least:
    """The gentlest of that kind that recovers. Raises ``KeyError`` for a name that isn't in :data:`KINDS`."""
    kind = {each.name: each for each in KINDS}[name]
    full = scenario.amount("workers.knee") / scenario.amount("workers.establish_cost")
    found: dict[float, tuple[float | None, float | None]] = {}

    def recovers(number: float) -> bool:
        number = _whole(kind, number)
        if number not in found:
            tried = recovery(scenario, options, kind.done(number, full))
            found[number] = (tried.minutes, tried.work)
        return found[number][0] is not None

    number = boundary(recovers, kind.ladder)
    if number is None:
        return Least(kind.name, kind.words, kind.unit, None, None, None)
    number = _whole(kind, number)
    amount = {"share": number / MANAGERS, "per second": number * full}.get(kind.unit, number)
    return Least(kind.name, kind.words, kind.unit, round(amount, 2), *found[number])


def _whole(kind: Kind, number: float) -> float:
    """Managers are restarted whole."""
    return float(round(number)) if kind.unit == "share" else number
