"""What ``fencepost explore`` is built on: results, told and as a document; bounds and mistakes."""

import json
from typing import Any

import pytest

from fencepost.explorer import fleet_command
from fencepost.explorer.command import explore, named
from fencepost.explorer.explore import ROUND, STUCK, Explorer
from fencepost.explorer.graph import Graph
from fencepost.explorer.known import Known
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import NO_MEMORY, UNASKED, Result, Step, document, tell
from fencepost.world.faults import MEANING, NINE, Fault
from fencepost.world.region import Shape


def test_each_move_is_explored_alone_and_none_besides() -> None:
    """What is walked unless told otherwise, "each", stands for ten explorations."""
    results = explore(enactors=1, planners=1)
    assert len(results) == 1 + len(NINE)
    assert {result.verdict for result in results} == {"holds"}
    assert [result.faults for result in results[1:3]] == [
        ("input-change", "withdraw", "marker-deleted"),
        ("input-change", "withdraw", "record-emptied"),
    ]


def test_moves_are_joined_by_plus_and_counted() -> None:
    """Two repairs and a release in one exploration."""
    (result,) = explore(1, 1, moves=("repair+repair+release",), inputs=0, withdrawals=0)
    assert result.verdict == "holds"
    assert result.sometimes["repair enacted"] > 0
    assert result.faults == ("repair", "release")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"moves": ("repiar",)}, r"unknown move 'repiar'; did you mean 'repair'\?"),
        ({"moves": ("each+crash",)}, "each can't be joined"),
        ({"moves": ("crash+",)}, "an empty name in 'crash\\+'"),
        ({"most": 0}, "most is 0; at least one"),
        ({"moves": ("zzz",)}, "unknown move 'zzz'; known are marker-deleted"),
        ({"enactors": 0}, "enactors is 0; from 1 to 6"),
        ({"endpoints": 5}, "endpoints is 5; from 1 to 4"),
        ({"inputs": 99}, "inputs is 99"),
    ],
)
def test_mistakes_are_named(words: dict[str, object], said: str) -> None:
    """The nearest right word is offered."""
    with pytest.raises(ValueError, match=said):
        explore(**words)  # type: ignore[arg-type]


def test_a_bound_that_is_reached_is_said() -> None:
    """Unfinished isn't "holds": what was not explored is unknown."""
    (result,) = explore(most=500, moves=("crash",))
    assert result.verdict == "unfinished"
    assert 500 <= result.states < 1000
    assert tell(result).startswith("UNFINISHED, nothing broken so far · ")


def test_ctrl_c_ends_an_exploration_with_what_it_has() -> None:
    """Interrupted is unfinished, and progress is told on the way."""
    seen = []

    def progress(states: int, depth: int) -> None:
        seen.append((states, depth))
        raise KeyboardInterrupt

    result = Explorer(RegionModel(Shape(2, 1, budget=((Fault.INPUT, 1),))), progress=progress).run()
    assert result.verdict == "unfinished"
    assert seen == [(1, 0)]


def test_ctrl_c_begins_no_further_exploration() -> None:
    """Ten were asked for; the first was stopped."""

    def progress(_states: int, _depth: int) -> None:
        raise KeyboardInterrupt

    (result,) = explore(progress=progress)
    assert (result.verdict, result.stopped) == ("unfinished", True)


@pytest.mark.parametrize(("error", "said"), [(KeyboardInterrupt, UNASKED), (MemoryError, NO_MEMORY)])
def test_what_ends_the_last_question_leaves_what_was_found(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], said: str
) -> None:
    """All states were seen, but not whether they converge: the counts are told, and that "holds" wasn't shown."""

    def reaching(*_: object) -> None:
        raise error

    monkeypatch.setattr(Graph, "reaching", reaching)
    (result,) = explore(1, 1, moves=("none", "crash"))
    assert (result.verdict, result.why, result.stopped) == ("unfinished", said, error is KeyboardInterrupt)
    assert result.states > 1
    assert said in tell(result)


def test_no_more_memory_in_the_search_is_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said with what to do, and nothing of it is called held; what is reserved beforehand is no reason to give up."""

    def grow(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Known, "_grow", grow)
    (result,) = explore(1, 1, moves=("none",))
    assert result.verdict == "holds"  # in the room that there is from the start
    (result,) = explore(moves=("crash", "repair"))
    assert (result.verdict, result.why) == ("unfinished", NO_MEMORY)


def test_the_document_is_plain_json() -> None:
    """verdict, promise, sizes, story, what was seen and what isn't covered."""
    (result,) = explore(1, 1, moves=("none",))
    read = json.loads(json.dumps(document(result)))
    assert (read["verdict"], read["promise"], read["story"]) == ("holds", None, [])
    assert read["states"] == result.states > 0 < read["transitions"]
    assert read["sometimes"]["enacted"] > 0
    assert read["not_covered"]
    assert read["region"] == "1 enactor, 1 planner, 1 endpoint"


def test_a_violation_is_told_step_by_step() -> None:
    """Numbered, who and what, the last line marked."""
    story = (Step("enactor A", "reads DNS"), Step("planner 1", "publishes plan 1"))
    result = Result("violated", "never_backward", 9, 12, 2, 0.25, story, {}, region="1 enactor")
    assert tell(result).splitlines() == [
        "VIOLATED never_backward · shortest way, 2 steps · 1 enactor · 0.2 s CPU",
        "  1  enactor A  reads DNS",
        "  2  planner 1  publishes plan 1   <- here",
    ]
    for why in (STUCK, ROUND):
        assert f"From here {why}." in tell(Result("violated", "converges", 9, 12, 2, 0.25, story, {}, why=why))


def test_named_sets_of_moves() -> None:
    """The nine moves alone and their 36 pairs; a move that is in both halves of a pair happens once."""
    assert len(list(named("each"))) == 10
    pairs = list(named("pairs"))
    assert len(pairs) == 36
    assert len(set(pairs)) == 36
    assert all(len(set(pair)) == len(pair) for pair in pairs)
    assert list(named("crash + repair")) == list(named("crash+repair"))
    assert list(named("all")) == [*named("each"), *named("further"), *pairs]


def test_every_fault_has_a_meaning() -> None:
    """Stories and help texts say each in words."""
    assert set(MEANING) == set(Fault)


def test_the_fleets_parts_are_explored_by_their_own_names() -> None:
    """Leases and network states have faults and bounds of their own, and say what their goal is."""
    (leases,) = fleet_command.explore("leases", moves=("cordon+crash",), time=1)
    assert (leases.verdict, leases.states, leases.sometimes["cordoned"] > 0) == ("holds", 1_997, True)
    (longer,) = fleet_command.explore("leases", moves=("cordon+crash",), time=1, from_nothing=True)
    assert (longer.verdict, longer.states) == ("holds", 4_187)
    assert leases.region == "1 lease manager, 1 host"
    assert "lapsed" in leases.goal
    (network,) = fleet_command.explore("network", moves=("none",))
    assert (network.verdict, network.states) == ("holds", 4_178)


@pytest.mark.parametrize(
    ("part", "words", "said"),
    [
        ("leases", {"moves": ("crsh",)}, "did you mean 'crash'"),
        ("leases", {"moves": ("record-emptied",)}, "unknown move"),
        ("leases", {"managers": 3}, "from 1 to 2"),
        ("leases", {"time": 13}, "from 0 to 12"),
        ("network", {"time": 1}, "time is of leases only"),
        ("network", {"from_nothing": True}, "from-nothing is of leases only"),
        ("network", {"most": 0}, "at least one state"),
    ],
)
def test_what_a_part_of_the_fleet_has_not_is_refused(
    part: fleet_command.Part, words: dict[str, Any], said: str
) -> None:
    """A move of DNS means nothing to a lease; and a bound that can't be explored is named."""
    with pytest.raises(ValueError, match=said):
        fleet_command.explore(part, **words)
