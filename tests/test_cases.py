"""docs/cases.md: each report names tests that exist, and each test that cites a report stands in the report's row."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "cases.md").read_text()
CITED_SECTIONS = ("Leases and recovery", "Health and removal")
"""Whose reports are cited in docstrings too, all over the tests."""


def rows_of(text: str) -> list[list[str]]:
    """The rows of all tables in a part of the page."""
    return [
        line.split(" | ")
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(("| Report", "| ---"))
    ]


ROWS = rows_of(PAGE)
SECTIONS = {part.partition("\n")[0]: rows_of(part) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)}


def reports(cell: str) -> Iterator[tuple[str, str]]:
    """The reports of a row, (project, number): "hashicorp/nomad PR #1, #2, etcd #3" has ("nomad", "1"), ..."""
    project = ""
    for named, number in re.findall(r"(?:([\w./-]+) (?:PR )?)?#(\d+)", cell):
        project = named.rpartition("/")[2].lower() or project
        yield project, number


SHOWN_BY: dict[tuple[str, str], set[str]] = {}
for row in ROWS:
    for report in reports(row[0]):
        SHOWN_BY.setdefault(report, set()).update(re.findall(r"`(\S+\.py::\w+)`", row[3]))
CITED = [row for section in CITED_SECTIONS for row in SECTIONS[section]]
PROJECTS = sorted({project for row in CITED for project, _ in reports(row[0])})
CITATION = re.compile(
    rf"(?<![\w-])({'|'.join(map(re.escape, PROJECTS))})((?: PR)? #\d+(?:(?:,| and) #\d+)*)", re.IGNORECASE
)
IN_NAME = re.compile(rf"_({'|'.join(re.escape(each.replace('-', '_')) for each in PROJECTS)})(?:_pr)?((?:_\d+)+)(?=_)")


@cache
def functions_in(path: Path) -> dict[str, str]:
    """Every function of a file, also in classes, with its docstring."""
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def cited(name: str, docstring: str) -> Iterator[tuple[str, str]]:
    """The reports that a test cites, by its name or in its docstring."""
    for project, numbers in CITATION.findall(" ".join(docstring.split())):
        yield from ((project.lower(), number) for number in re.findall(r"\d+", numbers))
    for project, numbers in IN_NAME.findall(name):
        yield from ((project.replace("_", "-"), number) for number in re.findall(r"\d+", numbers))


def citations() -> list[tuple[str, str, str]]:
    """(test, project, number) of all reports of leases and health that tests cite."""
    return sorted(
        {
            (f"{path.relative_to(TESTS)}::{name}", *report)
            for path in TESTS.rglob("*.py")
            for name, docstring in functions_in(path).items()
            if name.startswith("test_")
            for report in cited(name, docstring)
        }
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("| "))
def test_each_case_names_tests_that_exist(row: list[str]) -> None:
    """A case without a test says that what it is about isn't built yet."""
    assert len(row) == 4
    named = re.findall(r"`(\S+\.py)::(\w+)`", row[3])
    assert named or "not built yet" in row[2]
    assert len(set(named)) == len(named)
    for path, test in named:
        assert test in functions_in(TESTS / path), f"{path} has no {test}"


def test_each_report_that_a_test_is_named_by_stands_in_the_table() -> None:
    """A test called after a public report is listed, so that the table doesn't fall behind."""
    listed = {test for row in ROWS for test in re.findall(r"::(\w+)`", row[3])}
    contracts = TESTS / "contracts"
    for path in (
        contracts / "test_dns_reports.py",
        contracts / "test_dns_reports_apis.py",
        TESTS / "system" / "test_dns_cases.py",
        TESTS / "simulator" / "test_lease_reports.py",
    ):
        assert {name for name in functions_in(path) if name.startswith("test_")} <= listed


def test_each_test_that_cites_a_report_of_leases_or_health_stands_in_its_row() -> None:
    """By name or docstring, wherever the test is: whoever breaks what it shows finds all that show it."""
    found = citations()
    assert len(found) > 70
    missing = [
        f"{project} #{number}: {test}"
        for test, project, number in found
        if test not in SHOWN_BY.get((project, number), ())
    ]
    assert not missing, "\n".join(missing)


def test_each_report_of_leases_and_health_is_cited_by_a_test_of_its_row() -> None:
    """Else a row could name tests that are about something else."""
    said = {(test, project, number) for test, project, number in citations()}
    for row in CITED:
        tests = re.findall(r"`(\S+\.py::\w+)`", row[3])
        for report in reports(row[0]):
            assert any((test, *report) in said for test in tests), f"no test cites {' #'.join(report)}"


def test_citations_are_found() -> None:
    """In names and docstrings, with several numbers, an owner, a pull request; other projects' numbers are left out."""
    assert list(cited("test_x", "As in hashicorp/nomad PR #14474, and\n  etcd #1, #2 and #3; not-etcd #4.")) == [
        ("nomad", "14474"),
        ("etcd", "1"),
        ("etcd", "2"),
        ("etcd", "3"),
    ]
    assert list(cited("test_etcd_12291_valkey_2651_the_clock_of_3", "")) == [("etcd", "12291"), ("valkey", "2651")]
    assert list(cited("test_amazon_dynamodb_lock_client_pr_116_a_beat", "")) == [("amazon-dynamodb-lock-client", "116")]
