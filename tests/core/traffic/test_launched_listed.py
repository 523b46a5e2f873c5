"""Addresses that a file lists and that instances are launched at too, as a sample's are."""

from msgspec import structs
from pool_world import row
from test_launched import LIFE, FleetPool

from fencepost.core.capacity.rows import HostRow
from fencepost.core.traffic.launched import FleetRows, by_hosts
from fencepost.core.traffic.membership import State, Target


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
        assert sum(bool(each.gone) for each in by_hosts(listed, FleetRows(LIFE, {}, both))) == gone
    assert by_hosts(listed, FleetRows("2", {}, both)) == listed, "another life of the store knows nothing of leases"
