"""The whole story as one picture: what was wrong and how long, how it went, who was down, several runs laid over it.

The same charts as the page's, with all words in it, for where no page can be shown.
"""

from collections.abc import Sequence

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.show.charts import DASHES, Chart, charts, moving
from fencepost.incident.replay.show.drawing import (
    GRID,
    INK,
    LEADER,
    MUTED,
    PAPER,
    REPORTED,
    RUNS,
    Anchor,
    Drawing,
    Frame,
    Line,
    Rectangle,
    Shape,
    Text,
    placed,
    run_ink,
)
from fencepost.incident.replay.show.hours import Hours
from fencepost.incident.replay.show.lane import LEVEL, marks, tall
from fencepost.incident.replay.show.naming import is_told, whose
from fencepost.incident.replay.show.notes import noted
from fencepost.incident.replay.show.pixels import rendered, text_width
from fencepost.incident.replay.show.places import LINE, beside
from fencepost.incident.replay.show.rows import BAR, LANE, Lane, Row, Runs, condition_rows, dependent_rows, row_shapes

WIDTH = 1400.0
MARGIN = 40.0
SIDE = 270.0
"""Pixels on the left for names."""
TICKS = 17
"""So many hours are named below a chart at most."""
SMALL, PLAIN = 11.0, 12.5


def picture(outcomes: Sequence[tuple[str, Outcome]]) -> bytes:
    """The picture as a PNG file's bytes; the first outcome is the one that is told, at most five are laid over it.

    Raises ``ValueError`` for no outcome, and for outcomes of different scenarios.
    """
    if not outcomes or len({outcome.scenario.name for _, outcome in outcomes}) > 1:
        raise ValueError("give outcomes of one scenario")
    return rendered(composed(list(outcomes)[:RUNS]))


def composed(runs: Runs) -> Drawing:
    """All of it, in pixels."""
    sheet = _Sheet(runs)
    sheet.head()
    sheet.lane()
    for row in condition_rows(runs):
        sheet.row(row)
    sheet.axis()
    for chart in moving(charts(runs)):
        sheet.chart(chart)
    sheet.axis()
    for row in dependent_rows(runs):
        sheet.row(row)
    if runs[0][1].scenario.dependents:
        sheet.axis()
    return sheet.drawing()


class _Sheet:
    """A picture being composed from top to bottom; ``y`` is how far it has come."""

    def __init__(self, runs: Runs) -> None:
        self.runs, self.first = runs, runs[0][1]
        self.hours = Hours(self.first.scenario)
        self.lasts_s = self.first.scenario.lasts_s
        self.every_s, self.told = self.hours.every(TICKS), is_told(self.first.scenario)
        self.y = MARGIN
        self.shapes: list[Shape] = []

    def drawing(self) -> Drawing:
        return Drawing(WIDTH, self.y + MARGIN - 20, tuple(self.shapes))

    def frame(self) -> Frame:
        return Frame(MARGIN + SIDE, self.y, WIDTH - 2 * MARGIN - SIDE, 0, self.lasts_s)

    def say(self, x: float, y: float, text: str, ink: str = INK, size: float = PLAIN, *, bold: bool = False) -> None:
        self.shapes.append(Text(x, y, text, ink, size, bold=bold))

    def head(self) -> None:
        scenario, options = self.first.scenario, self.first.options
        self.say(MARGIN, self.y + 18, f"{scenario.title}: a replay of {options.hosts:,} hosts", size=24, bold=True)
        self.say(MARGIN, self.y + 44, scenario.summary, size=14.5)
        hollow = "Hollow: as reported. Filled: as it came out here; " if self.told else "As it came out here; "
        by_script = "= ended by hand at the published hour" if self.told else "= ended by hand at the scenario's hour"
        claim = f"{hollow}{whose(scenario)}. {by_script}. {self.hours.days()}."
        self.say(MARGIN, self.y + 65, claim, MUTED, PLAIN)
        self.y += 92
        x = MARGIN
        for at, name in enumerate(["reported", *(name for name, _ in self.runs)]):
            if at == 0 and not self.told:
                continue
            if at == 0:
                self.shapes.append(Rectangle(x, self.y - 9, 36, 10, REPORTED, hollow=True))
            else:
                ink, dash = run_ink(at - 1), DASHES[(at - 1) % len(DASHES)]
                self.shapes.append(Line(x, self.y - 4, x + 36, self.y - 4, ink, 3, dash))
            self.say(x + 44, self.y, name)
            x += 44 + text_width(name, PLAIN) + 28
        self.y += 14

    def lane(self) -> None:
        """Names of what happened, with a stem down to the first row."""
        frame = self.frame()
        named = marks(self.first, frame, SMALL * 0.6)
        height = tall(named) + 12
        for mark in named:
            x = frame.across(mark.at)
            if mark.level is not None:
                y = self.y + height - 12 - mark.level * LEVEL
                self.shapes.append(Line(x, y - 9, x, self.y + height, GRID))
                side: Anchor = "end" if mark.leftwards else "start"
                self.shapes.append(Text(x + (-4 if mark.leftwards else 4), y - 1, mark.name, INK, SMALL, side))
            self.shapes.append(Line(x, self.y + height - 5, x, self.y + height, INK, 2.5 if mark.act else 1.0))
        self.y += height + 6

    def grid(self, height: float) -> list[Shape]:
        happened = self.first.happened
        lines: list[Shape] = [Line(tick, 0, tick, height, GRID) for tick in self.hours.whole(self.every_s)]
        acts = sorted({happened[act.name] for act in self.first.scenario.acts if act.name in happened})
        return [*lines, *(Line(tick, 0, tick, height, MUTED, 0.75, (1.0, 3.0)) for tick in acts)]

    def row(self, row: Row) -> None:
        frame = self.frame()
        self.shapes += placed([*self.grid(row.height + 10), *row_shapes(row, self.lasts_s)], frame)
        name = row.title
        self.shapes.append(Text(frame.x - 14, self.y + row.height / 2 + 4, name, INK, PLAIN, "end"))
        for at, lane in enumerate(row.lanes):
            self._length(lane, frame, self.y + at * LANE + (LANE + BAR) / 2 - 3)
        self.y += row.height + 10

    def _length(self, lane: Lane, frame: Frame, y: float) -> None:
        if not lane.spans:
            self.shapes.append(Rectangle(frame.x + 3, y - 11, text_width(lane.lasted, SMALL) + 4, LANE - 1, PAPER))
            self.shapes.append(Text(frame.x + 5, y, lane.lasted, MUTED, SMALL))
            return
        text = f"{lane.when} · {lane.lasted}"
        spans = [(begun, self.lasts_s if ended is None else ended) for begun, ended in lane.spans]
        label = beside(spans, frame, text_width(text, SMALL))
        x = frame.across(label.at) + (-5 if label.anchor == "end" else 5)
        ink = PAPER if label.inside and lane.ink != REPORTED else INK
        if not label.inside:
            wide = text_width(text, SMALL)
            left = x - wide if label.anchor == "end" else x
            self.shapes.append(Rectangle(left - 2, y - 11, wide + 4, LANE - 1, PAPER))
        self.shapes.append(Text(x, y, text, ink, SMALL, label.anchor))

    def axis(self) -> None:
        frame = self.frame()
        self.shapes.append(Line(frame.x, self.y + 2, frame.x + frame.width, self.y + 2, MUTED))
        for tick in self.hours.whole(self.every_s):
            x = frame.across(tick)
            self.shapes.append(Line(x, self.y + 2, x, self.y + 6, MUTED))
            self.shapes.append(Text(x, self.y + 18, self.hours.at(tick), MUTED, SMALL, "middle"))
        self.say(frame.x - 32 - text_width(self.hours.zone, SMALL), self.y + 18, self.hours.zone, MUTED, SMALL)
        self.y += 46

    def chart(self, chart: Chart) -> None:
        frame = self.frame()
        self.shapes += placed([*self.grid(chart.height), *chart.shapes], frame)
        right = frame.x - 14
        self.shapes.append(Text(right, self.y + 14, chart.title, INK, PLAIN + 0.5, "end", bold=True))
        for at, line in enumerate(chart.unit.split("; ")):
            self.shapes.append(Text(right, self.y + 31 + at * 15, line, MUTED, SMALL, "end"))
        for height, text in chart.marks:
            self.shapes.append(Text(frame.x + 2, self.y + height - 3, text, MUTED, SMALL - 1, halo=True))
        for note, place in noted(chart, frame, lambda line: text_width(line, SMALL + 0.5)):
            x, y = frame.across(note.at), self.y + note.y
            if place is not None:
                if place.leader is not None:
                    x1, y1, _, _ = place.leader
                    self.shapes.append(Line(frame.x + x1, self.y + y1, x, y, LEADER))
                box = place.box
                self.shapes.append(Rectangle(frame.x + box.x, self.y + box.y, box.width, box.height, PAPER))
                for at, line in enumerate(note.lines):
                    ink = INK if note.ink == run_ink(0) else note.ink
                    top = self.y + place.box.y + at * LINE + LINE - 4
                    self.shapes.append(Text(frame.x + place.x, top, line, ink, SMALL + 0.5, place.anchor, halo=True))
            self.shapes += [Rectangle(x - 3, y - 3, 6, 6, note.ink), Rectangle(x - 1.5, y - 1.5, 3, 3, PAPER)]
        self.y += chart.height + 30
