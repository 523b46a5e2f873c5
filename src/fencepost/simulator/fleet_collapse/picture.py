"""The map of recoveries as a picture (SVG, nothing to install) and for a terminal.

One panel above the other, so that it can be read on a telephone; each cell says its seconds, so that nothing hangs on
colour.
"""

from collections.abc import Callable
from math import log

from fencepost.simulator.fleet_collapse.recovery_map import HOSTS, Cells, RecoveryMap

WIDTH, LEFT, CELL_H, GAP, EDGE = 640, 92, 46, 3, 16
WORDS, LABELS, NUMBERS = 20, 19, 22
"""Sizes of letters: readable when the picture is 390 wide."""
INK, PALE, PAPER = "#1d2733", "#5b6875", "#ffffff"
QUICK, SLOW = (226, 241, 236), (12, 92, 84)
NEVER = "#b3261e"
DARK = 128
"""A ground of less brightness (of 255) gets white ink."""
FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\""


def svg(found: RecoveryMap) -> str:
    """The picture, whole: as it was above, production below."""
    top = 150
    body = [heading()]
    for title, words, cells in panels(found):
        body += panel(found, title, words, cells, top)
        top += 102 + len(found.losses) * CELL_H + 52
    body.append(legend(top - 34))
    height = top + 14
    title = "Time to sustained recovery, by size of the loss and load: as it was, and the admission that ships"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT} '
        f'aria-label="{title}">\n<title>{title}</title>\n<rect width="100%" height="100%" fill="{PAPER}"/>\n'
    )
    return head + "\n".join(body) + "\n</svg>\n"


def panels(found: RecoveryMap) -> list[tuple[str, str, Cells]]:
    """Title, one sentence, and cells of each."""
    failing = sum(cell is None for row in found.as_was for cell in row)
    many = len(found.loads) * len(found.losses)
    was = f"{failing} of {many} never recover, with nothing broken any more"
    now = f"{found.stuck} of {many} never recover" if found.stuck else f"all {many} recover"
    return [("As it was", was, found.as_was), ("Production", now, found.production)]


def text(x: float, y: float, words: str, size: int = 21, fill: str = INK, more: str = "") -> str:
    """One line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" {more}>{words}</text>'


def heading() -> str:
    """What it is, in three lines."""
    said = (
        f"A share of {HOSTS:,} hosts loses its leases, all at once.",
        "Held for good: by 99 %, and still a whole lease later.",
    )
    bold = 'font-weight="700"'
    return "\n".join(
        (
            text(EDGE, 40, "Seconds until leases are held for good", 27, INK, bold),
            *(text(EDGE, 74 + 27 * number, each, WORDS, PALE) for number, each in enumerate(said)),
        )
    )


def panel(found: RecoveryMap, title: str, words: str, cells: Cells, top: int) -> list[str]:
    """One panel from ``top`` on."""
    width = (WIDTH - LEFT - EDGE + GAP) / len(found.loads)
    lines = [text(EDGE, top, title, 24, INK, 'font-weight="700"'), text(EDGE, top + 28, words, WORDS, PALE)]
    start = top + 90
    lines.append(text(EDGE, start, "lost", LABELS, PALE))
    lines.append(text(LEFT, start - 27, "load: what renewals take of the service", LABELS, PALE))
    for column, load in enumerate(found.loads):
        middle = LEFT + column * width + (width - GAP) / 2
        lines.append(text(middle, start, f"{load} %", LABELS, PALE, 'text-anchor="middle"'))
    for row, loss in enumerate(found.losses):
        y = start + 12 + row * CELL_H
        lines.append(text(LEFT - 10, y + CELL_H * 0.62, f"{loss} %", LABELS, PALE, 'text-anchor="end"'))
        for column, cell in enumerate(cells[row]):
            lines.append(drawn(LEFT + column * width, y, width - GAP, cell))
    return lines


def drawn(x: float, y: float, width: float, cell: float | None) -> str:
    """One cell."""
    fill, ink = (NEVER, PAPER) if cell is None else colours(cell)
    words, size = ("never", 18) if cell is None else (f"{cell:.0f}", NUMBERS)
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{CELL_H - GAP}" rx="4" fill="{fill}"/>'
    return box + text(x + width / 2, y + CELL_H * 0.62, words, size, ink, 'text-anchor="middle"')


def colours(seconds: float) -> tuple[str, str]:
    """A cell's ground and its ink: by the logarithm of the time, a minute is dark."""
    part = min(1.0, log(1 + seconds) / log(64))
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(QUICK, SLOW, strict=True))
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < DARK
    return f"#{red:02x}{green:02x}{blue:02x}", PAPER if dark else INK


def legend(y: int) -> str:
    """What the colours mean."""
    grounds = [(f"{seconds} s", *colours(seconds)) for seconds in (0, 3, 10, 30, 63)] + [("never", NEVER, PAPER)]
    parts = []
    for place, (words, ground, ink) in enumerate(grounds):
        x = EDGE + place * 76
        parts.append(f'<rect x="{x}" y="{y}" width="73" height="30" rx="4" fill="{ground}"/>')
        parts.append(text(x + 36.5, y + 21, words, 18, ink, 'text-anchor="middle"'))
    return "\n".join(parts)


def lines(found: RecoveryMap, alarm: Callable[[str], str] = str) -> str:
    """Both maps for a terminal; ``alarm`` may colour what never recovers."""
    width = 7
    said = []
    for title, words, cells in panels(found):
        said.append(f"{title}: {words}")
        said.append("  lost \\ load " + "".join(f"{f'{load} %':>{width}}" for load in found.loads))
        for loss, row in zip(found.losses, cells, strict=True):
            numbers = "".join(alarm(f"{'never':>{width}}") if s is None else f"{f'{s:.0f} s':>{width}}" for s in row)
            said.append(f"  {f'{loss} %':>11} {numbers}")
    return "\n".join(said)
