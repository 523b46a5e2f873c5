"""DynamoDB when answers are lost, requests are throttled, and writers stop or die between their writes."""

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from dynamodb import aws_environment, emulator
from dynamodb_faulty import FaultyClient, Lose, Stop, answered, is_root, lost, opened
from store import plan, published

from fencepost.adapters.store_dynamodb import DynamoDbStore, chain, client, plans, root
from fencepost.adapters.store_dynamodb.items import ALL_SHARDS
from fencepost.core.fence import Generation
from fencepost.core.store import Head
from fencepost.ports import Misconfigured, Unavailable

_tables = itertools.count(1)
Test = Callable[[FaultyClient, DynamoDbStore, DynamoDbStore], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One emulator for this file; each test has a table of its own."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as at:
        yield at


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    aws_environment(monkeypatch, url)


def on_two(test: Test) -> Callable[[], None]:
    """A test of two stores on one new table, of which the first goes a way that can be spoiled."""

    def run() -> None:
        async def go() -> None:
            table = f"faults-{next(_tables)}"
            way, one = opened(table)
            _, other = opened(table)
            try:
                await one.head()
                await asyncio.wait_for(test(way, one, other), 60)
            finally:
                way.spoil = None
                await one.close()
                await other.close()

        asyncio.run(go())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def items(way: FaultyClient, partition: str) -> list[str]:
    """The sort keys in a partition."""
    return [item["sk"]["S"] for item in await way.query(partition)]


async def rows_there(way: FaultyClient) -> list[str]:
    """The sort keys of every row item, counted or not."""
    return [key for one in ALL_SHARDS for key in await items(way, f"row#{one}")]


@pytest.mark.parametrize("how", ["applied", "not", "late"])
def test_a_lost_answer_is_found_out(how: str) -> None:
    """The outcome of a compare-and-set is never guessed: sent again, it is applied once, and told as it was."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        before = await one.head()
        way.spoil = lose = Lose(how)
        head = await one.publish(plan(before, 1, "a.example"))
        assert head is not None
        assert await other.head() == head
        way.spoil = lose_too = Lose(how)
        assert await one.put_membership("web", 0, b"m")
        way.spoil = lose_three = Lose(how)
        assert await one.put_config(b"c", b"")
        assert (await other.inputs()).snapshot == 2
        for send in (*lose.late, *lose_too.late, *lose_three.late):
            with pytest.raises(Exception, match="ConditionalCheckFailed"):
                await send()
        assert (await other.inputs()).snapshot == 2

    go()


def test_of_a_lost_answer_and_another_writer_the_truth_is_told() -> None:
    """Not applied, and another planner came first: the plan is outrun. Applied, and then another: it is published."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        async def another() -> None:
            await published(other, (await other.head()).number + 1, "b.example")

        way.spoil = Lose("not", meanwhile=another)
        assert await one.publish(plan(await one.head(), 1, "a.example")) is None
        assert await other.rows_of("a.example") == ()
        way.spoil = Lose("applied", meanwhile=another)
        head = await one.publish(plan(await one.head(), 2, "a.example"))
        assert head is not None
        assert (await other.head()).number == 3
        assert [row.generation.number for row in await other.rows_of("a.example")] == [2]

    go()


def test_an_outcome_that_cant_be_learned_is_unknown() -> None:
    """So many changes since that the root doesn't remember ours: Unavailable, and the caller reads again."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        async def many() -> None:
            for number in range(root.TOKENS_KEPT + 2):
                await other.put_override("x", b"%d" % number)

        way.spoil = Lose("not", meanwhile=many)
        with pytest.raises(Unavailable, match="didn't answer PutItem"):
            await one.put_config(b"c", b"")

    go()


def test_silence_ends_in_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer to anything: reads and writes end, in bounded time, saying what and where."""
    monkeypatch.setattr(client, "PATIENCE_S", 0.2)
    monkeypatch.setattr(root, "PATIENCE_S", 0.2)

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        async def silent(*_: Any) -> Any:
            raise lost()

        way.spoil = silent
        with pytest.raises(Unavailable, match="didn't answer GetItem") as told:
            await one.head()
        assert told.value.where.startswith("DynamoDB table faults-")
        assert told.value.hint
        way.spoil = Lose("not", times=10_000)
        with pytest.raises(Unavailable, match="didn't answer PutItem"):
            await one.put_override("x", b"1")
        assert (await other.inputs()).snapshot == 0

    go()


def test_throttling_is_waited_out_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy means that nothing happened: tried again with jitter; too long, and it is Unavailable."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        busy = itertools.cycle(
            ("ThrottlingException", "ProvisionedThroughputExceededException", "ReplicatedWriteConflictException", "")
        )

        async def often(_operation: str, _arguments: Any, send: Any) -> Any:
            code = next(busy)
            if code:
                raise answered(code)
            return await send()

        way.spoil = often
        head = await published(one, 1, "a.example")
        assert await other.head() == head
        monkeypatch.setattr(client, "PATIENCE_S", 0.2)

        async def always(*_: Any) -> Any:
            raise answered("ThrottlingException")

        way.spoil = always
        with pytest.raises(Unavailable, match="throttles GetItem"):
            await one.head()

    go()


def test_what_a_batch_left_undone_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """BatchWriteItem and BatchGetItem may do a part and say so: a row or two missing would be a torn plan."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        async def halves(operation: str, arguments: Any, send: Any) -> Any:
            if not operation.startswith("batch_"):
                return await send()
            ((table, asked),) = arguments["RequestItems"].items()
            rows = asked["Keys"] if isinstance(asked, dict) else asked
            kept, left = rows[: len(rows) // 2 + 1], rows[len(rows) // 2 + 1 :]
            arguments["RequestItems"] = {table: {**asked, "Keys": kept} if isinstance(asked, dict) else kept}
            answer = await send()
            undone = {table: {**asked, "Keys": left} if isinstance(asked, dict) else left} if left else {}
            return {**answer, "UnprocessedItems": undone, "UnprocessedKeys": undone}

        way.spoil = halves
        names = [f"e{number}.example" for number in range(60)]
        before = await one.head()
        await published(one, 1, *names)
        assert len((await other.newest_rows(None))[1]) == 60
        assert len((await one.newest_rows(before))[1]) == 60

    go()


async def dies(way: FaultyClient, store: DynamoDbStore, head: Head, number: int, *names: str) -> None:
    """A planner that dies after its rows and before its head."""

    async def dead(operation: str, arguments: Any, send: Any) -> Any:
        if is_root(operation, arguments):
            raise answered("AccessDeniedException")
        return await send()

    way.spoil = dead
    with pytest.raises(Misconfigured):
        await store.publish(plan(head, number, *names))
    way.spoil = None


def test_rows_of_a_planner_that_died_count_for_nobody_and_are_cleaned_up() -> None:
    """Rows count only if the chain of heads names them: else one generation could have two contents."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        blank = await one.head()
        await dies(way, one, blank, 1, "a.example", "b.example")
        await dies(way, one, blank, 2, "a.example")
        assert await other.newest_rows(None) == (blank, ())
        head = await published(other, 1, "a.example")
        for store in (one, other):
            assert [row.nonce for row in await store.rows_of("a.example")] == [head.nonce]
            assert [row.name for row in (await store.newest_rows(None))[1]] == ["a.example"]
            assert [row.name for row in (await store.newest_rows(blank))[1]] == ["a.example"]
        assert len(await rows_there(way)) == 4
        assert await other.spent_rows(9) == ()
        # Plan 2 of the dead one stays: from here it can't be told from one that is just being published.
        assert sorted(key.split("#")[1].lstrip("0") for key in await rows_there(way)) == ["1", "2"]
        await published(other, 2, "b.example")
        fresh = opened(way.table)[1]
        await fresh.spent_rows(9)
        await fresh.close()
        assert len(await rows_there(way)) == 2
        assert len(await items(way, "plan")) == 2

    go()


def test_a_planner_that_sleeps_between_rows_and_head_is_outrun() -> None:
    """It wakes after its rows were cleaned up, and must publish nothing, nor anything half."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        blank = await one.head()
        way.spoil = stop = Stop()
        sleeping = asyncio.create_task(one.publish(plan(blank, 1, "a.example", "b.example")))
        await stop.reached.wait()
        await other.spent_rows(9)
        assert len(await rows_there(way)) == 2, "it may still publish"
        head = await published(other, 1, "a.example")
        fresh = opened(way.table)[1]
        await fresh.spent_rows(9)
        assert len(await rows_there(way)) == 1
        stop.go.set()
        assert await sleeping is None
        assert await fresh.newest_rows(None) == await one.newest_rows(None)
        assert (await fresh.head()) == head
        await fresh.close()

    go()


def test_a_body_is_cleaned_up_only_when_its_writer_cant_name_it_any_more() -> None:
    """A big configuration whose loader sleeps before the compare-and-set: kept while that may still succeed."""
    big = bytes(range(256)) * 40

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        way.spoil = stop = Stop()
        sleeping = asyncio.create_task(one.put_config(big, b""))
        await stop.reached.wait()
        await other.spent_rows(9)
        assert len(await items(way, "blob")) == 1
        await other.put_override("x", b"1")  # now it has to begin anew
        fresh = opened(way.table)[1]
        await fresh.spent_rows(9)
        await fresh.close()
        assert await items(way, "blob") == []
        stop.go.set()
        assert await sleeping
        assert (await other.inputs()).config == big
        await one.put_config(b"small", big)
        await one._inputs.tidied()
        assert await items(way, "blob") == [], "what was replaced is deleted"
        assert (await other.inputs()).config == b"small"

    go()


def test_a_reader_between_root_and_body_reads_the_newer_one() -> None:
    """The body it was about to read was replaced and deleted: it begins anew, and is told one whole snapshot."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        bodies = [random.Random(number).randbytes(2000) for number in range(2)]
        await other.put_config(bodies[0], b"")

        async def replaced(operation: str, _arguments: Any, send: Any) -> Any:
            if operation == "batch_get_item":
                way.spoil = None
                await other.put_config(bodies[1], bodies[0])
                await other._inputs.tidied()
            return await send()

        way.spoil = replaced
        found = await one.inputs()
        assert (found.snapshot, found.config) == (2, bodies[1])

    go()


def test_rows_that_move_while_they_are_read_are_not_missed() -> None:
    """While all newest rows are read, a plan is published and the janitor moves a row away."""

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        await published(other, 1, "a.example", "b.example")

        async def moved(operation: str, _arguments: Any, send: Any) -> Any:
            if operation == "query":
                way.spoil = None
                await published(other, 2, "a.example")
                assert len(await other.spent_rows(9)) == 1
            return await send()

        way.spoil = moved
        head, rows = await one.newest_rows(None)
        assert head.number == 2
        assert {row.name: row.generation.number for row in rows} == {"a.example": 2, "b.example": 1}

    go()


def test_long_chains_are_kept_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body names old plans, old headers go, plans without rows are forgotten: and readers see no difference."""
    for module in (chain, plans):
        monkeypatch.setattr(module, "BODY_EACH", 3)
    monkeypatch.setattr(chain, "HEADERS_KEPT", 4)
    monkeypatch.setattr(chain, "REMEMBERED", 4)
    monkeypatch.setattr(plans, "PLANS_KEPT", 4)

    @on_two
    async def go(way: FaultyClient, one: DynamoDbStore, other: DynamoDbStore) -> None:
        heads = [await published(one, 1, "rare.example", "often.example")]
        for number in range(2, 24):
            heads.append(await published(one, number, "often.example"))
            for row, place, _ in await other.spent_rows(99, 3):
                assert place >= 3
                assert await other.delete_row(row.name, row.generation, row.nonce)
        fresh = opened(way.table)[1]
        await fresh.spent_rows(9)
        assert len(await items(way, "plan")) <= 8
        assert await fresh.head() == heads[-1]
        assert [row.generation.number for row in await fresh.rows_of("often.example")] == [23, 22, 21]
        assert [row.generation.number for row in await fresh.rows_of("rare.example")] == [1]
        newest = {"rare.example": 1, "often.example": 23}
        for since, wanted in ((None, newest), (heads[0], newest), (heads[-2], {"often.example": 23})):
            _, rows = await fresh.newest_rows(since)
            assert {row.name: row.generation.number for row in rows} == wanted
        await published(one, 24, "often.example")
        for store in (one, fresh):
            assert len(await store._plans.chain.at(await store._roots.read())) <= 12
        assert not await fresh.delete_row("rare.example", Generation(0, 1), heads[0].nonce)
        await fresh.close()

    go()
