"""Overrides: drain, keep, pause and observe stand beside health and before every rule."""

from pool_world import DEAD, DEFAULT, SECOND_DEAD, addresses, kill, member, row, warm

from fencepost.core.instant import SECOND
from fencepost.core.traffic.load_balancer import PoolSettings
from fencepost.core.traffic.membership import (
    Listing,
    Mode,
    Override,
    OverrideKind,
    Rule,
    State,
    Target,
)


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
    kill(world, "10.0.0.8")
    world.run(60)
    left = member(world, "10.0.0.8")
    assert (left.state, left.rule) == (State.KEPT, Rule.MAX_OUT), "of four one may be out, of ten it would be two"


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


def test_keeping_sick_looking_targets_rings_no_alarm() -> None:
    """A person who keeps half of the pool says that its checks are wrong; the rest is guarded as before."""
    world = warm(8)
    keys = [f"10.0.0.{n}" for n in range(1, 5)]
    world.overrides = tuple(Override(OverrideKind.KEEP, key) for key in keys)
    kill(world, *keys)
    world.run(60)
    assert not row(world).panic
    assert row(world).suspect == ""
    kill(world, "10.0.0.5")
    world.run(60)
    assert member(world, "10.0.0.5").state is State.OUT
