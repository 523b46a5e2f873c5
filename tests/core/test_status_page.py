"""The page: every tag closed, everything escaped, and no number shown for what is unknown."""

from html.parser import HTMLParser

from msgspec import structs
from status_examples import API, NOW, POOL, facts, region, stored

from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, ShardRow
from fencepost.core.instant import SECOND
from fencepost.core.traffic.membership import OverrideKind
from fencepost.ports import Unavailable
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.compose import compose
from fencepost.roles.status.facts import Facts, FleetFacts
from fencepost.roles.status.metrics import exposition
from fencepost.roles.status.page import POLICY, STYLE, hash_of, page
from fencepost.roles.status.promise_watch import Broken
from fencepost.settings.schema import Fleet, Secret

VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Open tags, checked as they close; the text, and headings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.columns: list[str] = []
        self.labels: list[str | None] = []
        self.rows: list[tuple[list[str], list[str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "thead":
            self.columns = []
        if tag == "td":
            self.labels.append(dict(attrs).get("data-label"))
        assert "style" not in dict(attrs), "the policy allows no style but the page's own"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "tr" and self.labels:
            self.rows.append((self.columns, self.labels))
            self.labels = []

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text.append(data)
        if self.open[-1:] == ["th"]:
            self.columns.append(data)


def parsed(example: Facts) -> Outline:
    outline = Outline()
    outline.feed(page(compose(example)))
    outline.close()
    assert outline.open == []
    return outline


def read(example: Facts) -> str:
    return " ".join(parsed(example).text)


def with_fleet(told: FleetFacts | None) -> Facts:
    """The example with a fleet of one shard, of which its manager told this."""
    fleet = structs.replace(region(), fleet=Fleet(1, 10 * SECOND, Secret(file="k"), "none"))
    return facts(region=fleet, store=stored(fleet=told))


def test_the_page_shows_what_the_document_says() -> None:
    """Verdict first; then problems with the line to paste, endpoints, pools, roles, promises."""
    text = read(facts())
    for words in (
        "demo",
        "working",
        "kept-by-max-out",
        "fencepost drain 127.0.1.1 --for 1h",
        API,
        "127.0.1.1 (kept)",
        "127.0.2.1 dead (fall)",
        "enactor/b",
        "never_empty",
        "held",
    ):
        assert words in text, words
    assert text.index("working") < text.index("kept-by-max-out") < text.index(API) < text.index("never_empty")


COUNTS = {"hosts": 300, "held": 290, "suspect": 4, "lapsed": 10, "room": 7, "waiting": 0, "ready": 20}


def told(opened: str = "1", **more: int) -> FleetFacts:
    """What a manager said a second ago."""
    row = CheckpointRow("1", "m", NOW - SECOND, (), (), (), COUNTS | more)
    calibrated = CalibrationRow("hosts", 128, 5, 9, 20_000.0, NOW - 180 * SECOND)
    return FleetFacts("1", {1: ShardRow(1, 1, "m", 3, open=opened)}, {1: row}, calibrated)


def test_every_cell_names_its_column_for_screens_too_narrow_for_columns() -> None:
    """At 390 px the columns "in DNS" and "out" lay off the edge: something was out, and nothing in sight said what."""
    rows = parsed(with_fleet(told())).rows
    assert len({tuple(columns) for columns, _ in rows}) == 5, "endpoints, pools, fleet, roles, promises"
    for columns, labels in rows:
        assert labels == [None, *columns[1:]], "the first heads the block"
    assert "td::before { content: attr(data-label)" in STYLE
    assert hash_of(STYLE) in POLICY


def test_the_fleet_has_a_section_where_there_is_one() -> None:
    """Hosts by their leases and what runs on them stood in the document, and nowhere on the page."""
    assert "Fleet" not in read(facts())
    text = " ".join(read(with_fleet(told())).split())
    assert "Fleet: host leases and instances" in text
    assert "shard 1 ? 300 286 4 10 7 20 ? 0 ? 1.0 open" in text, "a suspect host counts once; what nobody said is ?"
    assert "128 hosts may be asked at once, as measured 180 s ago" in text


def test_a_fleet_that_stands_still_says_why() -> None:
    """Nothing is placed, no lease lapses, or nobody knows: each in words, none as a 0."""
    assert "closed: it waits for " in read(with_fleet(told(opened="")))
    assert "many fell silent at once, so no lease lapses" in read(with_fleet(told(mass=1)))
    assert "not known: the store has not been read" in read(with_fleet(None))


def test_without_the_store_the_page_says_how_old_the_rest_is() -> None:
    """It said "read from DNS" above a budget and roles, which don't stand there."""
    away = structs.replace(facts(), source="dns", store_error=Unavailable("gone"), now=NOW + 40 * SECOND)
    assert "endpoints are read from DNS, the rest is 40 s old" in page(compose(away))
    assert "endpoints are read from DNS, the rest isn" in page(compose(structs.replace(away, store=None)))


def test_unknown_is_a_question_mark() -> None:
    """Nothing could be read: the page still stands, and claims nothing."""
    text = read(facts(store=None, dns=None, observer=None, processes={}, source="dns"))
    assert "plan ?" in text
    assert "not looked yet" in text
    assert "the store doesn't answer" in text


def test_nothing_that_anybody_wrote_becomes_markup() -> None:
    """Reasons, names, errors and violations come from people, peers and DNS."""
    evil = '<b onload=x>&"'
    word = StoredOverride("o", OverrideKind.KEEP, "web", evil, by=evil, reason=evil)
    pool = structs.replace(POOL, source_error=evil)
    observer = facts().observer
    assert observer is not None
    observer = structs.replace(observer, violations=(Broken("never_torn", evil, evil, NOW),))
    example = facts(store=stored(overrides=(word,), pools={"web": pool}), observer=observer)
    assert evil in read(example)
    assert "<b onload" not in page(compose(example))


def test_metrics_escape_labels_and_leave_out_what_is_unknown() -> None:
    """An alert on a value must not fire, or stay quiet, because of a 0 that means unknown."""
    text = exposition(compose(facts(store=None, dns=None, observer=None, processes={}, source="dns"))).decode()
    assert not any(line.startswith(("fencepost_plan ", "fencepost_generation{")) for line in text.splitlines())
    full = exposition(compose(facts())).decode()
    for line in (
        'fencepost_verdict{verdict="working"} 1.0',
        'fencepost_problems{id="kept-by-max-out",needs_person="false"} 1.0',
        'fencepost_promise_checks_total{promise="never_empty"} 4812.0',
        'fencepost_promise_violations_total{promise="never_empty"} 0.0',
        'fencepost_targets{pool="web",state="kept"} 1.0',
        'fencepost_budget{pool="web"} 0.1',
        'fencepost_restarts_total{role="enactor/b"} 1.0',
        'fencepost_age_seconds{source="store"} 0.0',
    ):
        assert line in full.splitlines(), line
