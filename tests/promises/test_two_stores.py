"""Two stores of one owner, and three: they replace each other a few times, then one has its way. No bound is needed.

A store counts how often another's marker replaced a row that it knows enacted, and asks about that *after* it has read
DNS. (The first model of this asked together with the head: the row was never known to be enacted when it was replaced,
and the numbers rose for ever.)
"""

import pytest
from explored import Faults, counted, holds, name_of
from msgspec import structs

from fencepost.core.effects import ReadHead
from fencepost.core.events import DnsRead
from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import tell
from fencepost.world import calls, reads
from fencepost.world.faults import NINE, Fault
from fencepost.world.model import Move
from fencepost.world.region import Shape, Shared, Slot

ALONE: tuple[Faults, ...] = (
    (),
    *(faults for faults in NINE if Fault.RELEASE not in faults),
    (Fault.REPAIR,),
    (Fault.INPUT,),
    (Fault.WITHDRAW,),
    (Fault.CLAIM,),
    (Fault.ALTERED,),
    (Fault.STRANGER, Fault.ADOPT),
    (Fault.STORE_AWAY,),
    (Fault.UNKNOWN,),
)


@pytest.mark.parametrize("faults", ALONE, ids=name_of)
def test_of_two_stores_one_comes_to_have_its_way(faults: Faults) -> None:
    """converges: at the third replacement a store stops; the other goes on. Each move alone."""
    explored = Shape(1, 1, stores=2, budget=counted(faults, inputs=0, withdrawals=0))
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["stands aside"] > 0


def test_asked_together_with_the_head_nothing_is_ever_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why a planner asks what was enacted after it has read DNS: else each row is replaced before it is known to be.

    The row is published, the head is read with "not enacted", and only then are the row and its successor enacted.
    """

    def asked_with_the_head(slot: Slot, shared: Shared) -> Move:
        if isinstance(slot.pending, ReadHead):
            seen = structs.replace(slot.mirror, enacted=shared.enacted[slot.store])
            slot = slot._replace(mirror=seen)
        return perform(slot, shared)

    def not_asked(label: str, slot: Slot, shared: Shared) -> Move:
        if slot.file:
            slot = reads.keep(slot, reads.recollect(slot.file, slot.mirror.dns))
        return reads.thought(label, slot, DnsRead(), shared)

    perform = calls.perform
    asked = Explorer(RegionModel(Shape(1, 1, stores=2))).run()
    assert asked.verdict == "holds", tell(asked)
    monkeypatch.setattr(calls, "perform", asked_with_the_head)
    monkeypatch.setattr(calls, "has_read_dns", not_asked)
    without = Explorer(RegionModel(Shape(1, 1, stores=2))).run(60_000)
    assert without.verdict == "unfinished"
    assert without.depth > 2 * asked.depth


def test_two_enactors_for_each_of_two_stores() -> None:
    """The same where each store has two enactors."""
    result = Explorer(RegionModel(Shape(2, 1, stores=2))).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["stands aside"] > 0


def test_a_person_lets_the_store_that_stopped_go_on() -> None:
    """Once adopted it counts anew, and the endpoint comes to rest again."""
    explored = Shape(1, 1, stores=2, budget=((Fault.CLAIM, 2),))
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)


@pytest.mark.soak
@pytest.mark.parametrize(
    "faults",
    [(), (Fault.CRASH,), (Fault.EMPTIED,), (Fault.CLAIM,), (Fault.DUPLICATE,), (Fault.STORE_WIPED,)],
    ids=name_of,
)
def test_two_stores_with_changed_inputs_and_a_withdrawal(faults: Faults) -> None:
    """The same with a changed input and a withdrawal in one of the stores."""
    explored = Shape(1, 1, stores=2, budget=counted(faults))
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)


@pytest.mark.soak
def test_a_release_in_one_of_two_stores() -> None:
    """A repair stands in both; a release in one ends it there, and the two go on to settle whose endpoint it is."""
    explored = Shape(1, 1, stores=2, budget=counted((Fault.REPAIR, Fault.RELEASE), inputs=0, withdrawals=0))
    holds(Explorer(RegionModel(explored)).run(), explored)


@pytest.mark.soak
def test_of_three_stores_one_comes_to_have_its_way() -> None:
    """1,148,687 states: three stores of one owner, each with an enactor and a planner."""
    result = Explorer(RegionModel(Shape(1, 1, stores=3))).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["stands aside"] > 0
