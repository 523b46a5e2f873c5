"""The drawing model as SVG. Inks are classes, so that a page's style gives them their light and dark colours.

A chart's drawing is stretched to whatever width there is (``preserveAspectRatio="none"``), with strokes that keep their
width. Texts would be stretched too: in a page they are not part of it but lie above it.
"""

from collections.abc import Iterable
from html import escape

from fencepost.incident.replay.show.drawing import Area, Drawing, Line, Polyline, Rectangle, Shape


def number(value: float) -> str:
    """As short as it can be at a hundredth."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def stretched(shapes: Iterable[Shape], begins: float, ends: float, height: float, about: str) -> str:
    """A chart in ticks and pixels, as wide as its place; ``about`` says in words what it shows."""
    return (
        f'<svg viewBox="{number(begins)} 0 {number(ends - begins)} {number(height)}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(about)}">{"".join(element(shape) for shape in shapes)}</svg>'
    )


def standalone(drawing: Drawing) -> str:
    """A whole drawing with its texts, as one SVG image without colours of its own."""
    body = "".join(element(shape) for shape in drawing.shapes)
    size = f"{number(drawing.width)} {number(drawing.height)}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">{body}</svg>'


def element(shape: Shape) -> str:
    """One shape."""
    if isinstance(shape, Rectangle):
        about = f"<title>{escape(shape.about)}</title>" if shape.about else ""
        return (
            f'<rect class="{"hollow" if shape.hollow else "full"} {shape.ink}" x="{number(shape.x)}" '
            f'y="{number(shape.y)}" width="{number(shape.width)}" height="{number(shape.height)}">{about}</rect>'
        )
    if isinstance(shape, Line):
        ends = f'x1="{number(shape.x1)}" y1="{number(shape.y1)}" x2="{number(shape.x2)}" y2="{number(shape.y2)}"'
        return f'<line class="stroke {shape.ink}" {ends}{_pen(shape.width, shape.dash)}/>'
    if isinstance(shape, Polyline):
        return f'<polyline class="stroke {shape.ink}" points="{_points(shape)}"{_pen(shape.width, shape.dash)}/>'
    if isinstance(shape, Area):
        return f'<polygon class="area {shape.ink}" points="{_points(shape)}"/>'
    weight = ' font-weight="600"' if shape.bold else ""
    return (
        f'<text class="{shape.ink}" x="{number(shape.x)}" y="{number(shape.y)}" text-anchor="{shape.anchor}" '
        f'font-size="{number(shape.size)}"{weight}>{escape(shape.text)}</text>'
    )


def _points(shape: Polyline | Area) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in shape.points)


def _pen(width: float, dash: tuple[float, ...]) -> str:
    dashes = f' stroke-dasharray="{" ".join(number(each) for each in dash)}"' if dash else ""
    return f' stroke-width="{number(width)}"{dashes}'
