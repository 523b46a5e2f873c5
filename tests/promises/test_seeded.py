"""Small mistakes in deciders are found: the ones that show in a small region, each by the explorer."""

import pytest
from mutation import by_explorer, patched
from seeded import MISTAKES, Mistake

from fencepost.core import judge
from fencepost.world.faults import Fault
from fencepost.world.region import Shape

SMALL = {
    "a row goes once it is live itself": Shape(1, 1, 1, last=10, budget=((Fault.INPUT, 1), (Fault.WITHDRAW, 1))),
    "the earlier hold wins": Shape(
        1, 1, last=10, budget=((Fault.INPUT, 1), (Fault.WITHDRAW, 1), (Fault.REPAIR, 1), (Fault.RELEASE, 1))
    ),
    "a release ends only what came before": Shape(1, 1, budget=((Fault.REPAIR, 1), (Fault.RELEASE, 1))),
    "takes whatever is unmarked for ours": Shape(1, 1, budget=((Fault.STRANGER, 1),)),
    "another owner's marker is none": Shape(1, 1, budget=((Fault.FOREIGN, 1), (Fault.EMPTIED, 1))),
    "whatever differs is stale": Shape(1, 1, last=10, budget=((Fault.REPAIR, 1),)),
    "the equal is stale too": Shape(1, 1),
    "an order is never spent": Shape(1, 1, budget=((Fault.WITHDRAW, 1),)),
}
"""Where these show; docs/concepts/mutation.md has the others, with what it took."""


@pytest.mark.parametrize("mistake", [each for each in MISTAKES if each.name in SMALL], ids=lambda each: each.name)
def test_a_mistake_of_one_line_breaks_a_promise(mistake: Mistake) -> None:
    """`<` for `!=`, one id for another: nothing else in the code would notice."""
    with patched(((mistake.owner, mistake.function, mistake.made()),)):
        assert by_explorer(SMALL[mistake.name]) is not None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_each_mistake_can_still_be_made(mistake: Mistake) -> None:
    """The line that it spoils is there, once."""
    assert callable(mistake.made())


def test_a_mistake_whose_line_is_gone_says_so() -> None:
    """Else the table would speak of code that nobody runs."""
    with pytest.raises(LookupError, match="stands 0 times"):
        Mistake("gone", judge, "stale", "a line that was never there", "").made()
