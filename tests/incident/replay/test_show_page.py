"""The replay's page: whole in one file, honest about its values, and what Chromium makes of it."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import chromium
import msgspec
import pytest
from outcomes import HOUR, MINUTE, as_it_was, guarded, made_up

from fencepost.incident.replay.ablation import Row
from fencepost.incident.replay.guards import NONE, PRODUCTION
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.beliefs import beliefs
from fencepost.incident.replay.show.document import document
from fencepost.incident.replay.show.page import page
from fencepost.incident.replay.show.png import picture
from fencepost.incident.replay.show.terminal import terminal_text

WORTH = [Row("all", PRODUCTION, False, 0.0, 206.0, 0.0, 1.0), Row("as it was", NONE, True, 333.0, 839.0, 45.0, None)]


@cache
def runs() -> list[tuple[str, Outcome]]:
    """Both, once: made when a test first asks, since every worker of the suite loads this file."""
    return [("as it was", as_it_was()), ("every guard but the fence", guarded())]


@cache
def whole() -> str:
    """The page of both, with the ablation."""
    return page(runs(), WORTH)


class Elements(HTMLParser):
    """Every element's name and attributes, and whether each is closed where it has to be."""

    VOID = frozenset({"meta", "input", "br", "rect", "line", "polyline", "polygon"})

    def __init__(self, text: str) -> None:
        """Read whole."""
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One begins."""
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One begins and ends."""
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """One ends: the one that was opened last."""
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    """No network, no font: it is shown in a room without either."""
    read = Elements(whole())
    assert not read.wrong
    assert not read.open
    assert not [tag for tag, _ in read.found if tag in ("link", "img", "iframe", "object", "embed")]
    assert not [given for _, given in read.found if {"src", "href"} & set(given)]
    style = whole()[whole().index("<style>") : whole().index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src &#x27;none&#x27;" in whole()


def test_words_of_a_scenario_are_text() -> None:
    """A scenario file is somebody else's."""
    shown = page([("<b>first</b>", made_up())])
    assert "Something &amp; &lt;something&gt; else." in shown
    assert "<b>first" not in shown
    assert not Elements(shown).wrong


def test_it_says_whose_the_calibrated_values_are() -> None:
    """Published, estimate and calibrated by word; each value and each hour has its badge."""
    assert "Calibrated values are ours, not AWS’s" in whole()
    badges = re.findall(r'<span class="kind (\w+)">(\w+)</span>', whole())
    assert all(css == word for css, word in badges)
    scenario = as_it_was().scenario
    told = len(scenario.values) + len(scenario.acts) + len(scenario.events)
    assert len(badges) == told + 3


def test_what_stands_in_for_a_decider_is_said() -> None:
    """With the letter of the run that it is true of."""
    assert "<p><b>B</b> velocity: no decider for zones of balancers ships yet;" in whole()
    assert 'class="remarks"' not in page(runs()[:1])


def test_lengths_by_script_are_marked() -> None:
    """October 2025: two phases, the emptiness and sign-in end by hand at the published hour, as on a terminal."""
    assert whole().count("50 min =</span>") == 1
    assert "1 h 47 min =</span>" in whole()
    assert "2 h 37 min =</span>" in whole()
    assert "1 h 37 min =</span>" in whole()
    assert "2 h 44 min =</span>" not in whole()


def test_a_forced_outage_is_told_beside_an_endpoint_that_its_writers_kept() -> None:
    """It "has answered all the time", beside 2 h 37 min without an address (docs/operating/replay.md: --dns-outage)."""
    forced = replay(find_scenario("aws-2025-10-19"), Options(hosts=200, guards=PRODUCTION, outage_s=157 * MINUTE))
    [endpoint] = [part for part in beliefs(forced) if part.name == "The regional endpoint"]
    assert all("the outage of this run is forced all the same" in each.so for each in endpoint.beliefs)
    assert not any("forced" in each.so for part in beliefs(as_it_was()) for each in part.beliefs)


def test_the_same_runs_give_the_same_page() -> None:
    """Byte by byte; the CPU time isn't in it."""
    assert page(runs(), WORTH) == whole()


def test_each_guard_s_worth_is_told_in_the_order_given() -> None:
    """And only if it was asked for."""
    table = whole()[whole().index('class="ablation"') :]
    assert table.index(">all<") < table.index(">as it was<")
    assert "13 h 59 min" in table
    assert 'class="ablation"' not in page(runs()[:1])


def test_what_the_script_looks_up_is_in_the_page() -> None:
    """It computes nothing of its own: readings for every chart, run and two minutes."""
    data = json.loads(whole()[whole().index('id="data">') + 10 : whole().index("</script>")])
    steps = data["lasts"] // data["each"] + 1
    assert list(data["charts"]) == ["leases", "queue", "launches", "wait", "capacity"]
    assert all(len(readings) == steps for each in data["charts"].values() for readings in each)
    assert all(len(each) == len(runs()) for each in data["charts"].values())


@pytest.mark.parametrize(
    "options",
    [
        Options(hosts=200),
        Options(hosts=50, guards=PRODUCTION),
        Options(hosts=300, operators=False),
        Options(hosts=300, outage_s=8 * MINUTE, seed=7),
    ],
)
def test_every_kind_of_run_can_be_shown(options: Options) -> None:
    """Few hosts, nothing that happened, nothing that ended: no output stumbles over what isn't there."""
    outcome = replay(as_it_was().scenario, options)
    read = Elements(page([("one", outcome)]))
    assert not read.wrong
    assert picture([("one", outcome)]).startswith(b"\x89PNG")
    assert terminal_text(outcome, width=80, unicode=True, colour=False).count("\n") > 10
    assert json.loads(json.dumps(document(outcome), allow_nan=False))["options"]["hosts"] == options.hosts


@cache
def nobody_s(name: str) -> str:
    """The page of a scenario that happened to nobody."""
    return page([("as it was", replay(find_scenario(name), Options(hosts=200)))])


@pytest.mark.parametrize("name", ["database-away", "bad-probe"])
def test_of_what_nobody_reported_nothing_is_said_to_be_reported(name: str) -> None:
    """No legend, lane, column or remark; and that it happened to nobody is said once."""
    text = re.sub(r"<style>.*?</style>|<script.*?</script>", "", nobody_s(name), flags=re.DOTALL)
    for word in ("reported", "published hour", "Hollow", "hollow", "Endpoint"):
        assert word not in text, word
    assert "It happened to nobody: hours and numbers are made up." in text
    assert "What happened, and when" in text


def test_a_chart_in_which_nothing_happens_is_named_and_not_drawn() -> None:
    """A bad health check breaks no lease: four empty charts would hide the fifth."""
    text = nobody_s("bad-probe")
    assert re.findall(r'id="chart-(\w+)"', text) == ["capacity"]
    assert "Nothing happens to, and so not drawn: hosts without a lease, lease manager&#x27;s queue" in text or (
        "Nothing happens to, and so not drawn: hosts without a lease, lease manager's queue" in text
    )
    assert len(re.findall(r'id="chart-\w+"', whole())) == 5
    assert "Nothing happens to" not in whole()


@pytest.mark.parametrize("begins", ["00:10", "09:05", "23:50"])
@pytest.mark.parametrize("lasts_s", [600, 4 * HOUR, 7 * 24 * HOUR])
def test_a_scenario_of_any_length_and_hour_has_a_page_and_hours_on_it(begins: str, lasts_s: int) -> None:
    """Not each crosses midnight; and names of hours have room, in ten minutes as in a week."""
    outcome = made_up()
    scenario = msgspec.structs.replace(
        outcome.scenario, begins=f"2026-02-27T{begins}:00+01:00", lasts_s=lasts_s, acts=(), events=(), phases=()
    )
    shown = page([("one", msgspec.structs.replace(outcome, scenario=scenario, happened={}))])
    axis = re.findall(r'<span class="hour[^"]*" data-t="(\d+)"[^>]*>(\d\d:\d\d)', shown[: shown.index("How it went")])
    assert 1 <= len(axis) <= 2 * 9
    assert all(0 <= int(tick) <= lasts_s for tick, _ in axis)
    data = json.loads(shown[shown.index('id="data">') + 10 : shown.index("</script>", shown.index('id="data">'))])
    hours, minutes = map(int, begins.split(":"))
    assert data["midnight"] == -(hours * 3600 + minutes * 60)


needs_chromium = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="MISSING Debian package: chromium - nobody has looked at the replay's page"
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Tab]:
    """A browser for all tests of this file."""
    with chromium.tab(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The page as a file."""
    path = tmp_path / "replay.html"
    path.write_text(whole())
    return path


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_goes_wrong_and_nothing_is_fetched(tab: chromium.Tab, file: Path, dark: bool) -> None:
    """No error on the console, no request but for the file, and the policy lets its own script and style through."""
    tab.errors.clear()
    tab.asked.clear()
    tab.open(file, 1280, dark=dark)
    assert tab.errors == []
    assert tab.asked == [file.as_uri()]
    assert tab.run('document.documentElement.classList.contains("js")')
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(252, 251, 248)")


DRAWN = """[...document.querySelectorAll("#stage .chart svg")].map((svg) => {
  const box = svg.viewBox.baseVal, place = svg.getBoundingClientRect();
  const lines = [...svg.querySelectorAll("polyline")].map((line) => [...line.points].map((p) => [p.x, p.y]));
  return { box: [box.x, box.y, box.width, box.height], width: place.width, height: place.height, lines };
})"""


@needs_chromium
@pytest.mark.parametrize("script", [True, False])
def test_charts_are_drawn_with_and_without_script(tab: chromium.Tab, file: Path, script: bool) -> None:
    """Five charts, a line for each run, every point in the view, and the worst of October's run far from normal."""
    tab.open(file, 1280, script=script)
    drawn: list[dict[str, Any]] = tab.run(DRAWN)
    assert len(drawn) == 5
    for chart in drawn:
        left, top, width, height = chart["box"]
        assert (chart["width"], chart["height"]) > (600, 60)
        assert len(chart["lines"]) == len(runs())
        for line in chart["lines"]:
            assert len(line) >= 2
            assert all(left <= x <= left + width and top <= y <= top + height for x, y in line)
    lowest = [max(y for _, y in line) - min(y for _, y in line) for line in drawn[0]["lines"]]
    assert lowest[1] > 0.9 * drawn[0]["box"][3]
    assert lowest[0] == 0


@needs_chromium
def test_the_keyboard_reaches_everything(tab: chromium.Tab, file: Path) -> None:
    """Slider, zoom, charts and kinds by Tab alone; the focus is seen; arrows move the time and what was believed."""
    tab.open(file, 1280)
    reached = []
    for _ in range(12):
        tab.press("Tab")
        reached.append(tab.run("document.activeElement.id || document.activeElement.dataset.kind || 'none'"))
    assert reached[:4] == ["time", "nearer", "stage", "published"]
    tab.run('document.getElementById("time").focus()')
    before = tab.run('document.getElementById("clock").textContent')
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    after = tab.run('document.getElementById("clock").textContent')
    assert before != after
    assert tab.run('document.getElementById("time").getAttribute("aria-valuetext")') == after
    tab.press("Home")
    assert tab.run('document.querySelector(".beliefs .at").textContent') == "23:30"
    assert "every host holds its lease" in tab.run('document.querySelector(".beliefs").textContent')
    tab.press("Tab")
    tab.press("Tab")
    assert tab.run("document.activeElement.id") == "stage"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


VIEW = """(() => { const box = document.querySelector("#stage .chart svg").viewBox.baseVal;
  return [box.x, box.width]; })()"""


@needs_chromium
def test_zoom_by_button_key_and_drag(tab: chromium.Tab, file: Path) -> None:
    """All charts move together; words stay with what they speak of; 0 shows all again."""
    tab.open(file, 1280)
    whole = tab.run(VIEW)
    tab.run('document.getElementById("nearer").focus()')
    tab.press("Enter")
    assert tab.run(VIEW)[1] == pytest.approx(whole[1] / 2)
    tab.run('document.getElementById("stage").focus()')
    tab.press("+")
    assert tab.run(VIEW)[1] == pytest.approx(whole[1] / 4)
    views = tab.run('[...document.querySelectorAll("#stage .plot svg")].map((svg) => svg.viewBox.baseVal.width)')
    assert len({round(view) for view in views}) == 1
    shown = tab.run("""[...document.querySelectorAll("#stage .chart [data-t]")].every((word) => {
      const box = document.querySelector("#stage .chart svg").viewBox.baseVal;
      const share = (Number(word.dataset.t) - box.x) / box.width;
      return word.hidden === (share < -0.001 || share > 1.001); })""")
    assert shown
    tab.press("0")
    assert tab.run(VIEW) == whole
    tab.run('document.querySelector("#chart-leases .plot").scrollIntoView({ block: "center" })')
    x, y, width = tab.run("""(() => { const box = document.querySelector("#chart-leases .plot").getBoundingClientRect();
      return [box.x, box.y + box.height / 2, box.width]; })()""")
    tab.drag((x + width / 4, y), (x + width / 2, y))
    begins, length = tab.run(VIEW)
    assert begins == pytest.approx(whole[1] / 4, abs=whole[1] / 100)
    assert length == pytest.approx(whole[1] / 4, abs=whole[1] / 100)


CUT = """[...document.querySelectorAll("#stage .length, #stage .hour")].filter((each) => {
  const own = each.getBoundingClientRect(), plot = each.parentElement.getBoundingClientRect();
  return own.width && (own.left < plot.left - 16 * each.matches(".hour") - 1
    || own.right > plot.right + 16 * each.matches(".hour") + 1);
}).map((each) => each.textContent)"""
"""Words beside bars that reach out of their chart, and hours that do by more than half of their width."""


@needs_chromium
@pytest.mark.parametrize("width", [390, 320, 800, 1280])
def test_it_fits_its_window(tab: chromium.Tab, file: Path, width: int) -> None:
    """Nothing scrolls sideways; on a phone text is of a readable size and controls can be hit with a thumb."""
    other = file.with_name("nobody.html")
    other.write_text(nobody_s("database-away"))
    tab.open(other, width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(CUT) == []
    tab.open(file, width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(CUT) == []
    small = tab.run("""[...document.querySelectorAll("main *")].filter((each) => each.offsetParent
      && [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())
      && parseFloat(getComputedStyle(each).fontSize) < 11).map((each) => each.className)""")
    assert small == []
    letters = tab.run("""[...document.querySelectorAll(".length .letter")].filter((each) => each.offsetParent)
      .map((each) => each.textContent.trim())""")
    assert set(letters) == (set("AB") if width < 600 else set())
    cut = tab.run("""[...document.querySelectorAll(".row .who")].filter((each) => each.offsetParent
      && each.scrollWidth > each.clientWidth).map((each) => each.textContent)""")
    assert width < 1280 or cut == []
    if width < 600:
        heights = tab.run('[...document.querySelectorAll("button, #time")].map((each) => each.offsetHeight)')
        assert min(heights) >= 30


@needs_chromium
def test_kinds_can_be_left_out(tab: chromium.Tab, file: Path) -> None:
    """To see what was published and nothing else."""
    tab.open(file, 1280)
    tab.run('document.querySelector("[data-kind=calibrated]").click()')
    shown = tab.run("""[...document.querySelectorAll(".values tbody tr")].filter((row) => row.offsetParent)
      .map((row) => row.className)""")
    assert shown
    assert set(shown) <= {"published", "estimate"}
