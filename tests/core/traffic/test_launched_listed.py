"""Addresses that a file lists and that instances are launched at too, as a sample's are."""

import pytest
from msgspec import structs
from pool_world import row
from test_launched import LIFE, FleetPool

from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import HostRow
from fencepost.core.instant import SECOND
from fencepost.core.traffic.fleet_rows import FleetRows
from fencepost.core.traffic.launched import by_hosts
from fencepost.core.traffic.membership import Member, Override, OverrideKind, Rule, State, Target


def test_a_listed_address_serves_from_the_start_but_not_while_its_host_has_lapsed() -> None:
    """The file's word is the owner's, and its probes judge it; a lapsed host may be cut off all the same."""
    world = FleetPool(0)
    world.static = tuple(Target(f"10.1.0.{n + 1}", "abc"[n % 3]) for n in range(6))
    world.run(5)
    assert world.count_in(State.IN) == 6
    for n in range(6):
        world.launch(f"web-{n}", n, acknowledged=False)
    world.run(30)
    assert world.count_in(State.IN) == 6, "the owner's word stands while network states are under way"
    world.lease(0, "lapsed")
    world.over("web-0")
    world.run(300)
    assert [each.key for each in row(world).members if each.state is State.OUT] == ["10.1.0.1"], "its probes pass"
    world.lease(0, "held")
    world.run(300)
    assert world.count_in(State.IN) == 6


def test_an_address_that_several_hosts_may_give_waits_for_none_that_lapsed() -> None:
    """An address that moves with its instance is lost only with all hosts that could have it."""
    hosts = {name: HostRow(name, "a", "h:1", 1, ("10.1.0.1",), lease="held", life=LIFE) for name in ("h1", "h2")}
    listed = (Target("10.1.0.1", "a"), Target("10.1.0.2", "a"))
    for one, other, gone in (("lapsed", "held", 0), ("held", "lapsed", 0), ("lapsed", "lapsed", 1)):
        both = {"h1": structs.replace(hosts["h1"], lease=one), "h2": structs.replace(hosts["h2"], lease=other)}
        assert sum(each.gone for each in by_hosts(listed, FleetRows.of(LIFE, both.values()))) == gone
    assert by_hosts(listed, FleetRows.of("2", both.values())) == listed, (
        "another life of the store knows nothing of leases"
    )


def listed_pool(count: int = 6) -> FleetPool:
    """A pool whose addresses the file lists, an instance at each; all in service."""
    world = FleetPool(0)
    world.static = tuple(Target(f"10.1.0.{n + 1}", "abc"[n % 3]) for n in range(count))
    for n in range(count):
        world.launch(f"web-{n}", n)
    world.run(30)
    assert world.count_in(State.IN) == count
    return world


def drain(world: FleetPool, name: str, to: int) -> HostRow:
    """A person drains an instance's host: its next attempt is placed at another."""
    before = world.instances[name]
    world.hosts[before.host] = structs.replace(world.hosts[before.host], word="drain")
    world.launch(name, to)
    world.instances[name] = structs.replace(world.instances[name], old=(before.host, before.id))
    return world.hosts[before.host]


def listed(world: FleetPool, key: str) -> Member:
    """A member by its address."""
    return next(each for each in row(world).members if each.key == key)


def test_a_drained_hosts_listed_address_leaves_dns_once_its_successor_serves_and_before_it_is_stopped() -> None:
    """Left to its probes it is answered until they fail, after it was stopped, and its leaving costs a removal."""
    world = listed_pool()
    tokens = row(world).tokens
    host = drain(world, "web-0", 20)
    while world.state("web-0") is not State.IN:
        world.run(1)
        assert listed(world, "10.1.0.1").state is State.IN or world.state("web-0") is State.IN
        assert world.since_start < 200 * SECOND
    world.run(2)
    left = listed(world, "10.1.0.1")
    assert (left.state, left.healthy) == (State.DRAINED, True), "its probes pass to its end"
    assert left.cause == "host h0 is drained; web-0.2 serves at 10.1.0.21 instead"
    world.hosts[host.host] = attempts.left(host, ("web-0.1",))
    world.alive = lambda key, _: key != "10.1.0.1"
    world.run(60)
    assert listed(world, "10.1.0.1").state is State.DRAINED
    assert world.count_in(State.IN) == 6
    assert row(world).tokens >= tokens, "it cost nothing"


def test_it_comes_back_when_something_is_placed_there_again_and_no_sooner() -> None:
    """A resume seconds after the move once put it back while what answered there was being stopped: dead, and kept."""
    world = listed_pool()
    host = drain(world, "web-0", 20)
    world.run(60)
    world.hosts[host.host] = structs.replace(attempts.left(host, ("web-0.1",)), word="")
    world.run(10)
    left = listed(world, "10.1.0.1")
    assert (left.state, left.healthy, left.cause) == (State.DRAINED, True, "nothing is placed there")
    world.alive = lambda key, _: key != "10.1.0.1"
    tokens = row(world).tokens
    world.run(60)
    assert listed(world, "10.1.0.1").state is State.DRAINED
    assert row(world).tokens >= tokens, "it cost nothing"
    world.alive = lambda *_: True
    world.launch("web-9", 0)
    world.run(120)
    assert listed(world, "10.1.0.1").state is State.IN


def test_what_is_terminated_at_listed_addresses_leaves_dns_at_once_and_for_free() -> None:
    """Left to its probes half a pool that a person ended looks dead: fail open puts it back, and callers get it."""
    world = listed_pool()
    ended = ("web-0", "web-1", "web-2")
    for name in ended:
        world.instances[name] = attempts.ending(world.instances[name])
    world.run(1)
    left = [listed(world, f"10.1.0.{n + 1}") for n in range(3)]
    assert [each.state for each in left] == [State.DRAINED] * 3
    assert left[0].cause == "web-0 there was terminated"
    world.alive = lambda key, _: key not in {each.key for each in left}
    for name in ended:
        before = world.instances[name]
        world.hosts[before.host] = attempts.left(world.hosts[before.host], (before.id,))
        world.instances[name] = attempts.ended(before, world.now)
    world.run(120)
    for name in ended:
        del world.instances[name]
    world.run(120)
    assert [listed(world, each.key).cause for each in left] == ["nothing is placed there"] * 3
    assert world.count_in(State.IN) == 3
    assert not row(world).panic
    assert {each.rule for each in row(world).moves[-3:]} == {Rule.OPERATOR}, "it cost nothing"
    for n in range(3):
        world.launch(f"web-{n + 6}", n)
    for _ in range(60):
        world.run(1)
        assert world.count_in(State.IN) == 3, "what starts isn't in service"
    world.alive = lambda *_: True
    world.run(60)
    assert world.count_in(State.IN) == 6
    assert not row(world).panic


def test_the_last_that_is_terminated_stays() -> None:
    """An empty answer is worse than a dead one."""
    world = listed_pool()
    for name, each in world.instances.items():
        world.instances[name] = attempts.ending(each)
    world.run(10)
    assert world.count_in(State.IN) == 1
    assert world.count_in(State.DRAINED) == 5


@pytest.mark.parametrize("successor", ["never ready", "sick"])
def test_without_a_successor_that_serves_it_stays(successor: str) -> None:
    """A drain moves; where there is nothing to move to, it takes nothing out."""
    world = listed_pool()
    if successor == "sick":
        world.alive = lambda key, _: key != "10.1.0.21"
    before = world.instances["web-0"]
    drain(world, "web-0", 20)
    if successor == "never ready":
        world.networks.clear()
    world.run(120)
    assert world.instances["web-0"].id != before.id
    assert listed(world, "10.1.0.1").state is State.IN


def test_a_person_who_keeps_the_address_is_obeyed() -> None:
    """The nearer word: a drain of the host says less about one address than a keep of it."""
    world = listed_pool()
    world.overrides = (Override(OverrideKind.KEEP, "10.1.0.1"),)
    drain(world, "web-0", 20)
    world.run(120)
    assert listed(world, "10.1.0.1").state is State.IN
