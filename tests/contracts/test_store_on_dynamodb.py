"""The store's contract, kept by DynamoDB (an emulator); and any run of operations ends the same as on the reference."""

import itertools
from collections.abc import Iterator

import pytest
from dynamodb import AWS_REGION, aws_environment, emulator
from put_back import PutBackContract
from store import Make, StoreContract

from fencepost.adapters.store_dynamodb import DynamoDbStore

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


class TestDynamoDb(StoreContract, PutBackContract):
    """The store in one table.

    Of the ten thousand swaps a twentieth: each is four requests to an emulator that does 600 a second.
    """

    swaps = 5

    @pytest.fixture
    def make(self, table: str) -> Make:
        """A new table."""
        return lambda: DynamoDbStore.open(table, AWS_REGION, create=True)
