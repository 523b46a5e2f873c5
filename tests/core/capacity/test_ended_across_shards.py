"""A store put back has forgotten a placement, and the instance is terminated before any host could tell of it.

Found by simulated fleets of two shards: "ended" was said by the wrong shard's manager, which keeps no list of attempts
that aren't where rows say; and by the right one, in the moment in which the host had been sent its order and had yet to
answer.
"""

import pytest
from placements import World, host, instance

from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.rows import InstanceRow
from fencepost.core.capacity.shards import shard_of

HOSTS = {shard_of(name, 2): name for name in ("h1", "h2", "h3", "h4", "h5")}
"""A host of each of two shards."""
NAMES = {shard_of(name, 2): name for name in ("web-1", "web-2", "web-3", "web-4", "web-5")}


def forgotten(of_host: int, of_instance: int) -> tuple[World, str, str]:
    """A host runs the first attempt of an instance; the instance's row knows none, and is to end."""
    where, name = HOSTS[of_host], NAMES[of_instance]
    held = InstanceSet(1, (instance(f"{name}.1", f"127.1.{where[1:]}.1"),))
    world = World(host(where, set=held), host(HOSTS[3 - of_host]), shards=2)
    world.put(InstanceRow(name, "web", state="ending"))
    return world, where, name


@pytest.mark.parametrize("of_host", [1, 2])
@pytest.mark.parametrize("of_instance", [1, 2])
@pytest.mark.parametrize("first", [1, 2])
def test_nothing_has_ended_that_still_runs(of_host: int, of_instance: int, first: int) -> None:
    """Whichever manager's turn comes first, and whoever is whose: first it stops at its host, then it has ended."""
    world, where, name = forgotten(of_host, of_instance)
    for shard in (first, 3 - first) * 3:
        world.turn(shard)
        assert world.instances()[name].state == "ending"
    assert world.hosts()[where].set.ids == set()
    world.obey(where)
    world.settle()
    assert world.instances()[name].state == "ended"


@pytest.mark.parametrize("of_instance", [1, 2])
def test_a_host_that_was_just_sent_its_order_has_told_nothing(of_instance: int) -> None:
    """Between an order and its answer it isn't known what runs: that the host is its own says nothing."""
    world, where, name = forgotten(1, of_instance)
    for shard in (1, 2, 1, 2):
        world.turn(shard)
    assert world.hosts()[where].set.ids == set()
    placement = world.read(1)
    placement.tell(where, None)
    assert world.turn(1, stale=True) == 0
    assert world.instances()[name].state == "ending"
