"""Endpoints that share a pool share what its limits allow: whatever leaves one leaves all, in the same plan."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from fencepost.core.effects import Publish, Wake
from fencepost.core.events import Event, Published, Woke
from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.dns_planner import DnsPlanner, PlannerSettings
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.roles import configuration
from fencepost.roles.configuration import Loaded
from fencepost.roles.domains import Domains
from fencepost.roles.planner import PlannerHands
from fencepost.settings import load
from fencepost.world.reference_store import ReferenceStore

SAMPLE = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
NAMES = ["api.example.test", "slow.example.test", "www.example.test"]
TARGETS = [f"192.0.2.{number}" for number in range(1, 7)]


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


class Scene:
    """The sample with a third endpoint of its pool, of another TTL, and a planner that the test turns."""

    def __init__(self, store: ReferenceStore) -> None:
        self.store = store
        settings = PlannerSettings("planner", "demo")
        self.decider = DnsPlanner(settings)
        self.hands = PlannerHands(settings, Domains({}), store)
        self.version = 0

    @classmethod
    async def open(cls) -> "Scene":
        """With a store of its own, and the configuration in it."""
        numbers = itertools.count(1)
        store = ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)
        slow = structs.replace(SAMPLE.endpoints[0], name="slow.example.test", ttl_s=300)
        region = structs.replace(SAMPLE, endpoints=(*SAMPLE.endpoints, slow))
        await store.put_config(configuration.encode(Loaded(region, 1, 0)), b"")
        return cls(store)

    async def pool(self, **states: Sequence[int]) -> None:
        """Write the pool's row: the numbers of the targets that are ``out`` or ``kept``; the others are in."""
        found = {number: State[state.upper()] for state, those in states.items() for number in those}
        members = tuple(Member(key, "a", found.get(number, State.IN)) for number, key in enumerate(TARGETS, 1))
        row = Membership("web", self.version + 1, members=members)
        assert await self.store.put_membership("web", self.version, msgspec.json.encode(row))
        self.version += 1

    async def plan(self) -> dict[str, tuple[str, ...]]:
        """Passes of the planner until it finds nothing more to plan: what its one plan says of each endpoint."""
        plans: list[dict[str, tuple[str, ...]]] = []
        event: Event = Woke()
        while True:
            (effect,) = self.decider.on(event, self.version * SECOND)
            if isinstance(effect, Wake):
                self.hands.set_aside()
                (only,) = plans
                return only
            told = await self.hands.perform(effect)
            assert told is not None
            if isinstance(effect, Publish):
                assert isinstance(told, Published)
                plans.append({row.name: row.content.a for row in effect.plan.rows})
            event = told


def played(play: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a play."""

    async def whole() -> None:
        await play(await Scene.open())

    asyncio.run(asyncio.wait_for(whole(), 30))


@pytest.mark.parametrize("dead", [1, 6])
def test_kubernetes_77864_a_target_leaves_all_endpoints_of_its_pool_at_once(dead: int) -> None:
    """Removals were held back for one output and went ahead for another; here one row decides, and one plan says so."""

    async def play(scene: Scene) -> None:
        await scene.pool()
        assert await scene.plan() == dict.fromkeys(NAMES, tuple(TARGETS))
        await scene.pool(out=[dead])
        left = tuple(each for each in TARGETS if each != TARGETS[dead - 1])
        assert await scene.plan() == dict.fromkeys(NAMES, left)
        await scene.pool()
        assert await scene.plan() == dict.fromkeys(NAMES, tuple(TARGETS)), "nor does it come back to some only"

    played(play)


def test_kubernetes_77864_a_target_that_a_limit_keeps_stays_at_all_endpoints_of_its_pool() -> None:
    """Two are out and a third, dead as well, is kept by a limit: no endpoint has a limit of its own."""

    async def play(scene: Scene) -> None:
        await scene.pool()
        await scene.plan()
        await scene.pool(out=[1, 2], kept=[3])
        assert await scene.plan() == dict.fromkeys(NAMES, tuple(TARGETS[2:]))

    played(play)
