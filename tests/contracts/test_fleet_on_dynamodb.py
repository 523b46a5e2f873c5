"""The fleet rows' contract, kept by DynamoDB (an emulator)."""

import itertools
from collections.abc import Iterator

import pytest
from dynamodb import AWS_REGION, aws_environment, emulator
from fleet_agreement import Operation, agrees, operations
from fleet_store import FleetStoreContract, Make
from fleet_waiting import FleetWaitingContract
from hypothesis import given, settings

from fencepost.adapters.store_dynamodb.fleet import DynamoDbFleetStore

_tables = itertools.count(1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One emulator for this file; each test has a table of its own."""
    with emulator(tmp_path_factory.mktemp("dynamodb")) as at:
        yield at


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    aws_environment(monkeypatch, url)


class TestDynamoDb(FleetStoreContract, FleetWaitingContract):
    """The rows in one table. An emulator does 600 requests a second, so fewer rounds and rows."""

    writers = 6
    rounds = 2
    many = 300

    @pytest.fixture
    def make(self) -> Make:
        """The same new table each time."""
        table = f"fleet-{next(_tables)}"
        return lambda: DynamoDbFleetStore.open(table, AWS_REGION, create=True)


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_any_run_of_commits_ends_the_same_as_on_the_reference(examples: int) -> None:
    """Transactions, log and clock come to the same as the reference's one table."""

    @settings(max_examples=examples, deadline=None)
    @given(run=operations)
    def runs(run: list[Operation]) -> None:
        agrees(lambda: DynamoDbFleetStore.open(f"fleet-{next(_tables)}", AWS_REGION, create=True), run)

    runs()
