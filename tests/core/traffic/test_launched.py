"""Launched instances as targets: when they join, what keeps them pending, and how each way of leaving is limited."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from pool_world import PoolWorld, row

from fencepost.core.capacity import attempts
from fencepost.core.capacity.rows import HostRow, InstanceRow, Lease, NetworkRow
from fencepost.core.instant import SECOND
from fencepost.core.traffic.desired import Offer, desired
from fencepost.core.traffic.fleet_rows import FleetRows
from fencepost.core.traffic.health import TargetsListed
from fencepost.core.traffic.launched import by_hosts, launched
from fencepost.core.traffic.load_balancer import ReportsRead
from fencepost.core.traffic.membership import Listing, Rule, State, Target
from fencepost.core.traffic.roster import LAST_ONE

LIFE = "1"


@dataclass
class FleetPool(PoolWorld):
    """A pool of launched instances; each host has one. Checkers probe whatever membership lists."""

    instances: dict[str, InstanceRow] = field(default_factory=dict)
    hosts: dict[str, HostRow] = field(default_factory=dict)
    networks: dict[str, NetworkRow] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    life: str = LIFE
    static: tuple[Target, ...] = ()
    revision: int = 1

    def launch(self, name: str, number: int, *, acknowledged: bool = True) -> None:
        """An instance is placed on a host of its own, at the host's address."""
        host, address = f"h{number}", f"10.1.{number // 250}.{number % 250 + 1}"
        made = HostRow(host, "abc"[number % 3], "h:1", 1, (address,), lease="held", life=LIFE, boot=1, reported=True)
        # The same attempt is never started twice, also where its row was lost: hosts tell of it.
        before = self.instances.get(name) or InstanceRow(name, "web", port=80, attempt=self.used.get(name, 0))
        self.hosts[host], self.instances[name] = attempts.placed(before, made, address)
        self.used[name] = self.instances[name].attempt
        id_ = self.instances[name].id
        self.networks[id_] = NetworkRow(id_, host, 1, "d", 1, "{}")
        if acknowledged:
            self.acknowledge(name)

    def acknowledge(self, name: str) -> None:
        """Its host has its network state."""
        id_ = self.instances[name].id
        state = self.networks[id_]
        self.networks[id_] = structs.replace(state, acked=(state.version, state.digest, 1, self.life))

    def lease(self, number: int, lease: Lease) -> None:
        """What the rows say of a host's lease."""
        self.hosts[f"h{number}"] = structs.replace(self.hosts[f"h{number}"], lease=lease)

    def over(self, name: str) -> None:
        """Its attempt is over, and leaves its host's set."""
        row = self.instances[name]
        self.hosts[row.host] = attempts.left(self.hosts[row.host], (row.id,))
        self.instances[name] = attempts.over(row, "its host lapsed")

    def end_by_itself(self, name: str) -> None:
        """Its host says that it ended."""
        row = self.instances[name]
        self.hosts[row.host] = attempts.left(self.hosts[row.host], (row.id,))
        self.instances[name] = attempts.over(row, f"{row.id} ended by itself", by_itself=True)

    def reading(self) -> ReportsRead:
        """With the pool's list as the fleet's rows have it now."""
        rows = FleetRows.of(self.life, (*self.instances.values(), *self.hosts.values(), *self.networks.values()))
        found = launched("web", rows, self.row, frozenset(each.key for each in self.static))
        self.listing = Listing(
            (*by_hosts(self.static, rows, self.row), *found.targets), self.revision, deregistered=found.ended
        )
        return super().reading()

    def step(self) -> None:
        """And checkers take up whatever membership lists."""
        keys = tuple(each.key for each in self.row.members) if self.row is not None else ()
        if self.since_start % SECOND == 0:
            for checker in self.checkers.values():
                self._carry(checker.on(TargetsListed(keys), self.now))
        super().step()

    def state(self, name: str) -> State | None:
        """Where the member of an instance's present attempt stands; None if it has none."""
        members = self.row.members if self.row is not None else ()
        return next((each.state for each in members if each.source == self.instances[name].id), None)


REFILLED = 400
"""Seconds in which a pool of six gets a removal budget of one target, having begun with none in service."""


def pool(count: int, seconds: float = 100) -> FleetPool:
    """A pool whose instances have all come into service."""
    world = FleetPool(0)
    for n in range(count):
        world.launch(f"web-{n}", n)
    world.run(seconds)
    assert world.count_in(State.IN) == count
    return world


def test_a_new_pool_serves_no_instance_before_its_verdict() -> None:
    """October 2025: new instances went into service and their health checks failed, passed and failed again."""
    world = FleetPool(0)
    for n in range(3):
        world.launch(f"web-{n}", n)
    world.run(5)
    assert world.count_in(State.PENDING) == 3
    world.run(29)
    assert world.count_in(State.IN) == 0
    world.run(90)
    assert world.count_in(State.IN) == 3


def test_an_instance_waits_for_its_network_state_however_well_it_looks() -> None:
    """October 2025, 05:28 to 10:36: instances ran, and their network state hadn't arrived."""
    world = pool(4)
    world.launch("web-4", 4, acknowledged=False)
    world.run(300)
    assert world.state("web-4") is State.PENDING
    (member,) = [each for each in row(world).members if each.state is State.PENDING]
    assert "network state" in member.cause
    world.acknowledge("web-4")
    world.run(5)
    assert world.state("web-4") is State.IN


def test_a_newer_network_state_takes_nobody_out() -> None:
    """One update of the rules would otherwise take the whole pool out of service."""
    world = pool(4, REFILLED)
    for id_, state in world.networks.items():
        world.networks[id_] = structs.replace(state, version=2, digest="e")
    world.run(5)
    assert world.count_in(State.IN) == 4
    back = world.since_start + 60 * SECOND
    world.alive = lambda key, at: not (key == "10.1.0.1" and at < back)
    world.run(60)
    assert world.state("web-0") is State.OUT
    world.run(120)
    assert world.state("web-0") is State.IN


def test_a_terminated_instance_leaves_at_once_and_for_free() -> None:
    """It is the owner's act, as a target that leaves the file is."""
    world = pool(7)
    tokens = row(world).tokens
    world.instances["web-0"] = attempts.ending(world.instances["web-0"])
    world.run(2)
    assert world.state("web-0") is None
    assert row(world).tokens >= tokens
    assert world.moves[-1].rule is Rule.LISTING


def test_when_all_are_terminated_the_last_one_stays() -> None:
    """Only a withdrawal takes a name away."""
    world = pool(8)
    for name, instance in world.instances.items():
        world.instances[name] = attempts.ended(attempts.ending(instance), 1)
    world.run(60)
    assert len(row(world).members) == 1
    assert world.serving()
    assert row(world).source_error == f"10.1.0.8 stays, though web-7.1 is over: {LAST_ONE}"
    assert row(world).last_over
    world.launch("web-9", 9)
    world.run(150)
    assert [each.source for each in row(world).members] == ["web-9.1"]


def test_a_lapsed_hosts_instance_is_taken_out_though_its_probes_pass() -> None:
    """A host that is cut off from its manager, and not from the checkers, goes on with an old copy."""
    world = pool(6, REFILLED)
    tokens = row(world).tokens
    world.lease(0, "lapsed")
    world.run(3)
    assert world.state("web-0") is State.OUT
    assert row(world).tokens < tokens
    assert "lapsed" in next(each.cause for each in row(world).members if each.state is State.OUT)
    world.lease(0, "held")
    world.run(60)
    assert world.state("web-0") is State.IN


def test_a_mass_lapse_empties_no_name() -> None:
    """A manager may be wrong about a thousand hosts at once: what it says is judged, and limits bind."""
    world = pool(12)
    for n in range(12):
        world.lease(n, "lapsed")
    world.run(600)
    assert len(world.serving()) >= 10
    assert row(world).panic
    for n in range(12):
        world.over(f"web-{n}")
    world.run(600)
    assert len(world.serving()) >= 10
    for n in range(12):
        world.launch(f"web-{n}", 20 + n)
    world.run(900)
    assert [world.state(f"web-{n}") for n in range(12)] == [State.IN] * 12


def test_an_attempt_that_is_over_is_no_sick_target_and_leaves_at_once() -> None:
    """It never starts again, so keeping it in service for a share's sake would keep nothing in service."""
    world = pool(6, REFILLED)
    tokens = row(world).tokens
    world.lease(0, "lapsed")
    world.over("web-0")
    world.run(5)
    assert world.count_in(State.OUT) == 1  # judged, and not replaced yet: it counts as dead, under all limits
    world.launch("web-0", 20, acknowledged=False)
    world.run(2)
    assert (len(row(world).members), world.count_in(State.OUT), world.count_in(State.PENDING)) == (6, 0, 1)
    world.acknowledge("web-0")
    world.run(120)
    assert world.states() == dict.fromkeys(world.states(), State.IN)
    assert row(world).tokens >= tokens - 1_000_000


def test_neither_fail_open_nor_min_in_keeps_or_brings_back_what_is_over() -> None:
    """A crash loop of most of a pool: callers would be given addresses at which nothing will ever listen again."""
    world = pool(8, REFILLED)
    since = world.since_start
    world.alive = lambda key, at: at < since or key in ("10.1.0.7", "10.1.0.8")
    world.run(30)
    assert row(world).panic
    assert len(world.serving()) >= 6
    for n in range(6):
        world.end_by_itself(f"web-{n}")
    world.run(10)
    assert set(world.serving()) == {"10.1.0.7", "10.1.0.8"}
    assert row(world).source_error == ""
    world.run(1000)
    assert set(world.serving()) == {"10.1.0.7", "10.1.0.8"}


def test_the_last_of_each_family_stays_though_it_is_over() -> None:
    """Never empty: an endpoint that answers AAAA alone would be, with the last IPv6 address."""
    world = FleetPool(0, static=(Target("10.9.9.9", "a"),))
    world.launch("web-0", 0)
    world.launch("web-1", 1)
    six = "2001:db8::1"
    world.hosts["h1"], world.instances["web-1"] = attempts.placed(
        InstanceRow("web-1", "web", port=80), attempts.left(world.hosts["h1"], ("web-1.1",)), six
    )
    world.run(100)
    assert {"10.1.0.1", six} <= set(world.serving())
    world.end_by_itself("web-0")
    world.end_by_itself("web-1")
    world.run(10)
    assert set(world.serving()) == {"10.9.9.9", six}
    assert row(world).source_error == f"{six} stays, though web-1.1 is over: {LAST_ONE}"
    world.instances.pop("web-1")  # cleared away after an hour
    world.run(10)
    assert set(world.serving()) == {"10.9.9.9", six}
    assert six in row(world).source_error


def test_a_new_attempt_at_the_same_address_serves_only_when_its_own_state_is_there() -> None:
    """The address passes its probes still, or again: that says nothing about who answers there."""
    world = pool(6, REFILLED)
    world.over("web-0")
    world.launch("web-0", 0, acknowledged=False)
    world.run(60)
    (member,) = [each for each in row(world).members if each.key == "10.1.0.1"]
    assert (member.state, member.source) == (State.PENDING, "web-0.2")
    world.acknowledge("web-0")
    world.run(60)
    assert world.state("web-0") is State.IN


def test_the_last_ones_successor_at_its_address_takes_its_place_when_it_may_serve() -> None:
    """A pool of one whose host has one address: the name is never empty, and never answers what isn't ready."""
    world = FleetPool(0)
    world.launch("web-0", 0)
    world.run(100)
    world.end_by_itself("web-0")
    world.launch("web-0", 0, acknowledged=False)
    world.run(60)
    (member,) = row(world).members
    assert (member.source, member.served, world.serving()) == ("web-0.1", True, ["10.1.0.1"])
    world.acknowledge("web-0")
    world.run(5)
    (member,) = row(world).members
    assert (member.source, member.state, row(world).source_error) == ("web-0.2", State.IN, "")
    assert not row(world).last_over


def test_a_wiped_fleet_takes_nobody_out() -> None:
    """external-dns #2677: a source that says nothing removes nobody; rows that are missing are no word."""
    world = pool(6)
    world.instances.clear()
    world.hosts.clear()
    world.networks.clear()
    world.life = "2"
    world.revision = 2
    world.run(120)
    assert world.count_in(State.IN) == 6
    assert {each.port for each in row(world).members} == {80}


def test_a_moved_instance_serves_until_its_successor_does() -> None:
    """A drained host: the next attempt comes in elsewhere before the old one goes."""
    world = pool(6)
    tokens = row(world).tokens
    before = world.instances["web-0"]
    world.launch("web-0", 20)
    world.instances["web-0"] = structs.replace(world.instances["web-0"], old=(before.host, before.id))
    world.run(10)
    assert (world.count_in(State.IN), world.count_in(State.PENDING)) == (6, 1)
    world.instances["web-0"] = attempts.settled(world.instances["web-0"])
    for _ in range(90):
        world.run(1)
        assert world.count_in(State.IN) >= 6
    assert world.state("web-0") is State.IN
    assert len(row(world).members) == 6
    assert row(world).tokens >= tokens


def test_a_moved_instance_whose_old_host_lapses_is_dead_there() -> None:
    """Until then it served; now nobody knows what runs on that host."""
    world = pool(6, REFILLED)
    before = world.instances["web-0"]
    world.launch("web-0", 20, acknowledged=False)
    world.instances["web-0"] = structs.replace(world.instances["web-0"], old=(before.host, before.id))
    world.run(5)
    assert world.count_in(State.IN) == 6
    world.lease(0, "lapsed")
    world.run(5)
    assert (world.count_in(State.OUT), world.count_in(State.PENDING)) == (1, 1)


def test_srv_records_have_an_instances_own_port() -> None:
    """RFC 2782: a service is reached at its port, and a launched instance's is its pool's launch port."""
    world = pool(3)
    made = desired(("A",), 30, world.row, Offer("_http._tcp", 443))
    assert made is not None
    assert made.content.srv is not None
    assert made.content.srv.ports == (80,)


names = st.sampled_from([f"web-{n}" for n in range(6)])
acts = st.one_of(
    st.tuples(st.just("launch"), names, st.integers(0, 11), st.booleans()),
    st.tuples(st.sampled_from(["acknowledge", "over", "crash", "end", "forget"]), names, st.just(0), st.just(False)),
    st.tuples(st.sampled_from(["lapse", "hold"]), names, st.integers(0, 11), st.just(False)),
)


@given(st.lists(acts, min_size=1, max_size=12))
def test_whatever_the_rows_say_nobody_is_emptied_and_removal_stays_bounded(
    story: list[tuple[str, str, int, bool]],
) -> None:
    """The world judges each write by `bounded_removal`; a name that had an address has one."""
    world = FleetPool(0, static=(Target("10.9.9.9", "a"),))
    for n in range(4):
        world.launch(f"web-{n}", n)
    world.run(100)
    for act, name, number, yes in story:
        known = world.instances.get(name)
        if act == "launch" and (known is None or known.state == "waiting"):
            world.launch(name, number, acknowledged=yes)
        elif act == "lapse" and f"h{number}" in world.hosts:
            world.lease(number, "lapsed")
        elif act == "hold" and f"h{number}" in world.hosts:
            world.lease(number, "held")
        elif known is not None and act == "acknowledge" and known.id in world.networks:
            world.acknowledge(name)
        elif known is not None and act == "over" and known.state == "placed":
            world.over(name)
        elif known is not None and act == "crash" and known.state == "placed":
            world.end_by_itself(name)
        elif known is not None and act == "end":
            world.instances[name] = attempts.ending(known)
        elif act == "forget":
            world.instances.pop(name, None)
        world.run(4)
        assert world.serving()
    ready = {each.source for each in row(world).members if each.served and each.source}
    acked = {id_ for id_, state in world.networks.items() if state.acked[0]}
    assert ready <= acked
