"""What `plan` claims: only what is so."""

from pathlib import Path

import pytest
from msgspec import structs

from fencepost.cli import plan_later, plan_markdown
from fencepost.cli.plan import endpoint_lines, lines
from fencepost.cli.plan_changes import changing, kept_because, unseen
from fencepost.cli.plan_document import document
from fencepost.cli.preview import Preview, held_in
from fencepost.core.fence import Generation, Hold, Marker
from fencepost.core.record_set import Content, content
from fencepost.core.store import Head, Plan, Row
from fencepost.core.traffic.membership import Fate, Member, Membership, Rule, State
from fencepost.core.zone import Live
from fencepost.roles.configuration import Loaded
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
API, WWW = "api.example.test", "www.example.test"
SIX = content([target.address for target in REGION.pools[0].targets], 5)


def row(name: str, value: Content = SIX) -> Row:
    """A planned row."""
    return Row.of(name, Generation(0, 2), value, None, families="4")


def live(name: str, value: Content = SIX) -> Live:
    """What stands after plan 1."""
    marker = Marker.of("demo", "beef", Generation(0, 1), value, None, 1)
    return Live(name, marker, value.a, value.aaaa, value.ttl)


def found(rows: tuple[Row, ...], lives: dict[str, Live], left_alone: dict[str, str], *, has_store: bool) -> Preview:
    """A preview of this plan."""
    plan = Plan(Head("beef" * 8, 1, "n1", 1), 2, 1, rows)
    known = {each.name: each for each in rows}
    loaded = Loaded(REGION, 1, 1)
    return Preview(REGION, loaded, {}, {}, known, lives, left_alone, plan, 0.0, has_store, ())


def test_what_is_left_alone_is_not_counted_as_changed() -> None:
    """It said "would change 2 of 2" and left one of them alone."""
    theirs = {WWW: Live(WWW, None, ("192.0.2.9",), ttl=300)}
    preview = found((row(API), row(WWW)), {API: Live(API), **theirs}, {WWW: "unmarked records"}, has_store=True)
    assert [each.name for each in changing(preview)] == [API]
    said = "\n".join(lines(preview))
    assert "would change 1 of 2 endpoints" in said
    assert "\n1 write, 1 UPDATE.\n" in said
    assert f"left alone: unmarked records; to take it over as it stands:  fencepost adopt {WWW}" in said
    assert [each["name"] for each in document(preview)["changes"]] == [API]


def test_a_lost_store_is_not_called_a_first_start() -> None:
    """Markers of ours stand: this region has run."""
    preview = found((row(API),), {API: live(API), WWW: live(WWW)}, {}, has_store=False)
    said = "\n".join(lines(preview))
    assert "first start" not in said
    assert "adopts what stands" in said


@pytest.mark.parametrize(
    ("stands", "planned", "words"),
    [
        (live(API), row(API, structs.replace(SIX, ttl=9)), "ttl 5 s -> 9 s"),
        (Live(API, None, SIX.a, (), 0), row(API), "ttl 0 s -> 5 s"),
        (live(API), row(API, content(dict.fromkeys(SIX.a, 2) | {SIX.a[0]: 1}, 5)), "weights"),
        (live(API), row(API), "only its marker; callers see no change"),
        (Live(API, None, SIX.a, (), 5), row(API), "its marker is written"),
    ],
)
def test_where_no_address_moves_it_is_said_what_does(stands: Live, planned: Row, words: str) -> None:
    """It said "weights or ttl" of both, and of neither."""
    assert unseen(stands, planned) == words


def test_an_endpoints_line_has_its_own_reasons_and_not_those_of_a_name_that_ends_like_it() -> None:
    """A plan's reasons were looked for by the endpoint's name in them, and "my-api.example.test" has "api.example.test"
    in it."""
    longer = f"my-{API}"
    preview = found((row(API), row(longer)), {API: live(API), longer: live(longer)}, {}, has_store=True)
    assert preview.plan is not None
    why = (f"{longer}: repair released", f"{API}: ttl 5 s -> 9 s, like {longer}: it")
    preview = structs.replace(preview, plan=structs.replace(preview.plan, why=why))
    mine = "\n".join(endpoint_lines(preview, row(API)))
    assert "ttl 5 s -> 9 s" in mine
    assert "released" not in mine


def test_a_held_endpoint_says_what_stands_and_what_follows_the_holds_end() -> None:
    """It said "nothing would change" under a repair; the resume after it changed two addresses to six."""
    value, hold = content(["127.0.1.2", "127.0.9.9"], 5), Hold("repair", 77)
    stands = Row.of(API, Generation(77, 1), value, hold, families="4")
    marker = Marker.of("demo", "beef", stands.generation, value, hold, 1)
    lives = {API: Live(API, marker, value.a, (), 5), WWW: live(WWW)}
    pool = Membership("web", members=tuple(Member(each, "a", State.IN, 1) for each in SIX.a))
    preview = structs.replace(found((), lives, {}, has_store=True), after={"web": pool}, plan=None)
    preview = structs.replace(preview, held=held_in(REGION, lives, {API: stands}, None, preview.after))
    text = "\n".join(lines(preview))
    assert "nothing would change while what people placed stands" in text
    assert f"{API}   held by a repair, until you resume it; it answers 127.0.1.2, 127.0.9.9" in text
    assert len([line for line in text.splitlines() if line.startswith("   + ")]) == 5
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("   - ")] == [["-", "127.0.9.9"]]
    assert f"fencepost resume {API}" in text
    told = document(preview)["held"]
    assert told == [
        {
            "name": API,
            "by": "repair",
            "until": None,
            "then": {"in": [each for each in SIX.a if each != "127.0.1.2"], "out": ["127.0.9.9"]},
        }
    ]


def test_an_endpoint_that_waits_for_its_pool_after_a_hold_is_said_to_stay() -> None:
    """A pool without a row, or a name that left the file: nothing is wanted for it, so nothing follows."""
    value, hold = content(["127.0.9.9"], 5), Hold("rollback", 77, 10)
    marker = Marker.of("demo", "beef", Generation(77, 1), value, hold, 1)
    lives = {API: Live(API, marker, value.a, (), 5)}
    preview = structs.replace(found((), lives, {}, has_store=True), held=held_in(REGION, lives, {}, None, {}))
    assert "stays as it is after that too" in "\n".join(lines(preview))
    assert document(preview)["held"][0]["then"] is None


def test_an_endpoint_that_leaves_the_file_is_named_with_what_takes_it_away() -> None:
    """Plan didn't mention it, and reload proposed `withdraw` also for what had been withdrawn already."""
    gone, hold = "old.example.test", Hold("withdraw", 77)
    preview = found((), {API: live(API), WWW: live(WWW), gone: live(gone)}, {}, has_store=True)
    assert f" {gone}   not in the file; its records stay until  fencepost withdraw {gone}" in lines(preview)
    assert document(preview)["orphans"] == [gone]
    marker = Marker.of("demo", "beef", Generation(77, 1), content([], 5), hold, 1)
    lives = {**preview.lives, gone: Live(gone, marker)}
    held = held_in(REGION, lives, {}, None, {})
    text = "\n".join(lines(structs.replace(preview, lives=lives, held=held)))
    assert "not in the file; withdrawn" in text
    assert f"fencepost withdraw {gone}" not in text


def test_markdown_says_the_same_as_the_text_and_nothing_breaks_out_of_it() -> None:
    """A pull request's comment: others' words (an owner's name, say) stay in their line and their block."""
    theirs = {WWW: Live(WWW, None, ("192.0.2.9",), ttl=300)}
    five = content(list(SIX.a)[:5], 5)
    preview = found((row(API, five),), {API: live(API), **theirs}, {WWW: "a <b>|\n``` of eu-2"}, has_store=True)
    preview = structs.replace(preview, refusals=("more than half | of it",))
    said = "\n".join(plan_markdown.lines(preview))
    assert said.startswith("### demo: plan 2 would change 1 of 2 endpoints\n")
    assert f"| `{API}` | 1 → 2 | 6 → 5 | 0 → 0 | 0 | 1 |" in said
    assert f"```diff\n  {API}\n-  {SIX.a[5]}  " in said
    assert said.count("```") == 3, "two of the block, and one in a line of its own list"
    assert "\n- `www.example.test` is left alone: a &lt;b>\\| ``` of eu-2" in said
    assert "more than half \\| of it" in said
    none = found((), {API: live(API), WWW: live(WWW)}, {}, has_store=True)
    assert plan_markdown.lines(none)[0] == "### demo: nothing would change"


def test_the_fewest_healthy_addresses_are_said_only_where_all_were_looked_at() -> None:
    """ "At no moment fewer than": each endpoint has its old set or its new one, and nothing between."""
    five = content(list(SIX.a)[:5], 5)
    seen = [Member(each, "a", State.IN, 1, healthy=True) for each in SIX.a]
    preview = found((row(API, five),), {API: live(API), WWW: live(WWW)}, {}, has_store=True)
    assert document(preview)["cost"] == {"writes": 1, "calls": 1, "fewest_healthy": None}
    known = structs.replace(preview, after={"web": Membership("web", members=tuple(seen))})
    assert document(known)["cost"]["fewest_healthy"] == 5
    assert "1 write, 1 UPDATE; at no moment fewer than 5 healthy addresses." in lines(known)
    sick = [structs.replace(seen[0], healthy=False), *seen[1:]]
    less = structs.replace(preview, after={"web": Membership("web", members=tuple(sick))})
    assert document(less)["cost"]["fewest_healthy"] == 4


def test_an_address_that_comes_dead_is_said_once_and_so() -> None:
    """A new endpoint on a pool that is held by fail open: "not looked at yet" stood beside "dead for 1 min"."""
    dead = tuple(
        Member(each.address, "a", State.KEPT, rule=Rule.FAIL_OPEN, healthy=False, dead_since=1)
        for each in REGION.pools[0].targets
    )
    preview = found((row(API),), {API: Live(API)}, {}, has_store=True)
    preview = structs.replace(preview, after={"web": Membership("web", members=dead)})
    said = [line for line in lines(preview) if f" {dead[0].key} " in line]
    assert len(said) == 1
    assert "kept: fail_open" in said[0]
    assert "not looked at" not in said[0]


def test_where_it_is_asked_for_it_is_not_advised() -> None:
    """`enact` shows the plan and asks; how to have it done some other way isn't the question there."""
    preview = found((row(API),), {API: Live(API)}, {}, has_store=True)
    assert any("fencepost enact" in line for line in lines(preview))
    asked = lines(preview, asking=True)
    assert not any("fencepost" in line for line in asked)
    assert any("1 write" in line for line in asked)


def test_a_lapsed_hosts_target_is_not_called_dead_in_a_plan() -> None:
    """Its checks pass: nobody saw it dead."""
    lapsed = Member(
        "127.0.1.1", "a", State.KEPT, rule=Rule.MAX_OUT, cause="the lease of host h1 has lapsed", fate=Fate.LAPSED
    )
    assert kept_because(lapsed) == "lapsed for a moment, kept: max_out"
    assert kept_because(structs.replace(lapsed, fate=None)).startswith("dead for ")


def test_targets_that_serve_only_once_ready_are_a_change_in_every_form() -> None:
    """It said "nothing would change" in a pull request, and 45 s after `enact` DNS went from 3 to 5 addresses."""
    pool = REGION.pools[0]
    new, gone = structs.replace(pool.targets[0], address="127.0.1.9", line=77), pool.targets[5]
    region = structs.replace(REGION, pools=(structs.replace(pool, targets=(*pool.targets[:5], new)), *REGION.pools[1:]))
    stand = tuple(Member(each.address, "a", State.IN, 1) for each in pool.targets[:5])
    old = Membership(pool.name, members=(*stand, Member(gone.address, "c", State.OUT)))
    now = structs.replace(old, members=(*stand, Member(new.address, "a", State.PENDING, cause="waits for 3 checks")))
    five = content(SIX.a[:5], 5)
    preview = found((), {API: live(API, five), WWW: live(WWW, five)}, {}, has_store=True)
    preview = structs.replace(preview, region=region, before={pool.name: old}, after={pool.name: now}, plan=None)
    head = "no record changes at once; 1 new target would serve once ready, 1 target would leave the list"
    text = "\n".join(lines(preview))
    assert head in text
    assert "nothing would change" not in text
    assert text.count("?  127.0.1.9") == text.count(f"-  {gone.address}") == 2, "once for each endpoint"
    assert "fencepost reload" in text
    said = "\n".join(plan_markdown.lines(preview))
    assert said.startswith(f"### demo: {head}\n")
    assert f"| `127.0.1.9` | `{pool.name}` | a | serves once ready: waits for 3 checks; then starts at 10 % |" in said
    assert f"| `{gone.address}` | `{pool.name}` | c | leaves the list at once; it isn't in service |" in said
    assert [(each["change"], each["address"]) for each in document(preview)["later"]] == [
        ("add", "127.0.1.9"),
        ("remove", gone.address),
    ]
    assert document(preview)["changes"] == []
    assert plan_later.changes_something(preview), "--exit-code goes by it"
    loaded = structs.replace(preview, loaded=Loaded(region, 2, 1))
    assert not plan_later.changes_something(loaded), "once it is loaded, the file changes nothing more"
    assert "nothing would change" in "\n".join(lines(loaded))
