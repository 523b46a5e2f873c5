"""A manager's side words: what it notes of hosts, what it takes up while it runs, and what was measured."""

import asyncio

import numpy as np
from held_hosts import KEY, R, fleet, owning, rows_of, run, told
from msgspec import structs

from fencepost.core.capacity import attempts
from fencepost.core.capacity.fleet_store import Change, Versioned
from fencepost.core.capacity.lease_calls import Lease, ShardRead, ShardWritten, Tick, lease_settings
from fencepost.core.capacity.lease_columns import LONG_AGO
from fencepost.core.capacity.placement import PlacementSettings
from fencepost.core.capacity.rows import CalibrationRow, CheckpointRow, HostRow, InstanceRow, ShardRow
from fencepost.core.instant import MILLISECOND
from fencepost.ports import Unavailable
from fencepost.roles.fleet.calibrated import UNCALIBRATED, settings_from
from fencepost.roles.fleet.host_manager import HostManager, now
from fencepost.roles.fleet.manager_questions import Questions
from fencepost.roles.fleet.placer import Placer
from fencepost.roles.fleet.view import View
from fencepost.roles.fleet.wire import Wire
from fencepost.roles.loop import Condition


def test_hosts_are_noted_a_thousand_a_row_and_only_where_something_happened() -> None:
    """And shown: who didn't answer is suspect although no row of its own says so (many silent at once are unmarked)."""

    async def work() -> None:
        store = fleet(1500)
        manager = owning(store, 1500)
        teller = told(manager, store)
        manager.leases.hosts.fresh[3] = False
        manager.leases.hosts.seen[3] = manager.leases.taken = now() - 2 * R
        await teller.tell()
        page = await store.rows("checkpoint")
        blocks = {at.row.block: at.row for at in page.rows if isinstance(at.row, CheckpointRow)}
        assert sorted(blocks) == ["1", "1/000000", "1/000001"]
        assert (len(blocks["1/000000"].hosts), len(blocks["1/000001"].hosts)) == (1000, 500)
        assert blocks["1/000000"].silent == (3,)
        assert blocks["1"].counts["held"] == 1500
        assert blocks["1"].counts["suspect"] == 1
        view = View(store, now)
        await view.refresh()
        seen = {each.host: (each.lease, each.seen_s) for each in view.hosts(blocks["1"].at, str)}
        assert seen["h0003"] == ("suspect", 20)
        assert seen["h0004"][0] == "held"
        before = page.snapshot
        teller.blocks_at = now() - R
        manager.leases.hosts.seen[1200] = now()
        for some in teller.due(now(), now() - 1):
            assert [row.block for row in some] == ["1/000001"]
        assert (await store.rows("checkpoint")).snapshot == before

    run(work)


def test_a_drained_host_with_no_place_elsewhere_is_named() -> None:
    """Its instances stayed for ever and nobody was told; with room anywhere, or no word, there is nothing to tell."""

    async def work() -> None:
        store = fleet(2)
        teller = told(owning(store, 2), store)
        placement = teller.placer.placement
        placement.life = placement.room.life = "life-1"
        placement.shard(ShardRow(1, 1, "m", 1, open="life-1"))
        first, second = (structs.replace(each, addresses=(f"192.0.2.{n}",)) for n, each in enumerate(rows_of(2)))
        there, row = attempts.placed(InstanceRow("web-1", "web"), first, "192.0.2.0")
        placement.instance(Versioned(row, 1))
        drained = structs.replace(there, word="drain")
        shut = structs.replace(second, word="cordon")
        for number, (hosts, stuck) in enumerate(
            (((drained, second), ()), ((drained, shut), (("h0000", 1),)), ((there, shut), ())), 2
        ):
            for host in hosts:
                placement.host(Versioned(host, number))
            await teller.count_instances()
            assert (teller.stuck, teller.states["stuck"]) == (stuck, len(stuck))

    run(work)


def test_a_manager_gives_signs_of_life_as_what_it_is_just_then() -> None:
    """One that stands by has a name of its own: under one name each would wipe out the other's sign of life."""

    async def work() -> None:
        settings, condition = lease_settings("m", 1, 1, R), Condition()
        admission = settings_from(UNCALIBRATED, settings)
        manager = HostManager(settings, admission, fleet(0), Questions(Wire(KEY), Condition()), condition)
        assert manager.called() == "host-manager/1/standby"
        manager.leases.on(Tick(), now())
        for event in (ShardRead("life-1", None), ShardRead("life-1", None), ShardWritten(ShardRow(1, 1, "m", 1))):
            condition.changed.clear()
            manager.tell(event, now())
        assert manager.called() == "host-manager/1"
        assert condition.changed.is_set(), "it is told at once"
        manager.tell(ShardRead("life-1", ShardRow(1, 1, "other", 2)), now())
        assert manager.called() == "host-manager/1/standby"

    run(work)


def test_a_manager_that_stands_by_tells_nothing_of_what_failed_while_it_had_the_shard() -> None:
    """A store lost while two ran: the one that lost the shard said for good that the store's file is gone, which
    `status` raised to what needs a person, long after there was another (seen by hand)."""

    async def work() -> None:
        condition, store = Condition(), fleet(0)
        questions = Questions(Wire(KEY), Condition())
        settings = lease_settings("m", 1, 1, R)
        manager = HostManager(settings, settings_from(UNCALIBRATED, settings), store, questions, condition)
        placer = Placer(PlacementSettings(1, 1), store, manager, condition)
        manager.leases.on(Tick(), now())
        for event in (ShardRead("life-1", None), ShardRead("life-1", None), ShardWritten(ShardRow(1, 1, "m", 1))):
            manager.tell(event, now())
        for call in ("reading hosts", "writing leases", "proving leases", "placing"):
            condition.failed(call, Unavailable("the store file is gone"))
        manager.pass_time()
        assert len(condition.failing) == 4, "it is the owner's to say"
        manager.tell(ShardRead("life-2", ShardRow(1, 1, "other", 2)), now())
        manager.pass_time()
        assert set(condition.failing) == {"placing"}
        placing = asyncio.ensure_future(placer.run())
        manager.news.set()
        while "placing" in condition.failing:
            manager.news.set()
            await asyncio.sleep(0.01)
        placing.cancel()

    run(lambda: asyncio.wait_for(work(), 60))


def test_a_row_that_another_manager_wrote_is_written_over() -> None:
    """Who takes a shard over tells of it from then on; no rule reads these rows, so nothing is lost by that."""

    async def work() -> None:
        store = fleet(3)
        await store.commit(None, [(Change(CheckpointRow("1/000000", "other", 1, ("h0000",), (9,)), 0),)])
        await told(owning(store, 3), store).tell()
        found = (await store.prove(1, [("checkpoint", "1/000000")])).rows[0]
        assert found is not None
        assert isinstance(found.row, CheckpointRow)
        assert (found.row.owner, found.row.hosts) == ("m", ("h0000", "h0001", "h0002"))

    run(work)


def test_a_wiped_store_is_told_everything_at_once() -> None:
    """For ten seconds `status` said of a manager that was placing instances that it said nothing and placed none: the
    shard was lost and its own again in a moment, and of that the wiped store knew nothing."""

    async def work() -> None:
        store = fleet(3)
        manager = owning(store, 3)
        teller = told(manager, store)
        await teller.look()
        before = teller.written["1"]
        await teller.look()
        assert teller.written["1"] == before, "there is no news"
        manager.store = teller.store = fleet(3)
        manager.leases.owner.epoch = manager.core.book.epoch = 1
        manager.leases.owner.life = "life-0"  # what it was told before was told to another
        teller.place = teller.standing
        manager.leases.owner.life = "life-1"
        await teller.look()
        page = await teller.store.rows("checkpoint")
        assert sorted(at.row.key for at in page.rows) == ["1", "1/000000"]

    run(work)


def test_a_manager_notes_how_many_leases_are_back_with_its_own_times() -> None:
    """So that whoever reads one row can tell how fast a recovery goes. Who is gone, or forgotten, isn't waited for."""

    async def work() -> None:
        store = fleet(5)
        manager = owning(store, 5, expect=7)  # two have yet to register
        teller, hosts = told(manager, store), manager.leases.hosts
        hosts.lease[1:] = Lease.LAPSED
        hosts.gone[4] = True
        for held in (2, 3, 4):
            hosts.lease[held - 1] = Lease.HELD
            teller.told_at = LONG_AGO
            await teller.tell()
        found = (await store.prove(1, [("checkpoint", "1")])).rows[0]
        assert found is not None
        assert isinstance(found.row, CheckpointRow)
        assert [(held, of) for _, held, of in found.row.past] == [(2, 6), (3, 6), (4, 6)]
        times = [at for at, _, _ in found.row.past]
        assert times == sorted(set(times))
        teller.begin()
        assert teller.past == (), "another store, or another's shard meanwhile: counts of before aren't ours to go by"

    run(work)


def test_who_is_waited_for_are_the_hosts_that_are_named() -> None:
    """A row of a host that isn't named (it was once) doesn't stand for one that is and hasn't come yet."""

    async def work() -> None:
        manager = owning(fleet(3), 3)
        manager.lists(frozenset(("h0000", "h0001", "new")))
        assert manager.leases.settings.expect == 4
        manager.hands.table.put(Versioned(HostRow("new", "a", "127.0.0.1:9"), 9))
        manager.core.expect()
        assert manager.leases.settings.expect == 4 == len(manager.hands.table)
        manager.lists(frozenset())
        assert manager.leases.settings.expect == 0

    run(work)


def test_a_new_calibration_keeps_what_is_in_flight() -> None:
    """It is taken up without a restart, on a running fleet."""

    async def work() -> None:
        manager = owning(fleet(3), 3)
        manager.admission.acquire(np.arange(3), now())
        manager.admission.take(now(), 2)
        row = CalibrationRow("hosts", 2, MILLISECOND, MILLISECOND, 1.0)
        manager.recalibrate(settings_from(row, manager.settings))
        assert (manager.admission.in_flight, manager.admission.backlog, manager.admission.limit) == (2, 3, 2)

    run(work)


def test_what_ended_is_forgotten_only_once_its_row_is_gone() -> None:
    """While the row is there it says that whatever a host still has of it is to be stopped."""

    async def work() -> None:
        store = fleet(1)
        there, gone = InstanceRow("web-1", "web", "ended", 1), InstanceRow("web-2", "web", "ended", 1)
        await store.commit(None, [(Change(there, 0),)])
        placer = Placer(PlacementSettings(), store, owning(store, 1), Condition())
        for row in (there, gone):
            placer.placement.instance(Versioned(row, 1))
        await placer.forget_once()
        assert set(placer.placement.instances) == {"web-1"}

    run(work)


# Calibration.
