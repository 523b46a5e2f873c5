"""explain: why each address is in or out, in the words and layout that an operator pastes from."""

import pytest
from msgspec import structs
from status_examples import ADDRESSES, API, MOVES, NOW, POOL, WWW, at, facts, live, member, row, stored

from fencepost.core.fence import Foreign, Hold
from fencepost.core.instant import DAY, SECOND
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import Fate, OverrideKind, Rule, State, Votes
from fencepost.core.zone import Live
from fencepost.ports import HistoryRow, Refused
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status.answered import clock
from fencepost.roles.status.compose import compose
from fencepost.roles.status.explain import explain
from fencepost.roles.status.explanation import render
from fencepost.roles.status.facts import DnsFacts, Facts
from fencepost.roles.status.reasons import out_at
from fencepost.settings.schema import Fleet, Secret

HISTORY = (
    HistoryRow("enacted", WWW, "enactor/c", "7 -> 8 in 25 ms", at("20:04:11.229")),
    HistoryRow("enacted", API, "enactor/b", "7 -> 8 in 24 ms", at("20:04:11.231")),
    HistoryRow("enacted", API, "enactor/a", "8 -> 9 in 24 ms", at("20:04:31.931")),
)

EXPLAINED = """\
api.example.test   gen 9, live as planned; marker ours, read 2 s ago; 3 in, 1 kept, 2 out
 in    127.0.1.2 (a)  127.0.2.2 (b)  127.0.3.2 (c)       3 of 3 checkers pass
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
        (Rule.FAILING_NOW, "a checker's newest probe of it passed"),
        (Rule.OPERATOR, "an override or the mode keeps it"),
    ],
)
def test_each_limit_comes_with_its_numbers(rule: Rule, words: str) -> None:
    """A limit is only understood with its two numbers, and the way out."""
    members = (structs.replace(POOL.members[0], rule=rule), *POOL.members[1:])
    text = said("127.0.1.1", with_pool(members=members))
    assert words in text
    assert ("or you:" in text) == ("  try  " in text), "what leads to a line has one"


def test_a_kept_word_names_its_end() -> None:
    """Who keeps a target ends it by resume, not by drain."""
    members = (structs.replace(POOL.members[0], rule=Rule.OPERATOR, forced=OverrideKind.KEEP), *POOL.members[1:])
    for scope, line in (
        ({"target": "127.0.1.1"}, "resume 127.0.1.1"),
        ({"zone": "a"}, "resume --zone a"),
        ({"zone": "a", "pool": "web"}, "resume web --zone a"),
        ({"pool": "web"}, "resume web"),
    ):
        word = structs.replace(StoredOverride("o1", OverrideKind.KEEP, by="ops", reason="x"), **scope)
        pools = {"web": structs.replace(POOL, members=members)}
        text = said("127.0.1.1", facts(store=stored(pools=pools, overrides=(word,))))
        assert f"try     fencepost {line}\n" in text, text


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
    """Looking works in the outage: the records say what callers get."""
    assert render(explain(facts(store=None), (), API)) == [
        "api.example.test   gen 9, live; what is planned is unknown; marker ours, read 0 s ago",
        f" dns   callers get {', '.join(ADDRESSES)}",
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


def held(kind: str, *addresses: str, until_s: int = 0) -> Facts:
    """The example with api held; www follows its pool."""
    row_ = row(API, content(addresses, 5), 10, hold=Hold(kind, 12, until_s), by="ada", reason="dead")  # type: ignore[arg-type]
    lives = {API: live(row_), WWW: live(row(WWW))}
    return facts(store=stored(rows={API: row_, WWW: row(WWW)}), dns=DnsFacts(NOW, lives))


def test_a_repaired_endpoint_is_explained_by_what_its_repair_answers() -> None:
    """It said "3 in, 1 kept, 1 of the 4 addresses callers get" while callers got one address of no pool."""
    text = said(API, held("repair", "127.0.1.2", "127.0.9.9"))
    assert "held by a repair by ada, until resumed" in text.splitlines()[0]
    assert text.splitlines()[0].endswith("; 2 answered, as the hold says")
    assert "still answered" not in text
    assert " held  127.0.1.2 (a)  3 of 3 checkers pass" in text
    assert "127.0.9.9  no target of pool web: nobody checks it" in text
    assert " aside 127.0.1.1 (a)  kept in pool web; not answered while the repair stands" in text
    assert "\n said  repair by ada, until resumed: dead" in text
    assert f"\n try   fencepost resume {API}" in text
    assert "127.0.2.2" in text.partition(" then  ")[2]


def test_a_rolled_back_endpoint_shows_dead_targets_as_answered_by_its_word() -> None:
    """Health takes nothing out of a rollback, so a target that is out of the pool may be answered."""
    text = said(API, held("rollback", "127.0.2.1", "127.0.2.2"))
    assert "127.0.2.1 (b)  dead since 20:04:11, answered as the rollback says" in text


def test_an_address_that_only_a_hold_answers_is_known() -> None:
    """`explain 127.0.9.9` said that it is nothing here, while callers got it."""
    text = said("127.0.9.9", held("repair", "127.0.9.9"))
    assert "no target of any pool, so nobody checks it; callers get it" in text
    assert f"{API} is held by a repair, until resumed: it answers this address" in text
    assert "held" not in said("127.0.1.2")


def test_without_the_store_a_listed_target_is_still_known_as_one() -> None:
    """Of a target that the file lists it said "not known as a target: nobody checks it", while checkers went on."""
    away = structs.replace(held("repair", "127.0.1.2", "127.0.9.9"), store=None)
    text = said(API, away)
    assert "127.0.1.2 (a)  a target of pool web; the store isn't read, so how its checkers see it isn't known" in text
    assert "127.0.9.9  listed in no pool; the store isn't read, so whether it was launched" in text
    assert "nobody checks it" not in text + said("127.0.9.9", away)
    with pytest.raises(Refused, match="is a target, and how it is seen stands in the store, which can't be read"):
        explain(away, (), "127.0.1.2")


@pytest.mark.parametrize(
    ("cause", "fate", "word"),
    [
        ("the lease of host h1 has lapsed", Fate.LAPSED, "lapsed"),
        ("host h1 is gone, as a person said", Fate.GONE, "gone"),
        ("web-k3v9q2mx.1 is over: exit status 1", Fate.OVER, "over"),
        ("connection refused", None, "dead"),
        ("host h1 is gone, as a person said", None, "dead"),
    ],
)
def test_a_target_whose_checks_pass_is_not_called_dead(cause: str, fate: Fate | None, word: str) -> None:
    """A lapsed host's target was "dead", with "votes 2 of 2 healthy (18 % or less = dead)" beside it.

    Its fate says so, and no words of its cause: a checker may tell of an answer in any.
    """
    for state, how in ((State.OUT, "since 20:04:11"), (State.KEPT, "since 20:04:11, still answered")):
        gone = member(
            "127.0.1.1",
            state,
            healthy=False,
            cause=cause,
            fate=fate,
            votes=Votes(2, 2),
            since=at("20:04:11"),
            source="web-k3v9q2mx.1",
        )
        example = with_pool(members=(gone, *POOL.members[1:]))
        text = said("127.0.1.1", example)
        assert f"127.0.1.1 (a)  {word} {how}" in text
        assert ("votes   2 of 2 healthy (18 % or less = dead)" in text) is (word == "dead")
        assert (f"votes   {cause}, so they don't count: 2 of 2 healthy" in text) is (word != "dead")
        reasons = [each.reason for each in compose(example).endpoints[0].out if each.address == "127.0.1.1"]
        assert reasons == ([word] if state is State.OUT else [])


def test_a_target_says_which_endpoints_a_hold_keeps_from_answering_it() -> None:
    """api is held, www still follows the pool."""
    text = said("127.0.1.1", held("repair", "127.0.9.9"))
    assert f"held  {API} is held by a repair, until resumed: it doesn't answer this address" in text
    both = held("repair", "127.0.9.9")
    assert both.store
    assert both.dns
    other = row(WWW, content(["127.0.9.9"], 5), 10, hold=Hold("repair", 13, 0))
    store = structs.replace(both.store, rows={**both.store.rows, WWW: other})
    both = structs.replace(both, store=store, dns=DnsFacts(NOW, {**both.dns.lives, WWW: live(other)}))
    text = said("127.0.1.1", both)
    assert "kept in pool web, which no endpoint follows now" in text
    assert "drain" not in text
    assert said("web", both).splitlines()[0].endswith("answered for no endpoint")


def test_unmarked_records_are_explained_by_what_stands_with_the_way_to_take_them_over() -> None:
    """It said "3 in" and listed targets of the pool, none of which callers got."""
    asks = {"enactor/a": {WWW: ("ask", "unmarked records")}}
    lives = {API: live(row(API)), WWW: Live(WWW, None, ("192.0.2.77",), (), 60)}
    text = said(WWW, facts(store=stored(findings=asks), dns=DnsFacts(NOW, lives)))
    assert "callers get 192.0.2.77" in text
    assert f"try   fencepost adopt {WWW}" in text
    assert not any(address in text for address in ADDRESSES)
    assert f"it stands at {WWW}" in said("192.0.2.77", facts(store=stored(findings=asks), dns=DnsFacts(NOW, lives)))


def test_what_callers_get_is_said_where_it_is_not_what_the_pool_has() -> None:
    """Emptied by somebody, or not written yet."""
    lives = {API: structs.replace(live(row(API)), a=()), WWW: live(row(WWW))}
    assert "\n dns   callers get no address" in said(API, facts(dns=DnsFacts(NOW, lives)))


def test_a_name_that_is_nothing_here_is_answered_with_all_that_is() -> None:
    """Only endpoints were listed, though pools and zones are names too."""
    with pytest.raises(Refused, match=r"endpoints: api.* pools: web; zones: a, b, c; or a target's address"):
        raise_of("!", facts())


def test_a_region_with_a_fleet_says_that_hosts_and_instances_can_be_asked_about() -> None:
    """`explain h8` of a host that had been forgotten was answered as if hosts couldn't be explained at all."""
    without = facts()
    settings = Fleet(1, 10 * SECOND, Secret(file="k"), "none")
    with pytest.raises(Refused, match=r"is no endpoint, target, pool or zone of"):
        said("h8", without)
    with pytest.raises(Refused, match=r"is no endpoint, target, host, instance, pool or zone of"):
        said("h8", structs.replace(without, region=structs.replace(without.region, fleet=settings)))
