"""What every store must do with the fleet's rows: one suite, run on each adapter and on the reference."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from fencepost.core.capacity.fleet_store import Change, Claim, Group
from fencepost.core.capacity.messages import Instance, InstanceSet
from fencepost.core.capacity.rows import (
    KINDS,
    CalibrationRow,
    CheckpointRow,
    DrainRow,
    FleetRow,
    HostRow,
    InstanceRow,
    Kind,
    LaunchRow,
    NetworkRow,
    ShardRow,
    kind_of,
)
from fencepost.core.capacity.shards import shard_of
from fencepost.core.instant import MILLISECOND, SECOND
from fencepost.ports import Refused
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.fleet.paging import pages

Make: TypeAlias = Callable[[], FleetStorePort]
EACH_KIND: tuple[FleetRow, ...] = (
    ShardRow(1, 2, "m-1", 3, 4, "life", 5),
    HostRow(
        "host-1", "a", "192.0.2.1:5", 4, ("192.0.2.9",), 2**63 - 1, 2**64 - 1, "held", "life", 2**64 - 1, 7, 8,
        reported=True, set=InstanceSet(9, (Instance("web-1.1", "web", "192.0.2.9", 80, ("serve", "\0é")),)),
        word="drain",
    ),
    InstanceRow("web-1", "web", "placed", 1, "host-1", "192.0.2.9", 80, "a", ("serve",), ("host-0", "web-1.0"), 1, 2),
    NetworkRow("web-1.1", "host-1", 4, "abcd", 12, '{"routes": "\\u0000"}', (4, "abcd", 7, "life")),
    LaunchRow("key-1", "digest", ("web-1", "web-2"), 5),
    CheckpointRow("1/0", "m-1", 5, ("host-1", "host-2"), (1, 2), past=((7, 1, 2), (9, 2, 2))),
    CalibrationRow("manager", 64, 40_000_000, 200_000_000, 1600.5, 5),
    DrainRow("placement", 3, 100, 12.5, 7, 5),
)  # fmt: skip


def host(name: str, number: int = 0) -> HostRow:
    """A host's row; ``number`` tells one state of it from another."""
    return HostRow(name, "a", "192.0.2.1:5303", number=number)


def new(*rows: FleetRow) -> Group:
    """A group that writes rows which aren't there yet."""
    return tuple(Change(row, 0) for row in rows)


async def claimed(store: FleetStorePort, owner: str = "m-1", epoch: int = 1, shard: int = 1, of: int = 1) -> Claim:
    """Make ``owner`` the owner of a shard, whatever stands there."""
    proof = await store.prove(shard, [("shard", str(shard))])
    (found,) = proof.rows
    seen = found.revision if found is not None else 0
    written = await store.commit(None, [(Change(ShardRow(shard, of, owner, epoch), seen),)])
    assert written is not None
    assert written.applied == (True,)
    return Claim(shard, owner, epoch, proof.life)


async def put(store: FleetStorePort, *rows: FleetRow) -> int:
    """Write rows that aren't there yet; the snapshot."""
    written = await store.commit(None, [new(row) for row in rows])
    assert written is not None
    assert all(written.applied)
    return written.snapshot


async def names(store: FleetStorePort, kind: Kind = "host", shard: int | None = None, since: int = 0) -> list[str]:
    """The keys of what changed."""
    return [found.row.key for found in (await store.rows(kind, shard, since)).rows]


def on_views(count: int) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[[Any, Make], None]]:
    """A test of one new store, opened so many times; all are closed at the end whatever happens."""

    def decorate(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[Any, Make], None]:
        def run(self: object, make: Make) -> None:
            async def go() -> None:
                views = [make() for _ in range(count)]
                try:
                    await views[0].rows("shard")  # makes it
                    await asyncio.wait_for(test(self, *views), 60)
                finally:
                    for view in views:
                        await view.close()

            asyncio.run(go())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


class FleetStoreContract:
    """The suite; a subclass gives ``make``, which opens one new store, each time once more.

    ``writers`` race in ``rounds``; a slow emulator may have fewer.
    """

    writers = 20
    rounds = 10
    many = 3000

    @pytest.fixture
    def make(self) -> Make:
        """To be given by each subclass."""
        raise NotImplementedError

    @on_views(2)
    async def test_a_new_store_is_empty_and_has_a_life(self, store: FleetStorePort, other: FleetStorePort) -> None:
        """Whoever opens it reads the same life: by it a wiped store is told from the one before."""
        page = await store.rows("host")
        assert page.life
        assert (page.snapshot, tuple(page.rows)) == (0, ())
        proof = await other.prove(1, [("host", "host-1")])
        assert (proof.life, proof.shard, tuple(proof.rows)) == (page.life, None, (None,))

    @on_views(2)
    async def test_each_kind_of_row_comes_back_as_written(self, store: FleetStorePort, other: FleetStorePort) -> None:
        """All fields, numbers of 64 bits and any text included."""
        assert {kind_of(row) for row in EACH_KIND} == set(KINDS)
        snapshot = await put(store, *EACH_KIND)
        for row in EACH_KIND:
            page = await other.rows(kind_of(row))
            assert (page.snapshot, [tuple(found) for found in page.rows]) == (snapshot, [(row, snapshot)])
        proof = await other.prove(1, [(kind_of(row), row.key) for row in EACH_KIND])
        assert proof.shard == EACH_KIND[0]
        assert [found.row for found in proof.rows if found is not None] == list(EACH_KIND)

    @on_views(1)
    async def test_a_row_is_written_over_the_one_read_and_no_other(self, store: FleetStorePort) -> None:
        """Compare-and-set on the revision: over an older one, over none, or over one that is gone nothing happens."""
        first = await put(store, host("host-1"))
        for seen, number, applies in ((0, 1, False), (first + 1, 2, False), (first, 3, True), (first, 4, False)):
            written = await store.commit(None, [(Change(host("host-1", number), seen),)])
            assert written is not None
            assert written.applied == (applies,), seen
            assert written.snapshot == first + (number >= 3), "one that changes nothing makes no snapshot"
        ((row, revision),) = (await store.rows("host")).rows
        assert (row, revision) == (host("host-1", 3), first + 1)
        written = await store.commit(None, [(Change(None, revision, ("host", "host-1")),)])
        assert written is not None
        assert written.applied == (True,)
        assert await names(store) == []
        written = await store.commit(None, [(Change(host("host-1"), revision),)])
        assert written is not None
        assert written.applied == (False,)
        assert await put(store, host("host-1")) == revision + 2, "made anew it has a revision that it never had before"

    @on_views(1)
    async def test_a_group_is_all_or_nothing_and_others_are_none_of_its_business(self, store: FleetStorePort) -> None:
        """One host that changed meanwhile holds up nobody else's grant, and leaves none half written."""
        snapshot = await put(store, host("host-1"), host("host-2"))
        groups = [
            (Change(host("host-1", 1), snapshot), Change(InstanceRow("web-1"), 0)),
            (Change(host("host-2", 1), snapshot - 1), Change(InstanceRow("web-2"), 0)),
            (Change(InstanceRow("web-3"), 0), Change(None, snapshot, ("host", "host-9"))),
            new(InstanceRow("web-4")),
        ]
        written = await store.commit(None, groups)
        assert written is not None
        assert written.applied == (True, False, False, True)
        assert [(row.key, row.number) for row, _ in (await store.rows("host")).rows if isinstance(row, HostRow)] == [
            ("host-1", 1),
            ("host-2", 0),
        ]
        assert await names(store, "instance") == ["web-1", "web-4"]

    @on_views(1)
    async def test_changes_that_mean_nothing_are_refused(self, store: FleetStorePort) -> None:
        """Two groups about one row would depend on an order that nobody promised."""
        wrong: list[list[Group]] = [
            [new(host("host-1")), new(host("host-1"))],
            [new(host("host-1"), host("host-1"))],
            [(Change(None, 0, ("host", "host-1")),)],
            [new(host("host\0-1"))],
            [new(host("h" * 901))],
            [new(ShardRow(1, 0))],
        ]
        for groups in wrong:
            with pytest.raises(Refused):
                await store.commit(None, groups)
        assert await names(store) == []
        written = await store.commit(None, [])
        assert written is not None
        assert (written.snapshot, written.applied) == (0, ())

    @on_views(2)
    async def test_nothing_is_written_under_a_claim_that_does_not_stand(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """Owner, epoch, shard and life are compared as the commit takes effect (hashicorp/nomad #3840)."""
        claim = await claimed(store)
        wrong = (
            replace(claim, owner="m-2"),
            replace(claim, epoch=2),
            replace(claim, shard=2),
            replace(claim, life="another"),
        )
        for each in wrong:
            assert await other.commit(each, [new(host("host-1"))]) is None
            assert await other.commit(each, []) is None
        assert await names(store) == []
        written = await other.commit(claim, [new(host("host-1"))])
        assert written is not None
        assert written.applied == (True,)

    @on_views(2)
    async def test_a_claim_lost_between_reading_and_writing_writes_nothing(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """A manager that slept through losing its shard (nomad #3840): every row still fits, and nothing applies."""
        claim = await claimed(store)
        snapshot = await put(store, host("host-1"))
        proof = await store.prove(1, [("host", "host-1")])
        assert proof.shard is not None
        assert claim.stands(proof.shard, proof.life)
        await claimed(other, "m-2", 2)
        assert await store.commit(claim, [(Change(host("host-1", 1), snapshot),), new(host("host-2"))]) is None
        assert [found.row for found in (await other.rows("host")).rows] == [host("host-1")]

    @on_views(2)
    async def test_a_shard_may_be_given_away_under_its_own_claim(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """The owner's beat is written under its claim, in one commit with what it grants; a second one fails then."""
        claim = await claimed(store)
        ((row, seen),) = (await store.rows("shard")).rows
        assert isinstance(row, ShardRow)
        written = await store.commit(claim, [(Change(replace(row, beat=1), seen),), new(host("host-1"))])
        assert written is not None
        assert written.applied == (True, True)
        given = Change(replace(row, owner="", beat=2), written.snapshot)
        assert await store.commit(claim, [(given,)]) is not None
        assert await other.commit(claim, [new(host("host-2"))]) is None

    @on_views(20)
    async def test_of_many_writers_on_one_row_one_wins_each_round(self, *stores: FleetStorePort) -> None:
        """Twenty compare-and-sets on what each has just read: one applies, the refused are counted, no number twice."""
        stores = stores[: self.writers]
        seen = {await put(stores[0], host("host-1"))}
        barrier = asyncio.Barrier(len(stores))

        async def raced(place: int) -> tuple[bool, int]:
            ((row, revision),) = (await stores[place].rows("host")).rows
            assert isinstance(row, HostRow)
            await barrier.wait()
            written = await stores[place].commit(None, [(Change(replace(row, nonce=place), revision),)])
            assert written is not None
            return written.applied[0], place

        for _ in range(self.rounds):
            outcomes = await asyncio.gather(*(raced(place) for place in range(len(stores))))
            won = [place for applied, place in outcomes if applied]
            assert len(won) == 1
            ((row, revision),) = (await stores[0].rows("host")).rows
            assert isinstance(row, HostRow)
            assert row.nonce == won[0]
            assert revision not in seen
            seen.add(revision)

    @on_views(4)
    async def test_readers_miss_nothing_while_others_write(self, *stores: FleetStorePort) -> None:
        """Who reads what changed since its last snapshot knows every row, whatever order commits end in."""
        mirror: dict[str, int] = {}
        done = asyncio.Event()

        async def write(place: int) -> None:
            for number in range(self.rounds * 4):
                seen = (await stores[place].prove(1, [("host", "shared")])).rows[0]
                shared = Change(host("shared", number * 3 + place), seen.revision if seen is not None else 0)
                assert await stores[place].commit(None, [new(host(f"host-{place}-{number}")), (shared,)]) is not None

        async def read() -> None:
            since, last = 0, False
            while True:
                page = await stores[3].rows("host", None, since)
                assert page.snapshot >= since
                for row, revision in page.rows:
                    assert since < revision <= page.snapshot
                    mirror[row.key] = revision
                since = page.snapshot
                if last:
                    return
                last = done.is_set()
                await asyncio.sleep(0)

        reading = asyncio.create_task(read())
        await asyncio.gather(*(write(place) for place in range(3)))
        done.set()
        await reading
        assert mirror == {found.row.key: found.revision for found in (await stores[0].rows("host")).rows}
        assert len(mirror) == 3 * self.rounds * 4 + 1

    @on_views(1)
    async def test_only_what_changed_is_read(self, store: FleetStorePort) -> None:
        """Since a snapshot: rows written after it, in order of their keys, of that kind alone."""
        await put(store, host("host-1"), host("host-2"), InstanceRow("web-1"))
        second = await put(store, host("host-3"))
        third = await put(store, host("host-0"), InstanceRow("web-2"))
        assert await names(store) == ["host-0", "host-1", "host-2", "host-3"]
        assert await names(store, since=second - 1) == ["host-0", "host-3"]
        assert await names(store, since=second) == ["host-0"]
        assert await names(store, "instance", since=second) == ["web-2"]
        assert await names(store, since=third) == []

    @on_views(1)
    async def test_a_shard_is_read_alone(self, store: FleetStorePort) -> None:
        """Hosts and instances by their names' hash, among as many shards as the shard's row says; others are whole."""
        wanted = [f"host-{number}" for number in range(40)]
        await put(store, *(host(name) for name in wanted), LaunchRow("key-1", "", ()))
        assert await names(store, shard=2) == [], "nobody has said how many shards there are"
        for of in (3, 1, 7):
            for shard in range(1, of + 1):
                await claimed(store, of=of, shard=shard)
            found = [await names(store, shard=shard) for shard in range(1, of + 1)]
            assert found == [sorted(n for n in wanted if shard_of(n, of) == shard) for shard in range(1, of + 1)]
            assert await names(store, "launch", shard=of) == ["key-1"]
        snapshot = (await store.rows("host")).snapshot
        await put(store, InstanceRow("web-1"), InstanceRow("web-2"), InstanceRow("web-3"))
        later = [await names(store, "instance", shard=shard, since=snapshot) for shard in range(1, 8)]
        assert sorted(name for each in later for name in each) == ["web-1", "web-2", "web-3"]
        assert all(shard_of(name, 7) == place for place, each in enumerate(later, 1) for name in each)

    @on_views(1)
    async def test_a_page_at_a_time_no_row_is_missed(self, store: FleetStorePort) -> None:
        """What was there at the first page comes once; what comes or changes meanwhile is read after its snapshot."""
        hosts = [f"host-{number:02}" for number in range(40)]
        await put(store, *map(host, hosts), InstanceRow("web-1"))
        assert [len(page.rows) async for page in pages(store, "host", 1, 3)] == [0], "nobody owns a shard yet"
        for shard in (1, 2):
            await claimed(store, of=2, shard=shard)
        for which in (1, 2, None):
            found = [page async for page in pages(store, "host", which, 3)]
            assert [at.row.key for page in found for at in page.rows] == await names(store, shard=which)
        found = []
        async for page in pages(store, "host", None, 3):
            found.append(page)
            proof = await store.prove(1, [("host", hosts[0]), ("host", hosts[-1])])
            assert await store.commit(None, [(Change(*at),) for at in proof.rows if at is not None])
        assert [at.row.key for page in found for at in page.rows] == hosts
        changed = {at.row.key for at in (await store.rows("host", None, found[0].snapshot)).rows}
        assert changed == {"host-00", "host-39"}

    @on_views(2)
    async def test_thousands_of_groups_are_one_commit(self, store: FleetStorePort, other: FleetStorePort) -> None:
        """A mass grant: every group is told of, those that don't fit too."""
        claim = await claimed(store)
        await put(store, host("host-00007"))
        hosts = [f"host-{number:05}" for number in range(self.many)]
        written = await store.commit(claim, [new(host(name, 1)) for name in hosts])
        assert written is not None
        assert [name for name, ok in zip(hosts, written.applied, strict=True) if not ok] == ["host-00007"]
        found = (await other.rows("host")).rows
        assert [row.key for row, _ in found] == hosts
        changes = [(Change(replace(row, number=2), seen),) for row, seen in found if isinstance(row, HostRow)]
        written = await other.commit(claim, changes)
        assert written is not None
        assert all(written.applied)

    @on_views(2)
    async def test_a_writer_whose_answer_was_lost_finds_its_own_row(
        self, store: FleetStorePort, other: FleetStorePort
    ) -> None:
        """Read again, the row has the writer's own nonce and counts as written; sent again it would be refused
        (cirello-io/dynamolock #280: the own newer version was taken for another's)."""
        seen = await put(store, host("host-1"))
        granted = replace(host("host-1"), number=1, nonce=77)
        assert await store.commit(None, [(Change(granted, seen),)]) is not None  # and say that its answer is lost
        (found,) = (await other.prove(1, [("host", "host-1")])).rows
        assert found is not None
        assert found.row == granted
        assert found.revision > seen
        again = await other.commit(None, [(Change(granted, seen),)])
        assert again is not None
        assert again.applied == (False,)

    @on_views(2)
    async def test_who_waits_is_told_of_a_change(self, store: FleetStorePort, other: FleetStorePort) -> None:
        """Another process's commit ends the wait; without one it ends by itself."""
        await store.wait(10 * MILLISECOND)
        waiting = asyncio.create_task(store.wait(30 * SECOND))
        await asyncio.sleep(0)
        await put(other, host("host-1"))
        await asyncio.wait_for(waiting, 20)
        assert await names(store) == ["host-1"]
