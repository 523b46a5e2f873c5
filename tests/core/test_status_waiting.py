"""What doesn't come into service, a store that is new, roles that are stopped: told while that may matter."""

import asyncio
import time
from typing import Any

from msgspec import structs
from status_examples import API, NOW, POOL, STORE, ids, made, member, problems, region, row, stored

from fencepost.core.instant import DAY, MINUTE, SECOND
from fencepost.core.store import Head, Plan
from fencepost.core.traffic.dns_planner import PlannerSettings
from fencepost.core.traffic.membership import Member, State, Votes
from fencepost.roles.domains import Domains
from fencepost.roles.planner import PlannerHands
from fencepost.roles.status.document import Status, when
from fencepost.roles.status.replaced import replaced_at, takes_place
from fencepost.settings.schema import Fleet, Secret
from fencepost.world.reference_store import ReferenceStore

LACKS = "passed from 0 of 3 zones: connection refused"
SINCE = NOW - 10 * MINUTE


def pending(key: str, **more: Any) -> Member:
    """A target that checkers see, and that never passed."""
    given = {"cause": LACKS, "healthy": False, "votes": Votes(0, 3), "served": False, "since": SINCE, "weight": 0}
    return member(key, State.PENDING, **{**given, **more})


def told(*members: Member) -> Status:
    """The document of a pool that has these beside those that serve."""
    serving = [each for each in POOL.members if each.state is State.IN]
    return made(store=stored(pools={"web": structs.replace(POOL, members=(*serving, *members))}))


def test_a_target_that_never_passes_is_said_with_what_it_lacks() -> None:
    """With another port than the pool's it was `1 pending` for ever: what, since when, why, what to do."""
    found = problems(told(pending("127.0.3.9", source="web-7.1")))["targets-pending", "web"]
    assert found.what == (
        f"127.0.3.9 (web-7.1) doesn't come into service: {LACKS}; mend it, or terminate what can't be mended"
    )
    assert (found.try_, found.since) == ("fencepost explain 127.0.3.9", when(SINCE))
    assert not found.needs_person, "callers are answered by the others, as where a dead target is out"


def test_many_that_never_pass_are_one_problem() -> None:
    """The most of them say what is wrong: a dozen new targets behind one firewall aren't a dozen notes."""
    slow = pending("127.0.1.20", cause="passed from 0 of 3 zones: timeout", since=SINCE - SECOND)
    status = told(slow, *(pending(f"127.0.2.{n}") for n in range(21, 32)))
    (found,) = [each for each in status.problems if each.id == "targets-pending"]
    assert found.what.startswith(
        "12 targets don't come into service (127.0.1.20, 127.0.2.21, 127.0.2.22 and 9 more);"
        f" 11 of them: {LACKS}; mend them"
    )
    assert (found.try_, found.since) == ("fencepost explain 127.0.2.21", when(SINCE - SECOND))


def test_a_start_has_its_time_and_what_is_told_elsewhere_is_told_once() -> None:
    """Five minutes more than the checks take at best (30 s here); none for who waits for a mode, or for checkers."""
    limit = 5 * MINUTE + 30 * SECOND
    assert ("targets-pending", "web") not in problems(told(pending("127.0.3.9", since=NOW - limit)))
    assert ("targets-pending", "web") in problems(told(pending("127.0.3.9", since=NOW - limit - 1)))
    for more in ({"would": State.IN, "cause": ""}, {"votes": Votes(0, 1)}, {"listed": False}):
        assert ("targets-pending", "web") not in problems(told(pending("127.0.3.9", **more))), more


def test_a_new_store_says_for_a_day_what_it_forgot() -> None:
    """A cordon and a launch's key went with the store, and `status` said ok: docs/operating/store-lost.md."""
    for ago, said in ((MINUTE, True), (DAY - SECOND, True), (DAY, False)):
        store = stored(findings={"store": {"new": (f"new@{NOW - ago}", "")}})
        status = made(store=store)
        assert (("store-new", "demo.db") in {(each.id, each.on.rpartition("/")[2]) for each in status.problems}) is said
    with_fleet = structs.replace(region(), fleet=Fleet(1, 10 * SECOND, Secret(file="k"), "none"))
    store = stored(findings={"store": {"new": (f"new@{NOW - MINUTE}", "")}})
    for given, named, line in ((region(), False, "fencepost history"), (with_fleet, True, "fencepost fleet hosts")):
        (found,) = [each for each in made(region=given, store=store).problems if each.id == "store-new"]
        assert ("cordon" in found.what) is named
        assert (found.try_, found.since, found.needs_person) == (line, when(NOW - MINUTE), False)
    for nonsense in ("new@", "new@x", "old@5", f"new@{NOW + DAY}"):
        assert "store-new" not in ids(made(store=stored(findings={"store": {"new": (nonsense, "")}})))


def test_a_first_plan_above_one_is_that_of_a_new_store() -> None:
    """A region's very first plan is plan 1; a copy brings plans along, so its next one isn't the first."""
    new, copied = Head(STORE), Head(STORE, 9, "n9", 5)
    cases = ((new, 1, False), (new, 10, True), (copied, 10, False))
    for head, number, replaces in cases:
        assert takes_place(Plan(head, number, 0, ())) is replaces


def test_the_planner_makes_known_that_a_store_is_new() -> None:
    """With the very plan that adopts what stands, and once: no later plan of that store moves the time."""

    async def go() -> None:
        store = ReferenceStore(STORE, iter("abc").__next__, asyncio.sleep)
        hands = PlannerHands(PlannerSettings("planner", "demo"), Domains({}), store)
        await hands.publish(Plan(await store.head(), 10, 0, (row(API, number=10),)))
        first = replaced_at(await store.findings(), time.time_ns())
        assert first
        await hands.publish(Plan(await store.head(), 11, 0, (row(API, number=11),)))
        assert replaced_at(await store.findings(), time.time_ns()) == first

    asyncio.run(go())


def test_a_stopped_region_asks_for_somebody_at_once() -> None:
    """All roles stopped by a signal were `working` for half a minute: 12 s till silent, and the patience after that."""
    everyone = frozenset(each.pid for each in stored().beats)
    status = made(stopped=everyone | {4000})
    assert {role.state for role in status.roles} == {"silent"}
    assert status.verdict == "attention"
    (found,) = [each for each in status.problems if each.id in ("region-down", "role-silent")]
    assert found.try_ == "kill -CONT " + " ".join(map(str, sorted({*everyone, 4000}))), "the supervisor too"


def test_one_stopped_role_is_silent_at_once_and_others_are_not() -> None:
    """/proc says `State: T`, which no slow machine makes of a process; its last sign of life is 0.4 s old."""
    pid = next(each.pid for each in stored().beats if each.role == "planner")
    status = made(stopped=frozenset({pid}))
    assert [role.name for role in status.roles if role.state == "silent"] == ["planner"]
    found = problems(status)["role-silent", "planner"]
    assert (found.try_, found.needs_person) == (f"kill -CONT {pid}", False)
    assert "is stopped" in found.what
