"""A copied store has the fleet that the first one has, and no lease in it that anybody may act on."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from fleet_store import EACH_KIND, claimed, host, names, new, put
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.adapters.store_sqlite.fleet import SqliteFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import KINDS, HostRow, InstanceRow, NetworkRow, ShardRow, kind_of
from fencepost.core.instant import Duration
from fencepost.ports import Refused
from fencepost.ports.fleet import FleetStorePort
from fencepost.roles.store_copy import copy_fleet
from fencepost.world.reference_fleet import ReferenceFleet, ReferenceRows


def silent(_: str) -> None:
    """Nobody listens."""


async def asleep(_: Duration) -> None:
    """Nobody waits."""


def on_references(test: Callable[[FleetStorePort, FleetStorePort], Coroutine[Any, Any, None]]) -> None:
    """Run a test on two stores in memory."""
    asyncio.run(test(*(ReferenceFleet(ReferenceRows(life), asleep) for life in ("life-1", "life-2"))))


async def all_of(store: FleetStorePort) -> list[object]:
    """Every row."""
    return [found.row for kind in KINDS for found in (await store.rows(kind)).rows]


def test_everything_comes_along_but_owners() -> None:
    """Sets, words, instances, network states and launches are the same; a shard keeps its epoch, and has no owner."""

    async def act(source: FleetStorePort, target: FleetStorePort) -> None:
        await put(source, *EACH_KIND)
        assert await copy_fleet(source, target, silent) == len(EACH_KIND)
        (shard,) = (await target.rows("shard")).rows
        assert shard.row == ShardRow(1, 2, "", 3, 4, "", 5)
        for row in EACH_KIND[1:]:
            assert [found.row for found in (await target.rows(kind_of(row))).rows] == [row]

    on_references(act)


def test_a_copied_lease_is_unknown_and_a_copied_network_state_not_acknowledged() -> None:
    """They name the life they were made in; the copy has another. So nothing is placed before hosts have reported."""

    async def act(source: FleetStorePort, target: FleetStorePort) -> None:
        life = (await source.rows("host")).life
        held = replace(host("host-1"), lease="held", life=life, reported=True, word="drain", room=3)
        await put(source, held, InstanceRow("web-1", "web", "placed", 1, "host-1"))
        await put(source, NetworkRow("web-1.1", "host-1", 4, "d", 1, "{}", (4, "d", 7, life)))
        claim = await claimed(source)
        await copy_fleet(source, target, silent)
        page = await target.rows("host")
        ((row, _),) = page.rows
        assert isinstance(row, HostRow)
        assert (row.held(life), row.held(page.life), row.placeable(page.life)) == (True, False, False)
        assert (row.word, row.room) == ("drain", 3)
        ((network, _),) = (await target.rows("network")).rows
        assert isinstance(network, NetworkRow)
        assert network.acked[3] != page.life
        assert await target.commit(claim, [new(host("host-2"))]) is None, "the old store's owner owns nothing here"
        assert await names(source, "shard") == ["1"]

    on_references(act)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=8))
def test_done_again_it_brings_what_is_new(then: list[tuple[str, int]]) -> None:
    """Rows written and deleted since are written and deleted there; and a third time there is nothing to do."""

    async def act(source: FleetStorePort, target: FleetStorePort) -> None:
        await put(source, host("a"), host("b"), InstanceRow("web-1"))
        await copy_fleet(source, target, silent)
        for name, number in then:
            seen = {found.row.key: found.revision for found in (await source.rows("host")).rows}.get(name, 0)
            gone = Change(None, seen, ("host", name))
            change = gone if number == 0 and seen else Change(host(name, number), seen)
            assert await source.commit(None, [(change,)]) is not None
        await copy_fleet(source, target, silent)
        assert await all_of(target) == await all_of(source)
        assert await copy_fleet(source, target, silent) == 0

    on_references(act)


@pytest.mark.parametrize("lives", ["owner", "lease"])
def test_a_fleet_that_lives_in_the_second_store_is_never_written_over(lives: str) -> None:
    """Its rows are newer than any copy: it is refused, and says what lives there."""

    async def act(source: FleetStorePort, target: FleetStorePort) -> None:
        await put(source, host("host-1"))
        await copy_fleet(source, target, silent)
        if lives == "owner":
            await claimed(target)
        else:
            await put(target, replace(host("host-2"), lease="held", life=(await target.rows("host")).life))
        before = await all_of(target)
        await put(source, host("host-3"))
        with pytest.raises(Refused, match=r"shard 1 has an owner|host host-2 has its lease") as told:
            await copy_fleet(source, target, silent)
        assert "name a new store" in told.value.hint
        assert await all_of(target) == before

    on_references(act)


def test_files_are_copied_alike(tmp_path: Path) -> None:
    """The port alone is used; thousands of rows take several commits."""

    async def act() -> None:
        stores = [SqliteFleetStore.open(tmp_path / name, create=True) for name in ("one.db", "two.db")]
        await put(stores[0], *(host(f"host-{number:04}") for number in range(2_500)), InstanceRow("web-1"))
        said: list[str] = []
        assert await copy_fleet(stores[0], stores[1], said.append) == 2_501
        assert await all_of(stores[1]) == await all_of(stores[0])
        assert said[2] == "fleet: 2,500 of 2,500 rows of kind host"
        for store in stores:
            await store.close()

    asyncio.run(act())
