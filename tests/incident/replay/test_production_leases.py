"""Leases in the replay where both guards are on: decided by the manager that ships, through the whole outage."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.capacity.lease_calls import Op
from fencepost.core.capacity.lease_manager import LeaseManager
from fencepost.incident.replay.guards import PRODUCTION, Guard
from fencepost.incident.replay.lease_walk import LeaseWalk
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.paths import Paths
from fencepost.incident.replay.production_leases import MANAGERS, ProductionLeases
from fencepost.incident.replay.region import Region
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.workers import WorkerValues

STEP = 12
LENGTH = 300
WORKERS = WorkerValues(knee=32, pool=64, contention=0.1, renew_cost=0.1, establish_cost=10, patience_s=120)


def leases(hosts: int, seed: int = 1, *, life: float = 2700, back: float = 900) -> ProductionLeases:
    """Four managers, and ways to the store as in October 2025."""
    return ProductionLeases(LENGTH, Paths(hosts, life, back, np.random.default_rng(seed)), WORKERS)


def walk(region: ProductionLeases, begins: int, ends: int) -> int:
    """By the region's steps of twelve seconds; until when it was walked."""
    for now in range(begins + STEP, ends + 1, STEP):
        region.step(now, STEP)
        if not region.shards:
            return now
    return ends


def until_held(region: ProductionLeases, begins: int, most: int) -> int:
    """When everyone holds a lease (again)."""
    for now in range(begins + STEP, begins + most, STEP):
        region.step(now, STEP)
        if region.holding == region.bounds[-1]:
            return now
    raise AssertionError(f"{region.bounds[-1] - region.holding} hosts have no lease after {most} s")


def test_the_manager_is_the_one_that_ships() -> None:
    """Not a copy of it: the role imports the very class."""
    role = Path(inspect.getfile(LeaseManager)).parents[2] / "roles" / "fleet" / "host_manager.py"
    imported = {
        (node.module, name.name)
        for node in ast.walk(ast.parse(role.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert (LeaseManager.__module__, LeaseManager.__name__) in imported
    region = leases(320)
    region.lose(1200)
    assert len(region.shards) == 4
    assert all(type(shard.manager) is LeaseManager for shard in region.shards)


@pytest.mark.parametrize("without", [None, *Guard])
def test_it_decides_wherever_both_guards_are_on(without: Guard | None) -> None:
    """With all guards, and with all but another one; either guard alone is another thing."""
    guards = PRODUCTION - {without} if without else PRODUCTION
    region = Region(find_scenario("aws-2025-10-19"), 2_000, 1, guards)
    alone = without in (Guard.LEASE_CLOCK, Guard.ADMISSION)
    assert isinstance(region.leases, LeaseWalk if alone else ProductionLeases)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1 << 32), outage=st.integers(1, 5 * 3600 // STEP), life=st.sampled_from((0, 60, 2700, 86_400))
)
def test_no_lease_is_lost_whatever_the_seed_and_however_long_the_store_is_away(
    seed: int, outage: int, life: float
) -> None:
    """In October 2025 the leases of all hosts ran out in 2 h 37 min of an endpoint without addresses."""
    region = leases(80, seed, life=life)
    region.lose(1200)
    ends = 1200 + outage * STEP
    walk(region, 1200, ends)
    assert region.holding == 80
    managers = [shard.manager for shard in region.shards]
    away = [not manager.leases.owner.reachable for manager in managers]
    region.restore(ends)
    assert walk(region, ends, ends + 3600) < ends + 3600, "calm comes"
    assert (region.lost, region.holding) == (0, 80)
    assert [manager.counts.lapsed for manager in managers] == [0] * 4
    assert all(manager.leases.owner.reachable and manager.leases.owner.owning for manager in managers)
    if not life and outage > 20:
        assert all(away), "the outage was real"


def test_managers_ask_each_host_about_twice_in_a_lease_while_the_store_is_away() -> None:
    """That is why nothing lapses. What ships asks three times; in steps of R / 2 it is late, and asks less often."""
    region = leases(400, life=0)
    region.lose(1200)
    walk(region, 1200, 1500)
    before = sum(shard.checks for shard in region.shards)
    walk(region, 1500, 1500 + 10 * LENGTH)
    asked = (sum(shard.checks for shard in region.shards) - before) / 400 / 10
    assert 1.8 < asked < 3
    assert region.shards[0].values.step_s * 2 <= region.shards[0].values.renew_s
    assert all(shard.away and shard.holding == shard.size for shard in region.shards)


def test_hosts_that_keep_silent_longer_than_a_lease_lapse_and_no_others() -> None:
    """The run can lose leases: a fiftieth of the hosts is out of reach for a quarter of an hour."""
    region = leases(800)
    dark = np.arange(0, 800, 50)
    region.darken(dark, 1200, 2100)
    walk(region, 1200, 2100)
    assert region.lost == len(dark) == 800 - region.holding
    assert sum(shard.lapsed for shard in region.shards) == len(dark)
    until_held(region, 2100, 600)
    assert region.lost == len(dark)


def test_all_hosts_lose_their_memory_and_get_leases_back_at_the_pace_of_the_workers() -> None:
    """Of 1,600 hosts none holds a lease, and each has to be granted one: within a quarter of what is possible."""
    region = leases(1_600)
    region.reborn(np.arange(1_600), 1200)
    ideal = 1_600 * WORKERS.establish_cost / WORKERS.knee
    ends = until_held(region, 1200, 3600)
    assert region.lost == 1_600
    assert ideal * 0.9 < ends - 1200 <= 1.25 * ideal
    assert sum(shard.granted for shard in region.shards) >= 1_600


def test_managers_restarted_while_the_store_is_away_get_everything_back() -> None:
    """Who starts without the store can't own a shard, so it asks nobody; found again, it has all within a quarter."""
    region = leases(1_600)
    region.lose(1200)
    for part in range(5):
        region.restart(1500 + 60 * part, part, 5)
        walk(region, 1500 + 60 * part, 1560 + 60 * part)
    walk(region, 1800, 4800)
    assert region.holding == 0
    region.restore(4800)
    assert region.ideal_s is not None
    assert until_held(region, 4800, 3600) - 4800 <= 1.25 * region.ideal_s
    assert all(shard.starts == 2 and shard.manager.leases.owner.owning for shard in region.shards)


def test_a_grant_takes_the_workers_time_and_a_renewal_hardly_any() -> None:
    """Ten worker-seconds and a tenth of one, as the scenario has it."""
    region = leases(320, life=0)
    region.lose(1200)
    walk(region, 1200, 1200 + 10 * 300)
    renewed = region.spent
    assert renewed == pytest.approx(sum(shard.checks for shard in region.shards) * WORKERS.renew_cost)
    region.restore(4200)
    region.reborn(np.arange(32), 5400)
    until_held(region, 5400, 900)
    assert region.spent - renewed > 32 * WORKERS.establish_cost


def test_what_comes_after_calm_isnt_walked_and_whoever_lost_a_lease_stays_counted() -> None:
    """Ten minutes of calm; then a second outage begins with the managers' shards taken anew."""
    region = leases(320, life=0)
    region.reborn(np.arange(10), 1200)
    assert walk(region, 1200, 7200) < 7200
    walked = region.walked
    region.step(7212, STEP)
    assert region.walked == walked
    region.lose(9000)
    walk(region, 9000, 9600)
    assert (region.lost, region.holding) == (10, 320)


def test_too_few_workers_still_make_one_manager() -> None:
    """Small regions have fewer managers than large ones, never none."""
    few = structs.replace(WORKERS, knee=0.4, pool=0.8)
    region = ProductionLeases(LENGTH, Paths(100, 0, 60, np.random.default_rng(1)), few)
    region.reborn(np.arange(5), 1200)
    assert len(region.shards) == 1
    assert until_held(region, 1200, 600)
    assert (
        ProductionLeases(
            LENGTH, Paths(1_000, 0, 60, np.random.default_rng(1)), structs.replace(WORKERS, knee=999)
        ).bounds[-1]
        == 1_000
    )
    assert MANAGERS == 8


def production(seed: int, outage: int) -> Outcome:
    """Everything on, 2,000 hosts."""
    return replay(find_scenario("aws-2025-10-19"), Options(2_000, seed, PRODUCTION, outage_s=outage))


@pytest.mark.parametrize(("seed", "outage"), [(1, 157 * 60), (2, 157 * 60), (3, 6 * 3600)])
def test_in_the_whole_replay_launches_fail_as_long_as_the_store_is_away_and_no_longer(seed: int, outage: int) -> None:
    """No lease missing, no capacity out; people want launches for an hour more, as their retries give up."""
    outcome = production(seed, outage)
    figures = outcome.figures
    assert figures["leases_missing_s"] == figures["capacity_out_s"] == 0
    assert (figures["launch_failing_s"] or 0) <= outage + 63 * 60
    assert (figures["walked_s"] or 0) > outage


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Nothing reads a clock, and nothing is drawn but from the seed."""
    one, two = production(5, 3600), production(5, 3600)
    assert {name: values.tobytes() for name, values in one.series.items()} == {
        name: values.tobytes() for name, values in two.series.items()
    }
    assert one.happened == two.happened


def test_that_rows_lapse_or_not_is_the_managers_own_decision() -> None:
    """With its rule against mass lapses taken away the same run loses all rows' leases: what is found depends on it."""
    region = leases(400)
    region.darken(np.arange(400), 1200, 3000)
    walk(region, 1200, 2400)
    assert (region.holding, sum(shard.lapsed for shard in region.shards)) == (0, 0)
    bold = leases(400)
    bold.begin(1200)
    for shard in bold.shards:
        shard.manager.leases.settings = structs.replace(shard.manager.leases.settings, mass_share=1.0)
    bold.darken(np.arange(400), 1200, 3000)
    walk(bold, 1200, 2400)
    assert sum(shard.lapsed for shard in bold.shards) == 400
    assert {int(each) for shard in bold.shards for each in shard.manager.leases.hosts.busy} == {Op.NONE}
