"""The simulator finds broken rules too: each mutant in the short scenario that is about its rule, or by drawn seeds.

What it can't find needs an interleaving that chance hardly ever hits; those are the explorer's (test_mutants.py).
"""

import pytest
from mutants import MUTANTS, Mutant

from fencepost.core.traffic import limits
from fencepost.simulator.command import simulate
from fencepost.simulator.result import tell

BY_SCENARIO = {
    "fenced at all": "race",
    "exact": "marker-lost-twice",
    "adopt": "hold",
    "adopt the content": "hold",
    "digest of the local file": "outage",
    "the janitor looks at what is live": "enactors-stopped",
    "a release names its hold": "two-repairs",
}
"""Found by the first seed of a scenario made for it."""
BY_CHANCE = {"fenced at all": 8, "adopt": 3, "adopt the content": 3, "newer inputs win": 5}
"""Found by one of so many seeds of the default scenario, which knows nothing of these rules."""
SOON = "adopt the content"
"""The one that takes the fewest hours of region time: it stands for all of them where a soak isn't run."""


def mutant_of(rule: str, monkeypatch: pytest.MonkeyPatch) -> Mutant:
    """The mutant, in place."""
    mutant = next(mutant for mutant in MUTANTS if mutant.rule == rule)
    for owner, name, replacement in mutant.patches:
        monkeypatch.setattr(owner, name, replacement)
    return mutant


@pytest.mark.parametrize("rule", BY_SCENARIO)
def test_a_scenario_breaks_without_its_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table row of docs/concepts/protocol.md, in time: the rule out, its promise broken; with it, it holds."""
    assert simulate([0], BY_SCENARIO[rule]).holds
    mutant = mutant_of(rule, monkeypatch)
    result = simulate([0], BY_SCENARIO[rule], shrinks=False)
    assert result.violation is not None, tell(result)
    assert result.violation.promise == mutant.breaks, tell(result)


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=[pytest.mark.soak] if rule != SOON else []) for rule in BY_CHANCE]
)
def test_drawn_upsets_find_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within so many hours of region time, whatever they have in them."""
    mutant = mutant_of(rule, monkeypatch)
    result = simulate(range(BY_CHANCE[rule]), shrinks=False)
    assert result.violation is not None, tell(result)
    assert result.violation.promise == mutant.breaks, tell(result)


def test_without_limits_removal_is_unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load balancer's limits are walked too: where none objects, the first zone that is lost breaks the bound."""
    monkeypatch.setattr(limits, "objection", lambda *_: None)
    result = simulate(range(3), "flapping-targets", shrinks=False)
    assert result.violation is not None, tell(result)
    assert result.violation.promise == "bounded_removal", tell(result)


def test_a_failing_walk_is_shrunk_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """October 2025 with an unfenced write: of the scenario's five upsets, one stop and one death suffice."""
    mutant_of("fenced at all", monkeypatch)
    result = simulate([0], "race")
    broken = result.violation
    assert broken is not None
    assert broken.promise == "never_backward"
    assert sorted(upset.kind for upset in broken.upsets) == ["stopped-before-write", "target-dies"]
    assert broken.drawn == 5
    told = tell(result)
    assert "5 upsets were drawn, 2 of them suffice" in told
    assert "  enactor a   writes e0" in broken.story[-2]
    assert broken.story[-1].endswith("never_backward")
