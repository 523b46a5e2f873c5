"""A second opinion on the protocol that ships: our own Promela model of it, run by Debian's Spin, counts as many.

The model was written from the rules, not from the deciders, with numbers where those have records and rows. Both count
plainly here: no symmetry, nothing forgotten. So each state of one has its own in the other, counters of an enactor,
times of rows and the local file included; were a step missing in either, or one too many, the numbers would differ.
"""

from pathlib import Path
from typing import NamedTuple

import pytest
from spin_driver import broken_at, stored, verify

from fencepost.core import zone
from fencepost.core.zone import Change, Live
from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import Result, tell
from fencepost.world.faults import Fault
from fencepost.world.region import Shape

MODEL = Path(__file__).with_name("inline.pml")


class Bounds(NamedTuple):
    """How many parts of each kind, and how often each thing may happen; named as in the model."""

    enactors: int = 2
    planners: int = 1
    inputs: int = 1
    withdrawals: int = 0
    deletions: int = 0
    crashes: int = 0
    copies: int = 0

    def shape(self) -> Shape:
        """The same for the explorer."""
        faults = (Fault.INPUT, Fault.WITHDRAW, Fault.MARKER_DELETED, Fault.CRASH, Fault.DUPLICATE)
        budget = tuple((fault, count) for fault, count in zip(faults, self[2:], strict=True) if count)
        return Shape(self.enactors, self.planners, budget=budget)


BOUNDS = [
    (Bounds(inputs=0), 139),
    (Bounds(), 956),
    (Bounds(withdrawals=1), 6_509),
    (Bounds(withdrawals=1, deletions=1), 52_467),
    (Bounds(enactors=1, planners=2, withdrawals=1), 32_350),
    (Bounds(crashes=1), 5_110),
    (Bounds(copies=1), 2_980),
]
MORE = [
    Bounds(enactors=3, inputs=2),
    Bounds(planners=2, withdrawals=1),
    Bounds(inputs=2, deletions=1, copies=1),
    Bounds(withdrawals=1, deletions=1, crashes=1),
    Bounds(enactors=1, planners=2, inputs=2, crashes=1, copies=1),
]


def spin(place: Path, bounds: Bounds, *flags: str, macro: str = "") -> str:
    """What Spin's verifier prints for these bounds, built and run in ``place``."""
    named = [f"{name.upper()}={value}" for name, value in bounds._asdict().items()]
    return verify(MODEL, place, [*named, *([macro] if macro else [])], *flags)


def plainly(bounds: Bounds) -> Result:
    """The explorer's count, with nothing taken as equal or forgotten."""
    return Explorer(RegionModel(bounds.shape(), reduce=False), symmetry=False).run()


@pytest.mark.parametrize(("bounds", "states"), BOUNDS, ids=str)
def test_spin_stores_exactly_as_many_states(tmp_path: Path, bounds: Bounds, states: int) -> None:
    """Two models, one number; and every promise holds in both."""
    result = plainly(bounds)
    assert result.verdict == "holds", tell(result)
    assert result.states == stored(spin(tmp_path, bounds)) == states


@pytest.mark.soak
@pytest.mark.parametrize("bounds", MORE, ids=str)
def test_spin_agrees_on_larger_regions(tmp_path: Path, bounds: Bounds) -> None:
    """Three enactors, two racing planners, and several things happening together."""
    result = plainly(bounds)
    assert result.verdict == "holds", tell(result)
    assert result.states == stored(spin(tmp_path, bounds))


def unfenced(live: Live, change: Change) -> bool:
    """Nothing is required, as in October 2025: the check isn't part of the write."""
    return True


def marker_only(live: Live, change: Change) -> bool:
    """The marker is required, the records are not."""
    return live.marker == change.seen.marker


@pytest.mark.parametrize(
    ("macro", "exact", "bounds"),
    [("UNFENCED", unfenced, Bounds()), ("MARKER_ONLY", marker_only, Bounds(deletions=1))],
    ids=["unfenced", "marker only"],
)
def test_without_the_fence_spin_finds_as_short_a_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, macro: str, exact: object, bounds: Bounds
) -> None:
    """never_backward breaks in both, after equally many steps at the least (Spin breadth first)."""
    steps = broken_at(spin(tmp_path, bounds, "-DBFS", macro=macro))
    monkeypatch.setattr(zone, "exact", exact)
    result = plainly(bounds)
    assert (result.verdict, result.promise) == ("violated", "never_backward")
    assert steps == len(result.story)
