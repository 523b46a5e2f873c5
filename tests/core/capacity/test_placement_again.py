"""What ended by itself is tried again: when, and where."""

from placements import World, host

from fencepost.core.instant import SECOND


def test_one_that_ends_by_itself_is_tried_later_and_later_and_elsewhere() -> None:
    """Else a command that fails would write rows as fast as the store takes them, and always on the emptiest host."""
    world = World(host("h1", room=9), host("h2", room=1))
    world.launch("web-1")
    world.settle()
    assert world.where("web-1") == "h1"
    at: list[int] = []
    for _ in range(3):
        row = world.instances()["web-1"]
        world.dies(row.id)
        world.settle()
        waits = world.instances()["web-1"]
        assert waits.why == f"{row.id} ended by itself on {row.host}"
        assert waits.again_at == 99 + (SECOND << len(at)), "and people are told when"
        began = world.now
        while world.instances()["web-1"].state == "waiting":
            world.now += SECOND
            world.settle()
        at.append((world.now - began) // SECOND)
        assert world.where("web-1") != row.host
        assert world.instances()["web-1"].again_at == 0
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


def test_what_ended_with_its_host_or_unseen_starts_where_it_was() -> None:
    """A sample, or a whole region, that is started again: else its instances are dealt out anew, to other hosts."""
    names = [f"web-{n}" for n in range(4)]
    world = World(*(host(f"h{n}", room=3) for n in range(4)), settle=60 * SECOND)
    for n, name in enumerate(names):
        for other in range(4):
            world.word(f"h{other}", "" if other == 3 - n else "cordon")
        world.launch(name)
        world.settle()
    before = {name: world.where(name) for name in names}
    assert before == {f"web-{n}": f"h{3 - n}" for n in range(4)}
    for n in range(4):
        world.word(f"h{n}", "")
    for name in reversed(names):
        world.dies(world.instances()[name].id)
    world.settle()
    assert {name: world.where(name) for name in names} == before
    assert {world.instances()[name].attempt for name in names} == {2}
    for n in range(4):
        world.word(f"h{n}", "cordon" if f"h{n}" == before["web-0"] else "")
    world.dies("web-0.2")
    world.settle()
    world.now += SECOND
    world.settle()
    assert world.where("web-0") not in ("", before["web-0"]), "where there is no room it goes elsewhere"
