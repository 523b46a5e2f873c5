"""What ended by itself is tried again: when, and where."""

from placements import World, host

from fencepost.core.instant import SECOND


def test_one_that_ends_by_itself_is_tried_later_and_later_and_elsewhere() -> None:
    """Else a command that fails would write rows as fast as the store takes them, and always on the emptiest host."""
    world = World(host("h1", room=9), host("h2", room=1))
    world.launch("web-1")
    world.settle()
    assert world.where("web-1") == "h1"
    at = []
    for _ in range(3):
        row = world.instances()["web-1"]
        world.dies(row.id)
        world.settle()
        assert world.instances()["web-1"].why == f"{row.id} ended by itself on {row.host}"
        began = world.now
        while world.instances()["web-1"].state == "waiting":
            world.now += SECOND
            world.settle()
        at.append((world.now - began) // SECOND)
        assert world.where("web-1") != row.host
    assert at == [1, 2, 4]


def test_where_it_was_if_so_wanted_and_each_time_after_as_long() -> None:
    """A sample's addresses are listed in its file, and its hosts have room to spare: it isn't to wander off."""
    world = World(host("h1"), host("h2", room=9), again=60 * SECOND, longest=60 * SECOND, elsewhere=False)
    world.launch("web-1", "web-2")
    world.settle()
    place = {name: (row.host, row.address) for name, row in world.instances().items()}
    for name in ("web-1", "web-2", "web-1", "web-1"):
        world.dies(world.instances()[name].id)
        world.settle()
        began = world.now
        while world.instances()[name].state == "waiting":
            world.now += SECOND
            world.settle()
        row = world.instances()[name]
        assert ((row.host, row.address), world.now - began) == (place[name], 60 * SECOND)
    world.word("h2", "cordon")
    gone = next(name for name, (at, _) in place.items() if at == "h2")
    world.dies(world.instances()[gone].id)
    world.settle()
    world.now += 60 * SECOND
    world.settle()
    assert world.where(gone) == "h1", "where it was there is no room"
