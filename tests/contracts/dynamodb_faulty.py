"""A way to DynamoDB that loses, delays and throttles what a test says, in front of an emulator."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError
from dynamodb import AWS_REGION

from fencepost.adapters.store_dynamodb import DynamoDbStore
from fencepost.adapters.store_dynamodb.client import Client

Send = Callable[[], Awaitable[Any]]
Spoil = Callable[[str, dict[str, Any], Send], Awaitable[Any]]
"""Given a request and a way to send it: the answer, or an error."""


class FaultyClient(Client):
    """Requests that a test may spoil; ``asked`` counts them by operation."""

    def __init__(self, table: str) -> None:
        super().__init__(table, AWS_REGION)
        self.spoil: Spoil | None = None
        self.asked: dict[str, int] = {}

    async def send(self, operation: str, arguments: dict[str, Any]) -> Any:
        """As the client does, unless spoiled."""
        self.asked[operation] = self.asked.get(operation, 0) + 1

        async def send() -> Any:
            return await super(FaultyClient, self).send(operation, arguments)

        return await (self.spoil(operation, arguments, send) if self.spoil is not None else send())


def opened(table: str, *, create: bool = True) -> tuple[FaultyClient, DynamoDbStore]:
    """A store, and the way it goes."""
    client = FaultyClient(table)
    return client, DynamoDbStore(client, create=create)


def is_root(operation: str, arguments: dict[str, Any]) -> bool:
    """Whether a request is the compare-and-set."""
    return operation == "put_item" and arguments["Item"]["pk"]["S"] == "root"


def lost() -> ReadTimeoutError:
    """No answer came."""
    return ReadTimeoutError(endpoint_url="http://example.test")


def answered(code: str, status: int = 400, message: str = "said by AWS") -> ClientError:
    """An error that AWS sends."""
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "AnOperation")


class Lose:
    """Loses the first answers to a compare-and-set: of requests that were applied, were not, or will be later."""

    def __init__(self, how: str, times: int = 1, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.how = how
        self.left = times
        self.meanwhile = meanwhile
        self.late: list[Send] = []

    async def __call__(self, operation: str, arguments: dict[str, Any], send: Send) -> Any:
        """One request."""
        if not is_root(operation, arguments) or self.left == 0:
            return await send()
        self.left -= 1
        if self.how == "applied":
            await send()
        elif self.how == "late":
            self.late.append(send)
        if self.meanwhile is not None:
            await self.meanwhile()
        raise lost()


class Stop:
    """Holds the first compare-and-set until ``go`` is set; ``reached`` says that it has come so far."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, operation: str, arguments: dict[str, Any], send: Send) -> Any:
        """One request."""
        if is_root(operation, arguments) and not self.go.is_set():
            self.reached.set()
            await self.go.wait()
        return await send()
