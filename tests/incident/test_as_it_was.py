"""The deciders of October 2025, told events by hand and by chance, and where they may be imported."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.effects import Effect
from fencepost.core.events import DnsRead, Woke
from fencepost.incident.enactor import AGAIN, FAR_OLDER, TreeEnactor
from fencepost.incident.messages import (
    DeletePlan,
    ListPlans,
    PlanDeleted,
    PlansListed,
    PlansRead,
    PlanWritten,
    ReadPlans,
    Skipped,
    Turn,
    Turned,
    WritePlan,
)
from fencepost.incident.planner import PlanWriter
from fencepost.incident.tree import Outcome

SOURCE = Path(__file__).parents[2] / "src" / "fencepost"
LIVES = st.lists(st.integers(0, 6), min_size=1, max_size=4).map(tuple)


def reading() -> TreeEnactor:
    """An enactor just started."""
    enactor = TreeEnactor()
    assert enactor.on(Woke(), 0) == (ReadPlans(),)
    return enactor


@given(st.integers(0, 6), LIVES)
def test_the_check_is_made_once_and_everywhere(newest: int, live: tuple[int, ...]) -> None:
    """Incident, step 1: is my plan newer than what is live? It asks for exactly those endpoints, or looks again."""
    asked = reading().on(PlansRead(newest, live), 0)
    older = tuple(Turn(at, newest) for at, plan in enumerate(live) if plan < newest)
    assert asked == (older or (ReadPlans(),))


@given(st.integers(1, 6), st.integers(1, 4), st.permutations(range(4)))
def test_nothing_is_asked_again_during_the_walk(newest: int, size: int, order: list[int]) -> None:
    """Incident, step 3: whatever happens meanwhile, each endpoint in any order is turned to the plan once picked."""
    enactor = reading()
    asked = enactor.on(PlansRead(newest, (0,) * size), 0)
    for endpoint in (at for at in order if at < size):
        assert Turn(endpoint, newest) in asked
        assert not any(isinstance(effect, ReadPlans) for effect in asked)
        asked = enactor.on(Turned(endpoint, Outcome.DONE), 0)
    assert asked == (ListPlans(),)


@pytest.mark.parametrize("outcome", AGAIN)
def test_a_turn_that_fails_is_tried_again_as_it_is(outcome: Outcome) -> None:
    """Incident, steps 1 and 5: a lost lock, and a rollback record that can't be written, change nothing."""
    enactor = reading()
    asked = enactor.on(PlansRead(2, (1, 1)), 0)
    for _ in range(3):
        assert enactor.on(Turned(0, outcome), 0) == asked


@pytest.mark.parametrize("outcome", [Outcome.LIVE_IS_NEWER, Outcome.TARGET_GONE])
def test_a_turn_that_a_guard_refuses_is_dropped(outcome: Outcome) -> None:
    """Something newer is live, or the plan is gone: the next look will tell."""
    enactor = reading()
    enactor.on(PlansRead(2, (1, 1)), 0)
    assert enactor.on(Turned(0, outcome), 0) == (Turn(1, 2),)
    assert enactor.on(Skipped(1), 0) == (ListPlans(),)


@given(st.integers(1, 8), st.sets(st.integers(1, 8)).map(sorted).map(tuple))
def test_clean_up_goes_by_age_alone(plan: int, there: tuple[int, ...]) -> None:
    """Incident, step 4: everything many generations older than its own goes, oldest first; then it forgets its pass."""
    enactor = reading()
    enactor.on(PlansRead(plan, (0,)), 0)
    enactor.on(Turned(0, Outcome.DONE), 0)
    asked: tuple[Effect, ...] = enactor.on(PlansListed(there), 0)
    deleted = []
    while isinstance(asked[0], DeletePlan):
        deleted.append(asked[0].plan)
        asked = enactor.on(PlanDeleted(Outcome.DONE), 0)
    assert deleted == [old for old in there if plan - old >= FAR_OLDER]
    assert asked == (ReadPlans(),)
    assert enactor == TreeEnactor()


def test_the_planner_writes_on_whatever_becomes_of_its_plans() -> None:
    """Incident, step 2: it kept producing plans."""
    planner = PlanWriter(2)
    assert planner.on(Woke(), 0) == (WritePlan(),)
    assert planner.on(PlanWritten(1), 0) == (WritePlan(),)
    assert planner.on(PlanWritten(2), 0) == ()


def test_an_event_of_another_world_is_a_mistake() -> None:
    """These deciders are told nothing that production's are."""
    for decider in (PlanWriter(1), TreeEnactor()):
        with pytest.raises(TypeError, match="never told DnsRead"):
            decider.on(DnsRead(), 0)


def imports(path: Path) -> set[str]:
    """The modules of ours that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {module for module in found if module.startswith("fencepost")}


def test_what_was_unsafe_is_imported_by_nothing_that_runs() -> None:
    """No setting can turn a decider that ships into one of October 2025: only assembly and cli even know of them."""
    knows = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if any(module.startswith("fencepost.incident") for module in imports(path))
    }
    assert knows <= {"incident", "cli", "assembly.py", "assembly"}


def test_the_incident_is_built_on_core_and_world_alone() -> None:
    """It is walked by whoever walks models, and knows none of them."""
    allowed = ("fencepost.core", "fencepost.world", "fencepost.incident")
    wrong = {
        (path.name, module)
        for path in (SOURCE / "incident").glob("*.py")
        for module in imports(path)
        if not module.startswith(allowed)
    }
    assert not wrong
