"""Placement where something isn't known for sure: nothing is said to be over, ended or elsewhere before it is."""

from collections import Counter

from msgspec import structs
from placements import LIFE, World, host, instance

from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.placement import Told
from fencepost.core.capacity.rows import ShardRow
from fencepost.core.instant import MINUTE, SECOND


def moving(**settings: object) -> World:
    """One instance whose next attempt is at h2 while the one before goes on at h1."""
    world = World(host("h1"), **settings)  # type: ignore[arg-type]  # settings are PlacementSettings'
    world.launch("web-1")
    world.settle()
    world.add(host("h2"))
    world.word("h1", "drain")
    world.settle(ready=False)
    assert world.instances()["web-1"].old == ("h1", "web-1.1")
    return world


def test_a_version_told_before_the_set_was_doesnt_end_anything() -> None:
    """After a restore version 2 of the row may be another set than version 2 of the host."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.terminate("web-1")
    world.turn()
    row = world.hosts()["h1"]
    world.put(structs.replace(row, reported=False))
    world.read(1).tell("h1", Told(row.set.version))
    assert world.turn(stale=True) == 0
    assert world.instances()["web-1"].state == "ending"


def test_terminated_after_a_move_waits_for_the_old_attempt_too() -> None:
    """It lingers at its host for callers' caches, and "ended" says that nothing of it runs."""
    world = moving(linger=30 * SECOND)
    world.settle()
    assert world.runs["h1"].ids == {"web-1.1"}
    assert world.instances()["web-1"].old == ("", "")
    world.terminate("web-1")
    world.turn()
    world.obey("h2")
    world.turn()
    world.turn()
    assert world.instances()["web-1"].state == "ending"
    world.settle()
    assert world.instances()["web-1"].state == "ended"
    assert world.runs["h1"].ids == set()


def test_what_is_on_a_drained_host_doesnt_count_for_the_spread() -> None:
    """It goes: a zone that keeps only that is as empty as it will be."""
    world = World(host("h1", "a", 2))
    world.launch("web-1", "web-2")
    world.settle()
    world.add(host("h2", "b", 9))
    world.launch("web-3")
    world.settle()
    world.add(host("h3", "a", 1))
    world.word("h1", "drain")
    room = world.read(1).room
    assert (room.of_pool("web", "a"), room.of_pool("web", "b")) == (0, 1)
    world.settle()
    assert Counter(row.host for row in world.instances().values()) == {"h2": 2, "h3": 1}


def test_the_old_attempt_waits_for_a_place_as_long_as_it_takes() -> None:
    """Patience is for a new attempt that doesn't get ready, not for one that isn't there."""
    world = moving()
    world.lapse("h2")
    for _ in range(3):
        world.settle(ready=False)
        world.now += 6 * MINUTE
    row = world.instances()["web-1"]
    assert (row.state, row.old) == ("waiting", ("h1", "web-1.1"))
    assert world.runs["h1"].ids == {"web-1.1"}


def test_the_old_attempts_host_may_lapse_meanwhile() -> None:
    """Then there is nothing to wait for."""
    world = moving()
    world.lapse("h1")
    world.settle(ready=False)
    row = world.instances()["web-1"]
    assert (row.state, row.host, row.old) == ("placed", "h2", ("", ""))
    assert world.hosts()["h1"].set.instances == ()


def test_what_was_seen_before_the_shards_were_open_is_looked_at_again() -> None:
    """A host's set told early is taken into the rows once all have told theirs."""
    world = World(host("h1"))
    world.runs["h1"] = InstanceSet(3, (instance("web-9.1", "127.1.1.1"),))
    world.back("h1")
    world.put(structs.replace(world.hosts()["h1"], set=world.runs["h1"]))
    placement = world.read(1)
    placement.shard(ShardRow(1, 1, "m1", 1, 1, open=""))
    assert placement.decide(0) == ()
    placement.shard(ShardRow(1, 1, "m1", 1, 2, open=LIFE))
    groups = placement.decide(0)
    assert [group[1].row.key for group in groups if group[1].row] == ["web-9"]


def test_a_suspect_or_unknown_host_keeps_what_it_has() -> None:
    """Silence is no lapse: only the row's lease says so, in this life of the store."""
    world = World(host("h1"), host("h2"))
    world.launch("web-1")
    world.settle()
    first = world.where("web-1")
    row = world.hosts()[first]
    for fields in ({"left": 5}, {"lease": "none"}, {"lease": "lapsed", "life": "life-0"}, {"reported": False}):
        world.put(structs.replace(row, **fields))
        world.settle()
        assert world.instances()["web-1"].id == "web-1.1"
