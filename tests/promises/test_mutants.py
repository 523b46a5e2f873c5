"""No rule of the protocol is for show: without it the explorer breaks a promise, with it the same region holds."""

import pytest
from mutants import MUTANTS, Mutant

from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import Result, tell

MOST = 150_000


def explored(mutant: Mutant, *, reduce: bool) -> Result:
    """The mutant's region, explored wholly or to the first violation."""
    return Explorer(RegionModel(mutant.shape, reduce=reduce)).run(MOST)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_without_the_rule_a_promise_breaks(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of "Why each rule is there" in docs/concepts/protocol.md: the rule out, the promise broken, as short."""
    for owner, name, replacement in mutant.patches:
        monkeypatch.setattr(owner, name, replacement)
    result = explored(mutant, reduce=False)
    assert (result.verdict, result.promise) == ("violated", mutant.breaks), tell(result)
    assert len(result.story) == mutant.steps, tell(result)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_with_the_rule_the_same_region_holds(mutant: Mutant) -> None:
    """The same parts, faults and bounds with the deciders that ship: every promise holds."""
    result = explored(mutant, reduce=True)
    assert result.verdict == "holds", tell(result)


def test_the_shortest_race_of_october_2025_is_told_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """October 2025, steps 1 to 3: a check made once, a delay, and a write that nothing tied to the check."""
    mutant = next(mutant for mutant in MUTANTS if mutant.rule == "fenced at all")
    for owner, name, replacement in mutant.patches:
        monkeypatch.setattr(owner, name, replacement)
    told = tell(explored(mutant, reduce=False))
    assert told.startswith("VIOLATED never_backward · shortest way, 15 steps · 2 enactors, 1 planner, 1 endpoint")
    lines = told.splitlines()
    assert lines[-1].endswith("writes api.example.test 1   <- here")
    newer = next(line for line in lines if line.endswith("writes api.example.test 2"))
    assert {line.split()[2] for line in (lines[-1], newer)} == {"A", "B"}
