"""Fail open and freeze: when so much looks sick that the checks are the likelier fault."""

from pool_world import DEAD, SECOND_DEAD, kill, member, revive, row, warm

from fencepost.core.instant import SECOND
from fencepost.core.traffic.alarms import Memory
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.load_balancer import PoolSettings
from fencepost.core.traffic.membership import (
    Rule,
    State,
    Voter,
)


def test_two_of_two_fail_and_the_panic_is_visible() -> None:
    """envoy #14968: the chosen policy is to serve all, and the row says so."""
    world = warm(2)
    kill(world, DEAD, SECOND_DEAD)
    world.run(60)
    assert row(world).panic
    assert world.count_in(State.KEPT) == 2
    assert member(world).rule in (Rule.MIN_IN, Rule.FAIL_OPEN)


def test_fail_open_puts_back_the_newest_removals_only() -> None:
    """Half is dead: what went in the last 15 minutes comes back, a target known dead for longer doesn't."""
    world = warm(12)
    kill(world, DEAD)
    world.run(20 * 60)
    kill(world, SECOND_DEAD)
    world.run(60)
    assert world.count_in(State.OUT) == 2
    kill(world, *(f"10.0.0.{n}" for n in range(3, 9)))
    world.run(60)
    assert row(world).panic
    assert world.states()[DEAD] is State.OUT
    assert member(world, SECOND_DEAD).state is State.KEPT
    assert member(world, SECOND_DEAD).rule is Rule.FAIL_OPEN
    assert any(move.after is State.KEPT and move.before is State.OUT for move in world.moves)


def test_fail_open_ends_after_three_calm_rounds_with_one_targets_budget() -> None:
    """Below 30 % for three full rounds: counters zero, at most one target's budget."""
    world = warm(6)
    kill(world, *(f"10.0.0.{n}" for n in range(1, 5)))
    world.run(60)
    assert row(world).panic
    revive(world)
    while row(world).panic:
        world.run(1)
    assert row(world).tokens <= 1_000_000
    assert world.count_in(State.IN) == 6


def test_fail_open_ends_when_nothing_changes_for_ten_minutes() -> None:
    """42 % stays dead: not calm, but no longer news; ordinary limits take over."""
    world = warm(12)
    kill(world, *(f"10.0.0.{n}" for n in range(1, 7)))
    world.run(60)
    assert row(world).panic
    world.alive = lambda key, _at: key not in {f"10.0.0.{n}" for n in range(1, 6)}
    world.run(9 * 60)
    assert row(world).panic
    world.run(4 * 60)
    assert not row(world).panic
    assert 1 <= world.count_in(State.OUT) <= 2


def test_a_sudden_edge_freezes_removal_for_a_minute() -> None:
    """30 points more within 20 s, and more than max_out allows: the first to cross are not taken out."""
    health = HealthSettings(interval_ns=SECOND, timeout_ns=SECOND // 2)
    world = warm(12, settings=PoolSettings("web", health))
    world.run(30)
    kill(world, *(f"10.0.0.{n}" for n in range(1, 6)))
    world.run(20)
    assert row(world).freeze_until > world.now
    assert world.count_in(State.OUT) == 0
    assert member(world).rule is Rule.FREEZE
    world.run(60)
    assert world.count_in(State.OUT) == 2


def test_a_round_is_counted_when_every_fresh_checker_has_beaten_again() -> None:
    """Three full fresh rounds of two checkers or more; an uncalm pass starts the count anew."""
    memory = Memory()
    three = tuple(Voter(zone, "ok") for zone in "abc")
    assert memory.calm_rounds(False, three, {"a": 1, "b": 1, "c": 1}) == 0
    assert memory.calm_rounds(True, three, {"a": 2, "b": 2, "c": 1}) == 0
    assert memory.calm_rounds(True, three, {"a": 2, "b": 2, "c": 2}) == 1
    assert memory.calm_rounds(True, three, {"a": 2, "b": 2, "c": 2}) == 1
    alone = (Voter("a", "ok"), Voter("b", "stale"), Voter("c", "canary"))
    assert memory.calm_rounds(True, alone, {"a": 3, "b": 2, "c": 3}) == 1
    assert memory.calm_rounds(True, three, {"a": 3, "b": 3, "c": 3}) == 2
    assert memory.calm_rounds(False, three, {"a": 4, "b": 4, "c": 4}) == 0


def test_fail_open_stays_for_three_rounds_of_calm() -> None:
    """The first calm pass isn't the end of it."""
    world = warm(6)
    kill(world, *(f"10.0.0.{n}" for n in range(1, 5)))
    world.run(60)
    revive(world)
    while sum(each.healthy is False for each in row(world).members) >= 2:
        world.run(1)
    calm = world.now
    while row(world).panic:
        world.run(1)
    assert 20 * SECOND <= world.now - calm <= 45 * SECOND
