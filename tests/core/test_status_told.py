"""Problems under holds, of one cause, after a loss or a start: told as they are, and only to who can help."""

from msgspec import structs
from status_examples import API, FIRST, NOW, POOL, WWW, facts, ids, live, made, problems, region, row, stored

from fencepost.cli.looking import source_line
from fencepost.core.fence import Hold, HoldKind
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import Rule, State
from fencepost.ports import HistoryRow, Unavailable
from fencepost.roles.status.breaches import breach
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Status, when
from fencepost.roles.status.facts import DnsFacts, Process
from fencepost.roles.status.promise_watch import Broken

GONE = Unavailable("the store file is gone")


def test_a_drain_is_proposed_only_where_it_would_be_taken() -> None:
    """The last that serves is never drained: the line to paste was always refused. Under min_in it takes the name."""
    gone = [structs.replace(each, state=State.OUT) for each in POOL.members[1:]]
    for members, line in (
        ((POOL.members[0], *gone), f"fencepost repair {API} --address SPARE"),
        ((POOL.members[0], POOL.members[1], *gone[1:]), "fencepost drain 127.0.1.1 --for 1h --confirm web"),
        (POOL.members, "fencepost drain 127.0.1.1 --for 1h"),
    ):
        status = made(store=stored(pools={"web": structs.replace(POOL, members=tuple(members))}))
        assert problems(status)["kept-by-max-out", "127.0.1.1"].try_ == line
    alone = problems(made(store=stored(pools={"web": structs.replace(POOL, members=(POOL.members[0], *gone))})))
    assert "mend it" in alone["kept-by-max-out", "127.0.1.1"].what


def under(kind: HoldKind, *addresses: str, until_s: int = 0) -> Status:
    """Both endpoints held at these addresses, in a pool in fail open."""
    rows = {name: row(name, content(addresses, 5), 10, hold=Hold(kind, 12, until_s)) for name in (API, WWW)}
    lives = {name: live(rows[name]) for name in rows}
    members = (structs.replace(POOL.members[0], rule=Rule.MIN_IN), *POOL.members[1:])
    pool = structs.replace(POOL, members=members, panic=True, panic_since=FIRST)
    return made(store=stored(rows=rows, pools={"web": pool}), dns=DnsFacts(NOW, lives))


def test_a_hold_answers_for_the_pool_and_status_says_what_it_answers() -> None:
    """A repair had been placed, and status went on asking for a person because of a target that nobody got."""
    status = under("repair", "127.0.9.9")
    assert status.verdict == "working"
    assert not [each for each in status.problems if each.on == "127.0.1.1"]
    endpoint = status.endpoints[0]
    assert (endpoint.addresses, endpoint.kept) == (("127.0.9.9",), ())
    assert {out.address: out.reason for out in endpoint.out}["127.0.1.2"] == "left aside by a repair"
    assert {out.address: out.reason for out in endpoint.out}["127.0.2.1"] == "dead"


def test_a_dead_target_that_a_hold_answers_is_said_as_the_holds_doing() -> None:
    """Health takes nothing out of it; the person who placed it does."""
    status = under("rollback", "127.0.2.1", "127.0.1.2")
    found = problems(status)["kept-by-operator", "127.0.2.1"]
    assert (found.needs_person, found.try_) == (False, f"fencepost explain {API}")
    assert f"{API} and {WWW} are held by a rollback, until resumed" in found.what
    one = under("rollback", "127.0.2.1", "127.0.1.2", until_s=NOW // SECOND + 600)
    text = problems(one)["kept-by-operator", "127.0.2.1"].what
    assert text.endswith("until 20:15:04 UTC"), "as `since` is written beside it"
    assert status.endpoints[0].kept == ("127.0.2.1",)
    assert "127.0.2.1" not in {out.address for out in status.endpoints[0].out}


def test_the_end_of_fail_open_asks_for_nobody() -> None:
    """It said "1 of 6 look dead at once, so nothing is removed" and asked for a person."""
    pool = structs.replace(POOL, panic=True, panic_since=FIRST, sick=160_000, members=(POOL.members[0], *MENDED))
    found = problems(made(store=stored(pools={"web": pool})))["fail-open", "web"]
    assert not found.needs_person
    assert "fail open is ending: 1 of 6 looks dead now" in found.what


MENDED = tuple(structs.replace(each, healthy=True, state=State.IN) for each in POOL.members[1:])


def test_a_refused_file_that_was_mended_asks_for_a_reload_and_for_nobody() -> None:
    """It went on saying "unknown key" of a file that had long been put right, and proposed `check`, which passed."""
    findings = {"config": {"region.toml": (f"rejected@{FIRST}", 'region.toml:7: unknown key "intervall"')}}
    path = region().path
    loaded = region()
    other = structs.replace(loaded, mode="observe")
    half = structs.replace(loaded, pools=(structs.replace(loaded.pools[0], targets=loaded.pools[0].targets[:2]),))
    moved = structs.replace(loaded, dns=structs.replace(loaded.dns, domains=("example.org",)))
    for file, try_, person in (
        (None, f"fencepost check {path}", True),
        (other, f"fencepost reload --config {path}", False),
        (half, f"fencepost reload --yes --config {path}", True),
        (moved, f"fencepost plan --config {path}", True),
    ):
        found = problems(made(store=stored(findings=findings), file=file))["config-rejected", path]
        assert (found.try_, found.needs_person) == (try_, person)
    back = made(store=stored(findings=findings), file=loaded)
    assert "config-rejected" not in ids(back)
    assert back.config.rejected_at is None


def test_our_own_server_that_a_supervisor_starts_again_asks_for_nobody() -> None:
    """It was back after 0.5 s, and `fencepost up` was proposed, which is refused while the region runs."""
    processes = {**facts().processes, "dns": Process(None, 1)}
    found = problems(made(dns_error=Unavailable("timeout"), processes=processes))["dns-unavailable", "127.0.0.1:5300"]
    assert not found.needs_person
    assert "is started again" in found.what
    assert found.try_ == "tail /tmp/demo/dns.log"


def test_a_store_that_came_lately_makes_nobody_silent() -> None:
    """Three seconds after a store was deleted, six roles that were fine "gave no sign of life since their start"."""
    for ago, states in ((3, {"up"}), (16, {"silent"})):
        status = made(store=stored(beats=(), since=NOW - ago * SECOND))
        assert {role.state for role in status.roles} == states
    asked = made(store=stored(beats=(), since=NOW - 3 * SECOND), processes={})
    assert "region-down" not in ids(asked), "under systemd nobody else knows of processes"


def test_one_cause_is_said_once() -> None:
    """BIND was gone: the document said so, and so did each of five roles, in a note of its own."""
    where = "127.0.0.1:5300"
    ill = tuple(
        structs.replace(each, state="unavailable", error=f"{where}: connection refused")
        for each in stored().beats
        if each.role == "planner" or each.role.startswith("enactor/")
    )
    beats = (*(each for each in stored().beats if each.role not in {one.role for one in ill}), *ill)
    status = made(dns_error=Unavailable("connection refused"), store=stored(beats=beats))
    assert [each.id for each in status.problems if "refused" in each.what and each.id.startswith("role")] == []
    told = problems(status)["dns-unavailable", where].what
    assert told.endswith("; so say enactor/a, enactor/b, enactor/c, planner")
    assert {role.state for role in status.roles if role.name.startswith("enactor/")} == {"unavailable"}
    other = structs.replace(beats[-1], error="something else")
    found = made(dns_error=Unavailable("refused"), store=stored(beats=(*beats[:-1], other)))
    assert [each.on for each in found.problems if each.id == "role-unavailable"] == [other.role]


def test_a_breach_outlives_the_observer_that_saw_it() -> None:
    """The API was killed: its counts began anew, and with them a broken promise counted as held."""
    broken = Broken("never_empty", API, "no address", FIRST)
    status = made(store=stored(breaches=(broken,)))
    assert status.promises["never_empty"].held is False
    assert status.promises["never_torn"].held
    assert [each.what for each in status.violations] == ["no address"]
    assert status.verdict == "attention"
    seen = structs.replace(facts().observer, violations=(broken,), since=FIRST)  # type: ignore[type-var]
    twice = made(store=stored(breaches=(broken,)), observer=seen)
    assert len(twice.violations) == 1
    assert twice.observed is not None
    assert twice.observed.since == when(FIRST)
    line = HistoryRow("finding", API, "observer", "never_empty broken: no address", FIRST)
    assert breach(line) == broken
    assert breach(structs.replace(line, by="load balancer")) is None


def test_line_one_says_where_each_part_comes_from() -> None:
    """With the store away it said "read from the markers in DNS" above a budget, hosts and pids, which aren't there."""
    assert source_line(made()) == ""
    asked = made(store=None, source="dns", store_error=GONE, observer=None)
    assert source_line(asked).startswith(
        "API and store are away; endpoints are read from the markers in DNS; pids from"
    )
    assert source_line(asked).endswith("what only the store knows (plan, budget, votes, hosts) isn't known")
    bare = made(store=None, source="dns", store_error=GONE, observer=None, processes={})
    assert "no supervisor tells of processes" in source_line(bare)
    late = facts().now + 40 * SECOND
    by_api = compose(structs.replace(facts(), source="dns", store_error=GONE, now=late))
    text = source_line(by_api)
    assert text.startswith("the store is away; endpoints are read from the markers in DNS, 40 s ago; ")
    assert text.endswith("plan, budget, votes and hosts as the store had them 40 s ago")


def test_the_store_of_a_region_that_stands_still_is_said_to_be_of_then() -> None:
    """With everything stopped, old votes stood there as if they were of now."""
    running = made(source="store", observer=None)
    assert source_line(running) == "the API doesn't answer; this is read from the store and DNS"
    late = NOW + 90 * SECOND
    text = source_line(made(source="store", observer=None, processes={}, store=stored(at=late), now=late))
    assert "; no checker, planner or manager is heard, the last was 1 min 3" in text
    assert text.endswith(" ago: what the store says is as of then")
