"""A chart's notes with their places, for a page and for a picture alike."""

from collections.abc import Callable

from fencepost.incident.replay.show.charts import Chart, Note
from fencepost.incident.replay.show.drawing import Frame
from fencepost.incident.replay.show.places import Placed, Words, places


def noted(chart: Chart, frame: Frame, width: Callable[[str], float]) -> list[tuple[Note, Placed | None]]:
    """Each note and where it stands, in pixels from the chart's own corner; ``width`` of one line, in pixels."""
    own = Frame(0, 0, frame.width, frame.begins, frame.ends)
    curves = [tuple((own.across(tick), y) for tick, y in curve) for curve in chart.curves]
    curves += [((0.0, y), (width(text) + 8, y), (0.0, y - 8), (width(text) + 8, y - 8)) for y, text in chart.marks]
    words = [
        Words(own.across(note.at), note.y, note.lines, max(width(line) for line in note.lines), note.ink)
        for note in chart.notes
    ]
    return list(zip(chart.notes, places(words, curves, frame.width, chart.height), strict=True))
