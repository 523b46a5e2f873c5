"""What was wrong and how long, as bars: a row for each condition or service, in it a lane for each run.

The first lane of a row is what was reported, unless the scenario is made up.

A condition holds by the numbers of the run alone. What was reported is taken from the scenario's events; those say when
something was *seen*, so a reported bar may begin after the run's.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from fencepost.incident.replay.outcome import FAILING, Outcome
from fencepost.incident.replay.scenario import Scenario
from fencepost.incident.replay.show.drawing import REPORTED, Rectangle, Shape, run_ink
from fencepost.incident.replay.show.hours import Hours, spoken
from fencepost.incident.replay.show.naming import gone, is_told, moments
from fencepost.incident.replay.show.phases import Span, by_hand, by_script, length_s, stretches

LANE = 16.0
"""Pixels from one lane to the next."""
BAR = 13.0
GAP_S = 600
"""A condition that is back within that hasn't ended."""
MORE = "more than "
"""Before the length of what isn't over at the end."""
BRIEF_S = 60
"""A condition that lasts less isn't shown."""
Runs = Sequence[tuple[str, Outcome]]


class Lane(Struct, frozen=True, gc=False):
    """Bars on one line. ``who`` and ``when`` in words; ``lasted`` how long in all, "" where nothing was."""

    ink: str
    who: str
    spans: tuple[Span, ...]
    when: str
    lasted: str


class Row(Struct, frozen=True, gc=False):
    """One thing that was wrong; ``note`` says more of it."""

    title: str
    lanes: tuple[Lane, ...]
    note: str = ""

    @property
    def height(self) -> float:
        """Of all lanes, in pixels."""
        return len(self.lanes) * LANE


class Condition(Struct, frozen=True, gc=False):
    """A quantity above a number, and between which events it was reported; "": called after the scenario's cause."""

    title: str
    quantity: str
    above: float
    begins: str
    ends: str


CONDITIONS = (
    Condition("", "dns_empty", 0.0, "endpoint-empty", "dns-restored"),
    Condition("More than 1 % of hosts without a lease", "leases_missing", 0.01, "endpoint-empty", "leases-back"),
    Condition("More than 5 % of launches refused", "launches_failing", FAILING, "launches-failing", "launches-normal"),
    Condition("Connections to balancers fail", "connection_errors", 0.001, "errors-begin", "errors-end"),
    Condition("Network state older than 25 min", "network_age", 25 * 60, "network-slow", "network-normal"),
    Condition("More than 5 % of healthy capacity out", "capacity_out", 0.05, "checks-detected", "failover-off"),
)


def spells(outcome: Outcome, quantity: str, above: float) -> tuple[Span, ...]:
    """When a quantity was above a number; an open end where it was so to the end."""
    held = outcome.series[quantity] > above
    edges = np.flatnonzero(np.diff(np.concatenate(([0], held.astype(np.int8), [0]))))
    step = int(outcome.times[0])
    found: list[tuple[int, int]] = []
    for first, after in zip(edges[::2], edges[1::2], strict=True):
        begun, ended = int(outcome.times[first]), int(outcome.times[after - 1]) + step
        if found and begun - found[-1][1] < GAP_S:
            found[-1] = (found[-1][0], ended)
        else:
            found.append((begun, ended))
    last = outcome.scenario.lasts_s
    return tuple((begun, None if ended >= last else ended) for begun, ended in found if ended - begun >= BRIEF_S)


def phase_rows(runs: Runs) -> tuple[Row, ...]:
    """The phases: reported, and in each run that has them."""
    scenario = runs[0][1].scenario
    found = []
    for at, phase in enumerate(stretches(runs[0][1])):
        lanes = _reported(scenario, [phase.reported] if phase.reported else [])
        for number, (name, outcome) in enumerate(runs):
            each = stretches(outcome)[at]
            lane = _lane(scenario, run_ink(number), name, [each.simulated] if each.simulated else [])
            lanes.append(_marked(lane, each.equal))
        found.append(Row(phase.words[:1].upper() + phase.words[1:], tuple(lanes)))
    return tuple(found)


def condition_rows(runs: Runs) -> tuple[Row, ...]:
    """What was wrong; a condition that never was, neither reported nor in any run, is left out."""
    scenario = runs[0][1].scenario
    hours = {each.name: each.reported for each in moments(scenario)}
    found = []
    for condition in CONDITIONS:
        begins, ends = hours.get(condition.begins), hours.get(condition.ends)
        reported: list[Span] = [] if begins is None or ends is None else [(begins, ends)]
        spans = [spells(outcome, condition.quantity, condition.above) for _, outcome in runs]
        if not reported and not any(spans):
            continue
        words = condition.title or gone(scenario)
        lanes = _reported(scenario, reported)
        for number, each in enumerate(spans):
            given = bool(each) and condition.quantity == "dns_empty" and by_script(runs[number][1], condition.ends)
            lane = _lane(scenario, run_ink(number), runs[number][0], each)
            lanes.append(_marked(lane, given and (not reported or each[-1][1] == reported[-1][1])))
        found.append(Row(words[:1].upper() + words[1:], tuple(lanes)))
    return tuple(found)


def dependent_rows(runs: Runs) -> tuple[Row, ...]:
    """The services that depend on it."""
    scenario = runs[0][1].scenario
    return tuple(
        Row(
            each.title,
            (
                *_reported(scenario, each.reported),
                *(
                    _marked(
                        _lane(scenario, run_ink(number), name, outcome.down.get(each.name, ())),
                        by_hand(outcome, each.name),
                    )
                    for number, (name, outcome) in enumerate(runs)
                ),
            ),
            f"depends on {', '.join(each.depends_on)}" if each.depends_on else "",
        )
        for each in scenario.dependents
    )


def row_shapes(row: Row, lasts_s: int) -> tuple[Shape, ...]:
    """A row's bars, in ticks and pixels; what was reported is hollow."""
    return tuple(
        Rectangle(
            begun, at * LANE + (LANE - BAR) / 2, (lasts_s if ended is None else ended) - begun, BAR, lane.ink,
            hollow=lane.ink == REPORTED, about=f"{row.title}, {lane.who}: {lane.when}, {lane.lasted}",
        )
        for at, lane in enumerate(row.lanes)
        for begun, ended in lane.spans
    )  # fmt: skip


def _marked(lane: Lane, equal: bool) -> Lane:
    """With ``=`` behind its length where that is so by script."""
    return Lane(lane.ink, lane.who, lane.spans, lane.when, f"{lane.lasted} =") if equal else lane


def _reported(scenario: Scenario, spans: Sequence[Span]) -> list[Lane]:
    """The lane of what was reported; none where nothing of the scenario was."""
    return [_lane(scenario, REPORTED, "reported", spans)] if is_told(scenario) else []


def _lane(scenario: Scenario, ink: str, who: str, spans: Sequence[Span]) -> Lane:
    hours, lasts = Hours(scenario), scenario.lasts_s
    if not spans:
        return Lane(ink, who, (), "", "not reported" if ink == REPORTED else "never")
    when = ", ".join(f"{hours.at(begun)}–{'…' if ended is None else hours.later(ended)}" for begun, ended in spans)
    length = sum(length_s(span, lasts) or 0 for span in spans)
    more = MORE if spans[-1][1] is None else ""
    return Lane(ink, who, tuple(spans), when, f"{more}{spoken(length)}")
