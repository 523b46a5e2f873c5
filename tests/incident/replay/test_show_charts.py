"""What charts say is found in the numbers; where words stand; the drawing model and its two pens."""

import io
import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import HOUR, MINUTE, as_it_was, guarded, made_up
from PIL import Image

from fencepost.incident.replay.show import findings
from fencepost.incident.replay.show.beliefs import at, beliefs
from fencepost.incident.replay.show.charts import charts, thinned
from fencepost.incident.replay.show.drawing import Area, Drawing, Frame, Line, Polyline, Rectangle, Text, placed
from fencepost.incident.replay.show.lane import marks, tall
from fencepost.incident.replay.show.pixels import COLOURS, dashed, rendered
from fencepost.incident.replay.show.places import Words, beside, places
from fencepost.incident.replay.show.png import composed, picture
from fencepost.incident.replay.show.rows import condition_rows, spells
from fencepost.incident.replay.show.svg import standalone


def test_the_standstill_is_found_and_not_known() -> None:
    """October 2025, step 7: work takes longer than its own timeout, and no lease comes back until people throttle."""
    found = findings.standstill(made_up())
    assert found is not None
    assert found.lines == ("every lease times out in the queue:", "0 regained 23:00–23:59")
    regained = made_up()
    series = dict(regained.series)
    series["leases_missing"] = series["leases_missing"].copy()
    series["leases_missing"][90 * MINUTE // 12 :] -= 0.003
    series["leases_missing"][:] = series["leases_missing"].clip(0.001)
    some = findings.standstill(msgspec.structs.replace(regained, series=series))
    assert some is not None
    assert some.lines == ("every lease times out in the queue:", "0 regained 23:00–23:30")
    assert findings.standstill(guarded()) is None


def test_no_finding_is_said_of_what_did_not_happen() -> None:
    """With the guards nothing is to be said of leases, queue, network and capacity."""
    for find in (findings.standstill, findings.back, findings.longest_line, findings.arrival, findings.removal):
        assert find(guarded()) is None, find


def test_october_has_its_findings() -> None:
    """The collapse, the useless queue, the wave of network changes, the zones that were well."""
    said = " ".join(" ".join(note.lines) for chart in charts([("as it was", as_it_was())]) for note in chart.notes)
    for words in ("regained 02:4", "of them wanted", "arrive at once", "that is well", "back 05:", "normal 13:"):
        assert words in said, words


def test_conditions_last_as_long_as_the_numbers_say() -> None:
    """From the first step that is above to the first that isn't; an open end is said."""
    assert spells(made_up(), "capacity_out", 0.05) == ((150 * MINUTE, 3 * HOUR),)
    assert spells(made_up(), "store_access", 0.5) == ((12, 30 * MINUTE), (HOUR, None))
    rows = {row.title: row for row in condition_rows([("first", made_up())])}
    lane = rows["Store out of reach"].lanes[1]
    assert (lane.when, lane.lasted) == ("22:30–23:00", "30 min")
    assert "More than 5 % of launches refused" not in rows


def test_beliefs_and_what_was_so() -> None:
    """Step 6 of October 2025: hosts count as broken and run well."""
    parts = {part.name: part for part in beliefs(made_up())}
    held = at(parts["Lease manager"], 110 * MINUTE)
    assert held is not None
    assert held.believed.startswith("1,000 of 1,000 hosts are broken; 8,")
    assert "wanted by nobody" in held.so
    writer = at(parts["Writer A"], HOUR)
    assert writer is not None
    assert (writer.believed, writer.so) == (
        "writes nothing; is content",
        "said at 22:30; 23:00 somebody repairs it",
    )
    assert at(parts["Writer A"], MINUTE) is None
    failover = at(parts["Zone failover"], 160 * MINUTE)
    assert failover is not None
    assert failover.believed == "zones are dead: 20 % of capacity taken out of DNS"
    for part in parts.values():
        ticks = [each.at for each in part.beliefs]
        assert ticks == sorted(set(ticks))


@given(st.lists(st.floats(0, 100, width=32), min_size=2, max_size=60))
def test_thinned_lines_keep_their_shape(heights: list[float]) -> None:
    """No point that was left out is further from the line than said."""
    times = np.arange(len(heights), dtype=np.float64)
    exact = np.array(heights, np.float64)
    kept = thinned(times, exact, 0.35)
    drawn = np.interp(times, [x for x, _ in kept], [y for _, y in kept])
    assert np.abs(drawn - exact).max() <= 0.35 + 1e-9
    assert (kept[0][0], kept[-1][0]) == (0, len(heights) - 1)


@given(
    st.lists(st.tuples(st.floats(0, 700), st.floats(0, 120), st.floats(20, 300)), min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(0, 700), st.floats(0, 120)), min_size=2, max_size=8),
)
def test_words_stand_on_no_curve_and_on_no_other_words(
    wanted: list[tuple[float, float, float]], curve: list[tuple[float, float]]
) -> None:
    """And within the chart; what finds no place has none."""
    words = [Words(x, y, ("one", "two"), width, "run0") for x, y, width in wanted]
    found = [each for each in places(words, [tuple(sorted(curve))], 700, 120) if each is not None]
    boxes = [each.box for each in found]
    for number, box in enumerate(boxes):
        assert 0 <= box.x <= box.x + box.width <= 700
        assert 0 <= box.y <= box.y + box.height <= 120
        assert not any(box.meets(other) for other in boxes[number + 1 :])
        assert not any(box.has(x, y) for x, y in curve)


def test_a_bars_words_stand_where_there_is_room() -> None:
    """After it, before it, else in it."""
    frame = Frame(0, 0, 700, 0, 700)
    assert beside([(10, 100)], frame, 80).anchor == "start"
    assert (beside([(300, 690)], frame, 80).anchor, beside([(300, 690)], frame, 80).at) == ("end", 300)
    assert beside([(5, 695)], frame, 80).inside
    assert beside([(5, 100), (300, 695)], frame, 80).at == 100


@pytest.mark.parametrize("wide", [500.0, 700.0, 1100.0])
def test_no_stem_of_a_name_crosses_another_name(wide: float) -> None:
    """October 2025 has nineteen names; most fit, those that were reported first, each above what it reaches over."""
    frame = Frame(0, 0, wide, 0, as_it_was().scenario.lasts_s)
    found = marks(as_it_was(), frame, 6.0)
    placed = []
    for mark in found:
        if mark.level is not None:
            x, length = frame.across(mark.at), len(mark.name) * 6.0
            placed.append((x, mark.level, *((x - length, x) if mark.leftwards else (x, x + length))))
    for x, level, _, _ in placed:
        assert not [1 for _, other, left, right in placed if other < level and left + 3 < x < right - 3]
    assert len(placed) >= {500.0: 11, 700.0: 14, 1100.0: 17}[wide]
    assert tall(found) == 15 * (1 + max(level for _, level, _, _ in placed))


def test_svg_draws_every_shape_and_escapes_words() -> None:
    """Scenario files are other people's: their words are text, never markup."""
    shapes = (
        Rectangle(0, 0, 10.126, 5, "run0", hollow=True, about="<script>"), Line(0, 0, 1, 1, "grid", 1, (2.0, 3.0)),
        Polyline(((0, 0), (5, 5)), "run1"), Area(((0, 0), (1, 0), (1, 1)), "run0"), Text(1, 2, "a < b & c", bold=True),
    )  # fmt: skip
    drawn = standalone(Drawing(20, 10, shapes))
    assert 'viewBox="0 0 20 10"' in drawn
    assert 'class="hollow run0" x="0" y="0" width="10.13"' in drawn
    assert "<script>" not in drawn
    assert "a &lt; b &amp; c" in drawn
    assert re.findall(r"<(rect|line|polyline|polygon|text) ", drawn) == ["rect", "line", "polyline", "polygon", "text"]


def test_pixels_are_where_the_drawing_says() -> None:
    """A full rectangle is its ink, a hollow one isn't, and the rest is paper."""
    shapes = (Rectangle(10, 10, 20, 20, "run0"), Rectangle(50, 10, 20, 20, "run0", hollow=True))
    image = Image.open(io.BytesIO(rendered(Drawing(100, 40, shapes)))).convert("RGB")
    assert image.size == (100, 40)

    def colour(x: int, y: int) -> str:
        return "#" + "".join(f"{each:02x}" for each in image.getpixel((x, y)))  # type: ignore[union-attr]

    assert (colour(20, 20), colour(90, 20)) == (COLOURS["run0"], COLOURS["paper"])
    assert colour(60, 20) not in (COLOURS["run0"], COLOURS["paper"])


def test_dashes_cover_their_share_of_a_line() -> None:
    """Nine on, four off, along any number of points."""
    pieces = dashed(((0, 0), (50, 0), (130, 0)), (9.0, 4.0))
    drawn = sum(piece[-1][0] - piece[0][0] for piece in pieces)
    assert drawn == pytest.approx(90)
    assert [piece[0][0] for piece in pieces] == pytest.approx([13.0 * each for each in range(10)])


def test_shapes_in_ticks_come_to_stand_in_a_frame() -> None:
    """What reaches beyond it is cut off at its edge."""
    frame = Frame(100, 50, 200, 0, 1000)
    bar, line = placed([Rectangle(500, 0, 9000, 10, "run0"), Line(0, 1, 1000, 2, "grid")], frame)
    assert bar == Rectangle(200, 50, 100, 10, "run0")
    assert line == Line(100, 51, 300, 52, "grid")


def test_the_picture_is_the_same_for_the_same_run_and_tells_all_runs() -> None:
    """One file to be shown: every run in it by name, and every condition; the CPU time isn't in it."""
    runs = [("as it was", as_it_was()), ("guarded", guarded())]
    said = {shape.text for shape in composed(runs).shapes if isinstance(shape, Text)}
    assert {"as it was", "guarded", "reported", "Endpoint without an address", "Hosts without a lease"} <= said
    other = msgspec.structs.replace(as_it_was(), figures=as_it_was().figures | {"cpu_s": 99.0})
    first = picture(runs)
    assert first == picture([("as it was", other), runs[1]])
    assert Image.open(io.BytesIO(first)).size[0] == 1400


def test_a_picture_of_nothing_is_refused() -> None:
    """And of two different incidents."""
    with pytest.raises(ValueError, match="one scenario"):
        picture([])
    with pytest.raises(ValueError, match="one scenario"):
        picture([("a", as_it_was()), ("b", made_up())])
