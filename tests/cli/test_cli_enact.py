"""``fencepost enact``: what is published is the saved plan, on the very head that it was saved at."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from fencepost.cli import enact
from fencepost.cli.preview import Preview
from fencepost.cli.saved_plan import Basis
from fencepost.cli.talk import Talk
from fencepost.core.fence import Generation
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.ports import Refused
from fencepost.settings import load
from fencepost.world.reference_store import ReferenceStore

NAME = "api.example.test"
SAMPLE = """
[region]
name = "eu-1"
[dns]
provider = "route53"
domain = "example.test"
[pool.api]
probe = "http://:8080/healthz"
[pool.api.targets]
a = ["192.0.2.10", "192.0.2.11"]
[[endpoint]]
name = "api.example.test"
pool = "api"
"""


class Told(Talk):
    """A command's talk with a store in memory."""

    def __init__(self, store: ReferenceStore, path: Path) -> None:
        path.write_text(SAMPLE)
        super().__init__(load(path), SECOND // 5)
        self._store = store


def a_store() -> ReferenceStore:
    """A store without any plan."""
    nonces = iter(f"{number:016x}" for number in range(1, 100))
    return ReferenceStore("ab" * 8, lambda: next(nonces), lambda _duration: asyncio.sleep(0))


def plan_on(head: Head, *addresses: str) -> Plan:
    """A plan of one endpoint."""
    number = head.number + 1
    return Plan(head, number, 0, (Row.of(NAME, Generation(0, number), content(addresses, 30), families="4"),))


def found_of(plan: Plan, **after: Membership) -> Preview:
    """As much of a preview as publishing looks at."""
    return cast("Preview", SimpleNamespace(plan=plan, after=after))


def saved_at(head: Head) -> Basis:
    """As much of a saved plan as publishing looks at."""
    return cast("Basis", SimpleNamespace(head=head, region="eu-1", owner="eu-1"))


def test_a_plan_that_came_between_the_comparison_and_the_publishing_is_not_published_over(tmp_path: Path) -> None:
    """The comparison is a look; what decides is the compare-and-set, on the head that the plan was saved at."""

    async def act() -> None:
        store = a_store()
        before = await store.head()
        assert await store.publish(plan_on(before, "192.0.2.2")) is not None
        with pytest.raises(Refused, match="another plan was published first"):
            await enact.publish(
                Told(store, tmp_path / "region.toml"),
                found_of(plan_on(before, "192.0.2.1")),
                saved_at(before),
                "p.json",
            )
        assert (await store.head()).number == 1
        assert [row.content.a for row in await store.rows_of(NAME)] == [("192.0.2.2",)]

    asyncio.run(act())


def test_a_planner_that_was_first_with_the_very_same_has_done_it(tmp_path: Path) -> None:
    """Planners are level-based: a running one often publishes just this a moment earlier."""

    async def act() -> None:
        store = a_store()
        before = await store.head()
        same = plan_on(before, "192.0.2.1")
        assert await store.publish(same) is not None
        done = await enact.publish(Told(store, tmp_path / "region.toml"), found_of(same), saved_at(before), "p.json")
        assert not done.ours
        assert (await store.head()).number == 1

    asyncio.run(act())


def test_targets_that_moved_after_the_comparison_stop_it(tmp_path: Path) -> None:
    """A change of health between loading and publishing is another world: the saved plan isn't published."""

    async def act() -> None:
        store = a_store()
        before = await store.head()
        looked_at = Membership("api", members=(Member("192.0.2.1", "a", State.IN),))
        moved = Membership("api", members=(Member("192.0.2.2", "a", State.IN),))
        assert await store.put_membership("api", 0, msgspec.json.encode(moved))
        with pytest.raises(Refused, match="another plan was published first"):
            await enact.publish(
                Told(store, tmp_path / "region.toml"),
                found_of(plan_on(before, "192.0.2.1"), api=looked_at),
                saved_at(before),
                "p.json",
            )
        assert (await store.head()).number == 0

    asyncio.run(act())


def test_a_plan_of_another_region_is_refused(tmp_path: Path) -> None:
    """Before anything is looked at: the same file name, two checkouts, is an everyday mistake."""
    talk = Told(a_store(), tmp_path / "region.toml")
    for other in ({"region": "us-2"}, {"owner": "us-2"}):
        saved = cast("Basis", SimpleNamespace(**({"region": "eu-1", "owner": "eu-1"} | other)))
        with pytest.raises(Refused, match="is a plan of region"):
            asyncio.run(enact.work(talk, "p.json", saved, yes=True, as_json=False))
