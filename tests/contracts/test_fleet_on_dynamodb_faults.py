"""Fleet rows in DynamoDB when answers get lost, claims go in between, the log is short, or the table was restored."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from dynamodb import AWS_REGION, aws_environment, emulator
from dynamodb_faulty import FaultyClient, Send, answered, lost
from fleet_store import claimed, host, names, new, put
from msgspec.structs import replace

from fencepost.adapters.store_dynamodb import DynamoDbStore, client, fleet_clock, fleet_reading
from fencepost.adapters.store_dynamodb import table as table_module
from fencepost.adapters.store_dynamodb.fleet import DynamoDbFleetStore
from fencepost.core.capacity.fleet_store import Change
from fencepost.core.capacity.rows import HostRow, InstanceRow
from fencepost.ports import Misconfigured, Refused, Unavailable

_tables = itertools.count(1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One emulator for this file; each test has a table of its own."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as at:
        yield at


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    aws_environment(monkeypatch, url)


def on_two(test: Callable[..., Coroutine[Any, Any, None]]) -> None:
    """Run a test on two stores of one new table; of the first one the way is given, too."""

    async def go() -> None:
        way = FaultyClient(f"fleet-faults-{next(_tables)}")
        one = DynamoDbFleetStore(way, create=True)
        other = DynamoDbFleetStore.open(way.table, AWS_REGION, create=True)
        try:
            await one.rows("host")
            await asyncio.wait_for(test(way, one, other), 60)
        finally:
            await one.close()
            await other.close()

    asyncio.run(go())


class LoseTransactions:
    """Loses the first answer to a transaction: of one that was applied, was not, or will be later.

    "just before" is later, too: when the same is sent again, and has come as far as DynamoDB's door.
    """

    def __init__(self, how: str, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.how = how
        self.left = 1
        self.meanwhile = meanwhile
        self.late: list[Send] = []

    async def __call__(self, operation: str, _arguments: dict[str, Any], send: Send) -> Any:
        """One request."""
        if operation == "transact_write_items" and self.how == "just before" and self.late:
            with contextlib.suppress(ClientError):
                await self.late.pop()()
        if operation != "transact_write_items" or self.left == 0:
            return await send()
        self.left -= 1
        if self.how == "applied":
            await send()
        elif self.how in ("late", "just before"):
            self.late.append(send)
        if self.meanwhile is not None:
            await self.meanwhile()
        raise lost()


@pytest.mark.parametrize("how", ["applied", "not applied", "late", "just before"])
def test_an_answer_that_was_lost_is_found_out(how: str) -> None:
    """Applied once, told as applied, whatever became of the first sending and whether anybody wrote in between.

    A lost answer taken for a lost race would have a manager refuse its own newer row (cirello-io/dynamolock #280).
    """

    async def go(way: FaultyClient, one: DynamoDbFleetStore, other: DynamoDbFleetStore) -> None:
        claim = await claimed(one)
        for name, raced in (("alone", False), ("raced", True)):
            way.spoil = None
            seen = await put(one, host(name))
            meanwhile = (lambda: put(other, host("between"))) if raced else None
            way.spoil = spoil = LoseTransactions(how, meanwhile)
            written = await one.commit(claim, [(Change(host(name, 7), seen),)])
            assert written is not None
            assert written.applied == (True,)
            (found,) = (await other.prove(1, [("host", name)])).rows
            assert found is not None
            assert found.row == host(name, 7)
            later = await put(other, host(f"after-{name}"))
            for send in spoil.late:
                with pytest.raises(Exception, match="TransactionCanceled"):
                    await send()
            assert (await other.prove(1, [("host", name)])).rows == (found,)
            assert (await other.rows("host")).snapshot == later == seen + 2 + raced

    on_two(go)


def test_nothing_that_stays_unanswered_is_told_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is lost for longer than a call takes: the outcome is unknown, and says so."""
    monkeypatch.setattr("fencepost.adapters.store_dynamodb.fleet.PATIENCE_S", 0.3)
    monkeypatch.setattr(client, "PATIENCE_S", 0.3)

    async def go(way: FaultyClient, one: DynamoDbFleetStore, other: DynamoDbFleetStore) -> None:
        async def silent(_operation: str, _arguments: dict[str, Any], _send: Send) -> Any:
            raise lost()

        way.spoil = silent
        with pytest.raises(Unavailable, match="didn't answer") as told:
            await one.commit(None, [new(host("host-1"))])
        assert way.table in told.value.where
        assert told.value.hint
        way.spoil = None
        assert await names(other) == []

    on_two(go)


def test_a_claim_that_goes_between_two_transactions_ends_the_commit() -> None:
    """What was applied before is told group by group; nothing after, though every row would fit (nomad #3840)."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, other: DynamoDbFleetStore) -> None:
        claim = await claimed(one)
        sent = 0

        async def taken_over(operation: str, _arguments: dict[str, Any], send: Send) -> Any:
            nonlocal sent
            if operation == "transact_write_items":
                sent += 1
                if sent == 2:
                    await claimed(other, "m-2", 2)
            return await send()

        way.spoil = taken_over
        hosts = [f"host-{number:03}" for number in range(250)]
        written = await one.commit(claim, [new(host(name)) for name in hosts])
        assert written is not None
        assert written.applied == tuple(number < 95 for number in range(250))
        assert await names(other) == hosts[:95]
        assert await one.commit(claim, [new(host("host-999"))]) is None

    on_two(go)


def test_a_group_is_never_cut_in_two() -> None:
    """Two groups of 60 rows are two transactions; one of more than 95 is refused, and nothing of it is sent."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, _other: DynamoDbFleetStore) -> None:
        before = way.asked.get("transact_write_items", 0)
        halves = [new(*(InstanceRow(f"web-{half}-{number}") for number in range(60))) for half in "ab"]
        assert await one.commit(None, halves) is not None
        assert way.asked["transact_write_items"] - before == 2
        with pytest.raises(Refused, match="a group has 96 rows"):
            await one.commit(None, [new(*(host(f"host-{number}") for number in range(96)))])
        assert way.asked["transact_write_items"] - before == 2

    on_two(go)


def test_a_reader_that_is_too_far_behind_reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has an end; behind it nothing is missed, and what is old enough in it is deleted."""
    monkeypatch.setattr(fleet_clock, "LOG_KEPT", 4)
    monkeypatch.setattr(fleet_reading, "LOG_KEPT", 4)
    monkeypatch.setattr(fleet_reading, "UNDER_WAY_MOST", 2)

    async def go(way: FaultyClient, one: DynamoDbFleetStore, other: DynamoDbFleetStore) -> None:
        for number in range(9):
            await put(one, host(f"host-{number}"))
        for since in (0, 2, 5, 6, 8, 9):
            assert await names(other, since=since) == [f"host-{number}" for number in range(since, 9)]
        assert len(await way.query(fleet_clock.LOG)) == 4

    on_two(go)


def test_a_row_that_does_not_show_yet_is_waited_for() -> None:
    """A transaction that hasn't been answered may show in the clock before it shows in a row: none is passed over."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, other: DynamoDbFleetStore) -> None:
        first = await put(other, host("host-1"), host("host-2"))
        old = await way.fetch([fleet_reading.place_key("host", "host-1")])
        assert await other.commit(
            None, [(Change(host("host-1", 1), first),), (Change(None, first, ("host", "host-2")),)]
        )
        stale = 3

        async def behind(operation: str, arguments: dict[str, Any], send: Send) -> Any:
            nonlocal stale
            if operation == "batch_get_item" and stale:
                stale -= 1
                return {"Responses": {way.table: list(old)}}
            if operation == "query" and "fleet#host" in str(arguments["ExpressionAttributeValues"]):
                page = await send()
                return {"Items": list(old) if page["Items"] else []}
            return await send()

        way.spoil = behind
        for since in (first, 0):
            stale = 3
            page = await one.rows("host", None, since)
            assert [tuple(found) for found in page.rows] == [(host("host-1", 1), first + 1)]
            assert stale == 0

    on_two(go)


def test_a_restored_table_is_another_life_once_the_planner_has_begun_a_new_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then the fleet waits as plans do; then the rows stand under another life."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, _other: DynamoDbFleetStore) -> None:
        db = boto3.client("dynamodb", region_name=AWS_REGION)
        claim = await claimed(one)
        await put(one, host("host-1"))
        backup = db.create_backup(TableName=way.table, BackupName="before")["BackupDetails"]["BackupArn"]
        db.delete_table(TableName=way.table)
        db.restore_table_from_backup(TargetTableName=way.table, BackupArn=backup)
        monkeypatch.setattr(table_module, "DESCRIBE_AFTER_S", 0.0)
        role, planner = (DynamoDbStore.open(way.table, AWS_REGION, create=create) for create in (False, True))
        reader = DynamoDbFleetStore.open(way.table, AWS_REGION)
        for call in (reader.rows("host"), reader.prove(1, []), reader.commit(claim, [new(host("host-2"))])):
            with pytest.raises(Unavailable, match="restored or copied"):
                await call
        head = await planner.head()
        page = await reader.rows("host")
        assert page.life == head.store != claim.life
        assert [found.row.key for found in page.rows] == ["host-1"]
        assert await reader.commit(claim, [new(host("host-2"))]) is None
        again = await reader.restamp()
        assert (await reader.rows("host")).life == again != head.store
        for each in (role, planner, reader):
            await each.close()

    on_two(go)


def test_a_store_without_a_table_is_away_for_who_may_not_make_it() -> None:
    """As all of the store: told as missing, and there once the planner has made it."""

    async def go() -> None:
        table = f"fleet-faults-{next(_tables)}"
        role, planner = (DynamoDbFleetStore.open(table, AWS_REGION, create=create) for create in (False, True))
        for call in (role.rows("host"), role.prove(1, []), role.commit(None, [new(host("host-1"))])):
            with pytest.raises(Unavailable, match="table isn't there"):
                await call
        await put(planner, host("host-1"))
        assert await names(role) == ["host-1"]
        await role.close()
        await planner.close()

    asyncio.run(go())


def test_a_global_table_keeps_no_fleet() -> None:
    """With strong consistency across Regions it keeps plans, and takes no transactions: said before one is tried."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, _other: DynamoDbFleetStore) -> None:
        async def replicated(operation: str, _arguments: dict[str, Any], send: Send) -> Any:
            answer = await send()
            if operation == "describe_table":
                regions = [{"RegionName": AWS_REGION}, {"RegionName": "eu-central-1"}]
                answer["Table"] |= {"Replicas": regions, "MultiRegionConsistency": "STRONG"}
            return answer

        way.spoil = replicated
        fresh = DynamoDbFleetStore(way, create=True)
        for call in (fresh.rows("host"), fresh.prove(1, []), fresh.commit(None, [new(host("host-1"))])):
            with pytest.raises(Misconfigured, match="takes no transactions") as told:
                await call
        assert "postgresql" in told.value.hint
        assert await DynamoDbStore(way, create=True).head() is not None

    on_two(go)


def test_what_aws_refuses_is_for_a_person() -> None:
    """A right that is missing is named; a conflict is waited out."""

    async def go(way: FaultyClient, one: DynamoDbFleetStore, _other: DynamoDbFleetStore) -> None:
        async def denied(operation: str, _arguments: dict[str, Any], send: Send) -> Any:
            if operation == "transact_write_items":
                raise answered("AccessDeniedException")
            return await send()

        way.spoil = denied
        with pytest.raises(Misconfigured, match="TransactWriteItems is denied") as told:
            await one.commit(None, [new(host("host-1"))])
        assert "ConditionCheckItem" in told.value.hint
        conflicts = 2

        async def conflict(operation: str, _arguments: dict[str, Any], send: Send) -> Any:
            nonlocal conflicts
            if operation == "transact_write_items" and conflicts:
                conflicts -= 1
                error = answered("TransactionCanceledException")
                error.response["CancellationReasons"] = [{"Code": "None"}, {"Code": "TransactionConflict"}]
                raise error
            return await send()

        way.spoil = conflict
        assert await put(one, host("host-1")) == 1
        assert conflicts == 0

    on_two(go)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_in_bad_weather_what_was_told_is_so(seed: int) -> None:
    """Three writers count one row up while of a hundred requests twenty go wrong: none counts twice or is forgotten."""

    async def go() -> None:
        drawn, table = random.Random(seed), f"fleet-faults-{next(_tables)}"

        async def weather(_operation: str, _arguments: dict[str, Any], send: Send) -> Any:
            how = drawn.choices(("well", "busy", "lost before", "lost after"), (80, 6, 7, 7))[0]
            if how == "busy":
                raise answered("ThrottlingException")
            if how == "lost before":
                raise lost()
            answer = await send()
            if how == "lost after":
                raise lost()
            return answer

        ways = [FaultyClient(table) for _ in range(3)]
        stores = [DynamoDbFleetStore(way, create=True) for way in ways]
        await put(stores[0], host("counted"))
        told = unknown = 0

        async def count(store: DynamoDbFleetStore) -> None:
            nonlocal told, unknown
            tries = mine = 0
            while tries < 9 or mine < 4:  # three in step with each other would win nine of 27
                tries += 1
                try:
                    ((row, seen),) = (await store.rows("host")).rows
                    assert isinstance(row, HostRow)
                    written = await store.commit(None, [(Change(replace(row, number=row.number + 1), seen),)])
                except Unavailable:
                    unknown += 1
                else:
                    assert written is not None
                    mine += written.applied[0]
            told += mine

        for way in ways:
            way.spoil = weather
        await asyncio.gather(*(count(store) for store in stores))
        for way in ways:
            way.spoil = None
        ((row, _),) = (await stores[0].rows("host")).rows
        assert isinstance(row, HostRow)
        assert told <= row.number <= told + unknown
        assert told > 9
        for store in stores:
            await store.close()

    asyncio.run(go())
