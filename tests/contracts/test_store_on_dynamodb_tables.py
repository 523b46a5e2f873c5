"""DynamoDB's table: made, missing, empty, restored, another program's; and a way to it that leads nowhere."""

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import boto3
import pytest
from dynamodb import AWS_REGION, aws_environment, emulator
from dynamodb_faulty import answered, opened
from free_ports import free_port
from store import published, quiet

from fencepost.adapters.store_dynamodb import DynamoDbStore, client, look_at_table
from fencepost.adapters.store_dynamodb import table as table_module
from fencepost.adapters.store_dynamodb.table import Described, Table
from fencepost.core.store import Order
from fencepost.ports import Beat, Misconfigured, Overrides, Unavailable

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
def db(_aws: None) -> Any:
    """A client of boto3's: a person with the AWS command line."""
    return boto3.client("dynamodb", region_name=AWS_REGION)


def makes(db: Any, table: str, key: str = "pk") -> None:
    """Make a table by hand."""
    names = (key, "sk")
    db.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
        ],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
    )


def on_table(test: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run a test on a planner's and an enactor's store of one table, which isn't there yet."""

    async def go() -> None:
        table = f"tables-{next(_tables)}"
        stores = [DynamoDbStore.open(table, AWS_REGION, create=create) for create in (True, False)]
        try:
            await asyncio.wait_for(test(table, *stores, *args), 60)
        finally:
            for store in stores:
                await store.close()

    asyncio.run(go())


def test_only_a_planner_makes_the_table() -> None:
    """Two planners at once make one; who may not make it is told what is missing, and goes on once it is there."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        for call in (
            enactor.head(),
            enactor.beats(),
            enactor.beat(Beat("e", 1, "0", "up", "", 1)),
            enactor.rows_of("a"),
        ):
            with pytest.raises(Unavailable, match="the store's table isn't there") as told:
                await call
            assert "planner makes it" in told.value.hint
        another = DynamoDbStore.open(table, AWS_REGION, create=True)
        first, second = await asyncio.gather(planner.head(), another.head())
        await another.close()
        assert first == second == await enactor.head()
        await enactor.beat(Beat("e", 1, "0", "up", "", 1))
        assert len(await planner.beats()) == 1

    on_table(go)


def test_an_empty_table_is_filled_by_a_planner_only(db: Any) -> None:
    """Made by hand, with one's own tags and alarms: the planner puts the root in."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        makes(db, table)
        with pytest.raises(Unavailable, match="table is empty"):
            await enactor.put_override("x", b"1")
        assert len((await planner.head()).store) == 16
        await enactor.put_override("x", b"1")
        assert dict((await planner.overrides()).words) == {"x": b"1"}

    on_table(go)


def test_another_programs_table_is_left_alone(db: Any) -> None:
    """Other keys, or others' items under the same keys: said, and nothing is written."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        makes(db, table, "id")
        for store in (planner, enactor):
            with pytest.raises(Misconfigured, match="no fencepost store"):
                await store.head()
        db.delete_table(TableName=table)
        makes(db, table)
        db.put_item(TableName=table, Item={"pk": {"S": "user#1"}, "sk": {"S": "profile"}})
        with pytest.raises(Misconfigured, match="another program's items"):
            await planner.head()
        assert db.scan(TableName=table)["Count"] == 1

    on_table(go)


def test_a_newer_or_damaged_root_is_refused(db: Any) -> None:
    """A rollback of fencepost must not write into what a newer one has made."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        await published(planner, 1, "a.example")
        key = {"pk": {"S": "root"}, "sk": {"S": "root"}}
        item = db.get_item(TableName=table, Key=key)["Item"]
        db.put_item(TableName=table, Item={**item, "format": {"N": "9"}})
        for store in (planner, enactor):
            with pytest.raises(Misconfigured, match="format 9; this fencepost knows formats up to 1"):
                await store.head()
        for spoiled in (
            {"body": {"B": b"\0nonsense"}},
            {"body": {"S": "x"}},
            {"token": {"S": "x"}},
            {"number": {"S": "1"}},
        ):
            db.put_item(TableName=table, Item={**item, **spoiled})
            with pytest.raises(Misconfigured, match="damaged or another version's"):
                await enactor.head()
        db.put_item(TableName=table, Item=item)
        assert (await enactor.head()).number == 1
        row = next(one for one in db.scan(TableName=table)["Items"] if one["pk"]["S"].startswith("row#"))
        db.put_item(TableName=table, Item={**row, "body": {"B": b"\0{}"}})
        with pytest.raises(Misconfigured, match=r"row a\.example#"):
            await enactor.newest_rows(None)

    on_table(go)


def test_a_deleted_table_is_a_lost_store() -> None:
    """The planner makes a new one, with another identity; an enactor says that the store is away until then."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        before = await published(planner, 3, "a.example")
        assert await enactor.head() == before
        boto3.client("dynamodb", region_name=AWS_REGION).delete_table(TableName=table)
        with pytest.raises(Unavailable, match="isn't there"):
            await enactor.newest_rows(before)
        head = await planner.head()
        assert (head.number, head.store != before.store) == (0, True)
        assert await enactor.newest_rows(before) == (head, ())

    on_table(go)


def test_a_restored_table_is_a_lost_store(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same items in a new table: numbers of plans would be given out twice, and orders carried out again."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        before = await published(planner, 1, "a.example", "b.example")
        await planner.put_override("x", b"1")
        await planner.put_order(Order("o1", "withdraw", "a.example"))
        known = await enactor.overrides()
        backup = db.create_backup(TableName=table, BackupName="before")["BackupDetails"]["BackupArn"]
        db.delete_table(TableName=table)
        with pytest.raises(Unavailable):  # as long as a restore takes
            await enactor.head()
        db.restore_table_from_backup(TargetTableName=table, BackupArn=backup)
        with pytest.raises(Unavailable, match="restored or copied, so its store counts as lost"):
            await enactor.newest_rows(before)
        # The planner was stopped all the while, for longer than this:
        monkeypatch.setattr(table_module, "DESCRIBE_AFTER_S", 0.0)
        head = await planner.head()
        monkeypatch.setattr(table_module, "DESCRIBE_AFTER_S", 10.0)
        assert (head.number, head.store != before.store, head.mark != before.mark) == (0, True, True)
        assert await enactor.newest_rows(before) == (head, ())
        assert await enactor.overrides(known) == Overrides(head.store, 0, {})
        found = await enactor.inputs()
        assert (found.snapshot, found.orders) == (0, ())
        assert f"store {before.mark} counts as lost" in (await enactor.history())[-1].text
        again = await published(planner, 2, "a.example")
        assert again.store == head.store
        assert [row.nonce for row in await enactor.rows_of("a.example")] == [again.nonce]
        await enactor.spent_rows(9)
        rest = [item["pk"]["S"].partition("#")[0] for item in db.scan(TableName=table)["Items"]]
        assert sorted(rest) == ["history", "plan", "root", "row"], "what the copy held is cleaned up"

    on_table(go)


def test_a_role_at_another_regions_replica_is_refused_and_empties_nothing(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A global table's replica holds the same root under an ARN of its own: no copy, so no store is begun anew."""

    async def go(table: str, planner: DynamoDbStore, _: DynamoDbStore) -> None:
        head = await published(planner, 1, "a.example")
        arn = db.describe_table(TableName=table)["Table"]["TableArn"].replace(AWS_REGION, "us-east-2")

        async def ready(_table: Table) -> Described:
            return Described(arn, "another id", (AWS_REGION, "us-east-2"))

        with monkeypatch.context() as patched:
            patched.setattr(Table, "_ready", ready)
            there = DynamoDbStore.open(table, AWS_REGION, create=True)
            with pytest.raises(Misconfigured, match="made in another AWS Region's replica") as caught:
                await there.head()
            await there.close()
        assert "aws_region" in caught.value.hint
        assert await planner.head() == head

    on_table(go)


def test_a_backup_without_all_items_is_told_apart_or_read(db: Any) -> None:
    """DynamoDB's backups are taken item by item: the root may name what isn't in it."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        before = await published(planner, 1, "a.example", "b.example")
        await published(planner, 2, "b.example")
        await planner.put_config(random.Random(1).randbytes(5000), b"")
        for item in db.scan(TableName=table)["Items"]:
            if item["pk"]["S"] == "blob" or item["sk"]["S"].startswith("b.example#0000000000000000002"):
                db.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
        for call in (enactor.inputs(), enactor.put_config(b"x", b"y")):
            with pytest.raises(Misconfigured, match="damaged or another version's") as told:
                await call
            assert "name another table" in told.value.hint
        _, rows = await enactor.newest_rows(before)
        assert {row.name: row.generation.number for row in rows} == {"a.example": 1, "b.example": 1}
        assert await enactor.newest_rows(None) == await enactor.newest_rows(before)

    on_table(go)


def test_a_copy_beside_the_running_table_is_another_store(db: Any) -> None:
    """Two planners begin anew in it at once: one does, and the first table's store isn't touched."""

    async def go(table: str, planner: DynamoDbStore, _: DynamoDbStore) -> None:
        before = await published(planner, 1, "a.example")
        backup = db.create_backup(TableName=table, BackupName="copy")["BackupDetails"]["BackupArn"]
        db.restore_table_from_backup(TargetTableName=f"{table}-copy", BackupArn=backup)
        copies = [DynamoDbStore.open(f"{table}-copy", AWS_REGION, create=True) for _ in range(2)]
        heads = await asyncio.gather(*(copy.head() for copy in copies))
        assert heads[0] == heads[1]
        assert (heads[0].number, heads[0].store != before.store) == (0, True)
        assert len(await copies[0].history()) == 1
        for copy in copies:
            await copy.close()
        assert await planner.head() == before

    on_table(go)


def test_a_role_is_woken_when_the_store_goes_and_when_it_is_back() -> None:
    """Its next read says what is wrong; without being woken it would say so only when it has something to do."""

    async def go(table: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        await planner.head()
        waiter = enactor.waiter()
        await quiet(waiter)
        boto3.client("dynamodb", region_name=AWS_REGION).delete_table(TableName=table)
        await asyncio.wait_for(waiter.wait(3600 * 10**9), 10)
        await planner.head()
        await asyncio.wait_for(waiter.wait(3600 * 10**9), 10)

    on_table(go)


def test_doctor_is_told_about_the_table(db: Any) -> None:
    """A table as a planner makes it: usable, with deletion protection to be turned on."""

    async def go(table: str, planner: DynamoDbStore, _: DynamoDbStore) -> None:
        with pytest.raises(Unavailable, match="isn't there"):
            await look_at_table(table, AWS_REGION)
        await planner.head()
        assert [one.verdict for one in await look_at_table(table, AWS_REGION)] == ["warning", "good", "good"]
        db.update_table(TableName=table, DeletionProtectionEnabled=True)
        assert {one.verdict for one in await look_at_table(table, AWS_REGION)} == {"good"}

    on_table(go)


def test_no_dynamodb_at_all_is_unavailable_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there: said with where to look, and every call ends."""
    monkeypatch.setattr(client, "PATIENCE_S", 0.3)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{free_port()}")

    async def go(_: str, planner: DynamoDbStore, enactor: DynamoDbStore) -> None:
        for store in (planner, enactor):
            with pytest.raises(Unavailable, match="can't be reached") as told:
                await store.head()
            assert "AWS_ENDPOINT_URL_DYNAMODB" in told.value.hint

    on_table(go)


def test_without_credentials_or_region_a_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found at the first call, and again at each: as soon as there are some, it goes on without a restart."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    async def go(_: str, planner: DynamoDbStore, __: DynamoDbStore) -> None:
        with pytest.raises(Misconfigured, match="no usable AWS credentials"):
            await planner.head()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTESTSONLY")
        assert (await planner.head()).number == 0
        nowhere = DynamoDbStore.open("a-table", "")
        with pytest.raises(Misconfigured, match="no AWS region is named"):
            await nowhere.head()
        await nowhere.close()

    on_table(go)


def test_credentials_that_expired_are_read_anew() -> None:
    """Temporary ones end: the next call uses what the environment or the files hold by then."""

    async def go(table: str, planner: DynamoDbStore, _: DynamoDbStore) -> None:
        await planner.head()
        way, store = opened(table)
        await store.head()
        used = way._made

        async def expired(*_: Any) -> Any:
            raise answered("ExpiredTokenException", message="The security token AQoDYXdz/secret is expired")

        way.spoil = expired
        with pytest.raises(Misconfigured, match="have expired") as told:
            await store.head()
        assert "AQoDYXdz" not in f"{told.value} {told.value.hint}"
        way.spoil = None
        await store.head()
        assert way._made is not used
        await store.close()

    on_table(go)
