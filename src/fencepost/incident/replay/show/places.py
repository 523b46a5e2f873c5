"""Where words stand on a chart: beside what they speak of, on no curve and on no other words.

There is no best place, only a good one: a grid of places is tried, the nearest free one taken. What finds no free place
isn't written on the chart; the page lists it below in any case.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import hypot

from msgspec import Struct

from fencepost.incident.replay.show.drawing import Anchor, Frame, Points

LINE = 15.0
"""Pixels from one line of words to the next."""
STEP = 8.0
MARGIN = 5.0


class Words(Struct, frozen=True, gc=False):
    """Some lines to be placed, and the point that they speak of, in pixels of the chart's own frame."""

    x: float
    y: float
    lines: tuple[str, ...]
    width: float
    ink: str
    bold: bool = False


class Box(Struct, frozen=True, gc=False):
    """A place, in pixels."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: "Box") -> bool:
        """Whether the two have a point in common."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def has(self, x: float, y: float) -> bool:
        """Whether a point lies in it."""
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height


class Placed(Struct, frozen=True, gc=False):
    """Words at their place, with the line that leads from them to what they speak of."""

    words: Words
    box: Box
    anchor: Anchor
    leader: tuple[float, float, float, float] | None

    @property
    def x(self) -> float:
        """Where the anchor is, in pixels."""
        return self.box.x + {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * self.box.width


def places(words: Sequence[Words], curves: Sequence[Points], width: float, height: float) -> list[Placed | None]:
    """A place for each, the first choosing first; None for what finds none."""
    dense = [point for curve in curves for point in _dense(curve)]
    taken: list[Box] = []
    found: list[Placed | None] = []
    for each in words:
        box = _place(each, dense, taken, width, height)
        if box is None:
            found.append(None)
            continue
        taken.append(Box(box.x - MARGIN, box.y - MARGIN, box.width + 2 * MARGIN, box.height + 2 * MARGIN))
        found.append(Placed(each, box, _anchor(each, box), _leader(each, box)))
    return found


def _place(
    words: Words, dense: Sequence[tuple[float, float]], taken: list[Box], width: float, height: float
) -> Box | None:
    tall = LINE * len(words.lines)
    best: tuple[float, Box] | None = None
    for row in range(max(1, int((height - tall) / STEP) + 1)):
        for column in range(int((width - words.width) / STEP) + 1):
            box = Box(column * STEP, row * STEP, words.width, tall)
            away = _away(words, box)
            if away < MARGIN or (best is not None and away >= best[0]):
                continue
            wide = Box(box.x - MARGIN, box.y - MARGIN / 2, box.width + 2 * MARGIN, box.height + MARGIN)
            if any(wide.meets(other) for other in taken) or any(wide.has(x, y) for x, y in dense):
                continue
            best = away, box
    return None if best is None else best[1]


def _nearest(words: Words, box: Box) -> tuple[float, float]:
    return min(max(words.x, box.x), box.x + box.width), min(max(words.y, box.y), box.y + box.height)


def _away(words: Words, box: Box) -> float:
    x, y = _nearest(words, box)
    return hypot(x - words.x, y - words.y)


def _leader(words: Words, box: Box) -> tuple[float, float, float, float] | None:
    """From the words' own anchor to the point; none where they are side by side."""
    if _away(words, box) < 3 * MARGIN:
        return None
    anchor = _anchor(words, box)
    if anchor == "middle":
        above = words.y > box.y + box.height
        return box.x + box.width / 2, box.y + box.height + 1 if above else box.y - 1, words.x, words.y
    x = box.x - MARGIN / 2 if anchor == "start" else box.x + box.width + MARGIN / 2
    return x, box.y + LINE / 2, words.x, words.y


def _anchor(words: Words, box: Box) -> Anchor:
    """The side of the words that is tied to a tick: if the chart is wider than thought, they stay beside their line."""
    if words.x <= box.x:
        return "start"
    return "end" if words.x >= box.x + box.width else "middle"


def _dense(curve: Points) -> list[tuple[float, float]]:
    """Points so near to each other that no box slips through between them."""
    found: list[tuple[float, float]] = []
    for (x1, y1), (x2, y2) in pairwise(curve):
        pieces = max(1, int(max(abs(x2 - x1), abs(y2 - y1)) / STEP) + 1)
        found += [(x1 + (x2 - x1) * at / pieces, y1 + (y2 - y1) * at / pieces) for at in range(pieces)]
    return [*found, *curve[-1:]]


class Label(Struct, frozen=True, gc=False):
    """Words of one line beside a bar: the tick that they are tied to, and on which side of it they stand."""

    at: float
    anchor: Anchor
    inside: bool


def beside(spans: Sequence[tuple[float, float]], frame: Frame, width: float) -> Label:
    """Where a lane's words stand: after its last bar, else before its first, between two, or in the longest."""
    room = width + 2 * MARGIN
    right = frame.x + frame.width
    if not spans:
        return Label(frame.begins, "start", inside=False)
    last, first = spans[-1][1], spans[0][0]
    if right - frame.across(last) >= room:
        return Label(last, "start", inside=False)
    if frame.across(first) - frame.x >= room:
        return Label(first, "end", inside=False)
    for (_, ended), (begun, _) in pairwise(spans):
        if frame.across(begun) - frame.across(ended) >= room:
            return Label(ended, "start", inside=False)
    longest = max(spans, key=lambda span: span[1] - span[0])
    return Label(longest[0], "start", inside=True)
