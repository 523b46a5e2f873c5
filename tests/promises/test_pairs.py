"""Two moves of the adversary together: the promises hold in every state of every pair. Long, so all of it is soak.

Of the nine moves any two, and each twice, with two enactors and a planner: 45 explorations. Of the later ones any two,
and each with one of the nine, with one enactor and a planner: 276 less the 36 above, and less those of a second repair,
which are explored without changes of inputs. Each also has a withdrawal. Where the bound is reached the rest is
unknown: docs/concepts/exploration.md says where, and how many states there were.
"""

from itertools import combinations, combinations_with_replacement

import pytest
from explored import WITNESSES, Faults, counted, name_of

from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import Result, tell
from fencepost.world.faults import FURTHER, NINE, Fault
from fencepost.world.region import Shape

pytestmark = pytest.mark.soak

MOST = 12_000_000
MOST_LATER = 3_000_000
SECOND_REPAIR = (Fault.REPAIR, Fault.REPAIR, Fault.RELEASE)
OF_NINE = [one + other for one, other in combinations_with_replacement(NINE, 2)]
OF_LATER = [
    one + other
    for one, other in combinations((*NINE, *FURTHER), 2)
    if SECOND_REPAIR not in (one, other) and (one in FURTHER or other in FURTHER)
]
WITH_SECOND_REPAIR = [SECOND_REPAIR + other for other in (*NINE, *FURTHER) if other != SECOND_REPAIR]


def never_broken(explored: Shape, most: int) -> Result:
    """The result, nothing having been broken; finished or not."""
    result = Explorer(RegionModel(explored)).run(most)
    assert result.verdict in ("holds", "unfinished"), tell(result)
    for fault, _ in explored.budget:
        assert result.sometimes.get(WITNESSES[fault][0], 0) > 0, f"{fault.value} never happened:\n{tell(result)}"
    return result


@pytest.mark.parametrize("faults", OF_NINE, ids=name_of)
def test_pairs_of_the_nine_keep_every_promise(faults: Faults) -> None:
    """Two enactors, a planner, a change of inputs, a withdrawal: wholly explored."""
    result = never_broken(Shape(2, 1, budget=counted(faults)), MOST)
    assert result.verdict == "holds", tell(result)


@pytest.mark.parametrize("faults", OF_LATER, ids=name_of)
def test_pairs_with_later_moves_keep_every_promise(faults: Faults) -> None:
    """One enactor, a planner, a change of inputs, a withdrawal; to three million states."""
    never_broken(Shape(1, 1, budget=counted(faults)), MOST_LATER)


@pytest.mark.parametrize("faults", WITH_SECOND_REPAIR, ids=name_of)
def test_pairs_with_a_second_repair_keep_every_promise(faults: Faults) -> None:
    """One enactor, a planner; inputs change where the move means nothing without; to three million states."""
    inputs = 1 if {Fault.ROLLBACK, Fault.TORN_STORE} & set(faults) else 0
    never_broken(Shape(1, 1, budget=counted(faults, inputs=inputs, withdrawals=0)), MOST_LATER)
