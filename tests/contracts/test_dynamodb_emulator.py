"""The emulator itself: does it decide as DynamoDB is documented to? The store's contract rests on these.

What the store leans on: conditions decided one write after the other, what stands there told with a refusal, strongly
consistent reads, sizes and pages as documented, and a restored table with an id of its own. The fleet's
rows lean on transactions: all or nothing, with a reason for each action, and reads of several items as of one moment.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from dynamodb import AWS_REGION, emulator

from fencepost.adapters.store_dynamodb.client import Client

ROOT = {"pk": {"S": "root"}, "sk": {"S": "root"}}
TABLE = "emulator"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of an emulator with one table; boto3's, so that nothing of ours stands in between."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name=AWS_REGION,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(max_pool_connections=32, retries={"total_max_attempts": 1}),
        )
        made(client, TABLE)
        yield client


def made(client: Any, table: str) -> None:
    """A table with our keys."""
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    )


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    """AWS's code."""
    return str(error.value.response["Error"]["Code"])


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do something so many times at the same moment."""
    start = threading.Barrier(count)

    def run(at: int) -> Any:
        start.wait()
        return work(at)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def test_of_writes_on_one_condition_one_wins(db: Any) -> None:
    """Conditional writes are atomic (DynamoDB developer guide, "Conditional writes"): 16 at once, 25 times."""
    for number in range(25):
        if number == 0:
            db.put_item(TableName=TABLE, Item={**ROOT, "n": {"N": "0"}})

        def write(at: int, number: int = number) -> bool:
            try:
                db.put_item(
                    TableName=TABLE,
                    Item={**ROOT, "n": {"N": str(number + 1)}, "by": {"N": str(at)}},
                    ConditionExpression="n = :n",
                    ExpressionAttributeValues={":n": {"N": str(number)}},
                )
            except db.exceptions.ConditionalCheckFailedException:
                return False
            return True

        outcomes = at_once(16, write)
        assert sum(outcomes) == 1
        stands = db.get_item(TableName=TABLE, Key=ROOT, ConsistentRead=True)["Item"]
        assert (stands["n"]["N"], stands["by"]["N"]) == (str(number + 1), str(outcomes.index(True)))


def test_a_refusal_tells_what_stands_there(db: Any) -> None:
    """ReturnValuesOnConditionCheckFailure = ALL_OLD: who was outrun needn't read again."""
    item = {"pk": {"S": "old"}, "sk": {"S": "1"}, "body": {"B": b"\0\1"}}
    db.put_item(TableName=TABLE, Item=item)
    with pytest.raises(ClientError) as refused:
        db.put_item(
            TableName=TABLE,
            Item={"pk": {"S": "old"}, "sk": {"S": "1"}},
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert code(refused) == "ConditionalCheckFailedException"
    assert refused.value.response["Item"] == item


def test_what_was_written_is_read(db: Any) -> None:
    """A strongly consistent read returns all prior writes: GetItem, BatchGetItem and Query, from another thread too."""
    for number in range(20):
        key = {"pk": {"S": "read"}, "sk": {"S": f"{number:03}"}}
        db.put_item(TableName=TABLE, Item={**key, "n": {"N": str(number)}})

        def reads(_: int, key: Any = key, number: int = number) -> None:
            assert db.get_item(TableName=TABLE, Key=key, ConsistentRead=True)["Item"]["n"]["N"] == str(number)
            asked = {TABLE: {"Keys": [key], "ConsistentRead": True}}
            assert len(db.batch_get_item(RequestItems=asked)["Responses"][TABLE]) == 1

        at_once(2, reads)


def test_an_item_of_400_kb_is_taken_and_a_bigger_one_refused(db: Any) -> None:
    """400 KB (409,600 bytes), names and values together."""
    key = {"pk": {"S": "size"}, "sk": {"S": "1"}}
    rest = len("pksizesk1body")
    db.put_item(TableName=TABLE, Item={**key, "body": {"B": b"x" * (409_600 - rest)}})
    with pytest.raises(ClientError) as refused:
        db.put_item(TableName=TABLE, Item={**key, "body": {"B": b"x" * (409_600 - rest + 1)}})
    assert code(refused) == "ValidationException"


def test_a_query_ends_at_one_megabyte_and_goes_on_from_there(db: Any) -> None:
    """Query's pages: at most 1 MB, with LastEvaluatedKey as long as there may be more."""
    for number in range(8):
        db.put_item(
            TableName=TABLE,
            Item={"pk": {"S": "pages"}, "sk": {"S": f"{number}"}, "body": {"B": b"x" * 300_000}},
        )
    asked: dict[str, Any] = {
        "TableName": TABLE,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "pages"}},
        "ConsistentRead": True,
    }
    pages = []
    while True:
        page = db.query(**asked)
        pages.append([item["sk"]["S"] for item in page["Items"]])
        if "LastEvaluatedKey" not in page:
            break
        asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    assert len(pages) >= 2
    assert all(len(page) <= 4 for page in pages)
    assert [sort for page in pages for sort in page] == list("01234567")


def test_batches_have_their_limits(db: Any) -> None:
    """BatchWriteItem takes 25 requests, BatchGetItem 100 keys; one more is refused."""
    keys = [{"pk": {"S": "batch"}, "sk": {"S": f"{number:03}"}} for number in range(101)]
    with pytest.raises(ClientError) as refused:
        db.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": key}} for key in keys[:26]]})
    assert code(refused) == "ValidationException"
    for at in range(0, 100, 25):
        db.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": key}} for key in keys[at : at + 25]]})
    assert len(db.batch_get_item(RequestItems={TABLE: {"Keys": keys[:100]}})["Responses"][TABLE]) == 100
    with pytest.raises(ClientError) as refused:
        db.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    assert code(refused) == "ValidationException"


def _transaction(number: int, expected: int) -> list[Any]:
    key = {"pk": {"S": "transaction"}, "sk": {"S": "counter"}}
    return [
        {"Put": {"TableName": TABLE, "Item": {"pk": {"S": "transaction"}, "sk": {"S": f"by {number}"}}}},
        {
            "Update": {
                "TableName": TABLE,
                "Key": key,
                "UpdateExpression": "SET n = :next",
                "ConditionExpression": "n = :n",
                "ExpressionAttributeValues": {":n": {"N": str(expected)}, ":next": {"N": str(expected + 1)}},
            }
        },
    ]


def test_a_transaction_is_all_or_nothing_and_says_what_failed(db: Any) -> None:
    """TransactWriteItems: 16 at once on one condition; the losers leave nothing and are told which part failed."""
    db.put_item(TableName=TABLE, Item={"pk": {"S": "transaction"}, "sk": {"S": "counter"}, "n": {"N": "0"}})

    def write(at: int) -> bool:
        try:
            db.transact_write_items(TransactItems=_transaction(at, 0))
        except ClientError as error:
            reasons = [reason["Code"] for reason in error.response["CancellationReasons"]]
            assert reasons in (["None", "ConditionalCheckFailed"], ["None", "TransactionConflict"])
            return False
        return True

    outcomes = at_once(16, write)
    assert sum(outcomes) == 1
    found = db.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :by)",
        ExpressionAttributeValues={":pk": {"S": "transaction"}, ":by": {"S": "by"}},
        ConsistentRead=True,
    )["Items"]
    assert [item["sk"]["S"] for item in found] == [f"by {outcomes.index(True)}"]


def test_a_transaction_tells_of_each_condition_that_failed_and_checks_without_writing(db: Any) -> None:
    """CancellationReasons has one for each action in order; a ConditionCheck is about an item that isn't written."""
    for name in ("one", "two", "three"):
        db.put_item(TableName=TABLE, Item={"pk": {"S": "reasons"}, "sk": {"S": name}, "n": {"N": "1"}})

    def write(*expected: int) -> list[str]:
        conditions = [
            {
                "TableName": TABLE,
                "ConditionExpression": "n = :n",
                "ExpressionAttributeValues": {":n": {"N": str(number)}},
            }
            for number in expected
        ]
        keys = [{"pk": {"S": "reasons"}, "sk": {"S": name}} for name in ("one", "two", "three")]
        try:
            db.transact_write_items(
                TransactItems=[
                    {"ConditionCheck": {"Key": keys[0], **conditions[0]}},
                    {"Put": {"Item": {**keys[1], "n": {"N": "2"}}, **conditions[1]}},
                    {"Delete": {"Key": keys[2], **conditions[2]}},
                ]
            )
        except ClientError as error:
            return [reason["Code"] for reason in error.response["CancellationReasons"]]
        return []

    no, well = "ConditionalCheckFailed", "None"
    assert write(0, 1, 0) == [no, well, no]
    assert write(1, 0, 0) == [well, no, no]
    assert write(1, 1, 1) == []
    found = db.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "reasons"}},
        ConsistentRead=True,
    )["Items"]
    assert [(item["sk"]["S"], item["n"]["N"]) for item in found] == [("one", "1"), ("two", "2")]


def test_a_transactional_read_is_as_of_one_moment(db: Any) -> None:
    """TransactGetItems: two items that are always written together are never seen apart."""
    keys = [{"pk": {"S": "moment"}, "sk": {"S": name}} for name in ("a", "b")]

    def write(number: int) -> None:
        puts = [{"Put": {"TableName": TABLE, "Item": {**key, "n": {"N": str(number)}}}} for key in keys]
        db.transact_write_items(TransactItems=puts)

    def run(at: int) -> None:
        for number in range(40):
            if at == 0:
                write(number)
            else:
                asked = [{"Get": {"TableName": TABLE, "Key": key}} for key in keys]
                answers = db.transact_get_items(TransactItems=asked)["Responses"]
                assert len({answer["Item"]["n"]["N"] for answer in answers}) == 1

    write(0)
    at_once(3, run)


def test_a_transaction_takes_100_actions(db: Any) -> None:
    """The limit since 2022; one more is refused whole."""
    actions = [
        {"Put": {"TableName": TABLE, "Item": {"pk": {"S": "hundred"}, "sk": {"S": f"{number:03}"}}}}
        for number in range(101)
    ]
    with pytest.raises(ClientError) as refused:
        db.transact_write_items(TransactItems=actions)
    assert code(refused) == "ValidationException"
    db.transact_write_items(TransactItems=actions[:100])


def test_a_restored_table_has_another_id(db: Any) -> None:
    """A restore makes a new table, also under the old name: that is how a store knows."""
    made(db, "restored")
    before = db.describe_table(TableName="restored")["Table"]["TableId"]
    backup = db.create_backup(TableName="restored", BackupName="before")["BackupDetails"]["BackupArn"]
    db.delete_table(TableName="restored")
    db.restore_table_from_backup(TargetTableName="restored", BackupArn=backup)
    assert db.describe_table(TableName="restored")["Table"]["TableId"] != before


def test_our_client_reads_every_page_both_ways(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are put together in order, from either end, within bounds."""
    for number in range(10, 18):
        item = {"pk": {"S": "ours"}, "sk": {"S": str(number)}, "body": {"B": b"x" * 300_000}}
        db.put_item(TableName=TABLE, Item=item)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", db.meta.endpoint_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")

    async def go() -> None:
        client = Client(TABLE, AWS_REGION)

        async def sorts(**bounds: Any) -> list[int]:
            return [int(item["sk"]["S"]) for item in await client.query("ours", **bounds)]

        assert await sorts() == list(range(10, 18))
        assert await sorts(down=True) == list(range(17, 9, -1))
        assert await sorts(after="12", to="15") == [13, 14, 15]
        assert await sorts(after="15") == [16, 17]
        assert await sorts(begins="1", names="sk") == list(range(10, 18))
        assert len(await client.fetch([{"pk": {"S": "ours"}, "sk": {"S": str(n)}} for n in range(10, 140)])) == 8
        await client.close()

    asyncio.run(go())
