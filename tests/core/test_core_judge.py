"""The one rule for stale, row by row of its table."""

from typing import NamedTuple

import pytest
from core_values import BOTH_FAMILIES, NAME, ONE, OWNER, TWO, live, row
from msgspec import structs

from fencepost.core.fence import Foreign, Generation, Hold, Marker, digest
from fencepost.core.judge import Judgement, Kind, Pair, Remembered, judge, remember
from fencepost.core.record_set import NOTHING, Content, content, record_digest
from fencepost.core.store import CONTESTED_AT, Row
from fencepost.core.zone import Live

HOLD = Hold("repair", 5)
GONE = Hold("withdraw", 5)
KNOWN_ONE = frozenset({record_digest(ONE.a, ONE.aaaa)})
CONTESTED = structs.replace(row(TWO, 2), replaced=CONTESTED_AT)
TOMBSTONE = row(NOTHING, 2, 5, GONE)
BARE = Live(NAME, None, ONE.a, ONE.aaaa, ONE.ttl)
STRANGE = ("203.0.113.9",)


class Case(NamedTuple):
    """What stands, the newest row, what else is known; the verdict, and the content and generation of its change."""

    what: str
    live: Live
    row: Row | None
    kind: Kind
    content: Content | None = None
    generation: Generation | None = None
    ours: frozenset[str] = frozenset()
    known: Remembered | None = None


def emptied(standing: Live) -> Live:
    """The records gone, the marker left."""
    return structs.replace(standing, a=(), aaaa=(), ttl=0)


def altered(standing: Live) -> Live:
    """Other records, the marker left."""
    return structs.replace(standing, a=STRANGE)


CASES = (
    Case("a CNAME stands", structs.replace(Live(NAME), other=("CNAME",)), row(), Kind.FOREIGN),
    Case("an unreadable marker", Live(NAME, Foreign(""), ONE.a), row(), Kind.FOREIGN),
    Case("a foreign marker", Live(NAME, Foreign("eu-2"), ONE.a), row(), Kind.FOREIGN),
    Case("another owner's marker", live(owner="eu-2"), row(number=9), Kind.FOREIGN),
    Case("older number", live(ONE, 1), row(TWO, 2), Kind.WRITE, TWO, Generation(0, 2)),
    Case("older epoch", live(ONE, 9), row(TWO, 2, 1), Kind.WRITE, TWO, Generation(1, 2)),
    Case("older, emptied", emptied(live(ONE, 1)), row(TWO, 2), Kind.WRITE, TWO, Generation(0, 2)),
    Case("older, row a tombstone", live(ONE, 1), TOMBSTONE, Kind.WRITE, NOTHING, Generation(5, 2)),
    Case("nothing", Live(NAME), row(), Kind.WRITE, ONE, Generation(0, 1)),
    Case("unmarked, known as ours", BARE, row(TWO, 2), Kind.WRITE, TWO, Generation(0, 2), ours=KNOWN_ONE),
    Case(
        "unmarked, to be adopted as it stands",
        BARE,
        structs.replace(row(ONE, 2), adopt=record_digest(ONE.a, ONE.aaaa)),
        Kind.WRITE,
        ONE,
        Generation(0, 2),
    ),
    Case(
        "unmarked, adopted, and the row would change it: it waits for one that doesn't",
        BARE,
        structs.replace(row(TWO, 2), adopt=record_digest(ONE.a, ONE.aaaa)),
        Kind.ASK,
    ),
    Case(
        "unmarked, adopted, and a person's hold says otherwise",
        BARE,
        structs.replace(row(TWO, 2, 5, HOLD), adopt=record_digest(ONE.a, ONE.aaaa)),
        Kind.WRITE,
        TWO,
        Generation(5, 2),
    ),
    Case("unmarked, another set adopted", BARE, structs.replace(row(TWO, 2), adopt="0" * 16), Kind.ASK),
    Case(
        "unmarked, adopted as it stood, and another set stands now",
        BARE,
        structs.replace(row(TWO, 2), adopt=record_digest(TWO.a, TWO.aaaa)),
        Kind.ASK,
    ),
    Case(
        "unmarked, a hold over what stood, and another set stands now",
        BARE,
        structs.replace(row(ONE, 2, 5, HOLD), adopt=record_digest(TWO.a, TWO.aaaa)),
        Kind.ASK,
    ),
    Case("unmarked, strange", BARE, row(TWO, 2), Kind.ASK),
    Case("unmarked, strange, row a tombstone", BARE, TOMBSTONE, Kind.ASK),
    Case("unmarked, row unknown", BARE, None, Kind.LEAVE, ours=KNOWN_ONE),
    Case("nothing, row unknown", Live(NAME), None, Kind.LEAVE),
    Case("same", live(), row(), Kind.DONE),
    Case("same tombstone", live(NOTHING, 2, 5, GONE), TOMBSTONE, Kind.DONE),
    Case("same, emptied", emptied(live()), row(), Kind.HEAL, ONE, Generation(0, 1)),
    Case("same, altered", altered(live()), row(), Kind.HEAL, ONE, Generation(0, 1)),
    Case("same, other TTL", structs.replace(live(), ttl=5), row(), Kind.HEAL, ONE, Generation(0, 1)),
    Case("same tombstone, records back", altered(live(NOTHING, 2, 5, GONE)), TOMBSTONE, Kind.HEAL, NOTHING),
    Case("newer", live(TWO, 2), row(ONE, 1), Kind.LEAVE),
    Case("equal, another digest", live(TWO, 1), row(ONE, 1), Kind.LEAVE),
    Case("newer hold, emptied", emptied(live(TWO, 1, 5, HOLD)), row(), Kind.HEAL, TWO, Generation(5, 1)),
    Case("newer tombstone, altered", altered(live(NOTHING, 1, 5, GONE)), row(), Kind.HEAL, NOTHING, Generation(5, 1)),
    Case("newer, emptied, unknown", emptied(live(TWO, 2)), row(), Kind.LEAVE),
    Case(
        "newer, emptied, remembered",
        emptied(live(TWO, 2)),
        row(),
        Kind.HEAL,
        TWO,
        Generation(0, 2),
        known=remember(live(TWO, 2), "4"),
    ),
    Case("newer, emptied, an older remembered", emptied(live(TWO, 2)), row(), Kind.LEAVE, known=remember(live(), "4")),
    Case(
        "newer, emptied, another digest remembered",
        emptied(live(TWO, 2)),
        row(),
        Kind.LEAVE,
        known=remember(live(ONE, 2), "4"),
    ),
    Case(
        "newer, emptied, the file lies",
        emptied(live(TWO, 2)),
        row(),
        Kind.LEAVE,
        known=Remembered(Generation(0, 2), digest(TWO, None), content(STRANGE, 30), "4"),
    ),
    Case("row unknown", live(), None, Kind.LEAVE),
    Case("row unknown, hold emptied", emptied(live(TWO, 1, 5, HOLD)), None, Kind.HEAL, TWO, Generation(5, 1)),
    Case(
        "row unknown, remembered",
        altered(live()),
        None,
        Kind.HEAL,
        ONE,
        Generation(0, 1),
        known=remember(live(), "4"),
    ),
    Case("contested", live(), CONTESTED, Kind.LEAVE),
    Case("contested, nothing stands", Live(NAME), CONTESTED, Kind.LEAVE),
    Case("contested, hold emptied", emptied(live(TWO, 1, 5, HOLD)), CONTESTED, Kind.HEAL, TWO, Generation(5, 1)),
    Case("the row lacks a family", live(), row(TWO, 2, families="46"), Kind.LEAVE),
    Case("the row has no address", live(), row(NOTHING, 2), Kind.LEAVE),
)


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_each_row_of_the_table(case: Case) -> None:
    """never_empty, never_backward, hold_stands: each verdict of the judge's table, and what it would write."""
    judgement = judge(Pair(case.live, case.row, case.known, case.ours), OWNER)
    assert judgement.kind is case.kind, judgement
    assert (judgement.change is not None) == (case.kind in (Kind.WRITE, Kind.HEAL))
    if judgement.change is None:
        assert case.kind is Kind.DONE or judgement.why
        return
    change = judgement.change
    assert change.seen == case.live
    assert change.content == case.content
    assert change.marker.owner == OWNER
    assert not change.empties()
    if case.generation is not None:
        assert change.marker.generation == case.generation
    if case.kind is Kind.HEAL and isinstance(case.live.marker, Marker):
        assert change.marker.generation == case.live.marker.generation
        assert change.marker.digest == case.live.marker.digest
        assert change.marker.writes == case.live.marker.writes + 1


def test_a_set_is_remembered_only_if_it_matches_its_marker() -> None:
    """Records altered by hand and then emptied must not come back altered."""
    assert remember(altered(live()), "4") is None
    assert remember(BARE, "4") is None
    kept = remember(live(BOTH_FAMILIES), "46")
    assert kept is not None
    assert (kept.content, kept.digest) == (BOTH_FAMILIES, digest(BOTH_FAMILIES, None))


def test_weights_are_part_of_what_is_the_same() -> None:
    """Weights ride in the marker: another weighting of the same addresses is another digest, so it is written."""
    weighed = content({"192.0.2.1": 10, "192.0.2.2": 20}, 30)
    shifted = content({"192.0.2.1": 20, "192.0.2.2": 20}, 30)
    judgement: Judgement = judge(Pair(live(weighed, 1), row(shifted, 2)), OWNER)
    assert judgement.kind is Kind.WRITE
    assert judge(Pair(live(weighed, 1), row(weighed, 1)), OWNER).kind is Kind.DONE
