"""The status document: its keys and types, what its verdict means, and that the same facts make the same bytes."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from status_examples import (
    API,
    FIRST,
    NOW,
    POOL,
    ROLES,
    WWW,
    at,
    beat,
    facts,
    live,
    member,
    region,
    row,
    stored,
)

from fencepost.core.fence import Foreign, Hold
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING, content
from fencepost.core.traffic.membership import Mode, OverrideKind, Rule, State, Voter, Votes
from fencepost.core.zone import Live
from fencepost.ports import Misconfigured, PortError, Unavailable
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status import compose as compose_module
from fencepost.roles.status import decode, encode, status_schema
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import Problem, Status, instant, number, seconds, when
from fencepost.roles.status.facts import DnsFacts, Facts, Process
from fencepost.roles.status.kinds import KINDS
from fencepost.roles.status.promise_watch import Broken

PUBLISHED = """
{"schema": "fencepost.status/1", "version": "0.1.0", "region": "demo", "owner": "demo",
 "at": "2026-11-29T20:05:04.120Z", "source": "api", "verdict": "working", "mode": "enabled",
 "provider": "embedded", "plan": 9,
 "config": {"path": "region.toml", "loaded_at": "2026-11-29T20:03:37Z", "rejected_at": null},
 "endpoints": [{"name": "api.example.test", "state": "published", "epoch": 0, "generation": 9, "as_planned": true,
   "pool": "web", "ttl_s": 5, "addresses": ["127.0.1.1", "127.0.1.2", "127.0.2.2", "127.0.3.2"], "kept": ["127.0.1.1"],
   "out": [{"address": "127.0.2.1", "reason": "dead", "rule": "fall", "since": "2026-11-29T20:04:11.204Z"},
           {"address": "127.0.3.1", "reason": "dead", "rule": "fall", "since": "2026-11-29T20:04:31.870Z"}],
   "written_by": "enactor/b", "written_at": "2026-11-29T20:04:11.231Z", "writes": 2, "emptied_by_others_s": 0.064}],
 "pools": [{"name": "web", "targets": 6, "in": 4, "dead": 3, "kept": 1, "out": 2, "pending": 0, "suspect": true,
   "panic": false, "max_out": 2, "min_in": 3, "budget": 0.10, "budget_next_s": null}],
 "roles": [{"name": "enactor/b", "state": "up", "pid": 4160, "restarts": 1, "version": "0.1.0", "seen_s": 0.4,
   "last_error": null}],
 "overrides": [{"what": "keep", "on": "127.0.1.2", "by": "ops", "reason": "canary build",
   "until": "2026-11-29T21:00:00Z"}],
 "problems": [{"id": "kept-by-max-out", "kind": "refused", "on": "127.0.1.1",
   "what": "dead, kept: max_out allows 2 of 6", "try": "fencepost drain 127.0.1.1 --for 1h", "needs_person": false,
   "since": "2026-11-29T20:04:33.102Z"}],
 "promises": {"never_empty": {"held": true, "times_checked": 4812},
   "never_backward": {"held": true, "times_checked": 4812}},
 "restarts": 1, "fenced": 0}
"""
"""The example that is published with version 1. Every later release must still be able to read it."""


def made(**more: Any) -> Status:
    return compose(facts(**more))


def turned_round(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return dict(reversed(list(mapping.items())))


def problems(status: Status) -> dict[tuple[str, str], Problem]:
    return {(each.id, each.on): each for each in status.problems}


def ids(status: Status) -> list[str]:
    return sorted({each.id for each in status.problems})


def healthy(**more: Any) -> Facts:
    """The example with everything in."""
    everyone = [f"127.0.{zone}.{last}" for zone in (1, 2, 3) for last in (1, 2)]
    pool = structs.replace(POOL, members=tuple(map(member, everyone)), suspect="", tokens=2_000_000)
    rows = {name: row(name, content(everyone, 5)) for name in (API, WWW)}
    given: dict[str, Any] = {
        "store": stored(pools={"web": pool}, rows=rows),
        "dns": DnsFacts(NOW, {name: live(row) for name, row in rows.items()}),
        **more,
    }
    return facts(**given)


def test_the_published_example_is_read_and_fits_the_schema() -> None:
    """Within version 1 keys are only added: the first example stays readable, and lacks nothing that is required."""
    status = decode(PUBLISHED.encode())
    assert status.pools[0].in_ == 4
    assert status.problems[0].try_.startswith("fencepost drain")
    assert fits(json.loads(PUBLISHED), status_schema())
    broken = json.loads(PUBLISHED)
    broken["verdict"] = "red"
    assert not fits(broken, status_schema())
    del broken["verdict"]
    assert not fits(broken, status_schema())


def test_the_example_region_makes_the_published_document() -> None:
    """The document is that of the page about the command line, key by key; only some values are more than there."""
    ours, theirs = json.loads(encode(made())), json.loads(PUBLISHED)
    assert fits(ours, status_schema())
    assert set(theirs) <= set(ours)
    for part in ("endpoints", "pools", "roles", "problems"):
        assert set(theirs[part][0]) <= set(ours[part][0]), part
    assert list(theirs)[:6] == list(ours)[:6]
    [api, _] = ours["endpoints"]
    for key in ("addresses", "kept", "out", "generation", "as_planned", "emptied_by_others_s", "written_by", "ttl_s"):
        assert api[key] == theirs["endpoints"][0][key], key
    wanted = {key: value for key, value in theirs["pools"][0].items() if key != "budget_next_s"}
    assert {key: ours["pools"][0][key] for key in wanted} == wanted
    assert ours["problems"][0] == theirs["problems"][0]
    assert (ours["verdict"], ours["restarts"], ours["at"]) == ("working", 1, theirs["at"])


def test_the_same_facts_make_the_same_bytes() -> None:
    """Arrays are sorted by name, so that two documents can be compared as text."""
    example = facts()
    assert example.store is not None
    turned = structs.replace(
        example,
        store=structs.replace(
            example.store, rows=turned_round(example.store.rows), beats=tuple(reversed(example.store.beats))
        ),
        processes=turned_round(example.processes),
    )
    assert encode(compose(turned)) == encode(compose(example))
    status = compose(example)
    assert [role.name for role in status.roles] == sorted(ROLES)
    assert [endpoint.name for endpoint in status.endpoints] == [API, WWW]


def test_ok_is_all_in_and_nothing_else() -> None:
    """A region in which nobody is missing is ok; one target out is work, and nobody need come."""
    assert compose(healthy()).verdict == "ok"
    assert compose(healthy()).problems == ()
    assert made().verdict == "working"


def test_a_persons_word_is_no_state_of_rest() -> None:
    """A drained target is out because somebody said so: the verdict says working, the override who and why."""
    word = StoredOverride("o1", OverrideKind.DRAIN, "web", "127.0.1.2", by="ops", reason="disk", until=NOW + SECOND)
    over = StoredOverride("o2", OverrideKind.KEEP, "web", "127.0.2.2", by="ops", reason="over", until=NOW - SECOND)
    example = healthy()
    assert example.store is not None
    status = compose(structs.replace(example, store=structs.replace(example.store, overrides=(word, over))))
    assert status.verdict == "working"
    assert [(each.what, each.on, each.by, each.reason) for each in status.overrides] == [
        ("drain", "127.0.1.2", "ops", "disk")
    ]


def test_holds_are_overrides_and_author_and_reason_come_from_the_row() -> None:
    """Author and reason never enter DNS; the marker alone tells kind and expiry."""
    hold = Hold("repair", 77, int(at("21:00:00") // SECOND))
    value = content(["127.0.1.1"], 5)
    planned = row(API, value, hold=hold, by="ops", reason="break-glass")
    lives = {API: live(planned), WWW: live(row(WWW))}
    status = made(store=stored(rows={API: planned, WWW: row(WWW)}), dns=DnsFacts(NOW, lives))
    [found] = status.overrides
    assert (found.what, found.on, found.by, found.reason, found.until) == (
        "repair", API, "ops", "break-glass", "2026-11-29T21:00:00Z",
    )
    [bare] = made(store=None, source="dns", dns=DnsFacts(NOW, {API: live(planned)})).overrides
    assert (bare.what, bare.by, bare.reason) == ("repair", None, None)


def test_unknown_is_null_and_never_nought() -> None:
    """Without store, DNS and observer nothing is known, and nothing is claimed."""
    status = made(store=None, dns=None, observer=None, processes={}, source="dns")
    document = json.loads(encode(status))
    assert document["plan"] is document["fenced"] is document["restarts"] is None
    endpoint, pool = document["endpoints"][0], document["pools"][0]
    unknown = ("state", "epoch", "generation", "as_planned", "addresses", "writes", "written_by", "emptied_by_others_s")
    for key in unknown:
        assert endpoint[key] is None, key
    for key in ("in", "dead", "kept", "out", "pending", "suspect", "max_out", "min_in", "budget"):
        assert pool[key] is None, key
    assert {promise["held"] for promise in document["promises"].values()} == {None}
    assert document["ages"] == {"store_s": None, "dns_s": None, "observer_s": None}
    assert fits(document, status_schema())


def test_dns_alone_tells_what_callers_get() -> None:
    """The store is away: generations, addresses and holds stand in the markers; what is planned is unknown."""
    status = made(store=None, source="dns", store_error=Unavailable("the store file is gone", where="demo.db"))
    assert status.source == "dns"
    assert [(each.generation, each.as_planned) for each in status.endpoints] == [(9, None), (9, None)]
    assert ids(status) == ["store-unavailable"]


@pytest.mark.parametrize(
    ("stands", "state"),
    [
        (live(row(API)), "published"),
        (live(row(API, NOTHING, hold=Hold("withdraw", 7))), "withdrawn"),
        (Live(API, Foreign("", ((b"v=1",),)), ("192.0.2.9",), (), 60), "foreign"),
        (Live(API, None, (), (), 0, ("CNAME",)), "foreign"),
        (Live(API, None, ("192.0.2.9",), (), 60), "published"),
    ],
)
def test_what_stands_decides_the_state(stands: Live, state: str) -> None:
    """published, withdrawn or foreign: an endpoint's three states."""
    status = made(dns=DnsFacts(NOW, {API: stands, WWW: live(row(WWW))}))
    assert status.endpoints[0].state == state


def test_a_dead_target_is_kept_with_its_rule_and_the_way_out() -> None:
    """Each rule that keeps a dead target has a problem of its own, with its numbers and a line to paste."""
    for rule in (Rule.MIN_IN, Rule.BUCKET, Rule.FREEZE, Rule.FAIL_OPEN, Rule.LAST_OF_FAMILY, Rule.FAILING_NOW):
        members = (structs.replace(POOL.members[0], rule=rule), *POOL.members[1:])
        status = made(store=stored(pools={"web": structs.replace(POOL, members=members)}))
        found = problems(status)[f"kept-by-{rule.replace('_', '-')}", "127.0.1.1"]
        assert found.try_ == "fencepost drain 127.0.1.1 --for 1h"
        assert found.needs_person == (rule in (Rule.MIN_IN, Rule.LAST_OF_FAMILY))
        assert "127.0.1.1" in status.endpoints[0].kept


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
        POOL, panic=True, panic_since=FIRST, voters=voters, source_error="more than half would leave",
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
        ({"store": stored(rows={API: row(API), WWW: row(WWW), "old.example.test": row("old.example.test")})},
         "orphan-endpoint", False),
    ]
    for changed, kind, person in cases:
        found = [each for each in made(**changed).problems if each.id == kind]
        assert found, kind
        assert found[0].needs_person is person, kind
        assert found[0].on in found[0].try_ or found[0].try_.startswith(("tail ", "fencepost ")), kind


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


def test_a_region_that_is_down_is_one_problem() -> None:
    """Eight roles that don't run are one thing to know."""
    status = made(store=stored(beats=()), processes={})
    assert "region-down" in ids(status)
    assert "role-down" not in ids(status)
    assert status.verdict == "attention"


def test_nobody_is_silent_while_the_store_cannot_be_read() -> None:
    """Signs of life come through the store: a store that is away since a minute makes no role silent."""
    status = made(store=stored(at=NOW - 60 * SECOND, beats=tuple(
        structs.replace(each, at=NOW - 61 * SECOND) for each in stored().beats
    )), store_error=Unavailable("gone"))
    assert {role.state for role in status.roles} == {"up"}
    assert problems(status)["store-unavailable", region().store.path].needs_person


@pytest.mark.parametrize(
    ("error", "kind"), [(Unavailable("timeout"), "dns-unavailable"), (Misconfigured("BADKEY"), "provider-refuses")]
)
def test_the_provider_is_away_or_refuses(error: PortError, kind: str) -> None:
    """Away may pass by itself; refused waits for a person."""
    found = problems(made(dns_error=error))[kind, "127.0.0.1:5300"]
    assert found.needs_person is (kind == "provider-refuses")


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
    findings = {"supervisor": {"enactor/a": ("stuck", "held the store's write lock for over 10 s (pid 7)")}}
    assert ("writer-stuck", "enactor/a") in problems(made(store=stored(findings=findings)))


def test_a_drained_and_a_held_down_target_say_why_they_are_out() -> None:
    """Out has three reasons: dead, drained by a person, passing and not back yet."""
    members = (
        member("127.0.1.1", State.DRAINED, rule=Rule.OPERATOR, forced=OverrideKind.DRAIN),
        member("127.0.1.2", State.OUT, rule=Rule.FALL, healthy=True),
        *POOL.members[2:],
    )
    found = made(store=stored(pools={"web": structs.replace(POOL, members=members)})).endpoints[0].out
    assert [(each.address, each.reason) for each in found] == [
        ("127.0.1.1", "drained"), ("127.0.1.2", "not back yet"), ("127.0.2.1", "dead"), ("127.0.3.1", "dead"),
    ]


def test_who_wrote_is_told_only_of_what_is_live() -> None:
    """The last enactment known is of generation 8: who wrote 9 is unknown."""
    status = made()
    assert [each.written_by for each in status.endpoints] == ["enactor/b", None]
    assert status.endpoints[1].written_at is None


def test_times_weights_and_seconds_are_written_one_way() -> None:
    """RFC 3339 in UTC; whole weights without a point; seconds never negative."""
    assert when(at("20:04:11.204")) == "2026-11-29T20:04:11.204Z"
    assert when(at("20:04:11")) == "2026-11-29T20:04:11Z"
    assert when(0) is None
    assert instant("2026-11-29T20:04:11.204Z") == at("20:04:11.204")
    assert [number(each) for each in (2.0, 0.1, 1 / 3)] == [2, 0.1, 0.333]
    assert seconds(-5 * SECOND) == 0


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None) -> bool:
    """Whether a value fits a JSON Schema; knows the words that msgspec writes, and fails on any other."""
    root = root or schema
    known = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required", "items"}
    known |= {"anyOf", "enum", "default", "additionalProperties"}
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return any(fits(value, each, root) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    wanted = schema.get("type")
    if wanted == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted == "integer" and isinstance(value, bool):
        return False
    if wanted is not None and not isinstance(value, types[wanted]):
        return False
    if wanted == "array":
        return all(fits(each, schema["items"], root) for each in value)
    if wanted == "object":
        extra = schema.get("additionalProperties")
        inside = schema.get("properties", {})
        return set(schema.get("required", ())) <= set(value) and all(
            fits(each, inside.get(key, extra if isinstance(extra, dict) else {}), root) for key, each in value.items()
        )
    return True


def test_every_key_of_the_document_is_documented() -> None:
    """docs/operating/status.md names each key that the schema has."""
    text = (docs() / "status.md").read_text()
    for name, part in status_schema()["$defs"].items():
        for key in part["properties"]:
            assert re.search(rf"`{key}`", text), f"{key} of {name}"


def docs() -> Path:
    """The operator's pages."""
    return Path(__file__).parents[2] / "docs/operating"


def test_every_problem_has_its_page_and_every_page_its_problem() -> None:
    """problems[].id is the anchor of a runbook page."""
    anchors = re.findall(r"^### ([a-z-]+)$", (docs() / "problems.md").read_text(), re.MULTILINE)
    assert sorted(anchors) == sorted(KINDS)


def test_problems_are_made_only_of_known_kinds() -> None:
    """No problem is written beside the list of kinds: a new one can't miss its page."""
    source = Path(compose_module.__file__).parent
    made_in = [path.name for path in source.glob("*.py") if re.search(r"\bProblem\(|\bKind\(", path.read_text())]
    assert sorted(made_in) == ["document.py", "kinds.py", "problems.py"]


def test_the_document_survives_json() -> None:
    """What the API sends is what the command line reads."""
    status = made()
    assert decode(encode(status)) == status
    assert msgspec.json.decode(encode(status))["pools"][0]["in"] == 4
