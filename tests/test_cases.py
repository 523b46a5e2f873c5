"""docs/cases.md: each report names tests that exist and cite it, and each cited report stands there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = [
    line.split(" | ")
    for line in (TESTS.parent / "docs" / "cases.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| Report", "| ---"))
]


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Every test function of a file, also in classes."""
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("| "))
def test_each_case_names_tests_that_exist(row: list[str]) -> None:
    """A case without a test says that what it is about isn't built yet."""
    assert len(row) == 4
    named = re.findall(r"`(\S+\.py)::(\w+)`", row[3])
    assert named or "not built yet" in row[2]
    for path, test in named:
        assert test in functions_of(TESTS / path), f"{path} has no {test}"


def test_each_report_that_a_test_is_named_by_stands_in_the_table() -> None:
    """A test called after a public report is listed, so that the table doesn't fall behind."""
    listed = {test for row in ROWS for test in re.findall(r"::(\w+)`", row[3])}
    contracts = TESTS / "contracts"
    for path in (
        contracts / "test_dns_reports.py",
        contracts / "test_dns_reports_apis.py",
        TESTS / "system" / "test_dns_cases.py",
    ):
        assert {name for name in functions_of(path) if name.startswith("test_")} <= listed
