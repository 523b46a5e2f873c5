"""The way to DynamoDB: one client, made when first needed, and each request with its own retries.

botocore's retries are turned off. A compare-and-set that was resent behind our back would report its own success as a
lost race; and throttling is to be waited out with jitter within a bound we know. Here a request that is *busy* is
repeated, with full jitter, for five seconds; one whose answer was *lost* is repeated too, unless the caller says that
it matters (``once``), for then the caller has to find out what happened.

Credentials that AWS won't take are forgotten with the client, so that the next call reads them anew.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from fencepost.adapters.store_dynamodb import faults
from fencepost.adapters.store_dynamodb.faults import (
    ConditionError,
    ExistsError,
    Kind,
    LostError,
    TableMissingError,
    UnmetError,
)
from fencepost.adapters.store_dynamodb.items import Item, key

T = TypeVar("T")
PATIENCE_S = 5.0
PAUSE_LEAST_S = 0.02
PAUSE_MOST_S = 1.0
CONNECT_S = 2.0
READ_S = 3.0
CONNECTIONS = 16
WRITES_AT_ONCE = 25
"""BatchWriteItem's limit."""
READS_AT_ONCE = 100
"""BatchGetItem's limit."""
BATCHES_UNDER_WAY = 8


class Client:
    """Requests to one table. To be used from one event loop."""

    def __init__(self, table: str, aws_region: str) -> None:
        self.table = table
        self.aws_region = aws_region
        self.where = f"DynamoDB table {table}" + (f" in {aws_region}" if aws_region else "")
        self._stack = AsyncExitStack()
        self._old: list[AsyncExitStack] = []
        self._made: Any = None
        self._making = asyncio.Lock()
        self._under_way = 0
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def call(self, operation: str, /, *, once: bool = False, **arguments: Any) -> Any:
        """One request (``get_item`` …), repeated while DynamoDB is busy.

        Raises the port's ``Unavailable`` or ``Misconfigured``, :class:`TableMissingError`, with ``once``
        :class:`LostError`; :class:`ConditionError`, :class:`UnmetError` and :class:`ExistsError` as they say.
        """
        deadline, pause = time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
        while True:
            try:
                return await self._sent(operation, arguments)
            except faults.REQUEST_ERRORS as error:
                kind, code = faults.kind_of(error), faults.code_of(error)
                if code == "ConditionalCheckFailedException":
                    raise ConditionError(faults.item_of(error)) from error
                if faults.UNMET in faults.reasons_of(error):
                    raise UnmetError(faults.reasons_of(error)) from error
                if code == "ResourceInUseException":
                    raise ExistsError from error
                if code == "ResourceNotFoundException":
                    raise TableMissingError from error
                problem = faults.translated(error, _shown(operation), self.where)
                if kind is Kind.LOST and once:
                    raise LostError(problem) from error
                if kind is Kind.FINAL or time.monotonic() >= deadline:
                    if faults.blames_credentials(error):
                        self._forget()
                    raise problem from error
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
            pause = min(pause * 2, PAUSE_MOST_S)

    async def _sent(self, operation: str, arguments: dict[str, Any]) -> Any:
        await self._open.wait()
        self._under_way += 1
        self._idle.clear()
        try:
            return await self.send(operation, arguments)
        finally:
            self._under_way -= 1
            if self._under_way == 0:
                self._idle.set()

    async def send(self, operation: str, arguments: dict[str, Any]) -> Any:
        """One request, once; botocore's errors. Tests lose, repeat and delay here."""
        client = self._made or await self._client()
        return await getattr(client, operation)(**arguments)

    async def _client(self) -> Any:
        async with self._making:
            if self._made is None:
                if self._under_way <= 1:  # nobody but us
                    await self._close_old()
                self._made = await self._stack.enter_async_context(made(self.aws_region))
            return self._made

    def _forget(self) -> None:
        """Make the next request with a new client; the old one may be in use still, and is closed later."""
        self._made = None
        self._old.append(self._stack)
        self._stack = AsyncExitStack()

    async def _close_old(self) -> None:
        while self._old:
            with contextlib.suppress(*faults.REQUEST_ERRORS):
                await self._old.pop().aclose()

    async def at_rest(self, work: Callable[[], None]) -> None:
        """Run something while no request is under way."""
        self._open.clear()
        try:
            await self._idle.wait()
            work()
        finally:
            self._open.set()

    async def close(self) -> None:
        """Let go of the connections; the next call would open them again."""
        self._forget()
        await self._close_old()

    async def get(self, partition: str, sort: str) -> Item | None:
        """One item, as of now (strongly consistent)."""
        found = await self.call("get_item", TableName=self.table, Key=key(partition, sort), ConsistentRead=True)
        item: Item | None = found.get("Item")
        return item

    async def query(self, partition: str, **more: Any) -> list[Item]:
        """All items of a partition; see :meth:`pages`."""
        return [item async for page in self.pages(partition, **more) for item in page]

    async def pages(
        self,
        partition: str,
        *,
        begins: str = "",
        after: str = "",
        to: str = "",
        down: bool = False,
        most: int = 0,
        names: str = "",
    ) -> AsyncIterator[Sequence[Item]]:
        """A partition's items in the order of their sort keys, page by page (1 MB each), strongly consistent.

        Only those that begin with ``begins``, or are above ``after`` and at most ``to``; ``down``: highest first;
        ``most``: at most so many a page; ``names``: these attributes only.
        """
        condition, values = "pk = :pk", {":pk": {"S": partition}}
        if begins:
            condition, values[":from"] = f"{condition} AND begins_with(sk, :from)", {"S": begins}
        elif to:
            condition += " AND sk BETWEEN :from AND :to"
            values |= {":from": {"S": after + "\0"}, ":to": {"S": to}}
        elif after:
            condition, values[":from"] = f"{condition} AND sk > :from", {"S": after}
        arguments: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not down,
        }
        if most:
            arguments["Limit"] = most
        if names:
            arguments["ProjectionExpression"] = names
        while True:
            page = await self.call("query", **arguments)
            yield page.get("Items", ())
            if not page.get("LastEvaluatedKey"):
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def fetch(self, keys: Sequence[Item]) -> list[Item]:
        """Those of some items that are there, in no order, strongly consistent."""
        cuts = [keys[at : at + READS_AT_ONCE] for at in range(0, len(keys), READS_AT_ONCE)]
        return [item for found in await at_once(self._fetch(cut) for cut in cuts) for item in found]

    async def _fetch(self, keys: Sequence[Item]) -> list[Item]:
        asked: Any = {self.table: {"Keys": list(keys), "ConsistentRead": True}}
        found: list[Item] = []
        async for _ in _patience(self.where, "BatchGetItem"):
            answer = await self.call("batch_get_item", RequestItems=asked)
            found += answer.get("Responses", {}).get(self.table, ())
            asked = answer.get("UnprocessedKeys") or {}
            if not asked:
                break
        return found

    async def write(self, puts: Iterable[Item] = (), deletes: Iterable[Item] = ()) -> None:
        """Write and delete items, in no order and not as one: repeated until all are done."""
        requests = [{"PutRequest": {"Item": item}} for item in puts]
        requests += [{"DeleteRequest": {"Key": {"pk": item["pk"], "sk": item["sk"]}}} for item in deletes]
        cuts = [requests[at : at + WRITES_AT_ONCE] for at in range(0, len(requests), WRITES_AT_ONCE)]
        await at_once(self._write(cut) for cut in cuts)

    async def _write(self, requests: list[Any]) -> None:
        asked: Any = {self.table: requests}
        async for _ in _patience(self.where, "BatchWriteItem"):
            asked = (await self.call("batch_write_item", RequestItems=asked)).get("UnprocessedItems") or {}
            if not asked:
                break

    async def put(self, item: Item, **condition: Any) -> None:
        """Write one item. Raises :class:`ConditionError` if a condition didn't hold."""
        await self.call("put_item", TableName=self.table, Item=item, **condition)


async def at_once(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do several things, eight at a time; their results in order. The first error ends the others."""
    waiting = list(enumerate(works))
    waiting.reverse()
    done: dict[int, T] = {}

    async def some() -> None:
        while waiting:
            at, work = waiting.pop()
            done[at] = await work

    if len(waiting) == 1:
        return [await waiting.pop()[1]]
    tasks = [asyncio.ensure_future(some()) for _ in range(min(BATCHES_UNDER_WAY, len(waiting)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        for _, work in waiting:
            work.close()
    return [done[at] for at in range(len(done))]


async def _patience(where: str, operation: str) -> AsyncIterator[None]:
    """Rounds of a batch that DynamoDB does in parts, with growing pauses; ``Unavailable`` when it takes too long."""
    deadline, pause = time.monotonic() + PATIENCE_S, PAUSE_LEAST_S
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  nothing secret about it
        pause = min(pause * 2, PAUSE_MOST_S)
    raise faults.throttled(operation, where)


def made(aws_region: str) -> Any:
    """An aiobotocore client of DynamoDB, to be entered. The endpoint is botocore's own (AWS_ENDPOINT_URL_DYNAMODB)."""
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    config = AioConfig(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": 1},
        max_pool_connections=CONNECTIONS,
    )
    return get_session().create_client("dynamodb", region_name=aws_region or None, config=config)


def _shown(operation: str) -> str:
    return "".join(part.capitalize() for part in operation.split("_"))
