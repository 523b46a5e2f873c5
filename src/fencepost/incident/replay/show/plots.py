"""Charts and bars as parts of a page: a stretched drawing, and words above it that keep their size.

Words are tied to a tick (``data-t``) and stand at a share of the width, so a page without script shows them where they
belong at any width, and one with script moves them when it zooms.
"""

from collections.abc import Sequence
from html import escape

from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.charts import DASHES, Chart
from fencepost.incident.replay.show.drawing import GRID, LEADER, MUTED, REPORTED, Frame, Line, Shape
from fencepost.incident.replay.show.hours import Hours
from fencepost.incident.replay.show.lane import LEVEL, marks, tall
from fencepost.incident.replay.show.naming import brief, called, is_told
from fencepost.incident.replay.show.notes import noted
from fencepost.incident.replay.show.places import beside
from fencepost.incident.replay.show.rows import BAR, LANE, MORE, Lane, Row, Runs, row_shapes
from fencepost.incident.replay.show.svg import element, number, stretched

WIDTH = 700.0
"""Pixels that a chart has at least where words stand on it; where it is narrower they are listed below it."""
TICKS = 9
"""So many hours are named below a group of charts at most."""
EDGE = 0.03
"""Hours that near to an edge, of the whole width, don't stand across it."""
LETTER = 6.3
"""Pixels of a letter, in the mean and rounded up."""
LETTERS = "ABCDE"
"""The first, second, … run, told apart by letter besides colour and dashes."""


class Plots:
    """Makes the parts for some runs of one scenario."""

    def __init__(self, runs: Runs) -> None:
        """All share the hours of the first."""
        self.runs, self.first = runs, runs[0][1]
        self.lasts_s = self.first.scenario.lasts_s
        self.frame = Frame(0, 0, WIDTH, 0, self.lasts_s)
        self.hours = Hours(self.first.scenario)
        self.every_s = self.hours.every(TICKS)

    def left(self, tick: float) -> str:
        """Where a tick is, as a style."""
        return f"left:{number(100 * tick / self.lasts_s)}%"

    def grid(self, height: float) -> list[Shape]:
        """Hours, and where people did something."""
        lines: list[Shape] = [Line(tick, 0, tick, height, GRID) for tick in self.hours.whole(self.every_s)]
        happened = self.first.happened
        acts = sorted({happened[act.name] for act in self.first.scenario.acts if act.name in happened})
        return [*lines, *(Line(tick, 0, tick, height, MUTED, 1.0, (1.0, 3.0)) for tick in acts)]

    def plot(self, shapes: Sequence[Shape], height: float, about: str, words: str, css: str = "") -> str:
        """A drawing with its words."""
        drawing = stretched([*self.grid(height), *shapes], 0, self.lasts_s, height, about)
        return f'<div class="plot {css}" style="height:{number(height)}px">{drawing}{words}</div>'

    def axis(self) -> str:
        """The hours below a group of charts."""
        ticks = "".join(
            f'<span class="hour{self._edge(tick)}{"" if self.hours.is_whole(tick, 2 * self.every_s) else " minor"}" '
            f'data-t="{tick}" style="{self.left(tick)}">{self.hours.at(tick)}</span>'
            for tick in self.hours.whole(self.every_s)
        )
        return (
            f'<div class="panel axis"><div class="side">{escape(self.hours.zone)}</div>'
            f'<div class="plot hours" aria-hidden="true">{ticks}</div></div>'
        )

    def _edge(self, tick: Tick) -> str:
        """Words at an edge stand on its inner side."""
        share = tick / self.lasts_s
        return " first" if share < EDGE else " last" if share > 1 - EDGE else ""

    def lane(self) -> str:
        """What happened, named above the charts."""
        words, shapes = [], []
        named = marks(self.first, self.frame, LETTER - 0.5)
        height = tall(named) + 8
        for mark in named:
            kind = "act" if mark.act else "event"
            said = escape(f"{self.hours.at(mark.at)} {mark.words}")
            words.append(f'<i class="{kind}" data-t="{mark.at}" style="{self.left(mark.at)}" title="{said}"></i>')
            if mark.level is not None:
                top = height - 8 - (mark.level + 1) * LEVEL
                side = " leftwards" if mark.leftwards else ""
                words.append(
                    f'<span class="name{side}" data-t="{mark.at}" style="{self.left(mark.at)};top:{number(top)}px" '
                    f'title="{said}">{escape(mark.name)}</span>'
                )
                shapes.append(Line(mark.at, top + 3, mark.at, height, GRID))
        drawing = stretched(shapes, 0, self.lasts_s, height, "what happened, and when")
        return (
            f'<div class="panel marks"><div class="side"><span class="key"><i class="act"></i> people act</span>'
            f'<span class="key"><i class="event"></i> is seen</span></div>'
            f'<div class="plot" style="height:{number(height)}px" aria-hidden="true">{drawing}{"".join(words)}</div>'
            "</div>"
        )

    def chart(self, chart: Chart) -> str:
        """A chart with its title, readings and notes."""
        shapes, words = list(chart.shapes), []
        for y, text in chart.marks:
            words.append(f'<span class="mark" style="top:{number(y)}px">{escape(text)}</span>')
        listed = []
        for note, place in noted(chart, self.frame, lambda line: LETTER * len(line)):
            text = escape(" ".join(note.lines))
            listed.append(f'<li class="{note.ink}"><b>{self._letter(note.ink)}</b> {text}</li>')
            words.append(f'<i class="dot {note.ink}" data-t="{number(note.at)}" style="{self.left(note.at)};'
                         f'top:{number(note.y)}px"></i>')  # fmt: skip
            if place is None:
                continue
            tick = self.frame.tick(place.x)
            if place.leader is not None:
                x1, y1, _, y2 = place.leader
                shapes.append(Line(self.frame.tick(x1), y1, note.at, y2, LEADER))
            lines = "<br>".join(escape(line) for line in note.lines)
            words.append(
                f'<span class="note {note.ink} {place.anchor}" data-t="{number(tick)}" '
                f'style="{self.left(tick)};top:{number(place.box.y)}px" aria-hidden="true">{lines}</span>'
            )
        notes = f'<ul class="notes">{"".join(listed)}</ul>' if listed else ""
        return (
            f'<section class="panel chart" id="chart-{chart.name}"><div class="side"><h3>{escape(chart.title)}</h3>'
            f'<p class="unit">{escape(chart.unit)}</p>{self._readings(chart)}</div>'
            f"<div>{self.plot(shapes, chart.height, self._about(chart), ''.join(words))}{notes}</div></section>"
        )

    def row(self, row: Row) -> str:
        """One row of bars: names at the side, how long beside each bar."""
        words = "".join(self._lane(lane, at) for at, lane in enumerate(row.lanes))
        names = "".join(
            f'<span class="who {lane.ink}" title="{escape(lane.who)}">{self._named(lane)}</span>' for lane in row.lanes
        )
        about = f"{row.title}: " + "; ".join(f"{lane.who} {lane.when} {lane.lasted}" for lane in row.lanes)
        note = f'<p class="unit">{escape(row.note)}</p>' if row.note else ""
        return (
            f'<section class="panel row"><h3>{escape(row.title)}</h3>{note}'
            f'<div class="side" aria-hidden="true">{names}</div>'
            f"{self.plot(row_shapes(row, self.lasts_s), row.height, about, words)}</section>"
        )

    def legend(self) -> str:
        """Who is who."""
        keys = []
        if is_told(self.first.scenario):
            keys = ['<li><svg viewBox="0 0 34 12" aria-hidden="true"><rect class="hollow reported" x="1" y="1" '
                    'width="32" height="10"/></svg>reported</li>']  # fmt: skip
        for at, (name, _) in enumerate(self.runs):
            shown = element(Line(0, 6, 34, 6, f"run{at}", 3.0, DASHES[at]))
            keys.append(
                f'<li><svg viewBox="0 0 34 12" aria-hidden="true">{shown}</svg><b>{LETTERS[at]}</b> {escape(name)}</li>'
            )
        return f'<ul class="legend">{"".join(keys)}</ul>'

    def _lane(self, lane: Lane, at: int) -> str:
        spans = [(begun, self.lasts_s if ended is None else ended) for begun, ended in lane.spans]
        label = beside(spans, self.frame, LETTER * (len(lane.when) + len(lane.lasted) + 3))
        when = f'<span class="when">{escape(lane.when)} · </span>' if lane.when else ""
        css = f"inside on-{lane.ink}" if label.inside else label.anchor
        hollow = " of-hollow" if lane.ink == REPORTED else ""
        letter = "" if lane.ink == REPORTED else f'<b class="letter">{self._letter(lane.ink)} </b>'
        lasted = escape(lane.lasted)
        if lane.lasted.startswith(MORE):
            lasted = (
                f'<span class="when">{MORE}</span><span class="brief">&gt; </span>{escape(lane.lasted[len(MORE) :])}'
            )
        top = at * LANE + (LANE - BAR) / 2
        return (
            f'<span class="length {css}{hollow}{"" if lane.spans else " none"}" data-t="{number(label.at)}" '
            f'style="{self.left(label.at)};top:{number(top)}px" aria-hidden="true">{letter}{when}'
            f"{lasted}</span>"
        )

    def _named(self, lane: Lane) -> str:
        if lane.ink == REPORTED:
            return "reported"
        name, outcome = self.runs[int(lane.ink.removeprefix("run"))]
        options = outcome.options
        shown = brief(options) if name == called(options) else name.removeprefix("with ")
        return f"<b>{self._letter(lane.ink)}</b> {escape(shown)}"

    @staticmethod
    def _letter(ink: str) -> str:
        return LETTERS[int(ink.removeprefix("run"))]

    def _readings(self, chart: Chart) -> str:
        rows = "".join(
            f'<div class="run{at}"><dt><b>{LETTERS[at]}</b></dt><dd data-run="{at}">{escape(worst)}</dd></div>'
            for at, worst in enumerate(chart.worst)
        )
        return f'<dl class="readings" data-chart="{chart.name}" title="at worst">{rows}</dl>'

    def _about(self, chart: Chart) -> str:
        told = "; ".join(f"{name}: {worst} at worst" for (name, _), worst in zip(self.runs, chart.worst, strict=True))
        notes = "; ".join(" ".join(note.lines) for note in chart.notes)
        return f"{chart.title}, {chart.unit}. {told}. {notes}"
