"""Plans are numbered above every marker of ours that stands, whoever read DNS first (docs/concepts/protocol.md)."""

import asyncio
import itertools
from pathlib import Path

from fencepost.core.events import Surveyed
from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import SECOND, Duration
from fencepost.core.record_set import content
from fencepost.core.traffic.dns_planner import PlannerSettings
from fencepost.core.zone import Live
from fencepost.roles import configuration
from fencepost.roles.configuration import Loaded
from fencepost.roles.domains import Domains
from fencepost.roles.planner import PlannerHands
from fencepost.settings import load
from fencepost.world.reference_dns import ReferenceDns, ReferenceDomain
from fencepost.world.reference_store import ReferenceStore

SAMPLE = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
API = "api.example.test"


async def pause(length: Duration) -> None:
    await asyncio.sleep(length / SECOND)


def test_what_another_read_before_counts_in_the_first_pass() -> None:
    """`plan` reads DNS before its planner's hands do, and those were told that nothing had changed.

    Over an empty store it said "plan 1: gen 22 -> 1" of a region that then started with plan 23. Seen by the runbook of
    docs/operating/store-move.md.
    """
    value = content(["192.0.2.1"], 5)
    domain = ReferenceDomain("example.test")
    marker = Marker.of("demo", "cafe", Generation(0, 22), value, None, 1)
    domain.set(Live(API, marker, value.a, (), value.ttl))

    async def surveyed() -> Surveyed:
        numbers = itertools.count(1)
        store = ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)
        await store.put_config(configuration.encode(Loaded(SAMPLE, 1, 0)), b"")
        dns = Domains({"example.test": ReferenceDns(domain, pause)})
        assert await dns.read() == {API}
        hands = PlannerHands(PlannerSettings("plan", "demo"), dns, store)
        await hands.read_head()
        hands.take(await store.inputs())
        await hands.read_dns()
        return await hands.survey()

    assert asyncio.run(surveyed()).highest == 22
