"""What the defaults do to whole pools, in virtual time: deaths, lost zones, lying and lossy checks.

Each case is a small simulation with the production deciders (probe interval 10 s, three zones). Expected figures are
lowest living capacity in service in %, the longest a dead target was served in s, false removals, removals.
"""

from collections.abc import Callable

import pytest
from pool_world import WARM, Answer, PoolWorld, Score, chance, scored

from fencepost.core.instant import MINUTE, SECOND, Instant
from fencepost.core.traffic.membership import Move, State

Alive = Callable[[int, Instant], bool]
START = int(WARM) * SECOND
BY_DESIGN = 10_000
"""Served to the end: a limit keeps it until a person acts."""


def place(key: str) -> int:
    """The target's place in the pool, from 0."""
    _, _, block, last = key.split(".")
    return int(block) * 250 + int(last) - 1


def pool(count: int, alive: Alive | None = None, answer: Answer | None = None) -> PoolWorld:
    """A pool that was well for two minutes; then `alive` (place, time) and `answer` take over."""
    world = PoolWorld(count).run(WARM)
    if alive is not None:
        world.alive = lambda key, at: alive(place(key), at - START)
    if answer is not None:
        world.answer = lambda zone, key, at: answer(zone, key, at - START)
    return world


def dies(number: int) -> Alive:
    """The first `number` targets die after 3 s (which puts them in different zones)."""
    return lambda index, at: index >= number or at < 3 * SECOND


def zone_dies(index: int, at: Instant) -> bool:
    """Every target of the first zone dies after 3 s."""
    return index % 3 != 0 or at < 3 * SECOND


def zones_die(index: int, at: Instant) -> bool:
    """The first zone dies after 3 s, the second five minutes later; both come back at ten minutes after that."""
    return index % 3 == 2 or not (3 * SECOND if index % 3 == 0 else 5 * MINUTE) <= at < 15 * MINUTE


def check(score: Score, lowest: int, dead_served: float, false_removals: int, removals: int) -> None:
    """Compare; the time a dead one was served may differ by the place of its probes in the interval."""
    assert (score.lowest, score.false_removals, score.removals) == (lowest, false_removals, removals)
    if dead_served != BY_DESIGN:
        assert dead_served - 4 <= score.dead_served <= dead_served + 4


@pytest.mark.parametrize(("count", "lowest", "served"), [(3, 67, 29), (6, 83, 26), (12, 92, 24), (300, 100, 28)])
def test_one_death_leaves_within_three_intervals(count: int, lowest: int, served: float) -> None:
    """`fall` 3 at 10 s and a quorum of three: out within 30 s, in a pool of any size."""
    check(scored(pool(count, dies(1)), 120), lowest, served, 0, 1)


@pytest.mark.parametrize(
    ("count", "lowest", "served", "removals"),
    [(3, 33, BY_DESIGN, 0), (6, 67, 28, 2), (12, 83, 29, 2), (300, 99, 29, 2)],
)
def test_two_deaths_in_different_zones(count: int, lowest: int, served: float, removals: int) -> None:
    """Two of three dead at once is more than half: fail open serves them until a person acts."""
    world = pool(count, dies(2))
    check(scored(world, 120), lowest, served, 0, removals)
    assert world.row is not None
    assert world.row.panic is (count == 3)


@pytest.mark.parametrize(("count", "lowest", "removals"), [(3, 67, 1), (6, 67, 2), (12, 67, 2), (300, 67, 60)])
def test_a_lost_zone_is_ordinary_removals_up_to_max_out(count: int, lowest: int, removals: int) -> None:
    """Without zone failover a lost zone goes target by target, and past `max_out` its rest is kept."""
    world = pool(count, zone_dies)
    check(scored(world, 20 * 60 if count == 300 else 300), lowest, BY_DESIGN, 0, removals)
    assert world.count_in(State.KEPT) == count // 3 - removals


@pytest.mark.parametrize("count", [3, 6])
def test_a_second_zone_is_not_taken_out(count: int) -> None:
    """Five minutes after the first zone the second dies too: all its targets stay until it is back."""
    world = pool(count, zones_die)
    check(scored(world, 18 * 60), 33, 600, 0, count // 3)


@pytest.mark.parametrize("count", [3, 6, 12, 300])
def test_checkers_cut_off_from_everything_remove_nothing(count: int) -> None:
    """mlab-ns #243: all checkers fail at once; without a canary it is fail open that saves the pool."""
    world = pool(count, answer=lambda _zone, _key, at: not 3 * SECOND <= at < 120 * SECOND)
    check(scored(world, 240), 100, 0, 0, 0)


@pytest.mark.parametrize(("count", "most"), [(3, 1), (6, 2), (12, 2), (60, 12)])
def test_alternating_checks_of_forty_per_cent_stay_within_max_out(count: int, most: int) -> None:
    """October 2025, step 9: two targets in five fail and pass by turns, probe by probe."""
    sick = max(1, round(count * 0.4))
    world = pool(count, answer=lambda _zone, key, at: place(key) >= sick or at // (10 * SECOND) % 2 == 0)
    score = scored(world, 600)
    assert score.removals <= most
    assert score.lowest >= 100 - round(100 * most / count)
    assert world.row is not None
    assert world.row.suspect or count < 12


@pytest.mark.parametrize(("count", "lowest", "most"), [(3, 100, 0), (6, 67, 6), (12, 75, 10), (60, 80, 30)])
def test_thirty_per_cent_probe_loss(count: int, lowest: int, most: int) -> None:
    """Every third probe is lost. Failing now at every checker, then fail open, keep most of the pool."""
    world = pool(count, answer=lambda zone, key, at: chance(zone, key, at) >= 0.3)
    score = scored(world, 900)
    assert score.removals <= most
    assert score.lowest >= lowest


@pytest.mark.parametrize(("count", "lowest", "most"), [(3, 67, 1), (6, 67, 2), (12, 83, 2), (60, 80, 12)])
def test_a_lie_that_spreads_over_all_ends_in_fail_open(count: int, lowest: int, most: int) -> None:
    """One healthy target after another is called dead, over ten minutes; what was removed is put back."""
    world = pool(count, answer=lambda _zone, key, at: at < 600 * SECOND * place(key) // count)
    score = scored(world, 660)
    assert (score.lowest, score.removals) == (lowest, most)
    assert world.row is not None
    assert world.row.panic
    assert world.count_in(State.OUT) == 0


@pytest.mark.parametrize(("count", "lowest", "removals"), [(3, 67, 1), (6, 67, 2), (12, 75, 2), (300, 72, 60)])
def test_a_real_die_off_past_max_out_is_kept(count: int, lowest: int, removals: int) -> None:
    """28 % die: `max_out` is used in full, the rest is served until a person drains it. That is the price."""
    world = pool(count, dies(round(count * 0.28)))
    check(scored(world, 900), lowest, BY_DESIGN, 0, removals)


@pytest.mark.parametrize(("count", "lowest"), [(3, 33), (6, 33), (12, 42), (300, 40)])
def test_when_most_die_nothing_is_removed(count: int, lowest: int) -> None:
    """60 % die at once: the same picture as broken checks, so fail open, and status asks for a person."""
    world = pool(count, dies(round(count * 0.6)))
    check(scored(world, 180), lowest, BY_DESIGN, 0, 0)
    assert world.row is not None
    assert world.row.panic


def test_removals_of_a_big_pool_are_paced() -> None:
    """The bucket in capacity per time: 300 targets, 28 % dead: 30 at once, then 1.5 a minute while suspect."""
    world = pool(300, dies(84)).run(100)
    moves: list[Move] = [move for move in world.moves if move.after is State.OUT]
    assert 30 <= len(moves) <= 33
    removed_at_once = moves[-1].at
    world.run(4 * 60)
    moves = [move for move in world.moves if move.after is State.OUT]
    suspect_pace = 1.5 * (world.now - removed_at_once) / MINUTE
    assert 30 + int(suspect_pace) - 1 <= len(moves) <= 34 + int(suspect_pace)
    assert world.witness.removals == len(moves)
