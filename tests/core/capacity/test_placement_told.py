"""Placement: what it tells those who look, of room that is none and of instances that end again and again."""

from placements import World, host

from fencepost.core.instant import MINUTE, SECOND


def test_a_host_counts_as_room_only_for_as_many_as_it_has_addresses_for() -> None:
    """An instance without an address runs, and nobody can ever be sent to it."""
    world = World(host("h1", room=5, addresses=("127.1.1.1", "127.1.1.2")), host("h2", room=3, addresses=()))
    world.launch(*(f"web-{n}" for n in range(4)))
    world.turn()
    assert sorted(row.state for row in world.instances().values()) == ["placed", "placed", "waiting", "waiting"]
    room = world.placements[1].room
    assert (room.free, room.places) == (0, 6)


def test_how_often_in_a_row_it_ended_by_itself_stands_in_its_row() -> None:
    """So that whoever looks tells a crash loop from a lack of room; a lapse isn't an end of its own."""
    world = World(host("h1"), calm=10 * MINUTE)
    world.launch("web-1")
    for ends in (1, 2, 3):
        world.now += 10 * SECOND
        world.settle()
        assert world.instances()["web-1"].state == "placed"
        world.dies(world.instances()["web-1"].id)
        world.settle()
        assert (world.instances()["web-1"].ends, world.instances()["web-1"].state) == (ends, "waiting")
    world.now += 10 * SECOND
    world.settle()
    assert (world.instances()["web-1"].ends, world.instances()["web-1"].state) == (3, "placed")
    assert "ended by itself" in world.instances()["web-1"].why
    world.now += 11 * MINUTE
    world.settle()
    assert (world.instances()["web-1"].ends, world.instances()["web-1"].why) == (0, "")
    world.dies(world.instances()["web-1"].id)
    world.settle()
    world.now += 10 * SECOND
    world.settle()
    assert (world.instances()["web-1"].ends, world.instances()["web-1"].state) == (1, "placed")
    world.lapse("h1")
    world.settle()
    assert (world.instances()["web-1"].ends, world.instances()["web-1"].state) == (0, "waiting")
