"""Whether a run as it was is near enough to what was reported: each hour for which the scenario says how near.

Other runs aren't meant to be near: a guard that changed nothing would be worth nothing.
"""

from msgspec import Struct

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.hours import Hours, spoken
from fencepost.incident.replay.show.naming import moments


class Judged(Struct, frozen=True, gc=False):
    """One hour with its bound. ``found``: None if it never came."""

    name: str
    reported: Tick
    found: Tick | None
    within_s: int

    @property
    def held(self) -> bool:
        """Whether it is within its bound."""
        return self.found is not None and abs(self.found - self.reported) <= self.within_s


def judged(outcome: Outcome) -> tuple[Judged, ...]:
    """All hours with a bound, in the scenario's order; none of a run that isn't as it was."""
    options = outcome.options
    if options.guards or not options.operators or options.outage_s is not None:
        return ()
    return tuple(
        Judged(each.name, each.reported, outcome.happened.get(each.name), each.within_s)
        for each in moments(outcome.scenario)
        if each.reported is not None and each.within_s is not None
    )


def verdict(outcome: Outcome) -> str:
    """The same in a sentence; "" where there is nothing to judge."""
    all_ = judged(outcome)
    if not all_:
        return ""
    hours = Hours(outcome.scenario)
    bounds = sorted({each.within_s for each in all_})
    how_near = spoken(bounds[-1]) if len(bounds) == 1 else f"{spoken(bounds[0])} to {spoken(bounds[-1])}"
    wrong = [
        f"{each.name} ({hours.at(each.reported)}, here {'never' if each.found is None else hours.at(each.found)})"
        for each in all_
        if not each.held
    ]
    near = len(all_) - len(wrong)
    said = f"{near} of {len(all_)} hours are as near to the reported ones as they have to be ({how_near})"
    return f"{said}; not {', '.join(wrong)}" if wrong else said
