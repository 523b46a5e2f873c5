"""explain: why each address is in or out, in the words and layout that an operator pastes from."""

import pytest
from msgspec import structs
from status_examples import ADDRESSES, API, MOVES, NOW, POOL, WWW, at, facts, live, member, row, stored

from fencepost.core.fence import Foreign, Hold
from fencepost.core.instant import DAY, SECOND
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import OverrideKind, Rule, State, Votes
from fencepost.core.zone import Live
from fencepost.ports import HistoryRow, Refused
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.explain import clock, explain, out_at, render
from fencepost.roles.status.facts import DnsFacts, Facts

HISTORY = (
    HistoryRow("enacted", WWW, "enactor/c", "7 -> 8 in 25 ms", at("20:04:11.229")),
    HistoryRow("enacted", API, "enactor/b", "7 -> 8 in 24 ms", at("20:04:11.231")),
    HistoryRow("enacted", API, "enactor/a", "8 -> 9 in 24 ms", at("20:04:31.931")),
)

EXPLAINED = """\
api.example.test   gen 9, live as planned; marker ours, read 2 s ago; 3 in, 1 kept, 2 out
 in    127.0.1.2 (a)   127.0.2.2 (b)   127.0.3.2 (c)                3 of 3 checkers pass
 out   127.0.2.1 (b)  dead since 20:04:11
         votes   0 of 3 healthy (18 % or less = dead); connection refused
         limit   allowed: 1 of 6 out is within max_out; budget 2.0 -> 1.0
         dns     plan 8, by enactor b 20:04:11.231; back after 5 passes in a row and 30 s (1 flip)
       127.0.3.1 (c)  dead since 20:04:31; plan 9, by enactor a
 kept  127.0.1.1 (a)  dead since 20:04:33, still answered: 1 of the 4 addresses callers get
         limit   max_out: 3 of 6 would be out, allowed 2; until one is back, or you:
         try     fencepost drain 127.0.1.1 --for 1h     (3 of 6 stay in; min_in 3)"""


def said(what: str, example: Facts | None = None) -> str:
    return "\n".join(render(explain(example or facts(), HISTORY, what)))


def with_pool(**more: object) -> Facts:
    return facts(store=stored(pools={"web": structs.replace(POOL, **more)}))


def test_an_endpoint_is_explained_as_the_manual_shows() -> None:
    """Line by line: in, out with votes, limit and dns, the second death in short, kept with the line to paste."""
    example = facts()
    assert example.dns is not None
    assert said(API, structs.replace(example, dns=structs.replace(example.dns, at=NOW - 2 * SECOND))) == EXPLAINED
    assert all(len(line) <= 100 for line in EXPLAINED.splitlines())


def test_a_name_is_read_in_any_spelling() -> None:
    """Case and the final dot don't matter (RFC 4343)."""
    assert explain(facts(), (), "API.Example.Test.").what == API


def test_a_target_is_explained_with_its_moves() -> None:
    """What moved it, in which pool, and who answers with it."""
    text = said("127.0.1.1")
    assert text.startswith("127.0.1.1   zone a, pool web: api.example.test, www.example.test\n")
    assert "\n moved 20:04:33  in -> kept (max_out): connection refused" in text


def test_a_zone_is_explained_with_its_checker_and_enactor() -> None:
    """Everything of one failure zone."""
    text = said("b")
    assert text.startswith("zone b   1 of 2 targets in; checker ok; enactor up\n")
    assert "127.0.2.1 (b)  dead since" in text
    assert "127.0.1" not in text


def test_a_mistyped_name_gets_the_nearest_right_one() -> None:
    """The nearest right word, from this region's own."""
    with pytest.raises(Refused) as refused:
        explain(facts(), (), "apy.example.test")
    assert refused.value.hint == "did you mean api.example.test?"
    with pytest.raises(Refused) as refused:
        explain(facts(), (), "!")
    assert "api.example.test" in refused.value.hint


def test_a_target_nobody_has_judged_yet_is_said_so() -> None:
    """Unknown is said: a listed target before the pool's first membership."""
    with pytest.raises(Refused, match=r"nothing is known of 127\.0\.1\.1 yet"):
        explain(facts(store=stored(pools={})), (), "127.0.1.1")


def test_pending_drained_and_unjudged_targets_say_what_they_wait_for() -> None:
    """The other states a target can be in."""
    end = NOW + 60 * SECOND
    word = StoredOverride("o1", OverrideKind.DRAIN, "web", "127.0.1.1", by="ops", reason="disk", until=end)
    members = (
        member("127.0.1.1", State.DRAINED, rule=Rule.OPERATOR, forced=OverrideKind.DRAIN),
        member("127.0.1.2", State.PENDING, cause="passed from 1 of 2 zones", healthy=None, votes=Votes(1, 1)),
        member("127.0.2.1", healthy=None, votes=Votes()),
        member("127.0.2.2", State.OUT, rule=Rule.FALL, flips=2),
        member("127.0.3.1", State.OUT, rule=Rule.ZONE_FAILOVER, healthy=False),
        member("127.0.3.2", State.OUT, rule=Rule.LOST_STORE, healthy=False),
    )
    pool = structs.replace(POOL, members=members, moves=())
    text = said(API, facts(store=stored(pools={"web": pool}, overrides=(word,))))
    for line in (
        "no verdict yet, so it serves",
        "passes again; out since",
        "allowed when it left; 3 of 4 are out now",
        "not in service yet: passed from 1 of 2 zones",
        "drained since",
        "drain on 127.0.1.1 by ops, until 20:06:04: disk",
    ):
        assert line in text, line
    assert "zone failover: the dead of zone c leave together" in said("127.0.3.1", with_pool(members=members))
    assert "DNS didn't hold this address" in said("127.0.3.2", with_pool(members=members))
    assert "60 s (2 flips)" in said("127.0.2.2", with_pool(members=members))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule.MIN_IN, "min_in: 3 of 6 would be in, at least 3 must"),
        (Rule.BUCKET, "budget: 0.1 left, it takes 1.0; the next in 270 s, or you:"),
        (Rule.FREEZE, "freeze: too much turned sick at once"),
        (Rule.FAIL_OPEN, "fail open: too much of 6 looks dead"),
        (Rule.LAST_OF_FAMILY, "the last address of its family in service; until another serves"),
        (Rule.FAILING_NOW, "its newest probe passed"),
        (Rule.OPERATOR, "an override or the mode keeps it"),
    ],
)
def test_each_limit_comes_with_its_numbers(rule: Rule, words: str) -> None:
    """A limit is only understood with its two numbers, and the way out."""
    members = (structs.replace(POOL.members[0], rule=rule), *POOL.members[1:])
    assert words in said("127.0.1.1", with_pool(members=members))


def test_a_kept_word_names_its_end() -> None:
    """Who keeps a target ends it by resume, not by drain."""
    members = (structs.replace(POOL.members[0], rule=Rule.OPERATOR, forced=OverrideKind.KEEP), *POOL.members[1:])
    assert "try     fencepost resume 127.0.1.1" in said("127.0.1.1", with_pool(members=members))


def test_how_an_endpoint_stands_is_said_first() -> None:
    """Foreign, unmarked, held, altered, late, unread, unplanned: each in its words."""
    planned = row(API)
    hold = Hold("repair", 77)
    held = row(API, content(["127.0.1.1"], 5), hold=hold, by="ops")
    whole = live(planned)
    cases = [
        (Live(API, Foreign("eu-2"), ("192.0.2.1",)), planned, "its marker's owner is 'eu-2'; left alone"),
        (Live(API, None, ("192.0.2.1",), (), 5), planned, "not marked as ours in DNS; gen 9 is planned; no marker"),
        (live(held), held, "gen 9, held by a repair by ops, until resumed, live as planned"),
        (structs.replace(whole, a=ADDRESSES[:1]), planned, "gen 9, and its records are not those of its marker"),
        (whole, row(API, number=10), "gen 9 is live, gen 10 is planned"),
        (whole, None, "gen 9, live; what is planned is unknown"),
        (None, planned, "gen 9 is planned; DNS was not read"),
    ]
    for stands, newest, words in cases:
        lives = {API: stands} if stands is not None else {}
        rows = {API: newest} if newest is not None else {}
        example = facts(dns=DnsFacts(NOW, lives), store=stored(rows=rows))
        assert words in render(explain(example, (), API))[0], words


def test_without_a_store_an_endpoint_is_still_explained() -> None:
    """Looking works in the outage: the markers are enough for the first line."""
    assert render(explain(facts(store=None), (), API)) == [
        "api.example.test   gen 9, live; what is planned is unknown; marker ours, read 0 s ago"
    ]


def test_how_many_were_out_is_counted_back_through_the_moves() -> None:
    """The first removal was one of six, though two are out now; one that came back since was out then."""
    assert [out_at(POOL, move) for move in MOVES] == [1, 2, 2]
    back = structs.replace(MOVES[2], key="127.0.1.2", before=State.OUT, after=State.IN)
    assert out_at(structs.replace(POOL, moves=(*MOVES[:2], back)), MOVES[1]) == 3


def test_a_time_of_another_day_has_its_date() -> None:
    """20:04:11 means today."""
    assert clock(at("20:04:11"), NOW) == "20:04:11"
    assert clock(at("20:04:11"), NOW + DAY) == "2026-11-29 20:04:11"
    assert clock(0, NOW) == "?"


def test_a_withdrawn_endpoint_names_no_address_that_callers_would_get() -> None:
    """All its targets are well: it said "6 in" while callers got nothing."""
    hold = Hold("withdraw", 12, 0)
    gone = row(API, content([], 5), 10, hold=hold, by="ada", reason="moved")
    text = said(API, facts(store=stored(rows={API: gone}), dns=DnsFacts(NOW, {API: live(gone)})))
    assert "withdrawn by ada, until resumed" in text.splitlines()[0]
    assert "callers get no address" in text
    assert "withdrawn by ada, until resumed: moved" in text
    assert f"fencepost resume {API}" in text
    assert not any(address in text for address in ADDRESSES)


def test_a_repair_is_explained_with_who_made_it_though_its_row_names_nobody() -> None:
    """The planner adopts it from the marker; the history knows more."""
    held = row(API, number=10, hold=Hold("repair", 12, 0))
    known = {(API, 12): ("ada", "all down")}
    example = facts(store=stored(rows={API: held}), dns=DnsFacts(NOW, {API: live(held)}), repairers=known)
    assert "held by a repair by ada" in said(API, example)


def test_a_pool_is_explained_as_its_targets() -> None:
    """Status lists pools by name, so the name must mean something here."""
    text = said("web")
    assert text.splitlines()[0] == f"pool web   4 of 6 targets in; answered for {API}, {WWW}"
    assert "127.0.3.1 (c)  dead since" in text
    with pytest.raises(Refused, match="no membership"):
        raise_of("web", facts(store=stored(pools={})))


def raise_of(what: str, example: Facts) -> None:
    """Explain; for what is refused. The hint is part of what is said."""
    try:
        explain(example, HISTORY, what)
    except Refused as error:
        raise Refused(f"{error.what}; {error.hint}") from None


def test_an_unknown_address_is_answered_with_the_targets() -> None:
    """Not with the names of endpoints, of which none looks like it."""
    with pytest.raises(Refused, match=r"targets: 127\.0\.1\.1, "):
        raise_of("10.0.0.1", facts())


def test_odd_times_and_odd_rows_cost_a_word_of_the_explanation() -> None:
    """A history row with text for a time, an override until 10^30: whatever lies in the store, it is explained."""
    word = StoredOverride("o", OverrideKind.DRAIN, "web", "127.0.2.1", by="ops", reason="\x1b[2Jx", until=10**30)
    odd = HistoryRow("enacted", API, "enactor/a", "plan 9", "abc")  # type: ignore[arg-type]
    known = facts(store=stored(overrides=(word,)))
    for what in ("127.0.2.1", API, "web", "a"):
        found = explain(known, [odd], what)
        assert render(found)
    text = "\n".join(render(explain(known, [odd], "127.0.2.1")))
    assert "until beyond year 9999: [2Jx" in text
