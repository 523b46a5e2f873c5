"""The charts of a replay: courses of quantities for several runs above the same hours, with what is worth saying.

Shapes have ticks for x and pixels for y. Two of the quantities span five orders of magnitude and are drawn to a
logarithmic scale, which each chart says. Points that a line through their neighbours shows as well are left out.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.show import findings
from fencepost.incident.replay.show.drawing import GRID, SOLID, Area, Dash, Line, Points, Polyline, Shape, run_ink
from fencepost.incident.replay.show.findings import Finding
from fencepost.incident.replay.show.hours import count, percent, spoken
from fencepost.incident.replay.show.rows import Runs

DASHES: tuple[Dash, ...] = (SOLID, (9.0, 4.0), (2.5, 3.0), (12.0, 3.0, 2.5, 3.0), (5.0, 2.5))
"""How the first, second, … run's lines are told apart without colour."""
NEAR = 0.35
"""Pixels that a point left out may be away from the line."""


class Scale(Struct, frozen=True, gc=False):
    """From a value to pixels below the top. A logarithmic one begins at ``low``, and what is less stands there."""

    low: float
    high: float
    height: float
    logarithmic: bool = False

    def down(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of many values."""
        if self.logarithmic:
            share = np.log10(np.maximum(values, self.low) / self.low) / math.log10(self.high / self.low)
        else:
            share = (values - self.low) / (self.high - self.low)
        return self.height * (1 - np.clip(share, 0, 1))

    def of(self, value: float) -> float:
        """Of one value."""
        return float(self.down(np.array([value], np.float64))[0])


class Note(Struct, frozen=True, gc=False):
    """Words on a chart, and the point they speak of: a tick, and pixels below the top."""

    at: float
    y: float
    lines: tuple[str, ...]
    ink: str


class Chart(Struct, frozen=True):
    """One chart. ``marks`` are the heights of its grid in pixels with what stands there; ``values`` those of each run
    at the end of each step, in the unit in which :attr:`told` says them."""

    name: str
    title: str
    unit: str
    height: float
    marks: tuple[tuple[float, str], ...]
    shapes: tuple[Shape, ...]
    curves: tuple[Points, ...]
    notes: tuple[Note, ...]
    values: tuple[NDArray[np.float64], ...]
    told: Callable[[float], str]
    worst: tuple[str, ...]

    @property
    def is_flat(self) -> bool:
        """Whether nothing happens in it, in none of the runs."""
        return all(bool(np.ptp(each) == 0) for each in self.values) and not any(
            isinstance(shape, Area) and len({y for _, y in shape.points}) > 1 for shape in self.shapes
        )


class Kind(Struct, frozen=True):
    """How one quantity is drawn."""

    name: str
    title: str
    unit: str
    height: float
    take: Callable[[Outcome], NDArray[np.float64]]
    scale: Callable[[float, float, float], Scale]
    marks: Callable[[Scale], list[float]]
    told: Callable[[float], str]
    found: tuple[Callable[[Outcome], Finding | None], ...]
    found_in_all: tuple[Callable[[Outcome], Finding | None], ...] = ()
    lowest_is_worst: bool = False
    hanging: str = ""


def charts(runs: Runs) -> tuple[Chart, ...]:
    """All charts for some runs of one scenario, the first being the one that is spoken of."""
    return tuple(_chart(kind, runs) for kind in _kinds(runs[0][1]))


def flat(drawn: Sequence[Chart]) -> str:
    """What needn't be drawn, in a sentence; "" where all do, or none."""
    words = [each.title[:1].lower() + each.title[1:] for each in drawn if each.is_flat]
    if not words or len(words) == len(drawn):
        return ""
    return f"Nothing happens to, and so not drawn: {', '.join(words)}."


def moving(drawn: Sequence[Chart]) -> tuple[Chart, ...]:
    """Those in which something happens; all where nothing does."""
    return tuple(each for each in drawn if not each.is_flat) or tuple(drawn)


def _chart(kind: Kind, runs: Runs) -> Chart:
    values = tuple(kind.take(outcome) for _, outcome in runs)
    times = runs[0][1].times.astype(np.float64)
    first = runs[0][1]
    everything = [*values, 1 - first.series[kind.hanging].astype(np.float64)] if kind.hanging else list(values)
    scale = kind.scale(
        min(float(each.min()) for each in everything), max(float(each.max()) for each in values), kind.height
    )
    levels = kind.marks(scale)
    lasts = first.scenario.lasts_s
    shapes: list[Shape] = [Line(0, scale.of(level), lasts, scale.of(level), GRID) for level in levels]
    if kind.hanging:
        below = scale.down(1 - first.series[kind.hanging].astype(np.float64))
        shapes.append(Area(((0, 0), *thinned(times, below), (lasts, 0)), run_ink(0)))
    curves = tuple(((0.0, float(scale.of(each[0]))), *thinned(times, scale.down(each))) for each in values)
    order = list(range(len(runs)))[::-1]
    shapes += [Polyline(curves[at], run_ink(at), 2.25 if at == 0 else 2.0, DASHES[at % len(DASHES)]) for at in order]
    worst = tuple(kind.told(float(each.min() if kind.lowest_is_worst else each.max())) for each in values)
    marks = tuple((scale.of(level), kind.told(level)) for level in levels)
    return Chart(
        kind.name, kind.title, kind.unit, kind.height, marks, tuple(shapes), curves, _notes(kind, runs, scale), values,
        kind.told, worst,
    )  # fmt: skip


def _notes(kind: Kind, runs: Runs, scale: Scale) -> tuple[Note, ...]:
    hosts = runs[0][1].options.hosts if kind.name == "leases" else 1
    said = [(0, find(runs[0][1])) for find in kind.found]
    said += [(at, find(outcome)) for find in kind.found_in_all for at, (_, outcome) in enumerate(runs)]
    return tuple(
        Note(each.at, scale.of(each.value * hosts), each.lines, run_ink(at)) for at, each in said if each is not None
    )


def thinned(times: NDArray[np.float64], heights: NDArray[np.float64], near: float = NEAR) -> Points:
    """The points that are needed so that no other is further than ``near`` pixels above or below the line."""
    kept = {0, len(times) - 1}
    todo = [(0, len(times) - 1)]
    while todo:
        first, last = todo.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        line = np.interp(times[inner], [times[first], times[last]], [heights[first], heights[last]])
        away = np.abs(heights[inner] - line)
        worst = int(away.argmax())
        if away[worst] > near:
            middle = first + 1 + worst
            kept.add(middle)
            todo += [(first, middle), (middle, last)]
    return tuple((float(times[at]), float(heights[at])) for at in sorted(kept))


def _kinds(outcome: Outcome) -> tuple[Kind, ...]:
    hosts = outcome.options.hosts

    def taken(quantity: str, factor: float = 1.0) -> Callable[[Outcome], NDArray[np.float64]]:
        return lambda run: run.series[quantity].astype(np.float64) * factor

    return (
        Kind(
            "leases", "Hosts without a lease", f"of {hosts:,}, logarithmic", 132.0, taken("leases_missing", hosts),
            lambda low, _high, height: Scale(_decade(max(low, 1.0)), max(10.0, hosts), height, logarithmic=True),
            _decades, count, (findings.standstill,), (findings.back,),
        ),
        Kind(
            "queue", "Lease manager's queue", "calls in line, logarithmic", 112.0, taken("lease_queue"),
            lambda _low, high, height: Scale(1.0, _decade(max(high, 2.0) * 9.999), height, logarithmic=True),
            _decades, lambda value: "0" if value <= 1 else count(value), (findings.longest_line,),
        ),
        Kind(
            "launches", "Launches refused", "share of those asked for", 84.0, taken("launches_failing"),
            lambda _low, _high, height: Scale(0.0, 1.0, height), lambda _scale: [0.0, 0.5, 1.0], percent, (),
            (findings.launches_normal,),
        ),
        Kind(
            "wait", "Wait for network state", "of a new instance", 112.0, taken("network_age"),
            lambda _low, high, height: Scale(0.0, _ceiling(high), height), _thirds, spoken,
            (findings.arrival, findings.longest_wait),
        ),
        Kind(
            "capacity", "Healthy capacity in DNS", "share; filled: connections that fail, first run", 132.0,
            lambda run: 1 - run.series["capacity_out"].astype(np.float64),
            lambda low, _high, height: Scale(min(0.9, math.floor(low * 10) / 10), 1.0, height), _tenths, percent,
            (findings.removal,), (), lowest_is_worst=True, hanging="connection_errors",
        ),
    )  # fmt: skip


def _decade(low: float) -> float:
    return float(10 ** math.floor(math.log10(low) + 1e-9))


def _decades(scale: Scale) -> list[float]:
    first, last = round(math.log10(scale.low)), math.floor(math.log10(scale.high) + 1e-9)
    return [float(10**each) for each in range(first, last + 1, 2 if last - first > 4 else 1)]


def _ceiling(high: float) -> float:
    """A round number of minutes at or above, so that a third of it is round too."""
    return next((size * 60.0 for size in (3, 15, 30, 60, 90, 180, 360, 720) if size * 60 >= high), math.ceil(high))


def _thirds(scale: Scale) -> list[float]:
    return [scale.high * part / 3 for part in range(4)]


def _tenths(scale: Scale) -> list[float]:
    tenths = round((scale.high - scale.low) * 10)
    step = 1 if tenths <= 4 else 2
    return [scale.high - part / 10 for part in range(0, tenths + 1, step)]
