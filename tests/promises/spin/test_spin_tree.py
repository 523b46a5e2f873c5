"""A second opinion on the race: our own Promela model of plan trees, run by Debian's Spin, agrees to the last state."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.explorer.explore import Explorer
from fencepost.explorer.result import Result
from fencepost.incident.race import count
from fencepost.incident.tree import Guard, Guards
from fencepost.incident.tree_model import EMPTY, TreeModel

MODEL = Path(__file__).with_name("tree.pml")
MACRO = {
    Guard.CONDITIONAL_WRITE: "CONDITIONAL",
    Guard.TARGET_EXISTS: "EXISTS",
    Guard.CLEANUP_SPARES: "SPARES",
    Guard.ROLLBACK_TOLERATES: "TOLERATES",
}
BOUNDS = [(2, 2, 1), (2, 3, 1), (3, 2, 2), (3, 3, 2)]
"""Enactors, plans, endpoints."""


@pytest.fixture(autouse=True)
def tools() -> None:
    """Spin turns the model into C, gcc makes that a program."""
    missing = [name for name in ("spin", "gcc") if shutil.which(name) is None]
    missing += [] if Path("/usr/include/stdio.h").exists() else ["stdio.h"]
    if missing:
        pytest.skip(
            f"MISSING {' and '.join(missing)} (Debian: spin, gcc, libc6-dev): no second opinion on the explorer"
        )


def spin(place: Path, sizes: tuple[int, int, int], guards: Guards, *flags: str, macros: tuple[str, ...] = ()) -> str:
    """What Spin's verifier prints for one size, built and run in ``place``."""
    named = dict(zip(("ENACTORS", "PLANS", "ENDPOINTS"), sizes, strict=True))
    named |= {macro: int(guard in guards) for guard, macro in MACRO.items()}
    defined = [f"-D{name}={value}" for name, value in named.items()] + [f"-D{name}" for name in macros]
    for command in (
        ["spin", "-a", "-o2", *defined, str(MODEL)],
        ["gcc", "-O1", "-w", "-DNOREDUCE", "-DSAFETY", *flags, "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=120)
    done = subprocess.run(
        [str(place / "pan"), "-E", "-n"], cwd=place, check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def explore(model: TreeModel, *, symmetry: bool) -> Result:
    """This project's explorer."""
    return Explorer(model, symmetry=symmetry).run()


@pytest.mark.parametrize("guards", [frozenset(), frozenset(Guard)], ids=["as it was", "all guards"])
@pytest.mark.parametrize("sizes", BOUNDS, ids=str)
def test_spin_stores_exactly_as_many_states(tmp_path: Path, sizes: tuple[int, int, int], guards: Guards) -> None:
    """Counted plainly by both, broken states and what follows them included: two models, one number."""
    told = spin(tmp_path, sizes, guards)
    stored = re.search(r"(\d+) states, stored", told)
    assert stored is not None, told
    assert "errors: 0" in told
    assert int(stored[1]) == count(explore, *sizes, guards).states


@pytest.mark.parametrize(("endpoints", "steps"), [(1, 10), (2, 11)])
def test_spin_finds_the_race_at_the_same_step(tmp_path: Path, endpoints: int, steps: int) -> None:
    """Breadth first, a caller's assertion fails in the tenth step with one endpoint, in the eleventh with two."""
    told = spin(tmp_path, (3, 3, endpoints), frozenset(), "-DBFS", macros=("ASK",))
    found = re.search(r"assertion violated .*\(at depth (\d+)\)", told)
    assert found is not None, told
    assert int(found[1]) + 1 == steps  # Spin counts from 0
    ours = Explorer(TreeModel(endpoints=endpoints, watch=(EMPTY,))).run()
    assert len(ours.story) == steps


def test_spin_finds_no_race_with_all_guards(tmp_path: Path) -> None:
    """The same question, asked of every situation, with nothing found."""
    told = spin(tmp_path, (3, 3, 2), frozenset(Guard), macros=("ASK",))
    assert "errors: 0" in told
    assert "assertion violated" not in told
