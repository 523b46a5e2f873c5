"""The store's contract, kept by SQLite; and any run of operations ends the same on both."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from put_back import PutBackContract
from store import Make, StoreContract, row
from swaps import SwapsContract

from fencepost.adapters.store_sqlite import SqliteStore
from fencepost.core.fence import Generation
from fencepost.core.instant import SECOND
from fencepost.core.store import Head, Order, Plan
from fencepost.ports import Enacted, PutBack, Refused, StorePort
from fencepost.world.reference_store import ReferenceStore


class TestSqlite(StoreContract, PutBackContract, SwapsContract):
    """The store in one file."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        """A new file."""
        return lambda: SqliteStore.open(tmp_path / "region.db", create=True)


NAMES = ("a.example", "b.example", "c.example")
_name = st.sampled_from(NAMES)
_body = st.sampled_from((b"", b"1", b"22"))
_operation = st.one_of(
    st.tuples(
        st.just("publish"),
        st.lists(_name, max_size=3),
        st.integers(0, 2),
        st.integers(-1, 2),
        st.lists(st.sampled_from(("o1", "o2")), max_size=2),
    ),
    st.tuples(st.just("delete"), st.integers(0, 8), st.booleans()),
    st.tuples(st.just("order"), st.sampled_from(("o1", "o2", "o3")), _name),
    st.tuples(st.just("config"), _body, _body),
    st.tuples(st.just("membership"), st.sampled_from(("web", "db")), st.integers(0, 2), _body),
    st.tuples(st.just("override"), _name, _body),
    st.tuples(st.just("drop"), _name),
    st.tuples(
        st.just("put back"),
        st.sampled_from(("lost", "lost too")),
        st.integers(0, 4),
        st.dictionaries(_name, _body, max_size=3),
        st.integers(0, 9),
    ),
    st.tuples(st.just("report"), st.sampled_from("ab"), _body),
    st.tuples(st.just("beat"), st.sampled_from("ab"), _body),
    st.tuples(st.just("enacted"), _name, st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("findings"), st.sampled_from(("enactor/a", "enactor/b")), st.lists(_name, max_size=2)),
)


async def does(store: StorePort, heads: list[Head], operation: tuple[Any, ...]) -> object:
    """Do one operation; its outcome, by which the two stores are compared."""
    kind, *rest = operation
    try:
        match kind, rest:
            case "publish", (names, back, above, spends):
                head = heads[max(0, len(heads) - 1 - back)]
                number = head.number + above
                return await store.publish(
                    Plan(head, number, head.inputs, tuple(row(name, number) for name in names), tuple(spends))
                )
            case "delete", (place, newest):
                name = NAMES[place % len(NAMES)]
                kept = await store.rows_of(name)
                if not kept:
                    return None
                one = kept[0] if newest else kept[-1]
                return await store.delete_row(name, one.generation, one.nonce)
            case "order", (order, name):
                await store.put_order(Order(order, "withdraw", name))
            case "config", (body, expected):
                return await store.put_config(body, expected) if body else None
            case "membership", (pool, expected, body):
                return await store.put_membership(pool, expected, body)
            case "override", (name, body):
                await store.put_override(name, body)
            case "drop", (name,):
                return await store.drop_override(name)
            case "put back", (lost, snapshot, words, missed):
                seen = await store.overrides()
                behind = seen.snapshot - (missed == 0)
                done = await store.put_back(PutBack(seen.store, behind, lost, snapshot, words))
                return None if done is None else list(done)
            case "report", (zone, body):
                await store.put_report(zone, "web", 1, body)
            case "beat", (zone, body):
                await store.beat_report(zone, "web", 1, body)
            case "enacted", (name, epoch, number, at):
                await store.note_enacted([Enacted(name, Generation(epoch, number), "enactor/a", at, 1)])
            case "findings", (by, names):
                await store.put_findings(by, dict.fromkeys(names, ("ASK", "adopt it")))
    except Refused as refused:
        return refused.what
    return None


async def everything(store: StorePort, heads: Sequence[Head]) -> object:
    """All that can be read."""
    found = await store.inputs()
    return (
        await store.head(),
        [sorted((await store.newest_rows(since))[1], key=lambda one: one.name) for since in (None, *heads)],
        [list(await store.rows_of(name)) for name in NAMES],
        sorted(await store.spent_rows(100), key=lambda one: (one[0].generation, one[0].name)),
        (found.snapshot, found.config, dict(found.membership), dict(found.overrides), found.orders),
        list(await store.reports("web")),
        await store.enacted(),
        await store.findings(),
    )


async def agree(directory: Path, operations: Sequence[tuple[Any, ...]]) -> None:
    """Both stores do the same; SQLite goes first and its nonce is the reference's too."""
    sqlite = SqliteStore.open(directory / "region.db", create=True)
    try:
        first = await sqlite.head()
        heads = [first]

        async def never(most: int) -> None:
            raise AssertionError

        reference = ReferenceStore(first.store, lambda: drawn, never)
        for operation in operations:
            outcome = await does(sqlite, heads, operation)
            drawn = outcome.nonce if isinstance(outcome, Head) else "none drawn"
            assert await does(reference, heads, operation) == outcome, operation
            if isinstance(outcome, Head):
                heads.append(outcome)
        assert await everything(sqlite, heads) == await everything(reference, heads)
    finally:
        await sqlite.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(_operation, min_size=5, max_size=40))
def test_any_run_of_operations_ends_the_same_as_on_the_reference(
    tmp_path: Path, operations: list[tuple[Any, ...]]
) -> None:
    """What the explorer proves of the reference's plans and rows holds for the file only if the two never differ."""
    for old in tmp_path.iterdir():
        old.unlink()
    asyncio.run(agree(tmp_path, operations))


def test_a_store_that_is_let_go_leaves_no_file_open_whether_anybody_waited_or_not(tmp_path: Path) -> None:
    """Each store opened and closed left a descriptor behind, until a long-lived process had none left."""

    async def go(*, waits: bool) -> None:
        for number in range(3):
            store = SqliteStore.open(tmp_path / f"{number}.db", create=True)
            await store.head()
            if waits:
                await store.waiter().wait(SECOND // 50)
            await store.close()

    def others() -> int:
        names = [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
        return sum("-shm" not in name for name in names)  # one is kept for each store, or its locks would be lost

    for waits in (False, True):
        before = others()
        asyncio.run(go(waits=waits))
        assert others() <= before
