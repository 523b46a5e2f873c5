"""Placement: one rule each, on the smallest fleet that shows it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from placements import LIFE, World, host, instance

from fencepost.core.capacity.fleet_store import Change, Versioned
from fencepost.core.capacity.messages import InstanceSet
from fencepost.core.capacity.placement import PlacementSettings, decided
from fencepost.core.capacity.rows import FleetRow, InstanceRow, ShardRow
from fencepost.core.instant import MINUTE, SECOND


def test_an_instance_is_placed_with_its_address_and_zone() -> None:
    """Host row and instance row in one group: the first attempt is in the set of the host that its row names."""
    world = World(host("h1"))
    world.launch("web-1")
    assert world.turn() == 1
    row = world.instances()["web-1"]
    assert (row.state, row.id, row.host, row.zone, row.address) == ("placed", "web-1.1", "h1", "a", "127.1.1.1")
    assert world.hosts()["h1"].set == InstanceSet(1, (instance("web-1.1", "127.1.1.1"),))


@pytest.mark.parametrize(
    "fields",
    [
        {"lease": "lapsed"},
        {"lease": "none"},
        {"life": "life-0"},
        {"reported": False},
        {"word": "cordon"},
        {"word": "drain"},
        {"word": "gone"},
        {"left": 5},
        {"room": 0},
        {"addresses": ()},
    ],
)
def test_only_a_host_that_may_take_it_does(fields: dict[str, object]) -> None:
    """Held in this life of the store, its set told, no word against it, room left."""
    world = World(structs.replace(host("h1"), **fields))
    world.launch("web-1")
    assert world.turn() == 0
    assert world.instances()["web-1"].state == "waiting"


def test_nothing_is_placed_until_every_shard_is_open() -> None:
    """A store put back from a copy would have things started that run already."""
    rows = [ShardRow(1, 2, "m1", 1, 1, LIFE), ShardRow(2, 2, "m2", 1, 1)]
    settings = PlacementSettings(of=2)
    name = next(f"web-{n}" for n in range(9) if decided_of(settings, [structs.replace(r, open=LIFE) for r in rows], n))
    number = int(name[4:])
    assert not decided_of(settings, rows, number)
    assert not decided_of(settings, rows[:1], number)


def decided_of(settings: PlacementSettings, shards: list[ShardRow], number: int) -> bool:
    rows: list[FleetRow] = [*shards, host("h1"), InstanceRow(f"web-{number}", "web")]
    return bool(decided(settings, LIFE, [Versioned(row, 1) for row in rows]))


def test_an_open_shard_of_another_life_is_not_open() -> None:
    """Its row came back from a copy, and in that life hosts may have been given other things since."""
    assert decided_of(PlacementSettings(), [ShardRow(1, 1, "m1", 1, 1, LIFE)], 1)
    assert not decided_of(PlacementSettings(), [ShardRow(1, 1, "m1", 1, 1, "life-0")], 1)


def test_instances_spread_over_zones_then_over_room() -> None:
    """Six of a pool on three zones of very different size are two a zone."""
    sizes = {"a": 9, "b": 2, "c": 4}
    world = World(*(host(f"h{n}", zone, room) for n, (zone, room) in enumerate(sizes.items())))
    world.launch(*(f"web-{n}" for n in range(6)))
    world.settle()
    assert Counter(row.zone for row in world.instances().values()) == {"a": 2, "b": 2, "c": 2}


def test_two_hosts_that_give_one_address_never_both_do() -> None:
    """Else callers of one instance would reach the other."""
    same = ("127.1.1.1",)
    world = World(host("h1", room=1), host("h2", zone="b", room=1, addresses=same))
    world.launch("web-1", "web-2")
    world.settle()
    assert sorted(row.state for row in world.instances().values()) == ["placed", "waiting"]


def test_a_lapsed_hosts_instances_go_elsewhere_and_leave_its_set() -> None:
    """The next attempt has the next number; a host that comes back is told to stop the old one."""
    world = World(host("h1"), host("h2"))
    world.launch("web-1")
    world.settle()
    first = world.where("web-1")
    world.lapse(first)
    world.settle()
    row = world.instances()["web-1"]
    assert (row.id, row.state) == ("web-1.2", "placed")
    assert row.host != first
    assert world.hosts()[first].set == InstanceSet(2, ())
    world.back(first)
    world.settle()
    assert world.runs[first].instances == ()
    assert world.instances()["web-1"] == row


def test_a_host_with_a_new_memory_has_nothing() -> None:
    """Its disk is gone, and what ran there with it: the attempt is over, also at the same host."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.back("h1", incarnation=9)
    world.settle()
    assert world.instances()["web-1"].id == "web-1.2"


def test_what_a_host_holds_and_the_store_forgot_is_taken_over() -> None:
    """After a wipe hosts tell what runs: it goes on, under its own number, and isn't started again."""
    world = World(host("h1"), host("h2"))
    world.runs["h1"] = InstanceSet(7, (instance("web-1.4", "127.1.1.1"),))
    world.back("h1")
    world.settle()
    row = world.instances()["web-1"]
    assert (row.id, row.host, row.address, row.pool, row.port) == ("web-1.4", "h1", "127.1.1.1", "web", 80)
    assert world.runs["h1"].ids == {"web-1.4"}


def test_of_two_attempts_the_higher_is_the_present_one() -> None:
    """A store put back knows attempt 1, and a host runs attempt 2: the older leaves its host."""
    world = World(host("h1"), host("h2"))
    world.launch("web-1")
    world.settle()
    first = world.where("web-1")
    other = "h2" if first == "h1" else "h1"
    world.runs[other] = InstanceSet(9, (instance("web-1.2", world.hosts()[other].addresses[0]),))
    world.back(other)
    adopted = structs.replace(world.hosts()[other], set=world.runs[other])
    world.put(adopted)
    world.settle()
    assert (world.where("web-1"), world.instances()["web-1"].attempt) == (other, 2)
    assert world.runs[first].instances == ()


def test_terminated_is_ended_only_when_the_host_has_told_the_set_without_it() -> None:
    """Done means stopped, not asked for."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.terminate("web-1")
    for _ in range(3):
        world.turn()
    assert world.instances()["web-1"].state == "ending"
    assert world.hosts()["h1"].set.instances == ()
    world.obey("h1")
    world.turn()
    row = world.instances()["web-1"]
    assert (row.state, row.ended_at, row.why) == ("ended", 99, "terminated")


def test_terminated_on_a_lapsed_host_is_ended() -> None:
    """It may still run there; nobody may believe so, and the host is told to stop it when it is back."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.terminate("web-1")
    world.lapse("h1")
    world.turn()
    world.turn()
    assert world.instances()["web-1"].state == "ended"
    world.back("h1")
    world.settle()
    assert world.runs["h1"].instances == ()


def test_terminated_before_it_was_placed_is_ended_at_once() -> None:
    """There is nobody to ask."""
    world = World()
    world.launch("web-1")
    world.terminate("web-1")
    world.turn()
    assert world.instances()["web-1"].state == "ended"


def test_drained_starts_elsewhere_first() -> None:
    """The old attempt goes on until the new one is ready, and leaves the host after callers' caches forgot it."""
    world = World(host("h1"), linger=30 * SECOND)
    world.launch("web-1")
    world.settle()
    world.add(host("h2"))
    world.word("h1", "drain")
    world.settle(ready=False)
    row = world.instances()["web-1"]
    assert (row.host, row.id, row.old) == ("h2", "web-1.2", ("h1", "web-1.1"))
    assert world.runs["h1"].ids == {"web-1.1"}
    world.settle()
    assert world.instances()["web-1"].old == ("", "")
    assert world.runs["h1"].ids == {"web-1.1"}
    world.now += 30 * SECOND
    world.settle()
    assert world.runs["h1"].ids == set()


def test_a_drained_host_isnt_held_up_by_one_that_never_gets_ready() -> None:
    """After five minutes the old attempt goes all the same: a person wants the host empty."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.add(host("h2"))
    world.word("h1", "drain")
    world.settle(ready=False)
    world.now += 5 * MINUTE
    world.settle(ready=False)
    assert world.runs["h1"].ids == set()


def test_a_drained_host_keeps_what_has_no_room_elsewhere() -> None:
    """A drain never takes an instance away before there is another."""
    world = World(host("h1"), host("h2", word="cordon"))
    world.launch("web-1")
    world.settle()
    world.word("h1", "drain")
    world.settle()
    assert world.runs["h1"].ids == {"web-1.1"}
    world.word("h2", "")
    world.settle()
    assert (world.where("web-1"), world.runs["h1"].instances) == ("h2", ())


def test_the_new_attempt_of_a_drain_may_die_and_the_old_one_goes_on() -> None:
    """Then the next is tried, with the first one still there."""
    world = World(host("h1", room=1), host("h2", room=1, word="cordon"), host("h3", room=1, word="cordon"))
    world.launch("web-1")
    world.settle()
    world.word("h2", "")
    world.word("h1", "drain")
    world.settle(ready=False)
    world.lapse("h2")
    world.word("h3", "")
    world.settle(ready=False)
    row = world.instances()["web-1"]
    assert (row.host, row.id, row.old) == ("h3", "web-1.3", ("h1", "web-1.1"))


def test_terminated_while_it_moves_ends_both_attempts() -> None:
    """Ended says that neither runs."""
    world = World(host("h1"))
    world.launch("web-1")
    world.settle()
    world.add(host("h2"))
    world.word("h1", "drain")
    world.settle(ready=False)
    world.terminate("web-1")
    for _ in range(4):
        world.turn()
    assert world.instances()["web-1"].state == "ending"
    world.settle()
    assert world.instances()["web-1"].state == "ended"
    assert world.runs["h1"].ids == world.runs["h2"].ids == set()


def test_a_host_changed_meanwhile_gets_nothing_written_over() -> None:
    """Rows are written over what was read, or not at all; the next turn sees the change."""
    world = World(host("h1"))
    world.launch("web-1")
    placement = world.read(1)
    groups = placement.decide(0)
    world.word("h1", "cordon")
    assert world.write(*groups, shard=1) == (False,)
    assert world.turn() == 0
    assert world.instances()["web-1"].state == "waiting"


def test_a_group_is_one_host_and_never_too_large() -> None:
    """DynamoDB takes a hundred rows in a transaction; and two groups of a commit must not share a row."""
    world = World(host("h1", room=200), group_most=48)
    world.launch(*(f"web-{n}" for n in range(100)))
    groups = world.read(1).decide(0)
    assert [len(group) for group in groups] == [49]
    world.settle()
    assert all(row.state == "placed" for row in world.instances().values())


@given(
    rooms=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), min_size=1, max_size=8),
    count=st.integers(0, 20),
)
def test_zones_with_room_differ_by_one_at_most(rooms: list[tuple[str, int]], count: int) -> None:
    """A zone has two more of a pool than another only if that other one is full."""
    rows = [host(f"h{n}", zone, room) for n, (zone, room) in enumerate(rooms)]
    instances = [InstanceRow(f"web-{n}", "web") for n in range(count)]
    world = World(*rows)
    for row in instances:
        world.put(row)
    world.settle()
    placed = Counter(row.zone for row in world.instances().values() if row.state == "placed")
    free = Counter[str]()
    for there in world.hosts().values():
        free[there.zone] += there.room - len(there.set.instances)
    assert sum(placed.values()) == min(count, sum(room for _, room in rooms))
    for zone in free:
        if free[zone]:
            assert placed[zone] >= max(placed.values(), default=0) - 1


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["launch", "end", "lapse", "back", "anew", "die", "drain", "cordon", "resume", "obey", "turn"]
                        + ["turn", "stale", "crash", "later"]),
        st.integers(0, 5),
    ),
    max_size=40,
)  # fmt: skip


@given(happenings=HAPPENINGS, shards=st.integers(1, 2))
def test_whatever_happens_the_promises_hold_and_it_comes_to_rest(
    happenings: list[tuple[str, int]], shards: int
) -> None:
    """Hosts lapse, return and lose their disks, managers restart or act on old rows: no id runs twice, none over room.

    When it is quiet again, everything launched runs once and everything terminated has ended.
    """
    world = World(*(host(f"h{n}", "abc"[n % 3]) for n in range(4)), shards=shards)
    for what, number in happenings:
        name, instances = f"h{number % 4}", sorted(world.instances())
        some = instances[number % len(instances)] if instances else ""
        match what:
            case "launch":
                world.launch(f"web-{len(instances)}")
            case "end" if some:
                world.terminate(some)
            case "lapse":
                world.lapse(name)
            case "back":
                world.back(name, world.hosts()[name].incarnation)
            case "anew":
                world.back(name, world.hosts()[name].incarnation + 1)
            case "die" if some:
                world.dies(world.instances()[some].id)
            case "drain" | "cordon" | "resume":
                world.word(name, "" if what == "resume" else what)
            case "obey":
                world.obey(name)
            case "turn":
                world.turn(number % shards + 1, ready=number > 2)
            case "stale":
                world.turn(number % shards + 1, stale=True)
            case "crash":
                world.placements[number % shards + 1] = world.fresh(number % shards + 1)
            case "later":
                world.now += MINUTE
    for name, there in world.hosts().items():
        world.word(name, "")
        world.back(name, there.incarnation)
    for _ in range(4):
        world.now += 10 * MINUTE
        world.settle()
    runs = Counter(id_ for had in world.runs.values() for id_ in had.ids)
    rows = world.instances().values()
    assert all(row.state != "ending" for row in rows)
    wanted = [row for row in rows if row.state != "ended"]
    assert runs == Counter(row.id for row in wanted if row.state == "placed")
    assert sum(runs.values()) == min(len(wanted), 8)


def test_rows_of_another_kind_or_older_are_not_taken() -> None:
    """Pages may come twice, or late."""
    world = World(host("h1"))
    placement = world.read(1)
    known = dict(placement.hosts)
    placement.host(Versioned(host("h1", word="drain"), 0))
    placement.host(Versioned(InstanceRow("h1"), 99))
    placement.instance(Versioned(host("h1"), 99))
    assert placement.hosts == known
    assert not placement.instances
    placement.deleted("web-1")
    assert Change(host("h1"), 1).place == ("host", "h1")
