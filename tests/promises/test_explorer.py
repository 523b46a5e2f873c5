"""The deciders that ship, every interleaving, each move of the adversary: the promises hold, and not for nothing.

The sizes stated here are what was explored, no more: see ``NOT_COVERED`` in :mod:`fencepost.explorer.result`.
"""

import pytest
from msgspec import structs

from fencepost.explorer.explore import Explorer
from fencepost.explorer.lean import Lean
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import Result, tell
from fencepost.world.faults import FURTHER, MEANING, NINE, Fault
from fencepost.world.region import Shape, Shared

Faults = tuple[Fault, ...]

WITNESSES: dict[Fault, tuple[str, ...]] = {
    Fault.MARKER_DELETED: ("marker-deleted",),
    Fault.EMPTIED: ("record-emptied", "healed"),
    Fault.BOTH: ("marker-and-record-deleted",),
    Fault.ALTERED: ("record-altered", "healed"),
    Fault.UNMARKED: ("marker-deleted-and-record-altered",),
    Fault.ADOPT: ("adopt",),
    Fault.FOREIGN: ("foreign-marker",),
    Fault.STORE_WIPED: ("store-wiped", "adopted"),
    Fault.STORE_AWAY: ("store away",),
    Fault.UNKNOWN: ("answer lost", "write lost"),
    Fault.CRASH: ("crashed", "crashed while writing"),
    Fault.DUPLICATE: ("delivered twice",),
    Fault.REPAIR: ("repair", "repair enacted", "adopted"),
    Fault.BRIEF_REPAIR: ("repair enacted", "adopted"),
    Fault.TIME: ("time-passes", "hold ended"),
    Fault.ROLLBACK: ("rollback", "rollback enacted"),
    Fault.RELEASE: ("release", "hold ended"),
    Fault.WITHDRAW: ("withdraw", "withdraw enacted"),
    Fault.INPUT: ("input-change", "plan 2 published"),
}
"""What must have been seen to happen for a fault's exploration to mean anything: the "sometimes" partners."""


PAIRS_MOST = 12_000_000


def name_of(faults: Faults) -> str:
    """The faults as a test's id."""
    return "+".join(fault.value for fault in faults) or "none"


def shape(enactors: int, planners: int, faults: Faults, *, inputs: int = 1, janitors: int = 0) -> Shape:
    """A region of one endpoint, with a withdrawal and some changes of inputs besides the faults."""
    counted = {Fault.INPUT: inputs, Fault.WITHDRAW: 1} | dict.fromkeys(faults, 1)
    budget = tuple((fault, count) for fault, count in counted.items() if count)
    return Shape(enactors, planners, janitors, budget=budget)


def holds(result: Result, explored: Shape) -> None:
    """Every promise held in every state, and each thing that should have been tried was seen to happen."""
    assert result.verdict == "holds", tell(result)
    for fault, count in explored.budget:
        if count:
            for witness in WITNESSES[fault]:
                assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"
    assert result.sometimes["enacted"] > 0
    assert result.sometimes["withdraw enacted"] > 0


@pytest.mark.parametrize("faults", [(), *NINE, *FURTHER], ids=name_of)
def test_two_enactors_and_a_planner_keep_every_promise(faults: Faults) -> None:
    """never_empty, never_backward, never_torn, hold_stands, inputs_never_backward, converges: each move alone."""
    explored = shape(2, 1, faults, inputs=2)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["fenced"] > 0
    assert any(result.sometimes.get(f"plan {number} published", 0) for number in (4, 5, 6))


@pytest.mark.parametrize("faults", [(), *NINE], ids=name_of)
def test_two_enactors_and_two_planners_keep_every_promise(faults: Faults) -> None:
    """The same with planners that race: each of nine moves alone, a withdrawal, changes of inputs, 4 plans or more."""
    explored = shape(2, 2, faults, inputs=1 if Fault.RELEASE in faults else 2)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["outrun"] > 0
    assert any(result.sometimes.get(f"plan {number} published", 0) for number in (4, 5, 6, 7))


@pytest.mark.parametrize("planners", [1, 2])
@pytest.mark.parametrize("faults", [(), *NINE, *FURTHER], ids=name_of)
def test_one_enactor_is_enough(faults: Faults, planners: int) -> None:
    """converges: any one of the enactors, whatever became of the others, with one planner or two."""
    explored = shape(1, planners, faults)
    holds(Explorer(RegionModel(explored)).run(), explored)


@pytest.mark.parametrize("faults", [(), *NINE, *FURTHER], ids=name_of)
def test_the_janitor_spares_what_is_live_newest_or_pinned(faults: Faults) -> None:
    """cleanup_spares_live: October 2025, step 4, was a clean-up that judged by age; here rows go and none is missed."""
    explored = shape(1, 1, faults, janitors=1)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["row deleted"] > 0


@pytest.mark.parametrize("faults", [(), *NINE], ids=name_of)
def test_the_janitor_spares_what_a_second_enactor_may_still_write(faults: Faults) -> None:
    """cleanup_spares_live with a late enactor beside, whose older row must not be missed."""
    explored = shape(2, 1, faults, janitors=1)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["row deleted"] > 0


@pytest.mark.parametrize("faults", [(Fault.REPAIR, Fault.EMPTIED), (Fault.REPAIR, Fault.ALTERED)], ids=name_of)
def test_a_repair_heals_with_every_planner_dead(faults: Faults) -> None:
    """converges, where only enactors live: what a hold's marker carries is put back (October 2025, step 5)."""
    explored = Shape(2, 0, budget=tuple((fault, 1) for fault in faults))
    result = Explorer(RegionModel(explored)).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["healed a hold"] > 0


def test_records_heal_while_the_store_is_away() -> None:
    """The store may sit behind the very endpoint that is empty: the local file heals without it."""
    faults = (Fault.EMPTIED, Fault.STORE_AWAY)
    result = Explorer(RegionModel(Shape(1, 1, budget=tuple((fault, 1) for fault in faults)))).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["healed without the store"] > 0


def test_two_endpoints_share_a_transaction_and_keep_every_promise() -> None:
    """A batch of two applies whole or not at all, whoever races."""
    explored = Shape(2, 1, endpoints=2, budget=((Fault.INPUT, 1), (Fault.WITHDRAW, 1), (Fault.MARKER_DELETED, 1)))
    result = Explorer(RegionModel(explored)).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["fenced"] > 0


def test_three_enactors_keep_every_promise() -> None:
    """One enactor a failure zone, as in production."""
    explored = shape(3, 1, ())
    holds(Explorer(RegionModel(explored)).run(), explored)


def test_the_known_limit_is_found() -> None:
    """docs/concepts/protocol.md, "Deleted twice, A, B, A": the one way past the fence that is known.

    Hands put the same strange addresses in place twice, a person lets us take them over each time, and a create that
    saw the first applies to the second. Should this ever hold, the limit is gone and the page is to say so.
    """
    faults = ((Fault.INPUT, 1), (Fault.UNMARKED, 2), (Fault.ADOPT, 2))
    result = Explorer(RegionModel(Shape(2, 1, budget=faults))).run()
    assert (result.verdict, result.promise) == ("violated", "never_backward")
    by_hand = [step.what for step in result.story if step.who == "outside"]
    assert by_hand.count(MEANING[Fault.UNMARKED]) == 2
    assert result.story[-2].what == MEANING[Fault.UNMARKED]


@pytest.mark.soak
@pytest.mark.parametrize("faults", [NINE[n] + NINE[m] for n in range(9) for m in range(n + 1)], ids=name_of)
def test_pairs_of_moves_keep_every_promise(faults: Faults) -> None:
    """Any two of the nine moves, or one of them twice, with two enactors and a planner: up to 2.7 million states."""
    counted = {Fault.INPUT: 1, Fault.WITHDRAW: 1} | {fault: faults.count(fault) for fault in faults}
    result = Explorer(RegionModel(Shape(2, 1, budget=tuple(counted.items())))).run(PAIRS_MOST)
    assert result.verdict == "holds", tell(result)


def gist(shared: Shared, lean: Lean) -> Shared:
    """What is left of a shared part without what the reductions forget. A tick is only compared with later ones."""
    return structs.replace(lean.shared(shared), tick=0)


@pytest.mark.parametrize("faults", [(), *NINE, *FURTHER], ids=name_of)
def test_forgetting_what_cannot_matter_loses_no_state(faults: Faults) -> None:
    """With and without the reductions of fencepost.explorer.lean the very same DNS, stores and memories are reached."""
    many = (Fault.REPAIR, Fault.ADOPT, Fault.BRIEF_REPAIR)
    withdrawn = () if any(fault in many for fault in faults) else ((Fault.WITHDRAW, 1),)
    explored = Shape(2, 1, budget=((Fault.INPUT, 1), *withdrawn, *((fault, 1) for fault in faults)))
    whole, lean = Explorer(RegionModel(explored, reduce=False)), Explorer(RegionModel(explored))
    assert whole.run().verdict == lean.run().verdict == "holds"
    forget = Lean(explored)
    assert {gist(s, forget) for s in whole.worlds.shareds} == {gist(s, forget) for s in lean.worlds.shareds}
    assert len(lean.parent) < len(whole.parent)


def test_equal_parts_may_be_exchanged() -> None:
    """Symmetry: told apart or not, equal enactors reach the same shared states."""
    explored = shape(2, 1, (Fault.CRASH,))
    apart, alike = Explorer(RegionModel(explored), symmetry=False), Explorer(RegionModel(explored))
    assert apart.run().verdict == alike.run().verdict == "holds"
    assert set(apart.worlds.shareds) == set(alike.worlds.shareds)
    assert len(alike.parent) < len(apart.parent) <= 2 * len(alike.parent)


def test_two_runs_are_equal() -> None:
    """No chance: the same shape gives the same states, steps and story."""
    first, second = (Explorer(RegionModel(shape(2, 1, (Fault.CRASH,)))).run() for _ in range(2))
    assert structs.replace(first, cpu_s=0) == structs.replace(second, cpu_s=0)
