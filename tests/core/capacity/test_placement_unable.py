"""Hosts that can't write their memories: what is placed there, what leaves them, and which addresses are free.

Seen on the sample: a host whose agent's folder was removed was given instances for ever, one stood "pending" there with
room elsewhere, and the address of one that was still ending went to the next.
"""

import pytest
from msgspec import structs
from placements import LIFE, World, host

from fencepost.core.capacity import attempts, lease_rows
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.placement import Told

WHY = "/state/memory can't be written: No space left on device"


class Full(World):
    """A world in which some hosts' disks are full: they obey nothing, and say what they refused."""

    def __init__(self, *names: str, **settings: object) -> None:
        steady = (6, 0)
        super().__init__(*(structs.replace(host(name), steady=steady) for name in names), **settings)  # type: ignore[arg-type]
        self.full: dict[str, Told] = {}

    def fills(self, name: str, *, boot: int = 6) -> None:
        """A host's disk is full: what it was to start it never will, says this start of its agent."""
        refused = self.hosts()[name].set.ids - self.runs[name].ids
        version, down = self.runs[name].version, self.down[name]
        self.full[name] = Told(version, down, unable=WHY, boot=boot, refused=refused)

    def obey(self, name: str) -> bool:
        """Not with a full disk."""
        return name not in self.full and super().obey(name)

    def read(self, shard: int):  # type: ignore[no-untyped-def]  # as it is there
        """Those tell otherwise."""
        placement = super().read(shard)
        for name, told in self.full.items():
            placement.tell(name, told)
        return placement


def refusing(**settings: object) -> tuple[Full, str, str]:
    """Two hosts; an instance is placed at the first named, which refused it, and the other."""
    world = Full("h1", "h2", **settings)
    world.launch("web-1")
    world.turn()
    there = world.where("web-1")
    world.fills(there)
    return world, there, "h2" if there == "h1" else "h1"


def test_a_host_that_cant_write_is_given_nothing_while_it_says_so() -> None:
    """Its row says why and since when, for all managers and for people; and no more once it can."""
    world = Full("h1")
    world.fills("h1")
    world.settle()
    row = world.hosts()["h1"]
    assert (row.unable, row.unable_at) == (WHY, 99)
    assert not row.placeable(LIFE)
    assert (attempts.free_room(row, LIFE), world.placements[1].room.free) == (0, 0)
    world.launch("web-1")
    world.settle()
    assert world.instances()["web-1"].state == "waiting"
    del world.full["h1"]
    world.settle()
    row = world.hosts()["h1"]
    assert (row.unable, row.unable_at, world.where("web-1")) == ("", 0, "h1")


def test_what_it_says_stays_in_its_row_until_it_is_heard_of_again() -> None:
    """A host that lapsed with a full disk, as it can't take a new lease either, has one for all that is known."""
    world = Full("h1")
    world.fills("h1")
    world.settle()
    world.lapse("h1")
    world.full.clear()
    world.settle()
    assert world.hosts()["h1"].unable == WHY


def test_what_it_refused_for_good_starts_elsewhere_at_once_and_is_no_strike() -> None:
    """The next attempt, which has another number; it wasn't the instance's fault, so nothing is waited for."""
    world, there, other = refusing()
    world.settle()
    row = world.instances()["web-1"]
    assert (row.id, row.host, row.ends, row.again_at) == ("web-1.2", other, 0, 0)
    assert world.hosts()[there].set == InstanceSet(2, ())


@pytest.mark.parametrize(
    "fields",
    [{"boot": 7}, {"steady": (0, 0)}, {"steady": (6, 1)}, {"steady": (7, 0)}, {"reported": False}, {"life": "life-0"}],
)
def test_what_another_start_of_the_agent_may_have_been_ordered_stays(fields: dict[str, object]) -> None:
    """Only the start that refused it is known not to start it; "A memory that can't be written", leases.md."""
    world, there, _ = refusing()
    world.put(structs.replace(world.hosts()[there], **fields))
    world.settle()
    assert world.where("web-1") == there
    assert world.instances()["web-1"].id == "web-1.1"


def test_a_row_has_had_a_boot_since_it_was_written() -> None:
    """Also where it is one that the row had before: in between another start was ordered."""
    row = structs.replace(host("h1"), set=InstanceSet(3))
    again = lease_rows.booted(row, LIFE, 8)
    assert again is not None
    assert again.steady == (8, 3)
    back = lease_rows.booted(structs.replace(again, set=InstanceSet(5)), LIFE, 6)
    assert back is not None
    assert back.steady == (6, 5)
    granted = lease_rows.granted(structs.replace(back, set=InstanceSet(7)), LIFE, 9, 5, 6)
    assert granted.steady == (6, 5)
    assert lease_rows.granted(granted, LIFE, 10, 5, 7).steady == (7, 7)


def test_an_ending_instance_keeps_its_address_until_it_has_ended() -> None:
    """It left its host's set, and is there all the same: whoever had its address then would be answered by it."""
    world = World(host("h1"), host("h2", addresses=("127.1.1.1", "127.1.1.2")))
    world.launch("web-1")
    world.settle()
    address, there = world.instances()["web-1"].address, world.where("web-1")
    world.terminate("web-1")
    world.turn()
    assert world.hosts()[there].set.instances == ()
    world.launch("web-2", "web-3")
    while world.turn():
        pass
    (placed,) = [row for row in world.instances().values() if row.state == "placed"]
    assert placed.address != address, "its host hasn't told that it stopped it"
    world.settle()
    assert world.instances()["web-1"].state == "ended"
    assert address in {row.address for row in world.instances().values() if row.state == "placed"}
