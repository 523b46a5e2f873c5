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
    NOW,
    POOL,
    ROLES,
    WWW,
    at,
    facts,
    live,
    member,
    row,
    stored,
)

from fencepost.cli.screen import endpoint_row
from fencepost.core.fence import Foreign, Hold
from fencepost.core.instant import SECOND
from fencepost.core.record_set import NOTHING, content
from fencepost.core.traffic.membership import OverrideKind, Rule, State
from fencepost.core.zone import Live
from fencepost.ports import Unavailable
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.status import decode, encode, status_schema
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import PoolStatus, Status, instant, number, seconds, when
from fencepost.roles.status.facts import DnsFacts, Facts
from fencepost.roles.status.metrics import exposition
from fencepost.roles.status.page import page

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
        "repair",
        API,
        "ops",
        "break-glass",
        "2026-11-29T21:00:00Z",
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
    assert [each.id for each in status.problems] == ["store-unavailable"]


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
    assert status.endpoints[0].instead == ("CNAME" if stands.other else None)


def test_a_cname_is_no_other_owner() -> None:
    """It is named, with why nothing is written beside it (RFC 1034 section 3.6.2), and what to do."""
    status = made(dns=DnsFacts(NOW, {API: Live(API, None, (), (), 0, ("CNAME",)), WWW: live(row(WWW))}))
    (found,) = [each for each in status.problems if each.id == "foreign-record"]
    assert found.what == (
        "a CNAME record stands here; no address can be written beside it: remove it at the provider, and the addresses "
        f"follow; or take {API} out of region.toml"
    )
    cells = endpoint_row(status.endpoints[0], status, NOW)
    assert {"CNAME", "nothing is written beside a CNAME"} <= set(cells)
    assert "another owner" not in cells


def test_a_drained_and_a_held_down_target_say_why_they_are_out() -> None:
    """Out has three reasons: dead, drained by a person, passing and not back yet."""
    members = (
        member("127.0.1.1", State.DRAINED, rule=Rule.OPERATOR, forced=OverrideKind.DRAIN),
        member("127.0.1.2", State.OUT, rule=Rule.FALL, healthy=True),
        *POOL.members[2:],
    )
    found = made(store=stored(pools={"web": structs.replace(POOL, members=members)})).endpoints[0].out
    assert [(each.address, each.reason) for each in found] == [
        ("127.0.1.1", "drained"),
        ("127.0.1.2", "not back yet"),
        ("127.0.2.1", "dead"),
        ("127.0.3.1", "dead"),
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


def test_the_document_survives_json() -> None:
    """What the API sends is what the command line reads."""
    status = made()
    assert decode(encode(status)) == status
    assert msgspec.json.decode(encode(status))["pools"][0]["in"] == 4


@pytest.mark.parametrize("odd", [10**30, 2**70, 253_402_300_800 * SECOND, -1, -(10**30)])
def test_a_time_that_no_calendar_has_costs_the_time_and_not_the_document(odd: int) -> None:
    """RFC 3339 has four digits for the year; a store may hold any number, written by hand or by another program."""
    word = StoredOverride("o", OverrideKind.DRAIN, "web", "127.0.1.1", by="ops", reason="x", until=odd, placed_at=odd)
    hold = Hold("rollback", 2, odd)
    held = row(API, content(["127.0.1.1"], 5), hold=hold)
    found = compose(facts(store=stored(overrides=(word,), rows={API: held}), dns=DnsFacts(NOW, {API: live(held)})))
    assert all(each.until is None for each in found.overrides)
    assert {each.what for each in found.overrides} >= {"rollback"}
    assert decode(encode(found)) == found
    assert exposition(found)
    assert page(found)
    assert when(odd) is None


def test_times_at_the_ends_of_the_calendar_are_told() -> None:
    """The last instant of year 9999, and a day of 1970."""
    assert when(253_402_300_800 * SECOND - 1) == "9999-12-31T23:59:59.999Z"
    assert when(SECOND) == "1970-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("targets", "most", "count", "weight", "text"),
    [
        (6, 2, 2, 6, "2 targets"),
        (6, 1.02, 1, 6, "1 target"),
        (6, 35, 2, 255, "2 targets, 35 of 255 weight"),
        (6, 2, 2, 5, "2 targets"),
        (6, 35, None, None, "a weight of 35"),
        (6, None, None, None, "?"),
    ],
)
def test_what_may_be_out_is_said_in_targets(
    targets: int, most: float | None, count: int | None, weight: float | None, text: str
) -> None:
    """Of a pool of six, "may take out 35" is read as thirty-five targets."""
    pool = PoolStatus(
        "web", targets, 6, 0, 0, 0, 0, False, False, most, 3, 1, None, weight=weight, max_out_targets=count
    )
    assert pool.may_be_out == text
