"""A store's copy knows everything that counts, and nothing that the first doesn't."""

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation
from fencepost.core.record_set import content
from fencepost.core.store import Order, Plan, Row
from fencepost.core.traffic.janitor import JanitorSettings
from fencepost.ports import Enacted, HistoryRow, Refused, StorePort
from fencepost.roles.store_copy import copy_store
from fencepost.world.reference_store import ReferenceStore

NAMES = ("a.example", "b.example", "c.example")


def reference(identity: str) -> StorePort:
    count = itertools.count()
    return ReferenceStore(identity, lambda: f"{identity}-{next(count)}", lambda _: asyncio.sleep(0))


async def publish(store: StorePort, number: int, names: list[str], address: int = 1) -> None:
    """A plan that changes these endpoints."""
    value = content([f"192.0.2.{address}"], 30)
    rows = tuple(Row.of(name, Generation(0, number), value, families="4") for name in names)
    head = await store.head()
    assert await store.publish(Plan(head, number, head.inputs, rows)) is not None


async def shape(store: StorePort) -> Any:
    """What must be the same in both: all but identities, nonces, versions and snapshots."""
    _, newest = await store.newest_rows(None)
    rows = {row.name: [(r.generation, r.digest) for r in await store.rows_of(row.name)] for row in newest}
    inputs = await store.inputs()
    pools = {pool: body for pool, (_, body) in inputs.membership.items()}
    history = [(row.on, row.text, row.at) for row in await store.history(most=10_000)]
    head = await store.head()
    enacted = dict(await store.enacted())
    return head.number, rows, inputs.config, pools, dict(inputs.overrides), inputs.orders, enacted, history


async def grow(store: StorePort, plans: list[list[str]]) -> None:
    """Plans of these names, and one of everything else."""
    number = (await store.head()).number
    for step, names in enumerate(plans, 1):
        await publish(store, number + step, names, (number + step) % 200 + 1)
    inputs = await store.inputs()
    await store.put_config(b"config %d" % number, inputs.config)
    await store.put_membership("web", inputs.membership.get("web", (0, b""))[0], b"members %d" % number)
    await store.put_override(f"drain-{number}", b"{}")
    await store.drop_override("drain-0")
    await store.put_order(Order(f"order-{number}", "withdraw", NAMES[0]))
    await store.note([HistoryRow("plan", NAMES[0], "planner", f"plan {number}", 1000 + number)])
    await store.note_enacted([Enacted(NAMES[0], Generation(0, number), "enactor/a", 1000 + number, 1)])


_plans = st.lists(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), min_size=1, max_size=6)


@given(_plans, _plans)
@settings(max_examples=60)
def test_a_copy_is_the_same_but_for_its_identity_and_a_second_one_brings_what_is_new(
    first: list[list[str]], then: list[list[str]]
) -> None:
    """A generation names one content for ever, so numbers are copied and never given anew."""

    async def act() -> None:
        source, target = reference("1111-source"), reference("2222-target")
        await grow(source, first)
        await copy_store(source, target)
        assert await shape(target) == await shape(source)
        again = await copy_store(source, target)
        assert (again.plans, again.rows, again.history) == (0, 0, 0)
        await grow(source, then)
        new = await copy_store(source, target)
        assert await shape(target) == await shape(source)
        assert new.plans == len(then)
        assert (await target.head()).store != (await source.head()).store

    asyncio.run(act())


def on_files(test: Callable[[StorePort, StorePort], Coroutine[Any, Any, None]]) -> None:
    """Run it on two files."""

    async def act(folder: Path) -> None:
        stores = [SqliteStore.open(folder / name, create=True) for name in ("one.db", "two.db")]
        try:
            await test(stores[0], stores[1])
        finally:
            for store in stores:
                await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(act(Path(folder)))


def test_files_are_copied_alike() -> None:
    """The ports alone are used, so any two stores will do; here the one that everybody has."""

    async def act(source: StorePort, target: StorePort) -> None:
        await grow(source, [list(NAMES), ["b.example"], ["c.example"]])
        copied = await copy_store(source, target)
        assert (copied.plans, copied.rows, copied.number) == (3, 5, 3)
        assert await shape(target) == await shape(source)

    on_files(act)


@given(
    times=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    there=st.integers(0, 12),
    late=st.lists(st.integers(1, 4), max_size=3),
)
def test_a_copy_that_was_ended_within_its_history_is_made_whole_by_the_next(
    times: list[int], there: int, late: list[int]
) -> None:
    """kill -9 between two parts: lines of one moment were cut apart, and of those behind the cut none came any more.

    Nor did one whose role's clock was behind, noted after the first copy.
    """

    async def act() -> None:
        source, target = reference("1111-source"), reference("2222-target")
        lines = [HistoryRow("plan", NAMES[0], "planner", f"line {at % 3}", time) for at, time in enumerate(times)]
        await source.note(lines)
        await target.note(lines[:there])
        await copy_store(source, target)
        await source.note([HistoryRow("enacted", NAMES[1], "enactor/a", "late", time) for time in late])
        assert (await copy_store(source, target)).history == len(late)
        assert sorted((await shape(target))[-1]) == sorted((await shape(source))[-1])

    asyncio.run(act())


def test_a_store_of_another_origin_is_refused_and_left_alone() -> None:
    """Two histories can't be one: whose row 2 is it?"""

    async def act(source: StorePort, target: StorePort) -> None:
        await grow(source, [["a.example"], ["a.example"]])
        await publish(target, 1, ["a.example"], 99)
        before = await shape(target)
        with pytest.raises(Refused, match="isn't one of the store to be copied"):
            await copy_store(source, target)
        assert await shape(target) == before
        for number in (2, 3):
            await publish(target, number, ["z.example"])
        with pytest.raises(Refused, match="holds plan 3"):
            await copy_store(source, target)

    on_files(act)


def test_a_store_that_the_region_left_without_a_copy_is_refused_and_left_alone() -> None:
    """docs/operating/commands.md: what holds anything else is refused. Its rows are all older than those of the store
    with which the region began anew, and were taken for rows that the janitor had deleted there.
    """

    async def act(source: StorePort, target: StorePort) -> None:
        await grow(target, [["a.example"], ["a.example", "b.example"]])
        for number in range(3, 10):
            await publish(source, number, ["a.example", "b.example"], number)
        before = await shape(target)
        with pytest.raises(Refused, match="isn't one of the store to be copied") as refused:
            await copy_store(source, target)
        assert "name a store that is empty" in refused.value.hint
        assert await shape(target) == before

    on_files(act)


def test_an_earlier_copy_is_known_though_the_janitor_has_deleted_what_it_brought() -> None:
    """docs/operating/store-move.md, step 4, months after step 2; the janitor keeps fifty rows of an endpoint."""

    async def act(source: StorePort, target: StorePort) -> None:
        await publish(source, 1, ["a.example"], 1)
        await copy_store(source, target)
        for number in range(2, 2 + JanitorSettings().keep_generations):
            await publish(source, number, ["a.example"], number)
        first = (await source.rows_of("a.example"))[-1]
        assert await source.delete_row(first.name, first.generation, first.nonce)
        await copy_store(source, target)
        assert (await target.head()).number == (await source.head()).number

    on_files(act)


def test_a_store_is_not_copied_into_itself() -> None:
    """The same file under two names would be published into while it is read."""

    async def act(source: StorePort, _: StorePort) -> None:
        with pytest.raises(Refused, match="both are one store"):
            await copy_store(source, source)

    on_files(act)


def test_numbers_of_plans_whose_rows_are_gone_are_not_given_again() -> None:
    """Promise never_backward: the janitor has deleted the rows, DNS and people's memories still hold the number."""

    async def act(source: StorePort, target: StorePort) -> None:
        await grow(source, [["a.example"], ["b.example"], []])
        await copy_store(source, target)
        assert (await target.head()).number == 3

    on_files(act)
