"""The page: every tag closed, everything escaped, and no number shown for what is unknown."""

from html.parser import HTMLParser

from msgspec import structs
from status_examples import API, NOW, POOL, facts, stored

from fencepost.core.instant import SECOND
from fencepost.core.traffic.membership import OverrideKind
from fencepost.ports import Unavailable
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.compose import compose
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.metrics import exposition
from fencepost.roles.status.page import page
from fencepost.roles.status.promise_watch import Broken

VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Open tags, checked as they close; the text, and headings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text.append(data)


def read(example: Facts) -> str:
    outline = Outline()
    outline.feed(page(compose(example)))
    outline.close()
    assert outline.open == []
    return " ".join(outline.text)


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
