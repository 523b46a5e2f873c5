"""Rows of the store that a role can't read (another version's, say): they cost what they speak of, no role."""

# ruff: noqa: ASYNC110  what is waited for here tells nobody that it came
import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.dns_planner import PlannerSettings
from fencepost.core.traffic.membership import Member, Membership, OverrideKind, State
from fencepost.core.traffic.verdict import Beat, CheckerReport
from fencepost.ports import Misconfigured
from fencepost.roles import configuration, overrides
from fencepost.roles.checker import listing
from fencepost.roles.configuration import Loaded, Running
from fencepost.roles.domains import Domains
from fencepost.roles.load_balancer import LoadBalancers
from fencepost.roles.loop import Condition
from fencepost.roles.overrides import StoredOverride
from fencepost.roles.planner import PlannerHands
from fencepost.settings import Region, load
from fencepost.world.reference_store import ReferenceStore

SAMPLE = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
API, OTHER = "api.example.test", "other.example.test"
GARBAGE = [b"", b'{"x":1}', b"\xff\x00", b'{"pool":"\xff"}', b"5"]
MEMBERS = Membership("web", 1, members=(Member("192.0.2.1", "a", State.IN),))


def region() -> Region:
    """The sample, and a second pool with an endpoint of its own."""
    (web,) = SAMPLE.pools
    endpoint = structs.replace(SAMPLE.endpoints[0], name=OTHER, pool="db")
    return structs.replace(
        SAMPLE, pools=(web, structs.replace(web, name="db")), endpoints=(*SAMPLE.endpoints, endpoint)
    )


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


async def new_store() -> ReferenceStore:
    """A store with that configuration."""
    numbers = itertools.count(1)
    store = ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)
    await store.put_config(configuration.encode(Loaded(region(), 1, 0)), b"")
    return store


async def replace(store: ReferenceStore, body: bytes) -> None:
    """Put another body in the place of the configuration's."""
    assert await store.put_config(body, (await store.inputs()).config)


def balancers(store: ReferenceStore) -> LoadBalancers:
    """The load balancers, with no domain to look at."""
    return LoadBalancers("load balancer", store, Domains({}))


def run(work: Callable[[ReferenceStore, Condition], Coroutine[Any, Any, None]]) -> None:
    async def go() -> None:
        await work(await new_store(), Condition())

    asyncio.run(go())


async def told(store: ReferenceStore, about: str) -> list[str]:
    """The history's lines about something."""
    return [row.text for row in await store.history() if row.kind == "finding" and row.on == about]


@pytest.mark.parametrize("body", GARBAGE)
def test_a_membership_row_that_cannot_be_read_costs_its_own_pool_only(body: bytes) -> None:
    """It is neither replaced nor planned from, and a person is told once; other pools go on."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        await store.put_membership("web", 0, body)
        hands = balancers(store)
        for _ in range(2):
            await hands.balance(condition)
        assert await store.membership("web") == (1, body)
        assert (await store.membership("db"))[0] == 1
        assert condition.state == "misconfigured"
        assert condition.error.startswith("pool web: its membership row can't be read (")
        ((verdict, why),) = (await store.findings())["load balancer"].values()
        assert verdict == "unreadable"
        assert "another version's?" in why
        assert len(await told(store, "pool web")) == 1
        await store.put_membership("web", 1, msgspec.json.encode(structs.replace(MEMBERS, version=2)))
        await hands.balance(condition)
        assert condition.state == "up"
        assert "load balancer" not in await store.findings()

    run(work)


@pytest.mark.parametrize("body", GARBAGE)
def test_a_planner_asks_nothing_of_the_endpoints_of_a_pool_that_cannot_be_read(body: bytes) -> None:
    """So what stands stays; another pool's endpoints are planned."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        del condition
        await store.put_membership("web", 0, msgspec.json.encode(MEMBERS))
        await store.put_membership("db", 0, msgspec.json.encode(structs.replace(MEMBERS, pool="db")))
        hands = PlannerHands(PlannerSettings("planner", "demo"), Domains({}), store)
        hands.take(await store.inputs())
        assert hands.wants(API) is not None
        await store.put_membership("web", 1, body)
        hands.take(await store.inputs())
        assert hands.wants(API) is None
        assert hands.wants(OTHER) is not None

    run(work)


@pytest.mark.parametrize("body", GARBAGE)
@pytest.mark.parametrize("part", ["report", "beat"])
def test_a_report_that_cannot_be_read_is_no_report(body: bytes, part: str) -> None:
    """That checker doesn't vote; the others do, and it is told whose it was."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        for zone in "abc":
            broken = body if zone == "a" else None
            report = msgspec.json.encode(CheckerReport(zone, "web", 1, None, ()))
            beat = msgspec.json.encode(Beat(zone, "web", 1, 1))
            await store.put_report(zone, "web", 1, report if broken is None or part == "beat" else broken)
            await store.beat_report(zone, "web", 1, beat if broken is None or part == "report" else broken)
        hands = balancers(store)
        for _ in range(2):
            await hands.balance(condition)
        assert (await store.membership("web"))[0]
        lines = await told(store, "checker/a on pool web")
        assert len(lines) == bool(body)  # an empty one is one that was not sent yet
        assert not await told(store, "checker/b on pool web")

    run(work)


@pytest.mark.parametrize("body", GARBAGE)
def test_an_override_that_cannot_be_read_is_ignored_and_told(body: bytes) -> None:
    """The other overrides stand."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        word = StoredOverride("o1", OverrideKind.DRAIN, "web", "127.0.1.2", by="ops", reason="disk")
        await store.put_override("o1", overrides.encode(word))
        await store.put_override("x", body)
        hands = balancers(store)
        for _ in range(2):
            await hands.balance(condition)
        assert hands.heard(await store.inputs())[0] == (word,)
        assert "override x can't be read" in condition.error
        assert len(await told(store, "override x")) == 1

    run(work)


@pytest.mark.parametrize("body", GARBAGE[1:])
def test_a_configuration_that_cannot_be_read_leaves_the_last_good_one_standing(body: bytes, tmp_path: Path) -> None:
    """For who runs, and by the local copy for who starts then; the row itself isn't replaced but by a load."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        copy = tmp_path / "running.json"
        keeping = asyncio.ensure_future(configuration.keep(store, region(), copy))
        while not copy.exists():
            await asyncio.sleep(0)
        hands = balancers(store)
        await hands.balance(condition)
        await replace(store, body)
        await hands.balance(condition)
        assert "the configuration row can't be read" in condition.error
        assert "revision 1 stands" in condition.error
        assert hands.configuration.loaded == Loaded(region(), 1, 0)
        assert Running(copy).take(body) == Loaded(region(), 1, 0)
        assert Running().take(body) is None
        planner = PlannerHands(PlannerSettings("planner", "demo"), Domains({}), store, copy)
        planner.take(await store.inputs())
        assert OTHER in planner.endpoints
        await asyncio.sleep(0.01)
        assert not keeping.done()
        keeping.cancel()
        assert (await store.inputs()).config == body
        assert (await configuration.put(store, region())).revision == 1
        await hands.balance(condition)
        assert condition.state == "up"

    run(work)


def test_a_load_over_a_row_of_another_version_goes_on_from_its_revision() -> None:
    """Revisions rise, or a target that left would be taken for one not listed yet."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        del condition
        await replace(store, b'{"revision": 41, "region": {"later": true}}')
        with pytest.raises(Misconfigured, match="another version's"):
            configuration.decode((await store.inputs()).config)
        assert (await configuration.put(store, region())).revision == 42

    run(work)


def test_who_follows_the_configuration_keeps_what_it_has() -> None:
    """A checker goes on with what it was last told."""

    async def work(store: ReferenceStore, condition: Condition) -> None:
        del condition
        seen: list[int] = []

        async def changed(loaded: Loaded, instances: listing.Instances) -> None:
            assert not instances
            seen.append(loaded.revision)

        following = asyncio.ensure_future(listing.follow(store, changed))
        while not seen:
            await asyncio.sleep(0)
        await replace(store, b'{"region":5}')
        await asyncio.sleep(configuration.FOLLOW_S * 1.5)
        assert not following.done()
        following.cancel()
        assert seen == [1]

    run(work)
