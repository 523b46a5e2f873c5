"""The drawing model as PNG by Pillow: drawn at twice the size and made smaller, which smooths every edge.

Text is DejaVu Sans where the machine has it (it has every character that is used), else the scalable font that Pillow
brings along. The bytes are the same for the same drawing, font and Pillow.
"""

import io
from functools import cache
from itertools import pairwise
from math import hypot

from PIL import Image, ImageDraw, ImageFont

from fencepost.incident.replay.show.drawing import Area, Dash, Drawing, Line, Points, Polyline, Rectangle, Shape, Text

SUPER = 2
"""Pixels drawn for each pixel shown, along each side."""
COLOURS = {
    "paper": "#fcfbf8", "ink": "#1d2125", "muted": "#666d75", "grid": "#e4e2dc", "reported": "#7d838a",
    "leader": "#666d75", "run0": "#c8452b", "run1": "#1f6fb2", "run2": "#0f8a67", "run3": "#8257b8", "run4": "#a87400",
}  # fmt: skip
"""As in the page, light; told apart with any kind of colour blindness by lightness, and by shape and place besides."""
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
THIN = 46
"""How strongly an area is filled, of 255."""

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def rendered(drawing: Drawing, scale: float = 1.0) -> bytes:
    """The PNG's bytes; ``scale`` makes the whole larger."""
    factor = SUPER * scale
    size = round(drawing.width * factor), round(drawing.height * factor)
    image = Image.new("RGB", size, COLOURS["paper"])
    pen = _Pen(image, factor)
    for shape in drawing.shapes:
        pen.draw(shape)
    small = image.resize((round(drawing.width * scale), round(drawing.height * scale)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.quantize(256, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()


@cache
def font(size: int, bold: bool) -> Font:
    """A font of that size in pixels."""
    try:
        return ImageFont.truetype(FONTS[bold], size)
    except OSError:
        return ImageFont.load_default(size)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text comes out, in pixels."""
    return float(font(round(size * SUPER), bold).getlength(text)) / SUPER


class _Pen:
    """Draws on an image, in coordinates of the drawing."""

    def __init__(self, image: Image.Image, factor: float) -> None:
        self._draw, self._image, self._factor = ImageDraw.Draw(image), image, factor

    def draw(self, shape: Shape) -> None:
        colour = COLOURS[shape.ink]
        if isinstance(shape, Rectangle):
            self._rectangle(shape, colour)
        elif isinstance(shape, Line):
            self._stroke(((shape.x1, shape.y1), (shape.x2, shape.y2)), colour, shape.width, shape.dash)
        elif isinstance(shape, Polyline):
            self._stroke(shape.points, colour, shape.width, shape.dash)
        elif isinstance(shape, Area):
            self._area(shape, colour)
        else:
            self._text(shape, colour)

    def _rectangle(self, shape: Rectangle, colour: str) -> None:
        scale = self._factor
        right = max(shape.x + shape.width, shape.x + 1.5)
        box = (shape.x * scale, shape.y * scale, right * scale, (shape.y + shape.height) * scale)
        if shape.hollow:
            self._draw.rectangle(box, fill=_mixed(colour, 0.22), outline=colour, width=max(1, round(scale)))
        else:
            self._draw.rectangle(box, fill=colour)

    def _stroke(self, points: Points, colour: str, width: float, dash: Dash) -> None:
        scale = self._factor
        for part in dashed(points, dash) if dash else [points]:
            path = [(x * scale, y * scale) for x, y in part]
            self._draw.line(path, fill=colour, width=max(1, round(width * scale)), joint="curve")

    def _area(self, shape: Area, colour: str) -> None:
        mask = Image.new("L", self._image.size, 0)
        ImageDraw.Draw(mask).polygon([(x * self._factor, y * self._factor) for x, y in shape.points], fill=THIN)
        self._image.paste(colour, (0, 0), mask)

    def _text(self, shape: Text, colour: str) -> None:
        scale = self._factor
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
        halo = round(3 * scale) if shape.halo else 0
        self._draw.text(
            (shape.x * scale, shape.y * scale), shape.text, colour, font(round(shape.size * scale), shape.bold), anchor,
            stroke_width=halo, stroke_fill=COLOURS["paper"],
        )  # fmt: skip


def dashed(points: Points, dash: Dash) -> list[Points]:
    """A line in pieces: drawn for the first length, not for the second, and so on."""
    pieces: list[Points] = []
    piece: list[tuple[float, float]] = [points[0]]
    at, left = 0, dash[0]
    for (x1, y1), (x2, y2) in pairwise(points):
        length, done = hypot(x2 - x1, y2 - y1), 0.0
        while length - done > left:
            done += left
            cut = (x1 + (x2 - x1) * done / length, y1 + (y2 - y1) * done / length)
            if at % 2 == 0:
                pieces.append((*piece, cut))
            piece = [cut]
            at += 1
            left = dash[at % len(dash)]
        left -= length - done
        piece.append((x2, y2))
    if at % 2 == 0 and len(piece) > 1:
        pieces.append(tuple(piece))
    return pieces


def _mixed(colour: str, share: float) -> str:
    """A colour thinned with paper."""
    pairs = [(int(colour[at : at + 2], 16), int(COLOURS["paper"][at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(own * share + paper * (1 - share)):02x}" for own, paper in pairs)
