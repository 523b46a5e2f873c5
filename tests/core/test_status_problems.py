"""Problems: each with its numbers, a line to paste, and whether a person is needed."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from status_examples import API, FIRST, NOW, POOL, WWW, beat, facts, ids, live, made, problems, region, row, stored

from fencepost.adapters.dns_complaints import network_words, no_answer
from fencepost.cli import COMMANDS
from fencepost.core.fence import Foreign
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.traffic.membership import Mode, Rule, Voter, Votes
from fencepost.core.traffic.roster import LAST_ONE
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, PortError, Unavailable
from fencepost.roles.status import compose as compose_module
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import when
from fencepost.roles.status.facts import DnsFacts, Process
from fencepost.roles.status.kinds import KINDS
from fencepost.roles.status.promise_watch import Broken

OLD = "old.example.test"
"""A name that left region.toml."""


def docs() -> Path:
    """The operator's pages."""
    return Path(__file__).parents[2] / "docs/operating"


def test_a_dead_target_is_kept_with_its_rule_and_the_way_out() -> None:
    """Each rule that keeps a dead target has a problem of its own, with its numbers and a line to paste."""
    for rule in (Rule.MIN_IN, Rule.BUCKET, Rule.FREEZE, Rule.FAIL_OPEN, Rule.LAST_OF_FAMILY):
        members = (structs.replace(POOL.members[0], rule=rule), *POOL.members[1:])
        status = made(store=stored(pools={"web": structs.replace(POOL, members=members)}))
        found = problems(status)[f"kept-by-{rule.replace('_', '-')}", "127.0.1.1"]
        assert found.try_ == "fencepost drain 127.0.1.1 --for 1h"
        assert found.needs_person == (rule in (Rule.MIN_IN, Rule.LAST_OF_FAMILY))
        assert "127.0.1.1" in status.endpoints[0].kept


def test_nobody_is_led_to_drain_what_passes_again() -> None:
    """A target on its way back was offered `drain --for 1h`: whoever pasted that lost it for an hour."""
    recovering = structs.replace(POOL.members[0], rule=Rule.FAILING_NOW)
    unsure = structs.replace(recovering, votes=Votes(0, 1))
    for member, line in ((recovering, "explain 127.0.1.1"), (unsure, "drain 127.0.1.1 --for 1h")):
        pool = structs.replace(POOL, members=(member, *POOL.members[1:]))
        found = problems(made(store=stored(pools={"web": pool})))["kept-by-failing-now", "127.0.1.1"]
        assert found.try_ == f"fencepost {line}", found.what


def test_automation_that_is_off_keeps_a_dead_target_by_its_operators_word() -> None:
    """`mode` or an override holds the pool as it is: the problem names it."""
    members = (structs.replace(POOL.members[0], rule=Rule.OPERATOR), *POOL.members[1:])
    status = made(store=stored(pools={"web": structs.replace(POOL, members=members, mode=Mode.DISABLED)}))
    assert ("kept-by-operator", "127.0.1.1") in problems(status)
    assert status.pools[0].mode == "disabled"


def test_pools_say_what_alarms_them() -> None:
    """Fail open needs a person; doubt of the checkers does only if it lasts."""
    voters = (Voter("a", "ok"), Voter("b", "canary"), Voter("c", "stale"))
    outvoted = structs.replace(POOL.members[1], votes=Votes(2, 2, "c"))
    pool = structs.replace(
        POOL,
        panic=True,
        panic_since=FIRST,
        voters=voters,
        source_error="more than half would leave",
        members=(POOL.members[0], outvoted, *POOL.members[2:]),
    )
    found = problems(made(store=stored(pools={"web": pool})))
    assert found["fail-open", "web"].needs_person
    assert found["targets-refused", "web"].needs_person
    assert found["fail-open", "web"].since == when(FIRST)
    for early in (("no-quorum", "web"), ("checker-suspect", "checker/b"), ("checker-outvoted", "checker/c")):
        assert not found[early].needs_person, early
    lasting = facts(store=stored(pools={"web": pool}), first_seen={("no-quorum", "web"): NOW - 61 * SECOND})
    assert problems(compose(lasting))["no-quorum", "web"].needs_person


def test_the_last_that_is_over_is_told_apart_from_a_refused_list_whatever_the_words_are() -> None:
    """A list that is refused is mended by a reload; what is over, by what hinders its successor."""
    words = f"192.0.2.1 stays, though web-1.1 is over: {LAST_ONE}"
    over = structs.replace(POOL, source_error=words, last_over=True)
    found = problems(made(store=stored(pools={"web": over})))
    assert found["last-one-over", "web"].what == words
    assert ("targets-refused", "web") not in found
    refused = structs.replace(POOL, source_error=words)
    found = problems(made(store=stored(pools={"web": refused})))
    assert found["targets-refused", "web"].try_ == "fencepost reload --yes"


def test_targets_on_which_nobody_votes_are_said() -> None:
    """external-dns #2677: a report that leaves targets out removes nobody, and it is said that nobody sees them."""
    voters = tuple(Voter(zone, "ok") for zone in "abc")
    silent = tuple(structs.replace(each, votes=Votes(0, 0)) for each in POOL.members[2:])
    pool = structs.replace(POOL, voters=voters, members=(*POOL.members[:2], *silent))
    found = problems(made(store=stored(pools={"web": pool})))["targets-unseen", "web"]
    assert not found.needs_person, "at first"
    assert silent[0].key in found.what
    assert found.try_ == f"fencepost explain {silent[0].key}"
    lasting = facts(store=stored(pools={"web": pool}), first_seen={("targets-unseen", "web"): NOW - 61 * SECOND})
    assert problems(compose(lasting))["targets-unseen", "web"].needs_person
    new = tuple(structs.replace(each, listed_at=NOW - SECOND) for each in silent)
    warming = structs.replace(pool, members=(*POOL.members[:2], *new))
    assert ("targets-unseen", "web") not in problems(made(store=stored(pools={"web": warming})))


def test_endpoints_say_what_keeps_them_from_being_as_planned() -> None:
    """Foreign, asked about, contested, late, empty: one cause each, and what to type."""
    late = row(API, number=10, made_at=NOW - 31 * SECOND)
    cases: list[tuple[dict[str, Any], str, bool]] = [
        ({"dns": DnsFacts(NOW, {API: Live(API, Foreign("eu-2"), ("192.0.2.9",))})}, "foreign-record", True),
        ({"store": stored(findings={"enactor/a": {API: ("ask", "unmarked records")}})}, "needs-adopt", True),
        ({"store": stored(rows={API: row(API, replaced=3)})}, "contested-two-stores", True),
        ({"store": stored(rows={API: late, WWW: row(WWW)})}, "enactors-behind", True),
        ({"dns": DnsFacts(NOW, {API: structs.replace(live(row(API)), a=(), ttl=0)})}, "empty-now", False),
        ({"store": stored(rows={WWW: row(WWW)})}, "not-published", False),
        ({"store": stored(rows={API: row(API, content(["127.0.1.2"], 5)), WWW: row(WWW)})}, "planner-behind", False),
        ({"dns": DnsFacts(NOW, {OLD: live(row(OLD)), API: live(row(API), 2)})}, "orphan-endpoint", False),
    ]
    for changed, kind, person in cases:
        found = [each for each in made(**changed).problems if each.id == kind]
        assert found, kind
        assert found[0].needs_person is person, kind
        assert found[0].on in found[0].try_ or found[0].try_.startswith(("tail ", "fencepost ")), kind


def test_a_name_that_left_the_file_and_has_no_marker_of_ours_is_none_of_our_business() -> None:
    """Added over somebody's unmarked record and taken out again: `withdraw` isn't suggested for what isn't ours."""
    planned = stored(rows={API: row(API), WWW: row(WWW), OLD: row(OLD)})
    for theirs in (Live(OLD, None, ("192.0.2.9",), ttl=300), Live(OLD, Foreign("eu-2"), ("192.0.2.9",)), Live(OLD)):
        status = made(store=planned, dns=DnsFacts(NOW, {OLD: theirs, API: live(row(API), 2), WWW: live(row(WWW))}))
        assert OLD not in {each.name for each in status.endpoints} | {each.on for each in status.problems}
    assert OLD in {each.name for each in made(store=planned, dns=None).endpoints}, "unknown is not gone"


def test_a_shift_of_weights_is_gathered_before_the_planner_is_late() -> None:
    """Mere weights wait `gather` by design: no problem until that is long over."""
    members = tuple(structs.replace(each, weight=2) if each.key == "127.0.1.2" else each for each in POOL.members)
    for began, late in ((NOW - 20 * SECOND, False), (NOW - 200 * SECOND, True)):
        pool = structs.replace(POOL, members=members, shift_since=began)
        assert ("planner-behind" in ids(made(store=stored(pools={"web": pool})))) is late


def test_a_broken_promise_needs_a_person_and_stays_to_be_seen() -> None:
    """What the observer saw broken is in promises, in violations and among the problems."""
    example = facts()
    assert example.observer is not None
    broken = Broken("never_backward", API, "generation 1 is live after 2", FIRST)
    counts = {**example.observer.broken, "never_backward": 1}
    observer = structs.replace(example.observer, broken=counts, violations=(broken,))
    status = made(observer=observer)
    assert status.verdict == "attention"
    assert status.promises["never_backward"].held is False
    assert status.violations[0].at == when(FIRST)
    assert problems(status)["promise-broken", API].try_ == f"fencepost history {API}"


def test_roles_are_down_silent_or_say_what_they_lack() -> None:
    """A process that looks well and has stopped seeing is silent; what restarts in half a second needs nobody."""
    beats = [
        beat("enactor/a", 4105, state="misconfigured", error="TSIG BADSIG"),
        beat("planner", 4100, at=NOW - 40 * SECOND),
        beat("enactor/b", 4106, state="unavailable", error="no answer"),
        beat("enactor/c", 4107, version="0.0.9"),
        beat("checker/a", 4000),
    ]
    processes = {**facts().processes, "janitor": Process(None, 2, "died (signal 9)")}
    status = made(store=stored(beats=tuple(beats)), processes=processes)
    states = {role.name: role.state for role in status.roles}
    assert states["planner"] == "silent"
    assert states["checker/a"] == "silent", "an earlier process's sign of life counts for nothing"
    assert (states["janitor"], states["enactor/a"], states["enactor/b"]) == ("down", "misconfigured", "unavailable")
    found = problems(status)
    assert found["provider-refuses", "enactor/a"].needs_person
    assert found["role-silent", "planner"].needs_person
    assert not found["role-down", "janitor"].needs_person
    assert found["role-down", "janitor"].what == "not running after 2 restarts: died (signal 9)"
    assert found["role-down", "janitor"].try_ == "tail /tmp/demo/janitor.log"
    assert ("role-other-version", "enactor/c") in found
    assert status.restarts == 3, "a sample's targets aren't counted"


def test_a_role_that_was_only_just_started_is_not_silent() -> None:
    """It has not had the time to speak: three signs' length. One that never spoke is said so, not "for 0 s"."""
    mute = tuple(each for each in stored().beats if each.role not in ("checker/a", "checker/b"))
    late = [*mute, beat("checker/b", 4000, at=NOW - 2 * SECOND)]
    for ago, state in ((14, "up"), (16, "silent")):
        processes = {
            name: structs.replace(each, started=NOW - ago * SECOND) for name, each in facts().processes.items()
        }
        status = made(store=stored(beats=tuple(late)), processes=processes)
        states = {role.name: role.state for role in status.roles}
        assert (states["checker/a"], states["checker/b"]) == (state, state)
    for name in ("checker/a", "checker/b"):
        assert problems(status)["role-silent", name].what.endswith("gave no sign of life since its start")


def test_a_region_that_is_down_is_one_problem() -> None:
    """Eight roles that don't run are one thing to know."""
    status = made(store=stored(beats=()), processes={})
    assert "region-down" in ids(status)
    assert "role-down" not in ids(status)
    assert status.verdict == "attention"


def test_nobody_is_silent_while_the_store_cannot_be_read() -> None:
    """Signs of life come through the store: a store that is away since a minute makes no role silent."""
    status = made(
        store=stored(
            at=NOW - 60 * SECOND, beats=tuple(structs.replace(each, at=NOW - 61 * SECOND) for each in stored().beats)
        ),
        store_error=Unavailable("gone"),
    )
    assert {role.state for role in status.roles} == {"up"}
    assert problems(status)["store-unavailable", region().store.path].needs_person


@pytest.mark.parametrize(
    ("error", "kind"), [(Unavailable("timeout"), "dns-unavailable"), (Misconfigured("BADKEY"), "provider-refuses")]
)
def test_the_provider_is_away_or_refuses(error: PortError, kind: str) -> None:
    """Away may pass by itself; refused waits for a person."""
    alive = stored(beats=(*stored().beats, beat("dns", 4190)))
    found = problems(made(dns_error=error, store=alive))[kind, "127.0.0.1:5300"]
    assert found.needs_person is (kind == "provider-refuses")
    if kind == "provider-refuses":
        assert found.try_ == f"fencepost doctor --config {region().path}", (
            "`check` asks nobody, and had no fault to find"
        )


def test_a_server_that_does_not_answer_is_named_once() -> None:
    """Its address stood there three times: as what the problem is on, in the error, and in Python's own words."""
    error = no_answer(
        "127.0.0.1:5300", network_words(ConnectionRefusedError(111, "Connect call failed (…)")), "AXFR of x"
    )
    found = problems(made(dns_error=error))["dns-unavailable", "127.0.0.1:5300"]
    assert found.what.startswith("AXFR of x: connection refused; its role doesn't run")
    assert network_words(OSError("Multiple exceptions: …")) == "unreachable"


def test_our_own_server_that_does_not_answer_and_does_not_run_needs_a_person_at_once() -> None:
    """Nothing will start it: waiting a minute with that only costs callers a minute."""
    found = problems(made(dns_error=Unavailable("timeout")))["dns-unavailable", "127.0.0.1:5300"]
    assert found.needs_person
    assert found.try_.startswith("fencepost up ")


def test_a_region_whose_processes_are_gone_is_down_at_once_however_young_their_signs_of_life() -> None:
    """Ctrl-C, or kill -9 of all: for 12 s their last beats are fresh, and status must not call that working."""
    status = made(processes={}, gone=frozenset(each.pid for each in stored().beats))
    assert {role.state for role in status.roles} == {"down"}
    assert {role.pid for role in status.roles} == {None}
    assert status.verdict == "attention"
    assert problems(status)["region-down", "demo"].needs_person


def test_one_role_whose_process_is_gone_is_down_at_once() -> None:
    """As the supervisor knows it, and by its own beat where no supervisor runs (systemd)."""
    pid = next(each.pid for each in stored().beats if each.role == "enactor/b")
    for processes in ({}, facts().processes):
        states = {role.name: role.state for role in made(processes=processes, gone=frozenset({pid})).roles}
        assert states.pop("enactor/b") == "down"
        assert set(states.values()) == {"up"}


def test_a_store_that_is_away_is_named_once() -> None:
    """One line said where the store lies twice: as what the problem is on, and in the error."""
    place = region().store.place
    gone, damaged = Unavailable("is gone", where=place), Misconfigured("is damaged", where=place, hint="move it aside")
    for error, says in ((gone, "is gone; "), (damaged, "is damaged")):
        found = next(each for each in made(store_error=error).problems if each.on == place)
        assert found.what.startswith(says)
        assert place not in found.what
    assert found.try_ == "move it aside"


def test_a_region_of_which_nothing_can_be_read_but_dns_is_not_called_working() -> None:
    """The store was deleted and nothing runs: an answer from DNS alone says nothing of who looks after it."""
    status = made(source="dns", store=None, store_error=Unavailable("gone"), observer=None, processes={})
    assert status.verdict == "attention"
    assert "as far as can be seen here" in problems(status)["region-down", "demo"].what
    asked = made(store=None, store_error=Unavailable("gone"), processes={})
    assert "region-down" not in ids(asked), "a role that makes the document can't see its neighbours without a store"


def test_an_emptied_name_without_an_enactor_needs_a_person_at_once() -> None:
    """Healing is somebody's work: where no enactor runs, nobody puts it back."""
    emptied = DnsFacts(NOW, {API: structs.replace(live(row(API)), a=(), ttl=0), WWW: live(row(WWW))})
    pids = frozenset(each.pid for each in stored().beats if each.role.startswith("enactor/"))
    found = problems(made(dns=emptied, gone=pids))["empty-now", API]
    assert found.needs_person
    assert found.try_ == f"fencepost repair {API}" + "".join(f" --address {each}" for each in row(API).content.a)
    assert not problems(made(dns=emptied))["empty-now", API].needs_person


def test_a_refused_configuration_is_said_with_its_first_mistake() -> None:
    """The running settings stay; status says since when, and what was wrong."""
    findings = {"config": {"region.toml": (f"rejected@{FIRST}", 'region.toml:3: unknown key "nmae"\nmore')}}
    status = made(store=stored(findings=findings))
    assert status.config.rejected_at == when(FIRST)
    found = problems(status)["config-rejected", region().path]
    assert found.needs_person
    assert found.what == 'region.toml:3: unknown key "nmae"; what was loaded before stays'
    assert "config-missing" in ids(made(store=stored(loaded=None)))


def test_a_writer_that_does_not_move_is_named() -> None:
    """The supervisor finds who holds the store's write lock."""
    (found,) = [each for each in made(stuck_writer=(7, 3.0)).problems if each.id == "writer-stuck"]
    assert "pid 7 " in found.what


def test_every_problem_has_its_page_and_every_page_its_problem() -> None:
    """problems[].id is the anchor of a runbook page."""
    anchors = re.findall(r"^### ([a-z-]+)$", (docs() / "problems.md").read_text(), re.MULTILINE)
    assert sorted(anchors) == sorted(KINDS)


def test_every_command_that_is_named_exists() -> None:
    """A line to paste that isn't a command would be the last thing needed in an outage."""
    source = [path.read_text() for path in Path(compose_module.__file__).parent.glob("*.py")]
    named = set(re.findall(r"[\"`]fencepost ([a-z]+)", "\n".join([*source, (docs() / "problems.md").read_text()])))
    assert {"drain", "explain", "repair", "reload"} <= named <= {command.partition(" ")[0] for command in COMMANDS}


def test_problems_are_made_only_of_known_kinds() -> None:
    """No problem is written beside the list of kinds: a new one can't miss its page."""
    source = Path(compose_module.__file__).parent
    made_in = [path.name for path in source.glob("*.py") if re.search(r"\bProblem\(|\bKind\(", path.read_text())]
    assert sorted(made_in) == ["document.py", "kinds.py", "problems.py"]


def test_checkers_that_have_only_just_started_are_warming_and_no_problem() -> None:
    """Each start would else begin with "0 of 3 checkers vote": three intervals and `rise` passes are waited for."""
    waiting = structs.replace(POOL, voters=(Voter("a", "stale"), Voter("b", "warming"), Voter("c", "stale")))
    store = stored(pools={"web": waiting})
    for age, alarmed in ((2 * SECOND, False), (60 * SECOND, True)):
        young = {f"checker/{zone}": Process(4200, 0, None, NOW - age) for zone in "abc"}
        status = made(store=store, processes={**facts().processes, **young})
        assert ("no-quorum" in ids(status)) is alarmed
        assert ("checker-suspect" in ids(status)) is alarmed
        heard = [each.state for each in status.checkers]
        assert heard == (["stale", "warming", "stale"] if alarmed else ["warming"] * 3)


def test_the_line_that_shows_a_log_names_one_that_is_there() -> None:
    """`journalctl` says nothing of a role that ran under `up`, whose supervisor is dead."""
    silent = {"beats": tuple(each for each in stored().beats if each.role != "janitor")}
    for processes, logs, shown in (
        ({}, frozenset({"janitor.log"}), "tail /tmp/demo/janitor.log"),
        ({}, frozenset(), "journalctl -u fencepost-janitor -n 50"),
        ({"planner": Process(4100)}, frozenset(), "tail /tmp/demo/janitor.log"),
    ):
        status = made(store=stored(**silent), processes=processes, logs=logs)
        assert problems(status)["role-down", "janitor"].try_ == shown
