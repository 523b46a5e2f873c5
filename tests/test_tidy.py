"""House style as tests (after TigerBeetle's tidy.zig): sizes, names, purity of deciders, docstrings, import order."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fencepost.core import effects, events

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fencepost"
FUNCTION_LINES_MOST = 60
FILE_LINES_MOST = 400
MAGNETS = {"utils", "util", "helpers", "helper", "common", "misc", "shared"}
PURE = ("core", "world")
PURE_MAY_IMPORT = {
    "base64",
    "binascii",
    "bisect",
    "array",
    "collections",
    "copy",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "idna",
    "ipaddress",
    "itertools",
    "math",
    "msgspec",
    "numpy",
    "operator",
    "re",
    "struct",
    "typing",
    "fencepost",
}
"""All that deciders and the world may import: nothing that has a clock, chance, IO or an event loop."""
PURE_MAY_NOT_CALL = {"open", "input", "print", "exec", "eval", "__import__", "id", "hash"}
"""IO, and what differs from one run to the next."""
ORDERING = ("list", "tuple", "enumerate", "iter", "next", "zip")
DECIDERS = {
    "DnsEnactor": "fencepost.core.traffic.dns_enactor",
    "DnsPlanner": "fencepost.core.traffic.dns_planner",
    "Janitor": "fencepost.core.traffic.janitor",
    "HostLeases": "fencepost.core.capacity.host_lease",
    "NetworkManager": "fencepost.core.capacity.network_manager",
}
DRIVERS = ("world", "roles")
"""Who runs deciders: the world, which the explorer walks, and the roles' loop."""
MANAGER_DRIVERS = ("simulator", "roles", "incident")
"""Who runs a whole lease manager: the simulator, the role, and the replay."""


def python_files(*places: str) -> list[Path]:
    """Our Python files, in order."""
    return sorted(path for place in places for path in (ROOT / place).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(), str(path))


def shown(path: Path, line: int = 0) -> str:
    """A place in the project, as an editor opens it."""
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_functions_fit_a_screen() -> None:
    """At most 60 lines each, docstring and all."""
    long = [
        f"{shown(path, node.lineno)} {node.name}: {lines} lines"
        for path in python_files("src", "tests", "bench")
        for node in functions(path)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MOST
    ]
    assert not long, "\n".join(long)


def test_files_are_about_one_subject() -> None:
    """At most 400 lines each, and none is called utils, helpers or common."""
    files = python_files("src", "tests", "bench")
    long = [f"{shown(path)}: {len(path.read_text().splitlines())} lines" for path in files]
    long = [line for line in long if int(line.split()[-2]) > FILE_LINES_MOST]
    magnets = [shown(path) for path in files if MAGNETS & {path.stem, path.parent.name}]
    assert not long, "\n".join(long)
    assert not magnets, magnets


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Each module a file imports, with the line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno


@pytest.mark.parametrize("package", PURE)
def test_deciders_have_no_clock_chance_or_io(package: str) -> None:
    """The same class runs in production, in virtual time and under the explorer only if it has nothing of its own."""
    wrong = [
        f"{shown(path, line)} imports {module}"
        for path in python_files(f"src/fencepost/{package}")
        for module, line in imported(path)
        if module.split(".")[0] not in PURE_MAY_IMPORT
    ]
    wrong += [
        f"{shown(path, node.lineno)} calls {node.func.id}"
        for path in python_files(f"src/fencepost/{package}")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PURE_MAY_NOT_CALL
    ]
    assert not wrong, "\n".join(wrong)


def test_only_references_have_async_functions_among_the_pure() -> None:
    """A reference port answers at once and is awaited like any other; deciders are never awaited."""
    wrong = [
        shown(path, node.lineno)
        for path in python_files(*(f"src/fencepost/{package}" for package in PURE))
        if not path.name.startswith("reference_")
        for node in functions(path)
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    assert not wrong, wrong


def is_set(node: ast.expr) -> bool:
    """Whether an expression is a bare set."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")


def ordered_from(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose order a node turns into an order of its own. (A set made from a set has none.)"""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        yield from (generator.iter for generator in node.generators)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERING:
        yield from node.args[:1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        yield from node.args[:1]
    if isinstance(node, ast.Starred):
        yield node.value


def test_no_order_comes_from_a_set() -> None:
    """A set's order differs from run to run: sort it, or keep a dict."""
    wrong = [
        shown(path, expression.lineno)
        for path in python_files("src")
        for node in ast.walk(tree(path))
        for expression in ordered_from(node)
        if is_set(expression)
    ]
    assert not wrong, wrong


def undocumented(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Public functions, classes and methods without a docstring, by name and line."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield prefix + node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{node.name}.")


def test_everything_public_says_what_it_is() -> None:
    """Shape, units, errors raised: a name alone never says them. Modules open with their theory of operation."""
    wrong = [
        f"{shown(path, line)} {name}" for path in python_files("src") for name, line in undocumented(tree(path).body)
    ]
    wrong += [
        f"{shown(path)}: the module"
        for path in python_files("src")
        if tree(path).body and ast.get_docstring(tree(path)) is None
    ]
    assert not wrong, "\n".join(wrong)


def test_tests_say_what_they_show() -> None:
    """Each test's docstring is a sentence, with its source where there is one."""
    wrong = [
        shown(path, node.lineno)
        for path in python_files("tests")
        for node in functions(path)
        if node.name.startswith("test_") and ast.get_docstring(node) is None
    ]
    assert not wrong, "\n".join(wrong)


def test_every_effect_and_event_is_explained() -> None:
    """docs/concepts/theory-of-operation.md lists what deciders ask for and what they are told: all of it."""
    page = (ROOT / "docs" / "concepts" / "theory-of-operation.md").read_text()
    classes = [
        each.__name__
        for module, base in ((effects, effects.Effect), (events, events.Event))
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base) and each is not base
    ]
    assert len(classes) > 20
    missing = [name for name in classes if f"`{name}`" not in page]
    assert not missing, missing


def defined(name: str) -> list[Path]:
    """The files that define a class of this name."""
    return [
        path
        for path in python_files("src")
        if any(isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(tree(path)))
    ]


def sources_of(name: str, driver: str) -> set[str | None]:
    """The modules from which a package imports that name."""
    return {
        node.module
        for path in python_files(f"src/fencepost/{driver}")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names)
    }


@pytest.mark.parametrize("decider", DECIDERS)
def test_every_driver_runs_the_very_same_decider(decider: str) -> None:
    """Nothing is modelled twice: roles and explorer import one class, which is defined once."""
    module = DECIDERS[decider]
    assert defined(decider) == [SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")]
    for driver in DRIVERS:
        assert sources_of(decider, driver) == {module}, driver


@pytest.mark.parametrize("driver", MANAGER_DRIVERS)
def test_every_driver_runs_the_very_same_lease_manager(driver: str) -> None:
    """What leases and admission want of one another is settled once, in ``core``; nobody drives them side by side."""
    module = "fencepost.core.capacity.lease_manager"
    assert sources_of("LeaseManager", driver) == {module}


def test_unsafe_variants_stay_in_tests() -> None:
    """No setting can turn a decider that ships into the one of October 2025: it isn't there."""
    wrong = [
        f"{shown(path, node.lineno)} {node.name}"
        for path in python_files("src")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and any(
            word in node.name.lower() for word in ("as_was", "aswas", "unsafe", "check_once", "checkonce", "unfenced")
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_the_tree_is_the_import_order() -> None:
    """import-linter: cli, assembly, roles and their like, world and ports and settings, core."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted({path.stem for path in (ROOT / "bench").glob("[a-z]*.py")} - {"octodns_run"}))
def test_a_benchmark_still_loads(name: str) -> None:
    """They are run by hand, now and then: what they take from tests may move. (One is for octoDNS's Python.)"""
    done = subprocess.run([sys.executable, "-c", f"import bench.{name}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
