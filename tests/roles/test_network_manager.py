"""The network manager as it runs: a store in memory, hosts' own deciders behind real connections on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.host import Host, HostMemory, HostSettings, Reply, Told
from fencepost.core.capacity.messages import Instance, InstanceSet, NetworkOrder, NetworkState
from fencepost.core.capacity.network_state import missing, ready
from fencepost.core.capacity.rows import DrainRow, HostRow, Kind, NetworkRow, ShardRow
from fencepost.core.capacity.token import Token
from fencepost.ports import Unavailable
from fencepost.ports.fleet import Page, Proof, Written
from fencepost.roles.fleet.network_manager import NetworkManagerRole
from fencepost.roles.fleet.wire import Wire, framed
from fencepost.roles.loop import Condition
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows

KEY = bytes(range(32))


class Hosts:
    """Agents of several hosts at one port: each host's own decider, and what it was sent."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.orders: list[NetworkOrder] = []
        self.silent = False
        self.port = 0

    def add(self, name: str, token: Token, held: InstanceSet, network: tuple[NetworkState, ...] = ()) -> None:
        """A host that holds this set, and runs all of it."""
        memory = HostMemory(1, token, held, network=network)
        self.hosts[name] = Host(HostSettings(name), memory, 1, held.ids)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one order, one answer."""
        wire = Wire(KEY)
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
            found = wire.open_to_host(await reader.readexactly(size))
            if found is None or self.silent:
                return
            request, message = found
            if isinstance(message, NetworkOrder):
                self.orders.append(message)
            for effect in self.hosts[message.host].on(Told(message), 0):
                if isinstance(effect, Reply):
                    writer.write(framed(wire.pack("from host", request, effect.message, 1 << 20)))
            await writer.drain()
        finally:
            writer.close()


class Region:
    """A store with hosts, their agents, and as many managers as are begun."""

    def __init__(self, rows: ReferenceRows, hosts: Hosts) -> None:
        self.rows = rows
        self.hosts = hosts
        self.accept: tuple[str, ...] | None = ("tcp/80 from 0.0.0.0/0",)
        self.away = False
        self.reads = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def accepts(self) -> tuple[str, ...] | None:
        """What the configuration lets in."""
        return self.accept

    def begin(self) -> NetworkManagerRole:
        """One more manager."""
        store = Store(self.rows, self)
        role = NetworkManagerRole(store, self.accepts, Wire(KEY), Condition())
        self.tasks.append(asyncio.ensure_future(role.run()))
        return role

    def host(self, name: str, *instances: str, network: tuple[NetworkState, ...] = ()) -> None:
        """A host that holds its lease and these attempts."""
        held = InstanceSet(1, tuple(Instance(id_, "web", f"192.0.2.{n}", 80) for n, id_ in enumerate(instances, 1)))
        self.hosts.add(name, Token(1, 1, 7), held, network)
        row = HostRow(
            name, "a", f"127.0.0.1:{self.hosts.port}", number=1, nonce=7, lease="held", life=self.rows.life,
            incarnation=1, boot=1, reported=True, set=held,
        )  # fmt: skip
        self.put(row)

    def put(self, *changed: HostRow | ShardRow | NetworkRow) -> None:
        """These rows, over whatever stands there."""
        group: Group = tuple(
            Change(row, found.revision if (found := self.rows.table.get(Change(row, 0).place)) else 0)
            for row in changed
        )
        assert self.rows.commit(None, [group]) is not None

    def ready(self, id_: str) -> bool:
        """Whether an attempt is network-ready."""
        row = self.state(id_)
        host = self.rows.table[("host", row.host)].row if row else None
        assert host is None or isinstance(host, HostRow)
        return ready(row, host, self.rows.life)

    def state(self, id_: str) -> NetworkRow | None:
        """An attempt's row."""
        found = self.rows.table.get(("network", id_))
        return found.row if found is not None and isinstance(found.row, NetworkRow) else None


class Store(ReferenceFleet):
    """A view that may be away."""

    def __init__(self, rows: ReferenceRows, region: Region) -> None:
        super().__init__(rows, lambda ns: asyncio.sleep(ns / 1e9))
        self.region = region

    def reach(self) -> None:
        """Raises ``Unavailable`` while it is away."""
        if self.region.away:
            raise Unavailable("the store is away", where="here")

    async def rows(self, kind: Kind, shard: int | None = None, since: int = 0) -> Page:
        """As the port says."""
        self.reach()
        self.region.reads += 1
        return await super().rows(kind, shard, since)

    async def prove(self, shard: int, places: Sequence[tuple[Kind, str]]) -> Proof:
        """As the port says."""
        self.reach()
        return await super().prove(shard, places)

    async def commit(self, claim: Claim | None, groups: Sequence[Group]) -> Written | None:
        """As the port says."""
        self.reach()
        return await super().commit(claim, groups)


@asynccontextmanager
async def region() -> AsyncIterator[Region]:
    """A region with a shard that somebody owns."""
    hosts = Hosts()
    server = await asyncio.start_server(hosts.serve, "127.0.0.1", 0)
    hosts.port = server.sockets[0].getsockname()[1]
    rows = ReferenceRows("1")
    made = Region(rows, hosts)
    made.put(ShardRow(1, 1, "owner", 1))
    try:
        yield made
    finally:
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
        server.close()
        await server.wait_closed()


async def until(what: Callable[[], bool]) -> None:
    """Wait for it; a test that never sees it is ended by its own limit."""
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110  what it waits for is rows and fields
            await asyncio.sleep(0.01)


def run(test: Callable[[Region], Awaitable[None]]) -> None:
    """Run a test in a region of its own."""

    async def main() -> None:
        async with region() as made:
            await test(made)

    asyncio.run(main())


def test_an_attempt_becomes_ready_once_its_host_has_its_state() -> None:
    """October 2025: instances served before their network state had arrived."""

    async def test(region: Region) -> None:
        region.host("h1", "web-1.1", "web-2.1")
        assert not region.ready("web-1.1")
        region.begin()
        await until(lambda: region.ready("web-1.1") and region.ready("web-2.1"))
        (first,) = region.hosts.orders
        assert [state.version for state in first.states] == [1, 1]
        assert b'"accept":["tcp/80 from 0.0.0.0/0"]' in first.states[0].body

    run(test)


def test_two_managers_do_each_other_no_harm() -> None:
    """Both publish and send the same; rows are written by compare-and-set."""

    async def test(region: Region) -> None:
        for n in range(20):
            region.host(f"h{n}", f"web-{n}.1")
        region.begin()
        region.begin()
        await until(lambda: all(region.ready(f"web-{n}.1") for n in range(20)))
        region.accept = ("tcp/81 from 0.0.0.0/0",)
        newest = '"accept":["tcp/81 from 0.0.0.0/0"]'
        await until(lambda: all(newest in (region.state(f"web-{n}.1") or NONE).body for n in range(20)))
        await until(lambda: all(region.ready(f"web-{n}.1") for n in range(20)))
        assert {(region.state(f"web-{n}.1") or NONE).version for n in range(20)} == {2}

    run(test)


NONE = NetworkRow("", "", 0, "", 0, "")


def test_a_host_that_has_a_higher_version_is_published_above() -> None:
    """After a wiped store numbers begin again below what the hosts have; their word is the floor."""

    async def test(region: Region) -> None:
        region.host("h1", "web-1.1", network=(NetworkState("web-1.1", 41, "other", b"{}"),))
        region.begin()
        await until(lambda: region.ready("web-1.1"))
        assert (region.state("web-1.1") or NONE).version == 42

    run(test)


def test_without_the_store_nothing_is_sent_and_it_goes_on_when_it_is_back() -> None:
    """An order needs the current token, and only the store knows it; what is ready stays ready."""

    async def test(region: Region) -> None:
        region.host("h1", "web-1.1")
        role = region.begin()
        await until(lambda: region.ready("web-1.1"))
        region.away = True
        await until(lambda: role.condition.state == "unavailable")
        sent = len(region.hosts.orders)
        region.accept = ()
        region.host("h2", "web-2.1")
        await asyncio.sleep(0.3)
        assert len(region.hosts.orders) == sent
        assert region.ready("web-1.1")
        region.away = False
        await until(lambda: region.ready("web-2.1") and (region.state("web-1.1") or NONE).version == 2)
        await until(lambda: role.condition.state == "up")

    run(test)


def test_a_store_of_another_life_is_read_anew_and_acknowledged_anew() -> None:
    """Nothing that was acknowledged in another life of the store counts in this one."""

    async def test(region: Region) -> None:
        region.host("h1", "web-1.1")
        region.begin()
        await until(lambda: region.ready("web-1.1"))
        copy = region.rows.copy()
        region.rows.wipe("2", copy)
        row = region.rows.table[("host", "h1")].row
        assert isinstance(row, HostRow)
        assert missing(region.state("web-1.1"), replace(row, life="2"), "2")
        region.put(ShardRow(1, 1, "owner", 2), replace(row, life="2", number=2))
        region.hosts.hosts["h1"].memory = replace(
            region.hosts.hosts["h1"].memory or HostMemory(1), token=Token(2, 2, 7)
        )
        await until(lambda: region.ready("web-1.1"))

    run(test)


def test_without_a_configuration_nothing_is_published_and_nobody_spins() -> None:
    """What may reach instances isn't known: a guess would cut them off, or open them."""

    async def test(region: Region) -> None:
        region.accept = None
        region.host("h1", "web-1.1")
        region.begin()
        now = asyncio.get_running_loop().time
        began = now()
        await asyncio.sleep(0.5)
        assert region.state("web-1.1") is None
        assert region.reads < 120 * (now() - began)
        region.accept = ()
        await until(lambda: region.ready("web-1.1"))

    run(test)


def test_one_silent_host_holds_up_nobody_and_the_rate_stays() -> None:
    """A host that never answers is in line once, and isn't what the drain rate is measured by."""

    async def test(region: Region) -> None:
        region.host("h0", "web-0.1")
        row = region.rows.table[("host", "h0")].row
        assert isinstance(row, HostRow)
        region.put(replace(row, at="127.0.0.1:1"))
        for n in range(1, 5):
            region.host(f"h{n}", f"web-{n}.1")
        role = region.begin()
        await until(lambda: all(region.ready(f"web-{n}.1") for n in range(1, 5)))
        await until(lambda: ("drain", "network") in region.rows.table)
        drain = region.rows.table[("drain", "network")].row
        assert isinstance(drain, DrainRow)
        await until(lambda: role.hands.table.depth == 1)
        assert drain.rate > 0
        assert drain.bound >= 64

    run(test)


def test_rows_of_attempts_that_are_over_go() -> None:
    """An attempt that left its host's set is minded by nobody; its row goes after a minute."""

    async def test(region: Region) -> None:
        region.host("h1", "web-1.1", "web-2.1")
        role = region.begin()
        await until(lambda: region.ready("web-1.1") and region.ready("web-2.1"))
        row = region.rows.table[("host", "h1")].row
        assert isinstance(row, HostRow)
        region.put(replace(row, set=InstanceSet(2, row.set.instances[:1])))
        await until(lambda: "web-2.1" in role.hands.table.astray)
        role.hands.table.astray["web-2.1"] -= 61 * 10**9
        await until(lambda: region.state("web-2.1") is None)
        assert region.ready("web-1.1")

    run(test)


@pytest.mark.parametrize("count", [300])
def test_many_states_of_one_host_change_and_only_the_newest_is_sent(count: int) -> None:
    """Older versions collapse: while a host is silent its states change three times, and it is sent the last."""

    async def test(region: Region) -> None:
        ids = [f"web-{n}.1" for n in range(count)]
        region.host("h1", *ids)
        region.hosts.silent = True
        region.begin()
        for n in range(1, 4):
            region.accept = (f"tcp/{n} from 0.0.0.0/0",)
            await until(lambda n=n: all((region.state(id_) or NONE).version == n for id_ in ids))  # type: ignore[misc]
        region.hosts.silent = False
        await until(lambda: all(region.ready(id_) for id_ in ids))
        # One order may have been under way while the second and the third were published.
        versions = [{state.version for state in order.states} for order in region.hosts.orders]
        assert sum(each != {3} for each in versions) <= 1
        assert len(region.hosts.orders) <= 3

    run(test)
