"""The load balancer's cases from public reports, in virtual time with the real checkers."""

import pytest
from msgspec.structs import replace
from pool_world import DEAD, SECOND_DEAD, addresses, kill, member, revive, row, warm

from fencepost.core.events import Woke
from fencepost.core.instant import HOUR, MINUTE, SECOND
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, WriteMembership
from fencepost.core.traffic.membership import (
    SERVING,
    Listing,
    Rule,
    State,
    Target,
    Voter,
)


def test_a_pool_of_one_is_never_removed() -> None:
    """envoy #3263, #17504."""
    world = warm(1)
    kill(world, DEAD)
    world.run(600)
    assert member(world).state is State.KEPT
    assert member(world).rule is Rule.MIN_IN


@pytest.mark.parametrize(
    ("count", "max_out_ppm", "out", "rule"),
    [(3, 670_000, 2, Rule.MIN_IN), (3, 340_000, 1, Rule.MAX_OUT), (6, 670_000, 4, Rule.MAX_OUT)],
)
def test_the_cap_counts_after_the_removal(count: int, max_out_ppm: int, out: int, rule: Rule) -> None:
    """envoy #27066: three targets, a cap of 67 %, all fail one by one: two out, not three.

    Of three the last is kept whatever the cap; where one more could go, it is the cap that keeps it.
    """
    safety = SafetySettings(max_out_ppm=max_out_ppm, min_in_ppm=0, fail_open_ppm=1_000_000)
    world = warm(count, settings=PoolSettings("web", safety=safety))
    keys = [target.key for target in addresses(count)]
    for key in keys:
        kill(world, key)
        world.run(400)
        if world.count_in(State.KEPT):
            break
    assert world.count_in(State.OUT) == out
    assert [member(world, each).rule for each in keys[out : out + 1]] == [rule]
    assert member(world, keys[out]).state is State.KEPT


def test_a_balancer_that_was_off_for_half_an_hour_removes_nobody_on_return() -> None:
    """kubernetes #24200: everything looked dead on return because nobody had reported."""
    world = warm(6)
    kill(world, DEAD, SECOND_DEAD, "10.0.0.3")
    world.now += HOUR // 2
    world.brokers[0] = LoadBalancer()
    for _ in range(30):
        world.now += SECOND
        world.balance(0)
    assert world.count_in(State.OUT) == 0
    assert row(world).voters == (Voter("a", "stale"), Voter("b", "stale"), Voter("c", "stale"))


def test_a_dissenting_checker_is_outvoted_and_named() -> None:
    """One checker stuck at "healthy" holds a removal up for a minute, not for ever."""
    world = warm(6)
    world.answer = lambda zone, key, _at: key != DEAD or zone == "c"
    world.run(60)
    assert member(world).state is State.IN
    world.run(60)
    assert member(world).state is State.OUT
    assert member(world).votes.outvoted == "c"


def test_a_new_balancer_takes_over_who_is_outvoted() -> None:
    """One that has just started, beside or after another, doesn't put back what a dissent was overruled on."""
    world = warm(6, balancers=2)
    world.answer = lambda zone, key, _at: key != DEAD or zone == "c"
    world.run(120)
    moves = row(world).moved
    world.brokers[1] = LoadBalancer()
    world.run(120)
    assert row(world).moved == moves
    assert member(world).state is State.OUT


def test_one_vote_is_not_enough_to_come_back() -> None:
    """A target that only one of three reaches again stays out: going out took two votes, so does coming in."""
    world = warm(6)
    kill(world, DEAD)
    world.run(40)
    world.answer = lambda zone, key, _at: key != DEAD or zone == "c"
    world.run(300)
    assert [move.key for move in world.moves if move.after is State.IN] == []
    assert member(world).state is State.OUT


def test_a_dead_target_comes_back_held_and_slowly() -> None:
    """Five passes in a row, 30 s, then from a tenth of its weight up; coming back refunds no budget."""
    world = warm(6)
    kill(world, DEAD)
    world.run(40)
    assert member(world).state is State.OUT
    spent = row(world).tokens
    revive(world)
    died = world.now
    while member(world).state is State.OUT:
        world.run(1)
    assert 75 * SECOND <= world.now - died <= 95 * SECOND
    assert row(world).tokens <= spent + 1_000_000 * (world.now - died + 40 * SECOND) // (200 * SECOND)
    assert member(world).weight == 25
    world.run(61)
    assert member(world).weight == 255


def test_kept_says_which_limit_and_goes_when_it_allows() -> None:
    """Three of six die one by one: two out, the third kept by max_out; when one is back the budget decides."""
    world = warm(6)
    for key in (DEAD, SECOND_DEAD, "10.0.0.3"):
        kill(world, key)
        world.run(40)
    assert world.count_in(State.OUT) == 2
    assert member(world, "10.0.0.3").rule is Rule.MAX_OUT
    assert not row(world).panic
    world.alive = lambda key, _at: key != "10.0.0.3"
    world.run(100)
    assert member(world, "10.0.0.3").rule is Rule.BUCKET
    world.run(200)
    assert member(world, "10.0.0.3").state is State.OUT


def test_the_last_address_of_a_family_is_not_removed() -> None:
    """Addresses of IPv6 are planned separately, and must not be lost to the share of a mixed pool."""
    world = warm(6, listing=Listing((*addresses(5), Target("2001:db8::1", "c")), 1))
    kill(world, "2001:db8::1")
    world.run(60)
    assert member(world, "2001:db8::1").rule is Rule.LAST_OF_FAMILY


def test_capacity_follows_readings_and_stays_when_they_stop() -> None:
    """A weight never falls to 0 by itself, and noise in readings writes nothing."""
    world = warm(6)
    read = dict.fromkeys("abc", 100)

    def with_readings() -> None:
        for zone, body in world.bodies.items():
            verdicts = tuple(replace(each, capacity=read[zone]) for each in body.verdicts)
            world.bodies[zone] = replace(body, verdicts=verdicts, sequence=body.sequence + 1000 + len(world.rows))
            beat = world.beats[zone]
            world.beats[zone] = replace(beat, number=beat.number + 1)
        world.now += SECOND
        world.balance(0)

    with_readings()
    assert {each.capacity for each in row(world).members} == {100}
    read.update(a=50, b=51, c=9_000)
    with_readings()
    assert {each.capacity for each in row(world).members} == {51}
    assert row(world).shift_since == 0
    writes = len(world.rows)
    read.update(a=50, b=52)
    with_readings()
    assert len(world.rows) == writes
    read.update(a=0, b=0)
    with_readings()
    assert {each.capacity for each in row(world).members} == {1}
    assert {each.weight for each in row(world).members} == {255}


def test_shifts_of_weight_are_marked_apart_from_changes_of_who_serves() -> None:
    """The planner gathers shifts for 30 s; removals and returns raise `urgent` and go at once."""
    world = warm(6)
    urgent = row(world).urgent
    kill(world, DEAD)
    world.run(40)
    assert row(world).urgent == urgent + 1
    assert row(world).shift_since == 0
    revive(world)
    while world.states()[DEAD] is State.OUT:
        world.run(1)
    assert row(world).urgent == urgent + 2
    back = world.now
    world.run(15)
    assert row(world).urgent == urgent + 2
    assert back < row(world).shift_since <= back + 15 * SECOND


def test_a_quiet_pool_writes_nothing() -> None:
    """An idle region writes and logs nothing."""
    world = warm(6)
    writes = len(world.rows)
    world.run(30 * 60)
    assert len(world.rows) == writes


def test_two_balancers_write_once() -> None:
    """external-dns #5846: two at work on one pool; one compare-and-set wins, and nobody is removed twice."""
    world = warm(6, balancers=2)
    kill(world, DEAD)
    world.run(60)
    assert [move.key for move in world.moves if move.after is State.OUT] == [DEAD]
    assert row(world).moved == row(world).moves[-1].number


def test_a_restart_forgets_no_more_than_a_minute_of_refill() -> None:
    """A refilling budget is settled each minute, so a new process starts from nearly what the old one knew."""
    world = warm(6)
    kill(world, DEAD)
    world.run(40)
    tokens = row(world).tokens
    world.run(100)
    world.brokers[0] = LoadBalancer()
    world.run(1)
    assert row(world).tokens >= tokens + 1_000_000 * 40 // 200


def test_other_events_ask_to_read_again() -> None:
    """A driver may wake it at any time."""
    assert not any(isinstance(each, WriteMembership) for each in LoadBalancer().on(Woke(), MINUTE))


def test_serving_states_are_two() -> None:
    """In and kept are published; pending, out and drained are not."""
    assert SERVING == (State.IN, State.KEPT)


def test_a_target_that_passes_somewhere_now_is_not_taken_out() -> None:
    """Dead by every verdict, but its newest probe at one checker passed: kept until it fails there too."""
    world = warm(6)
    start = world.since_start

    def answer(zone: str, key: str, at: int) -> bool:
        since = (at - start) // (10 * SECOND)
        if key != DEAD or at < start:
            return True
        return since not in (0, 2, 4) if zone == "c" else since < 4

    world.answer = answer
    world.run(75)
    assert member(world).healthy is False
    assert (member(world).state, member(world).rule) == (State.KEPT, Rule.FAILING_NOW)
