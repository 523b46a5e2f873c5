"""A trace is walked again byte for byte: in another process, with another PYTHONHASHSEED; and differences are told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.simulator import trace
from fencepost.simulator.command import replay
from fencepost.simulator.scenarios import SCENARIOS

REPLAYS = """
import sys
from pathlib import Path
from fencepost.simulator import trace
from fencepost.simulator.scenarios import SCENARIOS
trace.record(Path(sys.argv[2]), int(sys.argv[3]), SCENARIOS[sys.argv[4]])
print(trace.replay(Path(sys.argv[1])).moves)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short walk's trace."""
    path = tmp_path_factory.mktemp("traces") / "first.jsonl"
    trace.record(path, 7, SCENARIOS["first-minutes"])
    return path


@pytest.mark.parametrize(
    ("name", "seed", "hash_seed"), [("race", 7, "0"), ("race", 7, "4711"), ("outage", 1, "1"), ("swarm", 2, "4711")]
)
def test_another_process_with_other_hashes_walks_the_same(name: str, seed: int, hash_seed: str, tmp_path: Path) -> None:
    """Nothing depends on the order of sets, on addresses of objects or on hashes of text."""
    path, again = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    walked = trace.record(path, seed, SCENARIOS[name])
    done = subprocess.run(
        [sys.executable, "-c", REPLAYS, str(path), str(again), str(seed), name],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == walked.moves
    assert again.read_bytes() == path.read_bytes()


def test_a_trace_is_as_documented(recorded: Path) -> None:
    """JSON lines: header, a line a move with number, time, who, what and digest, and an end."""
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    head, moves, end = lines[0], lines[1:-1], lines[-1]
    assert list(head) == ["fencepost_trace", "seed", "scenario", "sizes", "promises", "upsets"]
    assert (head["fencepost_trace"], head["seed"], head["scenario"]) == (1, 7, "first-minutes")
    assert [number for number, *_ in moves] == list(range(1, len(moves) + 1))
    assert [at for _, at, *_ in moves] == sorted(at for _, at, *_ in moves)
    assert len({digest for *_, digest in moves}) == len(moves)
    assert end[:3] == ["end", "", ""]


def rewritten(path: Path, there: Path, number: int, old: str, new: str) -> Path:
    """A copy with something replaced in one line (the header is line 1)."""
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    there.write_text("".join(lines))
    return there


def test_a_difference_is_told_with_its_line(recorded: Path, tmp_path: Path) -> None:
    """Of a changed decider one wants to know where its first other decision was."""
    changed = rewritten(recorded, tmp_path / "changed", 400, '", "', '", "not ')
    with pytest.raises(trace.Differs, match=r"^line 400: "):
        replay(changed)


def test_other_chance_is_a_difference(recorded: Path, tmp_path: Path) -> None:
    """A replay makes its own moves from the header, so a header of another seed doesn't fit the lines."""
    with pytest.raises(trace.Differs, match=r"^line [2-9]"):
        replay(rewritten(recorded, tmp_path / "seed", 1, '"seed": 7', '"seed": 8'))


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_file_cut_short_is_told(recorded: Path, tmp_path: Path, cut: int) -> None:
    """A full disk while recording."""
    short = tmp_path / "short"
    short.write_text("".join(recorded.read_text().splitlines(keepends=True)[:cut]))
    with pytest.raises(trace.Differs, match="the file ends where"):
        replay(short)


def test_a_file_that_goes_on_is_told(recorded: Path, tmp_path: Path) -> None:
    """Two traces in one file."""
    long = tmp_path / "long"
    long.write_text(recorded.read_text() * 2)
    with pytest.raises(trace.Differs, match="goes on"):
        replay(long)


@pytest.mark.parametrize("text", ["", "no JSON\n", "[]\n", '{"seed": 1}\n', '{"fencepost_trace": 99}\n'])
def test_what_is_no_trace_is_refused(text: str, tmp_path: Path) -> None:
    """A trace of a later version isn't guessed at."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"first line|format 99"):
        replay(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"seed": 7', '"seed": Infinity', "no header"),
        ('"seed": 7', '"seed": "7"', "no header"),
        ('"scenario": "first', '"scenario": "worst', "doesn't know: scenario"),
        ('"upsets": [', '"upsets": [[1, "fire", 0, 0, 0], ', "doesn't know: kind of upset 'fire'"),
        ('"upsets": [', '"upsets": [[-1, "crash", 0, 0, 0], ', "no header"),
        ('"promises": ["never_empty"', '"promises": ["never_mind"', "doesn't know: promise 'never_mind'"),
    ],
)
def test_a_header_that_is_not_understood_is_refused(
    recorded: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    """One clear error, before anything is walked; none of them is a difference of the walk."""
    with pytest.raises(ValueError, match=said) as caught:
        replay(rewritten(recorded, tmp_path / "header", 1, old, new))
    assert not isinstance(caught.value, trace.Differs)


def test_a_header_without_promises_or_without_end_is_refused(recorded: Path) -> None:
    """A walk that judges nothing would hold; and brackets upon brackets are no reason to fall over."""
    head = json.loads(recorded.read_text().splitlines()[0])
    with pytest.raises(ValueError, match="names no promise"):
        trace.header_of(json.dumps(head | {"promises": []}))
    with pytest.raises(ValueError, match="no header"):
        trace.header_of("[" * 200_000)
