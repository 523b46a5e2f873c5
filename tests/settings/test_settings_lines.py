"""The scanner finds the line of every key that the real parser finds, and nothing else."""

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.settings.lines import Lines, Path

HARD = '''\
a.b = 1 # c = 2
"x\\u0041".'y.z' = """
[not.a.table]
k = 1 \\""""""
[t]
arr = [
  1, # ] one
  "two]",
  { k = 3, "m" = [1,
  [2]], d = 1979-05-27 07:32:00.5 },
]
lit = \'\'\'
[neither]\'\'\'
[[e]]
n = 1
[[e.f]]
q = -1.5e3
[[ e ]]
n = {}
f = []
[e.z]
w = { a.b.c = 1, a.d = [{}, {x = ""}] }
'''


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Give the path of everything in a parsed file."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from paths(below, (*path, key))


def test_each_key_of_a_hard_file_has_its_line() -> None:
    """Dotted keys, quoted keys, inline tables, arrays of tables, strings and arrays over several lines."""
    lines = Lines(HARD)
    expected = {
        ("a", "b"): 1,
        ("xA", "y.z"): 2,
        ("t",): 5,
        ("t", "arr", 1): 8,
        ("t", "arr", 2, "k"): 9,
        ("t", "arr", 2, "m", 1): 10,
        ("t", "arr", 2, "d"): 10,
        ("t", "lit"): 12,
        ("e", 0): 14,
        ("e", 0, "f", 0, "q"): 17,
        ("e", 1): 18,
        ("e", 1, "f"): 20,
        ("e", 1, "z", "w", "a", "b", "c"): 22,
        ("e", 1, "z", "w", "a", "d", 1, "x"): 22,
    }
    assert {path: lines.of(path) for path in expected} == expected
    assert all(lines.has(path) for path in paths(tomllib.loads(HARD)))


def test_what_is_not_in_the_file_has_the_line_around_it() -> None:
    """A missing key is reported at its table, anything else at the top."""
    lines = Lines(HARD)
    assert lines.of(("t", "missing", "deep")) == 5
    assert lines.of(("nowhere",)) == 1
    assert not lines.has(("t", "missing"))


SCALARS = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(
        ["true", "1.5", "1979-05-27", "07:32:00", '"a"', "'b#'", '"""\n[x]\n"""', "'''\n'''", '"\\"]"', '"="']
    ),
)
KEYS = st.sampled_from(["a", "b", "c", '"q.r"', "'s'", '"\\u0062"', "a.b", "b . c", "1"])


def _array(inner: list[str], gap: str) -> str:
    return "[" + gap + ("," + gap).join(inner) + gap + "]"


VALUES: st.SearchStrategy[str] = st.recursive(
    SCALARS,
    lambda value: st.one_of(
        st.builds(_array, st.lists(value, max_size=3), st.sampled_from(["", " ", "\n", " # ]\n "])),
        st.lists(st.tuples(KEYS, value), max_size=2).map(lambda kv: "{" + ", ".join(f"{k} = {v}" for k, v in kv) + "}"),
    ),
    max_leaves=5,
)
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(lambda kv: f"{kv[0]} = {kv[1]}"),
    KEYS.map(lambda key: f"[{key}]"),
    KEYS.map(lambda key: f"[[ {key} ]] # x"),
    st.sampled_from(["", "# [c]", "  "]),
)


@settings(max_examples=400)
@given(st.lists(LINES, max_size=6).map("\n".join))
def test_the_scanner_agrees_with_the_parser(text: str) -> None:
    """For generated files the parser accepts: the same paths, each within the file; the last key of a line is on it."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = Lines(text)
    found = set(paths(parsed))
    assert set(lines._found) == found
    assert all(1 <= lines.of(path) <= text.count("\n") + 1 for path in found)
    order = [lines.of(path) for path in lines._found]
    assert order == sorted(order)
