"""Adopting changes no address, in every interleaving: the write that marks unmarked records leaves them as they are.

This isn't one of the promises, as a person's hold may take an adopted set away; so it is asked here, without holds.
"""

import pytest
from explored import Faults, counted, name_of

from fencepost.core import promises
from fencepost.core.promises import Memory
from fencepost.core.zone import Change, Live
from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import tell
from fencepost.world.faults import MEANING, Fault
from fencepost.world.region import STRANGE, Shape

REPLACES = promises.replaces
WORDS = ((Fault.UNMARKED, Fault.ADOPT), (Fault.STRANGER, Fault.ADOPT))


def keeps_addresses(memory: Memory, before: Live, change: Change, *, ours: bool) -> str | None:
    """As the promise, and besides: unmarked strange records are only ever marked as they stand."""
    unmarked = before.marker is None and before.a == STRANGE.a
    if unmarked and (change.content.a, change.content.aaaa) != (before.a, before.aaaa):
        return "adopting changes no address"
    return REPLACES(memory, before, change, ours=ours)


@pytest.mark.parametrize("planners", [1, 2])
@pytest.mark.parametrize("faults", WORDS, ids=name_of)
def test_what_is_adopted_stays_as_it_stands(faults: Faults, planners: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two enactors, a change of inputs meanwhile; planners that overtake each other."""
    monkeypatch.setattr(promises, "replaces", keeps_addresses)
    explored = Shape(2, planners, budget=counted(faults, withdrawals=0))
    result = Explorer(RegionModel(explored)).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["adopt"] > 0


def test_a_set_that_a_row_once_took_over_is_known_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit: emptied before the enactors came, and the very set put back by hand, it is what a kept row has.

    It may then be brought to what is wanted at once: a person has let us take these very records.
    """
    monkeypatch.setattr(promises, "replaces", keeps_addresses)
    faults = (Fault.STRANGER, Fault.ADOPT, Fault.EMPTIED, Fault.STRANGER)
    result = Explorer(RegionModel(Shape(1, 1, budget=counted(faults, withdrawals=0)))).run()
    assert (result.verdict, result.promise) == ("violated", "adopting changes no address")
    assert sum(step.what == MEANING[Fault.STRANGER] for step in result.story) == 2
    assert any("takes over what stands" in step.what for step in result.story)
