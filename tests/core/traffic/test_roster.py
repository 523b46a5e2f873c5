"""Joining and leaving: lists that err, stop halfway or are older; new targets; a lost store."""

import re

import pytest
from msgspec.structs import replace
from pool_world import DEAD, DEFAULT, SECOND_DEAD, PoolWorld, addresses, kill, member, row, warm

from fencepost.core.instant import HOUR
from fencepost.core.traffic.load_balancer import LoadBalancer, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import (
    Listing,
    Override,
    OverrideKind,
    Rule,
    State,
    Target,
)


def test_deregistering_most_of_a_pool_is_neither_panic_nor_stuck() -> None:
    """eureka #1267: 100 targets become 40 by their owner's act; a death after that is handled as usual."""
    world = warm(100)
    forty = addresses(100)[:40]
    world.listing = Listing(forty, 2)
    world.run(3)
    assert len(row(world).members) == 100
    assert "more than half" in row(world).source_error
    assert not row(world).last_over
    world.listing = Listing(forty, 2, confirmed=True)
    world.run(3)
    assert len(row(world).members) == 40
    assert row(world).source_error == ""
    kill(world, DEAD)
    world.run(60)
    assert not row(world).panic
    assert member(world).state is State.OUT


def test_a_target_deregistered_while_passing_is_gone_at_once() -> None:
    """envoy #11527."""
    world = warm(6)
    world.listing = Listing(addresses(6), 1, deregistered=frozenset([DEAD]))
    world.run(2)
    assert DEAD not in world.states()
    assert world.moves[-1].after is None
    assert world.moves[-1].rule is Rule.LISTING


def test_a_source_that_says_nothing_removes_nobody() -> None:
    """external-dns #2677: [] for one cycle; the last known good stays, and status is told."""
    world = warm(6)
    listed = world.listing
    world.listing = Listing((), 2)
    world.run(5)
    assert world.count_in(State.IN) == 6
    assert "no target" in row(world).source_error
    world.listing = listed
    world.run(5)
    assert row(world).source_error == ""


@pytest.mark.parametrize(
    ("complete", "error"),
    [(False, "connection reset"), (True, "connection reset"), (False, "")],
    ids=["half and an error", "an error alone", "half alone"],
)
def test_a_source_that_errs_halfway_removes_nobody(complete: bool, error: str) -> None:
    """external-dns #2858, #3997: half a list, or an error; those listed may join, none may leave."""
    world = warm(6)
    half = (*addresses(3), Target("10.0.9.9", "a"))
    world.listing = Listing(half, 2, complete=complete, error=error)
    world.run(5)
    assert world.count_in(State.IN) == 6
    assert member(world, "10.0.9.9").state is State.PENDING
    assert row(world).source_error == error


def test_absence_from_an_equal_or_older_list_is_not_removal() -> None:
    """Only a valid *newer* list is the owner's act; a planner with yesterday's file takes nobody off."""
    world = warm(6)
    world.listing = Listing(addresses(5), 1)
    world.run(5)
    assert world.count_in(State.IN) == 6
    assert not member(world, "10.0.0.6").listed
    world.listing = Listing(addresses(4), 0)
    world.run(5)
    assert world.count_in(State.IN) == 6


def test_the_last_target_never_leaves() -> None:
    """Never empty: only withdrawing the endpoint takes it away."""
    world = warm(2)
    world.listing = Listing((), 2, deregistered=frozenset([DEAD, SECOND_DEAD]), confirmed=True)
    world.run(5)
    assert world.count_in(State.IN) == 2
    assert "withdraw" in row(world).source_error


def test_a_new_target_that_fails_its_checks_says_why() -> None:
    """A wrong port read `passed from 0 of 3 zones`: the cause of the newest failed probe belongs beside it."""
    world = warm(6)
    world.listing = Listing(addresses(7), 2)
    kill(world, "10.0.0.7")
    for zone in "abc":
        world.restart_checker(zone)
    world.run(100)
    assert member(world, "10.0.0.7").state is State.PENDING
    assert re.fullmatch(r"passed from 0 of [23] zones: .+", member(world, "10.0.0.7").cause)
    version = row(world).version
    world.run(100)
    assert row(world).version <= version + 1, "what doesn't change isn't written again"


def test_a_new_target_is_not_served_before_its_verdict() -> None:
    """pdns #12557: pending until every zone's checker passed it five times and it is 30 s old."""
    world = warm(6)
    new = "10.0.0.7"
    world.listing = Listing(addresses(7), 2)
    for zone in "abc":
        world.restart_checker(zone)
    world.run(40)
    assert member(world, new).state is State.PENDING
    assert "passed from 0 of" in member(world, new).cause
    world.run(60)
    assert member(world, new).state is State.IN
    assert member(world, new).weight < 255
    world.run(70)
    assert member(world, new).weight == 255


def test_nothing_serves_before_its_network_state_is_acknowledged() -> None:
    """Promise `ready_before_serving` (October 2025, step 9); an operator's keep doesn't break it either."""
    world = warm(6)
    late = Target("10.0.0.7", "a", network_ready=False)
    world.listing = Listing((*addresses(6), late), 2)
    world.overrides = (Override(OverrideKind.KEEP, late.key),)
    for zone in "abc":
        world.restart_checker(zone)
    world.run(200)
    assert member(world, late.key).state is State.PENDING
    assert "network state" in member(world, late.key).cause
    world.overrides = ()
    world.listing = Listing(addresses(7), 3)
    world.run(5)
    assert member(world, late.key).state is State.IN


def test_a_lost_store_counts_absent_addresses_as_held_out() -> None:
    """The bucket starts full minus those: losing the store must not buy a second budget."""
    first = LoadBalancer()
    reading = ReportsRead(DEFAULT, Listing(addresses(6), 1), published=frozenset(f"10.0.0.{n}" for n in range(2, 7)))
    effects = first.on(reading, HOUR)
    written = next(each for each in effects if isinstance(each, WriteMembership))
    assert written.expected_version == 0
    assert [each.state for each in written.row.members] == [State.OUT] + [State.IN] * 5
    assert written.row.members[0].rule is Rule.LOST_STORE
    assert written.row.tokens == 1_000_000


def test_what_no_row_knows_stays_until_the_hosts_of_a_lost_store_have_spoken() -> None:
    """Listed targets and launched ones in one pool: those that are launched are in no list until their hosts tell of
    them (external-dns #2858: a source read halfway). A name that holds no such thing isn't kept waiting.
    """

    def first(published: frozenset[str], *, unheard: bool) -> list[str] | None:
        reading = ReportsRead(DEFAULT, Listing(addresses(3), 1, unheard=unheard), published=published)
        made = [each for each in LoadBalancer().on(reading, HOUR) if isinstance(each, WriteMembership)]
        return [member.key for member in made[0].row.members if member.state is State.IN] if made else None

    listed = frozenset(target.key for target in addresses(3))
    both = listed | {"10.0.0.77"}
    assert first(both, unheard=True) is None
    assert first(both, unheard=False) == sorted(listed), "all have spoken, and none of them has it"
    assert first(listed, unheard=True) == sorted(listed)
    assert first(frozenset(), unheard=True) == sorted(listed), "a new pool"


def test_a_pool_without_a_row_waits_for_dns_and_for_its_source() -> None:
    """Unknown is not empty: neither an unread domain nor a silent source makes a first row."""
    for reading in (
        ReportsRead(DEFAULT, Listing(addresses(6), 1), published=None),
        ReportsRead(DEFAULT, Listing()),
        ReportsRead(DEFAULT, Listing(addresses(3), 1, complete=False)),
    ):
        assert not any(isinstance(each, WriteMembership) for each in LoadBalancer().on(reading, HOUR))


def test_a_new_pool_serves_before_any_verdict() -> None:
    """Unknown serves: an endpoint that never was published begins whole, at full weight."""
    world = PoolWorld(6).run(2)
    assert world.count_in(State.IN) == 6
    assert {each.weight for each in row(world).members} == {255}
    assert member(world).rule is Rule.START


def test_an_older_list_tells_nothing_at_all() -> None:
    """Two planners with different files must not take turns: no joining, no weights, by the older one."""
    world = warm(6)
    older = (*(replace(each, weight=5) for each in addresses(6)), Target("10.0.9.9", "a"))
    world.listing = Listing(older, 0)
    world.run(5)
    assert "10.0.9.9" not in world.states()
    assert {each.capacity for each in row(world).members} == {1}
    world.listing = Listing(older, 2)
    world.run(5)
    assert {each.capacity for each in row(world).members} == {5, 1}


def test_leaving_asks_for_a_yes_when_too_few_would_serve() -> None:
    """Half of six may leave at once; but with two held out that would leave one of three in service."""
    world = warm(6)
    kill(world, DEAD, SECOND_DEAD)
    world.run(60)
    assert world.count_in(State.OUT) == 2
    stay = [each for each in addresses(6) if each.key in (DEAD, SECOND_DEAD, "10.0.0.3")]
    world.listing = Listing(tuple(stay), 2)
    world.run(3)
    assert "under min_in" in row(world).source_error
    assert len(row(world).members) == 6
