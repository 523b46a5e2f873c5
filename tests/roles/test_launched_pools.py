"""Pools that launch their targets: load balancers list them by the fleet's rows, and checkers probe who is listed."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.assembly.checkers import checker_settings
from fencepost.core.capacity import attempts
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.rows import FleetRow, HostRow, InstanceRow, InstanceState, NetworkRow, ShardRow
from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.fleet_rows import FleetRows
from fencepost.core.traffic.membership import Fate, Membership, State
from fencepost.ports import Misconfigured, Unavailable
from fencepost.ports.fleet import Page
from fencepost.roles import configuration
from fencepost.roles.checker.listing import Listed
from fencepost.roles.configuration import Loaded
from fencepost.roles.domains import Domains
from fencepost.roles.fleet.serving import ServingRows
from fencepost.roles.load_balancer import LoadBalancers
from fencepost.roles.loop import Condition
from fencepost.settings import Region, load
from fencepost.settings.schema import Launch, Target
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows
from fencepost.world.reference_store import ReferenceStore

SAMPLE = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})


def region() -> Region:
    """The sample, whose pool launches instances and has no other targets."""
    (web,) = SAMPLE.pools
    return structs.replace(SAMPLE, pools=(structs.replace(web, targets=(), launch=Launch(5302)),))


async def pause(length: Duration) -> None:
    """Let time pass."""
    await asyncio.sleep(length / SECOND)


async def new_store() -> ReferenceStore:
    """A store with that configuration."""
    numbers = itertools.count(1)
    store = ReferenceStore("beef" * 8, lambda: f"{next(numbers):08x}", pause)
    await store.put_config(configuration.encode(Loaded(region(), 1, 0)), b"")
    return store


def put(rows: ReferenceRows, *changed: FleetRow) -> None:
    """These rows, over whatever stands there."""
    for row in changed:
        found = rows.table.get(Change(row, 0).place)
        assert rows.commit(None, [(Change(row, found.revision if found else 0),)]) is not None


def launch(rows: ReferenceRows, name: str, number: int, *, acknowledged: bool) -> InstanceRow:
    """An instance is placed on a host of its own."""
    host = HostRow(f"h{number}", "abc"[number % 3], "h:1", lease="held", life=rows.life, boot=1, reported=True)
    host, instance = attempts.placed(InstanceRow(name, "web", port=5302), host, f"127.0.9.{number}")
    acked = (1, "d", 1, rows.life) if acknowledged else (0, "", 0, "")
    put(rows, host, instance, NetworkRow(instance.id, host.host, 1, "d", 1, "{}", acked))
    return instance


async def membership(store: ReferenceStore) -> Membership:
    """The pool's row."""
    return msgspec.json.decode((await store.membership("web"))[1], type=Membership)


def test_placed_instances_are_listed_pending_and_probed() -> None:
    """Membership lists them, with address, zone and port; the checkers probe exactly those."""

    async def go() -> None:
        store, rows = await new_store(), ReferenceRows("1")
        launch(rows, "web-a", 1, acknowledged=True)
        launch(rows, "web-b", 2, acknowledged=False)
        balancers = LoadBalancers("load balancer", store, Domains({}), fleet=ReferenceFleet(rows, pause))
        for _ in range(2):
            await balancers.balance(Condition())
        row = await membership(store)
        assert [(each.key, each.zone, each.state, each.port, each.source) for each in row.members] == [
            ("127.0.9.1", "b", State.PENDING, 5302, "web-a.1"),
            ("127.0.9.2", "c", State.PENDING, 5302, "web-b.1"),
        ]
        causes = [each.cause for each in row.members]
        assert "network state" not in causes[0]
        assert "network state" in causes[1]
        listed, loaded = Listed(), Loaded(region(), 1, 0)
        assert listed.take(loaded, await store.inputs())
        assert not listed.take(loaded, await store.inputs())
        (pool,) = checker_settings(region(), "a", listed.instances).pools
        assert [(each.key, each.port) for each in pool.targets] == [("127.0.9.1", 5302), ("127.0.9.2", 5302)]
        assert checker_settings(region(), "a").pools == ()

    asyncio.run(go())


def test_a_terminated_instance_is_listed_and_probed_no_more() -> None:
    """Its owner ended it; a pool keeps its last one all the same."""

    async def go() -> None:
        store, rows = await new_store(), ReferenceRows("1")
        first = launch(rows, "web-a", 1, acknowledged=True)
        launch(rows, "web-b", 2, acknowledged=True)
        launch(rows, "web-c", 3, acknowledged=True)
        balancers = LoadBalancers("load balancer", store, Domains({}), fleet=ReferenceFleet(rows, pause))
        await balancers.balance(Condition())
        put(rows, attempts.ending(first))
        await balancers.balance(Condition())
        assert [each.source for each in (await membership(store)).members] == ["web-b.1", "web-c.1"]

    asyncio.run(go())


def test_the_rows_as_read_last_stand_while_the_fleets_store_is_away_or_new() -> None:
    """Never emptied by silence: neither an error nor an empty store is a word about anybody."""

    class Away(ReferenceFleet):
        away = False

        async def rows(self, kind: object, shard: int | None = None, since: int = 0) -> Page:
            if self.away:
                raise Unavailable("the store is away")
            return await super().rows(kind, shard, since)  # type: ignore[arg-type]

    async def go() -> None:
        store, rows = await new_store(), ReferenceRows("1")
        launch(rows, "web-a", 1, acknowledged=True)
        fleet = Away(rows, pause)
        balancers = LoadBalancers("load balancer", store, Domains({}), fleet=fleet)
        await balancers.balance(Condition())
        fleet.away = True
        serving = ServingRows(fleet)
        assert not (await serving.read()).instances
        assert serving.problem is not None
        await balancers.balance(Condition())
        fleet.away = False
        rows.wipe("2")
        await store.put_config(configuration.encode(Loaded(region(), 7, 0)), (await store.inputs()).config)
        for _ in range(3):
            await balancers.balance(Condition())
        row = await membership(store)
        assert [each.source for each in row.members] == ["web-a.1"]
        assert row.revision == 7

    asyncio.run(go())


def test_nobody_leaves_by_absence_while_half_of_the_list_cant_be_read() -> None:
    """An address leaves the file because an instance has it now. A planner that has just started, and can't read the
    fleet's rows, knows of no instance: it waits (external-dns #2858: a source that stops halfway deletes nothing).
    """

    class Away(ReferenceFleet):
        away = True

        async def rows(self, kind: object, shard: int | None = None, since: int = 0) -> Page:
            if self.away:
                raise Misconfigured("a host's row is a newer version's")
            return await super().rows(kind, shard, since)  # type: ignore[arg-type]

    async def go() -> None:
        store, rows = await new_store(), ReferenceRows("1")
        launch(rows, "web-a", 1, acknowledged=True)
        (web,) = region().pools
        three = tuple(Target(f"127.0.9.{number}", "a", None, 0, 0) for number in (1, 2, 3))
        for revision, listed in ((2, three), (3, three[1:])):
            loaded = Loaded(structs.replace(region(), pools=(structs.replace(web, targets=listed),)), revision, 0)
            await store.put_config(configuration.encode(loaded), (await store.inputs()).config)
            fleet = Away(rows, pause)
            fleet.away = revision == 3
            balancers = LoadBalancers("load balancer", store, Domains({}), fleet=fleet)
            await balancers.balance(Condition())
        row = await membership(store)
        assert {each.key for each in row.members} == {each.address for each in three}
        assert row.revision == 2
        assert "newer version" in balancers.told["the fleet's rows"]
        fleet.away = False
        await balancers.balance(Condition())
        row = await membership(store)
        assert row.revision == 3
        assert {each.key: (each.source, each.state) for each in row.members}["127.0.9.1"] == ("web-a.1", State.IN)

    asyncio.run(go())


@given(st.lists(st.tuples(st.integers(1, 3), st.sets(st.integers(1, 5)), st.sets(st.integers(1, 3))), max_size=12))
def test_where_an_attempt_is_and_who_gives_an_address_is_known_as_if_all_hosts_were_looked_through(
    story: list[tuple[int, set[int], set[int]]],
) -> None:
    """Looking through 100,000 hosts each second for one former member is what makes a balancer late."""

    async def go() -> None:
        rows = ReferenceRows("1")
        serving, holds = ServingRows(ReferenceFleet(rows, pause)), dict[int, set[int]]()
        for number, ids, addresses in story:
            elsewhere = set[int]().union(*(those for host, those in holds.items() if host != number))
            holds[number] = ids - elsewhere  # an attempt is in one host's set at a time
            instances = tuple(Instance(f"web-{each}.1") for each in sorted(holds[number]))
            given = tuple(f"192.0.2.{each}" for each in sorted(addresses))
            put(rows, HostRow(f"h{number}", "a", "h:1", addresses=given, set=InstanceSet(number, instances)))
            found = await serving.read()
            hosts = [found.hosts[name] for name in sorted(found.hosts)]
            wanted = {f"web-{each}.1" for each in range(1, 6)}
            assert found.holder(wanted) == {id_: host for host in hosts for id_ in host.set.ids}
            for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
                assert found.giving(address) == [host for host in hosts if address in host.addresses]
            assert found == FleetRows.of("1", hosts), "nothing else is left of what was"

    asyncio.run(go())


states = st.sampled_from(["waiting", "placed", "ending", "ended"])


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["web", "api"]), states, st.integers(0, 2)), max_size=12),
)
def test_a_pools_placed_instances_and_an_addresss_are_known_as_if_all_were_looked_through(
    story: list[tuple[int, str, InstanceState, int]],
) -> None:
    """Ten pools, each looking through all of 100,000 instances each second, leave a balancer no time for else."""

    async def go() -> None:
        rows = ReferenceRows("1")
        serving = ServingRows(ReferenceFleet(rows, pause))
        for number, pool, state, at in story:
            put(rows, InstanceRow(f"i{number}", pool, state, 1, "h1", f"192.0.2.{at}" if at else ""))
            found = await serving.read()
            instances = [found.instances[name] for name in sorted(found.instances)]
            for each in ("web", "api"):
                assert found.of_pool(each) == [row for row in instances if row.pool == each and row.state == "placed"]
            there = [row for row in instances if row.state in ("placed", "ending")]
            for address in ("192.0.2.1", "192.0.2.2"):
                assert found.of_address(address) == [row for row in there if row.address == address]
            assert found == FleetRows.of("1", instances), "nothing else is left of what was"

    asyncio.run(go())


class Looked(dict[str, Any]):
    """Rows, or lists of them, that count how often one of them is looked at."""

    count = 0

    def __getitem__(self, key: str) -> Any:
        Looked.count += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """One row."""
        Looked.count += 1
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        Looked.count += len(self)
        return super().__iter__()

    def values(self) -> Any:
        """All rows."""
        Looked.count += len(self)
        return super().values()

    def items(self) -> Any:
        """All rows."""
        Looked.count += len(self)
        return super().items()


def test_a_pass_looks_at_what_its_pool_has_and_at_what_changed_and_not_at_the_whole_fleet() -> None:
    """A load balancer passes each second, also over a fleet of 100,000 instances: DESIGN's "at a cost that grows with
    what changed" of a store's rows holds for who reads them too. Counted in rows, since seconds tell of the machine."""

    async def go() -> None:
        web = region().pools[0]
        targets = SAMPLE.pools[0].targets[:2]
        listed = structs.replace(region(), pools=(structs.replace(web, targets=targets),))
        store, rows, fleet = await new_store(), ReferenceRows("1"), 500
        await store.put_config(configuration.encode(Loaded(listed, 2, 0)), (await store.inputs()).config)
        for number in range(fleet):
            host = HostRow(
                f"h{number}", "a", "h:1", 1, (f"192.0.{number // 250}.{number % 250}",), lease="held", life="1"
            )
            put(rows, *attempts.placed(InstanceRow(f"api-{number}", "api"), host, host.addresses[0]))
        for number, target in enumerate(targets):
            host = HostRow(f"w{number}", "a", "h:1", 1, (target.address,), lease="held", life="1")
            put(rows, *attempts.placed(InstanceRow(f"web-{number}", "web"), host, target.address))
        balancers = LoadBalancers("load balancer", store, Domains({}), fleet=ReferenceFleet(rows, pause))
        assert balancers.fleet is not None
        await balancers.balance(Condition())
        for name in ("instances", "hosts", "networks", "placed", "at", "holders", "givers"):
            setattr(balancers.fleet.rows, name, Looked(getattr(balancers.fleet.rows, name)))
        put(rows, attempts.ending(balancers.fleet.rows.instances["web-0"]))
        Looked.count = 0
        await balancers.balance(Condition())
        left = (await membership(store)).members[0]
        assert (left.key, left.state, left.fate) == (targets[0].address, State.DRAINED, Fate.TERMINATED)
        assert 0 < Looked.count < 50, "of more than 1,000 rows"

    asyncio.run(go())


def test_hosts_are_heard_once_each_shard_is_open_and_what_they_told_is_a_row_again() -> None:
    """Of one pool: what another pool's hosts run holds up nobody. A shard that was open in another life isn't."""

    async def work() -> None:
        rows = ReferenceRows("life-1")
        serving = ServingRows(ReferenceFleet(rows, pause))
        told = InstanceSet(1, (Instance("web-1.1", "web"), Instance("db-1.1", "db")))
        host = HostRow("h1", "a", "192.0.2.1:1", lease="held", life="life-1", reported=True, set=told)
        put(rows, host, ShardRow(1, 2, open="life-1"))
        assert not await serving.heard("web", 2), "the second shard has no row"
        put(rows, ShardRow(2, 2, open="life-0"))
        assert not await serving.heard("web", 2)
        put(rows, ShardRow(2, 2, open="life-1"))
        assert not await serving.heard("web", 2), "its instance has no row yet"
        put(rows, InstanceRow("web-1", "web", "placed", 1, "h1"))
        assert await serving.heard("web", 2)
        assert not await serving.heard("db", 2)

    asyncio.run(work())
