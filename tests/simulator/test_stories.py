"""Golden stories: walks told in plain lines, as they were read and found right (after etcd/raft's testdata).

FENCEPOST_STORIES=write pytest tests/simulator/test_stories.py writes them anew, to be read and committed.
"""

import os
from pathlib import Path

import pytest

from fencepost.simulator.scenarios import SCENARIOS
from fencepost.simulator.story import story
from fencepost.simulator.trace import Header

STORIES = Path(__file__).parents[1] / "stories"
TOLD = (("first-minutes", 0), ("race", 0), ("outage", 1), ("hold", 0))


@pytest.mark.parametrize(("name", "seed"), TOLD, ids=[name for name, _ in TOLD])
def test_a_story_is_told_as_it_was(name: str, seed: int) -> None:
    """What a decider does is seen here in words: a change that alters a story is to be read before it is kept."""
    scenario = SCENARIOS[name]
    lines = story(Header(seed, scenario, scenario.upsets(seed)))
    text = "\n".join([f"{name}: {scenario.meaning}", "", *lines, ""])
    path = STORIES / f"{name}.txt"
    if os.environ.get("FENCEPOST_STORIES") == "write":
        path.write_text(text)
    assert path.read_text() == text


def test_every_story_has_its_test() -> None:
    """A story that nothing compares says what was once."""
    assert {path.stem for path in STORIES.glob("*.txt")} == {name for name, _ in TOLD}


def test_october_2025_ends_otherwise() -> None:
    """October 2025, steps 3 and 4: the late writers are refused, the clean-up took no live row, nothing was emptied."""
    text = (STORIES / "race.txt").read_text()
    stands = [line for line in text.splitlines() if "stands still, having read and not yet written" in line]
    refused = [line for line in text.splitlines() if "is refused: e0" in line][:2]
    assert [line.split()[1:3] for line in stands] == [line.split()[1:3] for line in refused]
    assert text.index("deletes row 2") < text.index(refused[0])
    assert text.endswith("all promises held\n")
