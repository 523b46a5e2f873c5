"""The race found, told and followed; which guards are enough; the numbers that Spin has too."""

import json
from itertools import combinations

import pytest

from fencepost.explorer.explore import Explorer
from fencepost.explorer.result import Result
from fencepost.incident.race import (
    PERTURBED,
    GuardTable,
    Race,
    count,
    document,
    find_race,
    guard_table,
    guards_document,
    needed,
    subsets,
    tell,
    tell_guards,
)
from fencepost.incident.story import layout, retake
from fencepost.incident.stuck import aftermath
from fencepost.incident.tree import Guard, Guards
from fencepost.incident.tree_model import BACKWARD, EMPTY, NAMES, Perturbation, TreeModel

ALL = frozenset(Guard)
WRITE, TARGET, SPARES, RECORD = Guard
WIDTH = 100


def explore(model: TreeModel, *, symmetry: bool) -> Result:
    """This project's explorer."""
    return Explorer(model, symmetry=symmetry).run()


@pytest.fixture(scope="module")
def race() -> Race:
    """As it was, at the size of the incident: three enactors, three plans, two endpoints."""
    return find_race(explore)


@pytest.fixture(scope="module")
def table() -> GuardTable:
    """Every set of guards at the same size."""
    return guard_table(explore)


@pytest.mark.parametrize(("endpoints", "steps"), [(1, 10), (2, 11), (3, 12)])
def test_the_shortest_race_is_one_step_longer_for_each_endpoint(endpoints: int, steps: int) -> None:
    """Incident, steps 1 to 4: ten steps with one endpoint, the caller's question included."""
    found = find_race(explore, endpoints=endpoints)
    assert (found.found.verdict, found.found.promise) == ("violated", EMPTY)
    assert len(found.told) == len(found.found.story) == steps


@pytest.mark.parametrize("sizes", [(1, 3, 2), (3, 2, 2)])
def test_the_race_needs_two_enactors_and_a_plan_between(sizes: tuple[int, int, int]) -> None:
    """One enactor never races itself, and with two plans none is "far older": then nothing breaks and that is said."""
    found = find_race(explore, *sizes)
    assert not found.violated
    assert found.after is None
    assert tell(found).startswith("HOLDS · ")
    assert "stuck" in document(found)


def test_the_story_is_told_in_the_incidents_words(race: Race) -> None:
    """Golden: each line's words follow from what stood before its step."""
    lines = tell(race).splitlines()
    head = "VIOLATED never_empty · shortest way, 11 steps · 3 enactors, 3 plans, 2 endpoints · "
    assert lines[0].startswith(head)
    assert lines[1:] == [
        "  1  planner    writes plan 1",
        "  2  enactor A  picks plan 1 and checks it, once: newer than what is live? Yes, now.",
        "  3  planner    writes plan 2                    4  planner  writes plan 3",
        "  5  enactor B  picks plan 3; its check is true too",
        "  6  enactor B  points api at plan 3             7  enactor B  points www at plan 3, and is done",
        "  8  enactor A  wakes, points api at plan 1. Nothing ties the check of step 2 to this write.",
        "  9  enactor B  cleaning up, finds plan 1 far older than 3",
        " 10  enactor B  deletes it, and with it the addresses api points at",
        " 11  a caller   asks for api: NOERROR, no addresses                                    <- here",
        "Then it can't get up: each change must first save what was live before (plan 1), and that is gone.",
        "Enactors A, B and C fail at that step for ever; only a person can write this record now.",
        "The deciders that ship, same bounds: fencepost explore.   Which guard is enough: explore --guards",
    ]


def test_no_line_is_wider_than_a_terminal(race: Race, table: GuardTable) -> None:
    """At 100 columns, the largest sizes included."""
    largest = find_race(explore, 2, 4, len(NAMES))
    for text in (tell(race), tell(largest), tell_guards(table)):
        assert max(len(line) for line in text.splitlines()) <= WIDTH, text


def test_what_follows_is_explored_not_said(race: Race) -> None:
    """Incident, step 5: in no order of steps does the name answer again, and every enactor ends at the same step."""
    after = race.after
    assert after is not None
    assert after.stuck
    assert (after.empty, after.missing, after.mended) == (("api",), (1,), 0)
    assert after.failing == ("enactor A", "enactor B", "enactor C")
    assert after.situations > 20
    assert after.ends > 0
    assert not after.endless


def test_what_follows_is_mended_where_the_rollback_record_tolerates() -> None:
    """The race is the same, but the next look mends it: it was the bookkeeping that kept everyone down."""
    model = TreeModel(guards=frozenset({RECORD}), watch=(EMPTY,))
    found = explore(model, symmetry=True)
    assert (found.promise, len(found.story)) == (EMPTY, 11)
    after = aftermath(model, retake(model, found.story)[1])
    assert not after.stuck
    assert after.mended > 0
    assert after.failing == ()


def test_another_models_story_is_refused(race: Race) -> None:
    """A story is taken again step by step, so one that can't have happened is noticed."""
    with pytest.raises(ValueError, match="another model's"):
        retake(TreeModel(3, 2, 2, watch=(EMPTY,)), race.found.story)


@pytest.mark.parametrize("guards", list(subsets()), ids=lambda guards: "+".join(sorted(g.value for g in guards)))
def test_only_a_conditional_write_keeps_plans_from_falling(guards: Guards) -> None:
    """never_backward: check and write in one atomic step, at the thing written; no other guard does that."""
    found = explore(TreeModel(guards=guards, watch=(BACKWARD,)), symmetry=True)
    assert (found.promise == BACKWARD) == (WRITE not in guards)
    if WRITE not in guards:
        assert len(found.story) == 6


def cell(table: GuardTable, guards: set[Guard], *perturbations: Perturbation) -> tuple[str, int]:
    """What broke, after how many steps."""
    (tried,) = (
        each for each in table.tried if each.guards == frozenset(guards) and each.perturbations == perturbations
    )
    return tried.promise, tried.steps


def test_a_conditional_write_alone_is_safe_only_if_nothing_else_happens(table: GuardTable) -> None:
    """On a tree it falls at step 11 once an endpoint may be skipped, at 12 once an operator rolls one back."""
    assert cell(table, {WRITE}) == ("", 0)
    assert cell(table, {WRITE}, Perturbation.SKIP) == (EMPTY, 11)
    assert cell(table, {WRITE}, Perturbation.ROLLBACK) == (EMPTY, 12)


def test_the_target_must_exist_and_clean_up_must_spare(table: GuardTable) -> None:
    """Each inside the transaction: these two keep every endpoint from being empty, whatever else is guarded."""
    for perturbations in PERTURBED:
        for guards in subsets():
            if {TARGET, SPARES} <= guards:
                assert cell(table, set(guards), *perturbations) == ("", 0)
    assert needed(table, PERTURBED[-1]) == [frozenset({TARGET, SPARES})]
    assert needed(table, PERTURBED[-1], backward=True) == [frozenset({WRITE, TARGET, SPARES})]
    assert needed(table, PERTURBED[0]) == [frozenset({WRITE}), frozenset({TARGET, SPARES})]


def test_taking_any_of_the_three_away_breaks_something() -> None:
    """The guards are needed each: without one of the three a promise breaks, without the rollback's none does."""
    for left_out in (WRITE, TARGET, SPARES, RECORD):
        found = explore(TreeModel(guards=ALL - {left_out}, perturbations=PERTURBED[-1]), symmetry=True)
        broken = {WRITE: BACKWARD, TARGET: EMPTY, SPARES: EMPTY, RECORD: ""}[left_out]
        assert found.promise == broken, left_out


@pytest.mark.parametrize("twice", [*combinations(Perturbation, 1), tuple(Perturbation)], ids=str)
def test_what_is_safe_once_is_safe_twice(twice: tuple[Perturbation, ...]) -> None:
    """The bound of one skip and one rollback isn't what keeps the safe set safe."""
    model = TreeModel(guards=frozenset({WRITE, TARGET, SPARES}), perturbations=twice * 2)
    found = explore(model, symmetry=True)
    assert found.verdict == "holds"
    assert all(found.sometimes[{Perturbation.SKIP: "skipped", Perturbation.ROLLBACK: "rolled back"}[p]] for p in twice)


def test_safe_sets_are_not_safe_for_want_of_trying() -> None:
    """The "sometimes" partners: with all guards each of them is seen to refuse, and old plans are still cleaned up."""
    found = explore(TreeModel(guards=ALL, perturbations=PERTURBED[-1]), symmetry=True)
    assert found.verdict == "holds"
    for event in ("live is newer", "spared", "deleted", "turned", "picked", "skipped", "rolled back", "target gone"):
        assert found.sometimes.get(event, 0) > 0, (event, found.sometimes)


@pytest.mark.parametrize(("guards", "plain", "symmetric"), [(frozenset(), 70_971, 14_430), (ALL, 20_286, 4_140)])
def test_every_situation_is_counted(guards: Guards, plain: int, symmetric: int) -> None:
    """The sizes that docs/concepts/the-race.md states; Spin has the plain ones too (tests/promises/spin)."""
    assert count(explore, guards=guards).states == plain
    assert count(explore, guards=guards, symmetry=True).states == symmetric


def test_symmetry_finds_the_same(race: Race) -> None:
    """Taking interchangeable enactors for one shortens the search, not the story."""
    plain = find_race(explore, symmetry=False)
    assert len(plain.told) == len(race.told)
    assert plain.found.states > race.found.states


def test_the_race_is_found_at_once(race: Race) -> None:
    """Half a second of CPU is the promise; far less is the habit, and the bound here leaves room for a busy machine."""
    assert race.found.cpu_s < 0.5


def test_documents_have_the_keys_of_every_exploration(race: Race, table: GuardTable) -> None:
    """What programs read: plain JSON, the story as told, and what wasn't covered."""
    keys = "verdict promise states transitions depth cpu_s story sometimes not_covered stuck"
    told = json.loads(json.dumps(document(race)))
    assert set(keys.split()) <= set(told)
    assert told["story"][7] == {
        "who": "enactor A",
        "what": "wakes, points api at plan 1. Nothing ties the check of step 2 to this write.",
    }
    assert told["stuck"]["failing"] == ["enactor A", "enactor B", "enactor C"]
    sets = json.loads(json.dumps(guards_document(table)))["sets"]
    assert len(sets) == 16
    assert [each["guards"] for each in sets if each["safe"] and each["backward_at"] is None] == [
        ["conditional-write", "target-exists", "cleanup-spares"],
        ["conditional-write", "target-exists", "cleanup-spares", "rollback-tolerates"],
    ]


def test_what_was_stopped_is_not_called_safe() -> None:
    """Ctrl-C, or a bound: the result so far, and no conclusion."""

    def stopping(model: TreeModel, *, symmetry: bool) -> Result:
        return Explorer(model, symmetry=symmetry).run(20_000)

    stopped = guard_table(stopping)
    assert not stopped.finished
    assert len(stopped.tried) == len(PERTURBED) * len(stopped.backward)
    assert tell_guards(stopped).splitlines()[-1] == "Stopped after 1 of 16 sets: the rest is unknown."
    assert not guards_document(stopped)["finished"]
    found = find_race(lambda model, *, symmetry: Explorer(model, symmetry=symmetry).run(500))
    assert not found.violated
    assert tell(found).startswith("UNFINISHED, nothing broken so far · ")
    assert "Then it was stopped" in tell(found)


@pytest.mark.parametrize("sizes", [(0, 3, 2), (7, 3, 2), (3, 0, 2), (3, 9, 2), (3, 3, 0), (3, 3, 5)])
def test_sizes_out_of_range_are_refused(sizes: tuple[int, int, int]) -> None:
    """The message says which and how far."""
    with pytest.raises(ValueError, match=r"(enactors|plans|endpoints) is \d; from 1 to \d can be explored"):
        TreeModel(*sizes)


def test_two_short_steps_share_a_line_only_where_they_fit() -> None:
    """The layout of stories: never three on a line, never past the edge, and the last alone."""
    laid = layout([("planner", "writes plan 1")] * 4 + [("enactor A", "x" * 80), ("a caller", "asks")])
    assert [line[:3].strip() for line in laid] == ["1", "3", "5", "6"]
    assert laid[-1].endswith("<- here")
    assert max(map(len, laid)) <= WIDTH
