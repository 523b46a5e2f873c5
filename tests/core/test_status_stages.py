"""The fleet's stages in the status document: what waits, told to people while it does, and to programs always."""

import asyncio

import pytest
from msgspec import structs
from status_examples import POOL, facts, made, region, stored
from test_status_gather import filled

from fencepost.cli.screen import stage_lines
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import DrainRow
from fencepost.core.instant import SECOND
from fencepost.ports import Unavailable
from fencepost.ports.fleet import Page
from fencepost.roles.configuration import Loaded
from fencepost.roles.status.compose import compose
from fencepost.roles.status.gather import Gatherer
from fencepost.roles.status.metrics import exposition
from fencepost.roles.status.ways import drained
from fencepost.settings.schema import Launch
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

ROW = DrainRow("network", 1_234, 2_310, 38.5, 7 * SECOND, 1_700_000_000 * SECOND)


def test_what_waits_is_told_and_an_idle_stage_is_no_line() -> None:
    """Quiet when well; the numbers are in the document and in the metrics all the same."""
    busy = compose(facts(store=stored(stages=(ROW,))))
    (stage,) = busy.stages
    assert (stage.waiting, stage.bound, stage.rate_s, stage.oldest_s) == (1_234, 2_310, 38.5, 7.0)
    assert stage_lines(busy) == [
        " FLEET  1,234 network states wait, the oldest for 7 s; 38.5 a second get done, 2,310 may wait"
    ]
    text = exposition(busy).decode()
    assert 'fencepost_stage_waiting{stage="network"} 1234.0' in text
    assert 'fencepost_stage_oldest_seconds{stage="network"} 7.0' in text
    idle = compose(facts(store=stored(stages=(DrainRow("network", 0, 64, 100.0),))))
    assert stage_lines(idle) == []
    assert 'fencepost_stage_rate{stage="network"} 100.0' in exposition(idle).decode()
    assert made().stages == ()


@pytest.mark.parametrize("away", [False, True])
def test_stages_are_read_with_the_store_and_cost_nothing_if_they_cant_be(away: bool) -> None:
    """A fleet's rows that can't be read are unknown; all else is told as ever."""

    class Fleet(ReferenceFleet):
        async def rows(self, kind: object, shard: int | None = None, since: int = 0) -> Page:
            if away:
                raise Unavailable("the fleet's rows are away")
            return await super().rows(kind, shard, since)  # type: ignore[arg-type]

    async def go() -> None:
        rows = ReferenceRows("1")
        rows.commit(None, [(Change(ROW, 0),)])
        fleet = Fleet(rows, lambda ns: asyncio.sleep(ns / 1e9))
        status = await Gatherer(region(), await filled(), None, None, fleet=fleet).gather()
        assert status.source == "store"
        assert [stage.stage for stage in status.stages] == ([] if away else ["network"])

    asyncio.run(go())


def test_a_pool_of_launched_instances_is_counted_by_its_membership() -> None:
    """It may have no target in the file: what a limit comes to is asked of the instances there are."""
    (web,) = region().pools
    here = structs.replace(region(), pools=(structs.replace(web, targets=(), launch=Launch(5302)),))
    members = tuple(structs.replace(each, source=f"web-{n}.1", port=5302) for n, each in enumerate(POOL.members))
    pool = structs.replace(POOL, members=members)
    status = compose(facts(region=here, store=stored(pools={"web": pool}, loaded=Loaded(here, 1, 1))))
    (kept,) = [each for each in status.problems if each.id == "kept-by-max-out"]
    assert kept.try_ == "fencepost drain 127.0.1.1 --for 1h"
    (listed,) = status.pools
    assert (listed.targets, listed.kept, listed.out) == (6, 1, 2)
    effect = drained(here.pools[0], pool, ("127.0.1.1",))
    assert (effect.stay, effect.of, effect.least) == (3, 6, 3)
