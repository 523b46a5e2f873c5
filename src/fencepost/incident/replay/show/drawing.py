"""A small model of a picture: rectangles, lines, polylines, areas and texts, in one system of coordinates.

Colours are names of inks, not colours: a page has two sets of them (light and dark), a picture one. Shapes of charts
have ticks for x and pixels for y, so that a page can zoom by stretching them; :func:`placed` turns ticks into pixels.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

Points: TypeAlias = tuple[tuple[float, float], ...]
Dash: TypeAlias = tuple[float, ...]
Anchor: TypeAlias = Literal["start", "middle", "end"]
SOLID: Dash = ()
RUNS = 5
"""So many runs can be told apart."""
REPORTED, INK, MUTED, GRID, PAPER = "reported", "ink", "muted", "grid", "paper"
LEADER = "leader"
"""Of lines from words to what they speak of: a page hides them together with the words."""


def run_ink(number: int) -> str:
    """The ink of the first, second, … run."""
    return f"run{number % RUNS}"


class Rectangle(Struct, frozen=True, gc=False):
    """From its upper left corner. A hollow one has an outline, and is told from a full one without colour."""

    x: float
    y: float
    width: float
    height: float
    ink: str
    hollow: bool = False
    about: str = ""


class Line(Struct, frozen=True, gc=False):
    """From one point to another; its width is in pixels."""

    x1: float
    y1: float
    x2: float
    y2: float
    ink: str
    width: float = 1.0
    dash: Dash = SOLID


class Polyline(Struct, frozen=True, gc=False):
    """Through all points; its width and dashes are in pixels."""

    points: Points
    ink: str
    width: float = 2.0
    dash: Dash = SOLID


class Area(Struct, frozen=True, gc=False):
    """What the points enclose, filled so thinly that lines show through."""

    points: Points
    ink: str


class Text(Struct, frozen=True, gc=False):
    """One line of text; ``y`` is its baseline, ``size`` in pixels. With a halo it can be read on lines."""

    x: float
    y: float
    text: str
    ink: str = INK
    size: float = 12.0
    anchor: Anchor = "start"
    bold: bool = False
    halo: bool = False


Shape: TypeAlias = Rectangle | Line | Polyline | Area | Text


class Drawing(Struct, frozen=True):
    """A whole picture, its shapes in the order in which they are drawn."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


class Frame(Struct, frozen=True, gc=False):
    """Where on a picture a chart stands: its upper left corner, its width, and the ticks at its two ends."""

    x: float
    y: float
    width: float
    begins: float
    ends: float

    def across(self, tick: float) -> float:
        """Where a tick is, in pixels."""
        return self.x + (tick - self.begins) / (self.ends - self.begins) * self.width

    def tick(self, x: float) -> float:
        """Which tick is there."""
        return self.begins + (x - self.x) / self.width * (self.ends - self.begins)


def placed(shapes: Iterable[Shape], frame: Frame) -> list[Shape]:
    """Shapes in ticks as shapes in pixels; what begins or ends outside of the frame's ticks is cut off at its edges."""

    def across(tick: float) -> float:
        return frame.across(min(max(tick, frame.begins), frame.ends))

    def moved(points: Points) -> Points:
        return tuple((across(x), y + frame.y) for x, y in points)

    found: list[Shape] = []
    for shape in shapes:
        if isinstance(shape, Rectangle):
            left, right = across(shape.x), across(shape.x + shape.width)
            found.append(msgspec.structs.replace(shape, x=left, y=shape.y + frame.y, width=right - left))
        elif isinstance(shape, Line):
            found.append(
                msgspec.structs.replace(
                    shape, x1=across(shape.x1), x2=across(shape.x2), y1=shape.y1 + frame.y, y2=shape.y2 + frame.y
                )
            )
        elif isinstance(shape, Polyline | Area):
            found.append(msgspec.structs.replace(shape, points=moved(shape.points)))
        else:
            found.append(msgspec.structs.replace(shape, x=across(shape.x), y=shape.y + frame.y))
    return found
