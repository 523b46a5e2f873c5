"""A second opinion on the race: our own Promela model of plan trees, run by Debian's Spin, agrees to the last state."""

from pathlib import Path

import pytest
from spin_driver import broken_at, stored, verify

from fencepost.explorer.explore import Explorer
from fencepost.explorer.result import Result
from fencepost.incident.race import count
from fencepost.incident.tree import Guard, Guards
from fencepost.incident.tree_model import EMPTY, Perturbation, TreeModel

MODEL = Path(__file__).with_name("tree.pml")
MACRO = {
    Guard.CONDITIONAL_WRITE: "CONDITIONAL",
    Guard.TARGET_EXISTS: "EXISTS",
    Guard.CLEANUP_SPARES: "SPARES",
    Guard.ROLLBACK_TOLERATES: "TOLERATES",
}
BOUNDS = [(2, 2, 1), (2, 3, 1), (3, 2, 2), (3, 3, 2)]
"""Enactors, plans, endpoints."""


def spin(place: Path, sizes: tuple[int, int, int], guards: Guards, *flags: str, macros: tuple[str, ...] = ()) -> str:
    """What Spin's verifier prints for one size, built and run in ``place``."""
    named = dict(zip(("ENACTORS", "PLANS", "ENDPOINTS"), sizes, strict=True))
    named |= {macro: int(guard in guards) for guard, macro in MACRO.items()}
    return verify(MODEL, place, [*(f"{name}={value}" for name, value in named.items()), *macros], *flags)


def explore(model: TreeModel, *, symmetry: bool) -> Result:
    """This project's explorer."""
    return Explorer(model, symmetry=symmetry).run()


@pytest.mark.parametrize("guards", [frozenset(), frozenset(Guard)], ids=["as it was", "all guards"])
@pytest.mark.parametrize("sizes", BOUNDS, ids=str)
def test_spin_stores_exactly_as_many_states(tmp_path: Path, sizes: tuple[int, int, int], guards: Guards) -> None:
    """Counted plainly by both, broken states and what follows them included: two models, one number."""
    assert stored(spin(tmp_path, sizes, guards)) == count(explore, *sizes, guards).states


@pytest.mark.parametrize("guards", [frozenset({Guard.CONDITIONAL_WRITE}), frozenset(Guard)], ids=["one", "all guards"])
def test_spin_agrees_on_skips_and_rollbacks(tmp_path: Path, guards: Guards) -> None:
    """With one of each, the states are as many in both: what may happen besides is the same thing in both."""
    told = spin(tmp_path, (2, 3, 2), guards, macros=("SKIPS=1", "ROLLBACKS=1"))
    model = TreeModel(2, 3, 2, guards, (Perturbation.SKIP, Perturbation.ROLLBACK), watch=())
    assert stored(told) == explore(model, symmetry=False).states


RACES = [
    (1, (), (), 10),
    (2, (), (), 11),
    (2, (Guard.CONDITIONAL_WRITE,), ("SKIPS=1",), 11),
    (2, (Guard.CONDITIONAL_WRITE,), ("ROLLBACKS=1",), 12),
    (2, (Guard.CONDITIONAL_WRITE, Guard.TARGET_EXISTS), ("ROLLBACKS=1",), 12),
]
"""Endpoints, guards, what may happen besides, and the step at which a caller gets no addresses."""


@pytest.mark.parametrize(("endpoints", "guards", "macros", "steps"), RACES)
def test_spin_finds_the_race_at_the_same_step(
    tmp_path: Path, endpoints: int, guards: tuple[Guard, ...], macros: tuple[str, ...], steps: int
) -> None:
    """Breadth first, a caller's assertion fails as late as our own story ends."""
    told = spin(tmp_path, (3, 3, endpoints), frozenset(guards), "-DBFS", macros=("ASK", *macros))
    assert broken_at(told) == steps
    besides = tuple(each for each in Perturbation if f"{each.name}S=1" in macros)
    ours = explore(TreeModel(3, 3, endpoints, frozenset(guards), besides, watch=(EMPTY,)), symmetry=True)
    assert len(ours.story) == steps


@pytest.mark.parametrize(
    "guards", [frozenset({Guard.TARGET_EXISTS, Guard.CLEANUP_SPARES}), frozenset(Guard)], ids=["two", "all guards"]
)
def test_spin_finds_no_race_under_the_safe_sets(tmp_path: Path, guards: Guards) -> None:
    """The same question asked in every state, under a skip and a rollback: nothing is found."""
    told = spin(tmp_path, (3, 3, 2), guards, macros=("ASK", "SKIPS=1", "ROLLBACKS=1"))
    assert "errors: 0" in told
    assert "assertion violated" not in told
