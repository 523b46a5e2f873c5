"""The load balancer's cases from public reports, in virtual time with the real checkers."""

from msgspec.structs import replace
from pool_world import DEFAULT, WARM, PoolWorld, addresses

from fencepost.core.events import Woke
from fencepost.core.instant import HOUR, MINUTE, SECOND
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import (
    SERVING,
    Listing,
    Member,
    Membership,
    Mode,
    Override,
    OverrideKind,
    Rule,
    State,
    Target,
    Voter,
)

DEAD = "10.0.0.1"
SECOND_DEAD = "10.0.0.2"


def member(world: PoolWorld, key: str = DEAD) -> Member:
    """One member of the row."""
    return next(each for each in row(world).members if each.key == key)


def row(world: PoolWorld) -> Membership:
    """The row."""
    assert world.row is not None
    return world.row


def warm(count: int, **options: object) -> PoolWorld:
    """A pool that has been well for two minutes."""
    return PoolWorld(count, **options).run(WARM)  # type: ignore[arg-type]


def kill(world: PoolWorld, *keys: str) -> None:
    """These targets die now."""
    before = world.alive
    world.alive = lambda key, at: key not in keys and before(key, at)


def revive(world: PoolWorld) -> None:
    """All targets are well again."""
    world.alive = lambda _key, _at: True


def test_a_pool_of_one_is_never_removed() -> None:
    """envoy #3263, #17504."""
    world = warm(1)
    kill(world, DEAD)
    world.run(600)
    assert member(world).state is State.KEPT
    assert member(world).rule is Rule.MIN_IN


def test_the_cap_counts_after_the_removal() -> None:
    """envoy #27066: three targets, a cap of 67 %, all fail one by one: two out, not three."""
    safety = SafetySettings(max_out_ppm=670_000, min_in_ppm=330_000, fail_open_ppm=1_000_000)
    world = warm(3, settings=PoolSettings("web", safety=safety))
    for key in (DEAD, SECOND_DEAD, "10.0.0.3"):
        kill(world, key)
        world.run(400)
    assert world.count_in(State.OUT) == 2
    assert member(world, "10.0.0.3").state is State.KEPT


def test_two_of_two_fail_and_the_panic_is_visible() -> None:
    """envoy #14968: the chosen policy is to serve all, and the row says so."""
    world = warm(2)
    kill(world, DEAD, SECOND_DEAD)
    world.run(60)
    assert row(world).panic
    assert world.count_in(State.KEPT) == 2
    assert member(world).rule in (Rule.MIN_IN, Rule.FAIL_OPEN)


def test_draining_most_of_a_pool_on_purpose_is_no_panic() -> None:
    """envoy #9246: 60 % drained; drained targets count in no fraction, and the rest is guarded as before."""
    drains = tuple(Override(OverrideKind.DRAIN, f"10.0.0.{n}", author="ops") for n in range(1, 7))
    world = warm(10)
    world.overrides = drains
    world.run(30)
    assert not row(world).panic
    assert world.count_in(State.DRAINED) == 6
    kill(world, "10.0.0.7")
    world.run(60)
    assert member(world, "10.0.0.7").state is State.OUT
    assert not row(world).panic


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


def test_deregistering_most_of_a_pool_is_neither_panic_nor_stuck() -> None:
    """eureka #1267: 100 targets become 40 by their owner's act; a death after that is handled as usual."""
    world = warm(100)
    forty = addresses(100)[:40]
    world.listing = Listing(forty, 2)
    world.run(3)
    assert len(row(world).members) == 100
    assert "more than half" in row(world).source_error
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


def test_a_source_that_errs_halfway_removes_nobody() -> None:
    """external-dns #2858, #3997: half a list and an error; those listed may join, none may leave."""
    world = warm(6)
    half = (*addresses(3), Target("10.0.9.9", "a"))
    world.listing = Listing(half, 2, complete=False, error="connection reset")
    world.run(5)
    assert world.count_in(State.IN) == 6
    assert member(world, "10.0.9.9").state is State.PENDING
    assert row(world).source_error == "connection reset"


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


def test_drain_and_keep_stand_beside_health() -> None:
    """An operator's word never overwrites what is observed, and is never undone by automation."""
    world = warm(6)
    kill(world, SECOND_DEAD)
    world.overrides = (
        Override(OverrideKind.DRAIN, DEAD, author="ops", reason="kernel"),
        Override(OverrideKind.KEEP, SECOND_DEAD, author="ops", reason="false alarm"),
    )
    world.run(90)
    assert (member(world).state, member(world).healthy) == (State.DRAINED, True)
    assert (member(world, SECOND_DEAD).state, member(world, SECOND_DEAD).healthy) == (State.KEPT, False)
    assert member(world, SECOND_DEAD).rule is Rule.OPERATOR
    world.overrides = ()
    world.run(5)
    assert member(world).state is State.IN
    assert member(world, SECOND_DEAD).state is State.OUT


def test_an_override_ends_by_time() -> None:
    """Every override has an end; the nearer scope wins meanwhile."""
    world = warm(6)
    world.overrides = (
        Override(OverrideKind.DRAIN, zone="a", until=world.now + 20 * SECOND),
        Override(OverrideKind.KEEP, "10.0.0.4"),
    )
    world.run(10)
    assert world.states()[DEAD] is State.DRAINED
    assert world.states()["10.0.0.4"] is State.IN
    world.run(15)
    assert world.states()[DEAD] is State.IN


def test_a_drain_never_takes_the_last_address_of_a_family() -> None:
    """Never empty, for IPv4 and IPv6 each: the last one waits until another serves."""
    world = warm(3, listing=Listing((*addresses(2), Target("2001:db8::1", "c")), 1))
    world.overrides = (Override(OverrideKind.DRAIN, "2001:db8::1"), Override(OverrideKind.DRAIN, DEAD))
    world.run(5)
    assert member(world, "2001:db8::1").state is State.IN
    assert member(world, "2001:db8::1").rule is Rule.LAST_OF_FAMILY
    assert member(world).state is State.DRAINED


def test_the_last_address_of_a_family_is_not_removed() -> None:
    """Addresses of IPv6 are planned separately, and must not be lost to the share of a mixed pool."""
    world = warm(6, listing=Listing((*addresses(5), Target("2001:db8::1", "c")), 1))
    kill(world, "2001:db8::1")
    world.run(60)
    assert member(world, "2001:db8::1").rule is Rule.LAST_OF_FAMILY


def test_observe_decides_and_shows_and_does_nothing() -> None:
    """Mode observe: who would go is said, nothing is spent; turned on, at most one target's budget is there."""
    world = warm(6, settings=PoolSettings("web", mode=Mode.OBSERVE))
    kill(world, DEAD)
    world.run(60)
    assert (member(world).state, member(world).would) == (State.KEPT, State.OUT)
    assert row(world).tokens == 2_000_000
    kill(world, SECOND_DEAD)
    world.run(60)
    world.settings = DEFAULT
    world.run(3)
    assert world.count_in(State.OUT) == 1
    assert member(world, SECOND_DEAD).rule is Rule.BUCKET


def test_a_paused_zone_is_left_as_it_is() -> None:
    """Pause by zone: its targets neither leave nor come back; the others are guarded as ever."""
    world = warm(6)
    world.overrides = (Override(OverrideKind.PAUSE, zone="a", author="ops"),)
    kill(world, DEAD, SECOND_DEAD)
    world.run(60)
    assert (member(world).state, member(world).rule) == (State.KEPT, Rule.OPERATOR)
    assert member(world).forced is OverrideKind.PAUSE
    assert member(world, SECOND_DEAD).state is State.OUT
    assert row(world).paused_zones == ("a",)


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
