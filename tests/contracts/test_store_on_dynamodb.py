"""The store's contract, kept by DynamoDB (an emulator); and any run of operations ends the same as on the reference."""

import asyncio
import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from dynamodb import AWS_REGION, aws_environment, emulator
from hypothesis import given, settings
from hypothesis import strategies as st
from put_back import PutBackContract
from store import Make, StoreContract, plan, published, quiet, row
from swaps import SwapsContract, swapped
from test_store_on_sqlite import _operation, does, everything

from fencepost.adapters.store_dynamodb import DynamoDbStore, items
from fencepost.core.instant import SECOND
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan
from fencepost.ports import HistoryRow, Refused
from fencepost.world.reference_store import ReferenceStore

_tables = itertools.count(1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One emulator for this file; each test has a table of its own."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as at:
        yield at


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    aws_environment(monkeypatch, url)


@pytest.fixture
def table() -> str:
    """A table's name that no other test has."""
    return f"fencepost-{next(_tables)}"


class TestDynamoDb(StoreContract, PutBackContract, SwapsContract):
    """The store in one table.

    Of the ten thousand swaps two hundred: each is four requests to an emulator that does 600 a second. The others are
    for ``make soak``, below.
    """

    swaps = 2

    @pytest.fixture
    def make(self, table: str) -> Make:
        """A new table."""
        return lambda: DynamoDbStore.open(table, AWS_REGION, create=True)


def on_stores(count: int, test: Any, within_s: float = 60) -> None:
    """Run a test on so many stores of one new table."""

    async def go() -> None:
        table = f"fencepost-{next(_tables)}"
        stores = [DynamoDbStore.open(table, AWS_REGION, create=True) for _ in range(count)]
        try:
            await stores[0].head()
            await asyncio.wait_for(test(*stores), within_s)
        finally:
            for store in stores:
                await store.close()

    asyncio.run(go())


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_of_ten_thousand_swaps_each_wins_or_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The contract's hundred writers of a hundred swaps each, at full size."""
    won: list[int] = []

    async def go(store: DynamoDbStore) -> None:
        won.extend(await swapped(store, 100, 100))

    began = time.monotonic()
    on_stores(1, go, 1700)
    took_s = time.monotonic() - began
    assert 0 < len(won) < 10_000
    with capsys.disabled():
        sys.stdout.write(f"\nDynamoDB: {len(won):,} of 10,000 swaps won, the others refused, in {took_s:.0f} s\n")


async def agree(store: DynamoDbStore, operations: Sequence[tuple[Any, ...]]) -> None:
    """Both stores do the same; DynamoDB goes first and its nonce is the reference's too."""
    first = await store.head()
    heads = [first]

    async def never(most: int) -> None:
        raise AssertionError

    reference = ReferenceStore(first.store, lambda: drawn, never)
    for place, operation in enumerate(operations):
        outcome = await does(store, heads, operation)
        drawn = outcome.nonce if isinstance(outcome, Head) else "none drawn"
        assert await does(reference, heads, operation) == outcome, operation
        if isinstance(outcome, Head):
            heads.append(outcome)
        if place % 7 == 6:  # the janitor comes by and moves rows
            assert sorted(await store.spent_rows(99, 2)) == sorted(await reference.spent_rows(99, 2))
    assert await everything(store, heads) == await everything(reference, heads)
    assert await everything(store, heads) == await everything(reference, heads), "once more, with old rows moved"


@pytest.mark.parametrize("examples", [10, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_any_run_of_operations_ends_the_same_as_on_the_reference(examples: int) -> None:
    """What the explorer proves of the reference's plans and rows holds here only if the two never differ."""

    @settings(max_examples=examples, deadline=None)
    @given(operations=st.lists(_operation, min_size=5, max_size=40))
    def runs(operations: list[tuple[Any, ...]]) -> None:
        on_stores(1, lambda store: agree(store, operations))

    runs()


def test_of_writers_in_processes_of_their_own_one_wins_each_time() -> None:
    """Five stores, four writers on each, five swaps each: generations are unique and rise, every refusal is told."""
    won: list[int] = []
    refused: list[str] = []

    async def writer(store: DynamoDbStore, name: str) -> None:
        for _ in range(5):
            head = await store.head()
            done = await store.publish(plan(head, head.number + 1, name))
            if done is None:
                refused.append(name)
            else:
                won.append(done.number)

    async def go(*stores: DynamoDbStore) -> None:
        await asyncio.gather(*(writer(stores[n % 5], f"e{n}.example") for n in range(20)))
        head, rows = await stores[0].newest_rows(None)
        assert sorted(won) == list(range(1, head.number + 1))
        assert len(won) + len(refused) == 100
        assert refused
        assert max(one.generation.number for one in rows) == head.number

    on_stores(5, go)


def test_memberships_and_plans_at_once_are_all_kept() -> None:
    """They share one root item: a writer that was outrun by another kind of change does its own anew."""

    async def go(*stores: DynamoDbStore) -> None:
        async def members(store: DynamoDbStore, pool: str) -> None:
            for version in range(6):
                assert await store.put_membership(pool, version, b"%d" % version)

        async def words(store: DynamoDbStore) -> None:
            for number in range(6):
                await store.put_override(f"drain/{number}", b"d")

        async def publishes(store: DynamoDbStore) -> None:
            for number in range(1, 7):
                await published(store, number, "a.example")

        one, two, three = stores
        await asyncio.gather(members(one, "web"), members(two, "db"), words(two), words(three), publishes(three))
        found = await one.inputs()
        assert found.snapshot == 24
        assert dict(found.membership) == {"web": (6, b"5"), "db": (6, b"5")}
        assert set(found.overrides) == {f"drain/{number}" for number in range(6)}
        assert (await two.head()).number == 6

    on_stores(3, go)


def test_a_change_by_another_process_wakes_who_waits() -> None:
    """Found by looking, each second."""

    async def go(one: DynamoDbStore, other: DynamoDbStore) -> None:
        waiter = one.waiter()
        await quiet(waiter)
        waiting = asyncio.create_task(waiter.wait(3600 * SECOND))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await published(other, 1, "a.example")
        await asyncio.wait_for(waiting, 10)

    on_stores(2, go)


def test_history_is_followed_without_a_gap() -> None:
    """Who asks for what came after the last id is shown every line, though three processes write at once."""

    async def go(*stores: DynamoDbStore) -> None:
        async def writer(store: DynamoDbStore, by: str) -> None:
            for number in range(8):
                lines = [HistoryRow("plan", "a.example", by, f"{number} {part}", 5) for part in range(number % 3 + 1)]
                await store.note(lines)

        shown: list[HistoryRow] = []

        async def follow() -> None:
            while len(shown) < 3 * 15:
                shown.extend(await stores[0].history(after=shown[-1].id if shown else 0))

        await asyncio.gather(follow(), *(writer(store, f"enactor/{at}") for at, store in enumerate(stores)))
        assert [line.id for line in shown] == list(range(1, 46))
        for by in range(3):
            told = [line.text for line in shown if line.by == f"enactor/{by}"]
            assert told == [f"{number} {part}" for number in range(8) for part in range(number % 3 + 1)]
        many = [HistoryRow("plan", "b.example", "planner", str(number), 6) for number in range(250)]
        await stores[1].note(many)
        assert [line.text for line in await stores[2].history(after=45)] == [str(number) for number in range(250)]
        assert [line.text for line in await stores[2].history(after=144, most=3)] == ["247", "248", "249"]
        assert [line.id for line in await stores[2].history(after=292)] == [293, 294, 295]

    on_stores(3, go)


def test_a_configuration_of_megabytes_is_kept_whole() -> None:
    """DynamoDB's items have at most 400 KB; a region's configuration may have more, even compressed."""
    big = random.Random(7).randbytes(1_500_000)

    async def go(one: DynamoDbStore, other: DynamoDbStore) -> None:
        assert await one.put_config(big, b"")
        assert (await other.inputs()).config == big
        assert not await other.put_config(b"x", big[:-1])
        assert await other.put_config(b"x", big)
        assert (await one.inputs()).config == b"x"
        assert await one.inputs() is await one.inputs()

    on_stores(2, go)


def test_what_no_item_can_hold_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never cut off, never half written. (For the row a smaller limit: a row of 380 KB takes 90,000 addresses.)"""
    random_bytes = random.Random(7).randbytes(500_000)

    async def go(store: DynamoDbStore) -> None:
        with pytest.raises(Refused, match=r"report on web from a has 500,000 bytes, 500,[0-9]{3} compressed.*389,120"):
            await store.put_report("a", "web", 1, random_bytes)
        assert await store.reports("web") == ()
        addresses = [f"2001:db8:{a:x}:{b:x}:{a * b % 65521:x}::1" for a in range(1, 30) for b in range(30)]
        monkeypatch.setattr(items, "BODY_MOST_BYTES", 2000)
        head = await store.head()
        huge = row("huge.example", 1)
        rows = (row("a.example", 1), type(huge).of(huge.name, huge.generation, content(addresses, 30), families="6"))
        with pytest.raises(Refused, match=r"row of huge\.example has"):
            await store.publish(Plan(head, 1, 0, rows))
        assert await store.newest_rows(None) == (head, ())

    on_stores(1, go)


def test_nothing_is_asked_while_something_runs_at_rest() -> None:
    """A paused role must not hold a request open: work runs between requests, and calls go on afterwards."""

    async def go(store: DynamoDbStore) -> None:
        under_way: list[int] = []
        calls = [asyncio.create_task(store.put_override(f"x{number}", b"1")) for number in range(5)]
        await asyncio.sleep(0)
        await store.at_rest(lambda: under_way.append(store._client._under_way))
        assert under_way == [0]
        await asyncio.gather(*calls)
        assert len((await store.overrides()).words) == 5

    on_stores(1, go)
