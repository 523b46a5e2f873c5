"""The deciders that ship, every interleaving, each move of the adversary: the promises hold, and not for nothing.

The sizes stated here are what was explored, no more: see ``NOT_COVERED`` in :mod:`fencepost.explorer.result`. Moves
together are in ``test_pairs.py``, two stores of one owner in ``test_two_stores.py``.
"""

from typing import Any

import pytest
from explored import Faults, counted, holds, name_of, shape
from msgspec import structs

from fencepost.core import repair
from fencepost.core.instant import SECOND, Instant
from fencepost.core.traffic import dns_planner
from fencepost.explorer.explore import Explorer
from fencepost.explorer.lean import Lean
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import tell
from fencepost.world import tears
from fencepost.world.faults import FURTHER, MEANING, NINE, Fault
from fencepost.world.region import Shape, Shared

LARGE = (Fault.REPAIR, Fault.REPAIR, Fault.RELEASE)
"""The one move whose exploration takes long."""
CLOCKS = ((Fault.SLOW_REPAIR, Fault.RELEASE), (Fault.FAST_REPAIR, Fault.RELEASE))
RACING = ((), *NINE, (Fault.TORN,), (Fault.TORN_STORE,))
"""Those in which two planners, or a second enactor, make most of a difference."""
ALONE = ((), *NINE, *FURTHER)
REPAIR, BRIEF = (Fault.REPAIR, Fault.RELEASE), (Fault.BRIEF_REPAIR, Fault.TIME)
ROLLBACK, WIPED, DELETED = (Fault.ROLLBACK, Fault.RELEASE), (Fault.STORE_WIPED,), (Fault.MARKER_DELETED,)
LONG = (DELETED, WIPED, REPAIR, (Fault.BOTH,))
TOUCHED = ((Fault.EMPTIED,), (Fault.ALTERED,), (Fault.UNKNOWN,))
"""Those whose explorations are the largest: by two enactors and a planner in each run, by more parts in a soak."""


def but(*longer: Faults, among: tuple[Faults, ...] = ALONE) -> list[Any]:
    """Each move alone; some of them only in ``make soak``."""
    return [pytest.param(faults, marks=[pytest.mark.soak] if faults in longer else []) for faults in among]


@pytest.mark.parametrize("faults", ALONE, ids=name_of)
def test_two_enactors_and_a_planner_keep_every_promise(faults: Faults) -> None:
    """never_empty, never_backward, never_torn, hold_stands, inputs_never_backward, converges: each move alone."""
    explored = shape(2, 1, faults, inputs=1 if faults in FURTHER else 2)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["fenced"] > 0
    assert any(result.sometimes.get(f"plan {number} published", 0) for number in (3, 4, 5, 6))


@pytest.mark.parametrize(
    "faults", but(*LONG, (Fault.TORN,), *(faults for faults in FURTHER if faults not in RACING)), ids=name_of
)
def test_two_enactors_and_two_planners_keep_every_promise(faults: Faults) -> None:
    """The same with planners that race: each move alone, a withdrawal, changes of inputs, 3 plans or more."""
    explored = shape(2, 2, faults, inputs=1 if faults in FURTHER or Fault.RELEASE in faults else 2)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["outrun"] > 0
    assert any(result.sometimes.get(f"plan {number} published", 0) for number in (3, 4, 5, 6, 7))


@pytest.mark.parametrize("faults", but(LARGE), ids=name_of)
def test_one_enactor_is_enough(faults: Faults) -> None:
    """converges: any one of the enactors, whatever became of the others, with one planner."""
    explored = shape(1, 1, faults)
    holds(Explorer(RegionModel(explored)).run(), explored)


@pytest.mark.parametrize("faults", but(LARGE, *CLOCKS, REPAIR, BRIEF, (Fault.DRAIN, Fault.RESUME)), ids=name_of)
def test_the_janitor_spares_what_is_live_newest_or_pinned(faults: Faults) -> None:
    """cleanup_spares_live: October 2025, step 4, was a clean-up that judged by age; here rows go and none is missed."""
    explored = shape(1, 1, faults, janitors=1)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["row deleted"] > 0


@pytest.mark.parametrize("faults", but(REPAIR, ROLLBACK, among=((), *NINE)), ids=name_of)
def test_the_janitor_spares_what_a_second_enactor_may_still_write(faults: Faults) -> None:
    """cleanup_spares_live with a late enactor beside, whose older row must not be missed."""
    explored = shape(2, 1, faults, janitors=1)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["row deleted"] > 0


@pytest.mark.parametrize("faults", [(Fault.REPAIR, Fault.EMPTIED), (Fault.REPAIR, Fault.ALTERED)], ids=name_of)
def test_a_repair_heals_with_every_planner_dead(faults: Faults) -> None:
    """converges, where only enactors live: what a hold's marker carries is put back (October 2025, step 5)."""
    explored = Shape(2, 0, budget=counted(faults, inputs=0, withdrawals=0))
    result = Explorer(RegionModel(explored)).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["healed a hold"] > 0


def test_records_heal_while_the_store_is_away() -> None:
    """The store may sit behind the very endpoint that is empty: the local file heals without it."""
    faults = (Fault.EMPTIED, Fault.STORE_AWAY)
    result = Explorer(RegionModel(Shape(1, 1, budget=counted(faults, inputs=0, withdrawals=0)))).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["healed without the store"] > 0


@pytest.mark.parametrize("lost", [Fault.FILE_LOST, Fault.FILE_OLD])
def test_a_local_file_that_is_lost_or_set_back_heals_nothing_wrong(lost: Fault) -> None:
    """never_torn, never_backward: what the file says counts only at the marker's own generation and digest."""
    faults = (lost, Fault.EMPTIED, Fault.STORE_AWAY)
    explored = shape(2, 1, faults)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["healed without the store"] > 0


@pytest.mark.parametrize("word", [Fault.DRAIN, Fault.KEEP])
def test_a_word_about_targets_is_lost_with_the_store_and_breaks_no_promise(word: Fault) -> None:
    """A drain or keep is an input: where the store is lost it is forgotten, and the newest plan is one without it."""
    explored = shape(2, 1, (word, Fault.STORE_WIPED))
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert result.sometimes["a person's word lost"] > 0


@pytest.mark.parametrize("faults", but(LARGE, *CLOCKS, *LONG, BRIEF, *TOUCHED), ids=name_of)
def test_two_endpoints_share_a_transaction_and_keep_every_promise(faults: Faults) -> None:
    """A batch of two applies whole or not at all, whoever races; each move alone, on either endpoint."""
    enactors, withdrawals = (1, 0) if len(faults) > 1 or faults in ((Fault.TORN,), (Fault.TORN_STORE,)) else (2, 1)
    explored = Shape(enactors, 1, endpoints=2, budget=counted(faults, withdrawals=withdrawals))
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert enactors == 1 or result.sometimes["fenced"] > 0


@pytest.mark.parametrize("faults", but(LARGE, *CLOCKS, REPAIR, BRIEF, WIPED), ids=name_of)
def test_transactions_under_way_at_once_keep_every_promise(faults: Faults) -> None:
    """An enactor's write of each endpoint arrives by itself, in any order, anything in between; each move alone."""
    enactors = 1 if len(faults) > 1 or faults in ((Fault.TORN,), (Fault.TORN_STORE,)) else 2
    explored = Shape(enactors, 1, endpoints=2, budget=counted(faults, withdrawals=0), at_once=2)
    result = Explorer(RegionModel(explored)).run()
    holds(result, explored)
    assert enactors == 1 or result.sometimes["refused beside another"] > 0
    assert Fault.UNKNOWN not in faults or result.sometimes["answer lost beside another"] > 0


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


@pytest.mark.parametrize(
    "back", but((Fault.DRAIN, Fault.RESUME), among=((Fault.ROLLBACK,), (Fault.DRAIN, Fault.RESUME))), ids=name_of
)
def test_torn_reads_need_only_one_deletion_for_the_same(back: Faults) -> None:
    """The same page: "no marker" read before the first write, and A beside it after, is what a deletion would show.

    Then content goes to B and back to A, somebody deletes the marker, and the create applies. Reads that are one moment
    hold where these don't.
    """
    faults = (*back, Fault.MARKER_DELETED)
    whole = Shape(2, 1, budget=counted(faults, withdrawals=0))
    explored = Shape(2, 1, budget=counted((*faults, Fault.TORN), withdrawals=0))
    result = Explorer(RegionModel(explored)).run()
    assert (result.verdict, result.promise) == ("violated", "never_backward")
    assert result.story[-2].what == MEANING[Fault.MARKER_DELETED]
    assert Explorer(RegionModel(whole)).run().verdict == "holds"


def test_reading_the_marker_again_after_the_records_is_as_good_as_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same page says how an adapter is to read that has no reads of one moment."""
    monkeypatch.setattr(tears, "ORDERS", tears.CAREFUL)
    faults = (Fault.ROLLBACK, Fault.MARKER_DELETED, Fault.TORN)
    explored = Shape(2, 1, budget=counted(faults, withdrawals=0))
    result = Explorer(RegionModel(explored)).run()
    assert result.verdict == "holds", tell(result)
    assert result.sometimes["torn read noticed"] > 0
    assert result.sometimes["rollback enacted"] > 0


def test_holds_placed_on_the_same_knowledge_never_bear_one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/concepts/protocol.md, L3: a repair is odd, a rollback or withdrawal even; without that they tie.

    A repair from a machine whose clock is ahead makes the next holds count on from its epoch; a repair and a withdrawal
    placed on the same knowledge got the same one, and the one of the higher number went over the other.
    """

    def without_parity(_: object, known: int, now: Instant) -> int:
        return max(known + 1, now // SECOND)

    faults = (Fault.FAST_REPAIR, Fault.REPAIR)
    explored = Shape(2, 1, budget=counted(faults, inputs=0))
    assert Explorer(RegionModel(explored)).run().verdict == "holds"
    monkeypatch.setattr(dns_planner, "hold_epoch", without_parity)
    monkeypatch.setattr(repair, "hold_epoch", without_parity)
    result = Explorer(RegionModel(explored)).run()
    assert (result.verdict, result.promise) == ("violated", "hold_stands"), tell(result)
    assert len(result.story) == 16


def gist(shared: Shared, lean: Lean) -> Shared:
    """What is left of a shared part without what the reductions forget. A tick is only compared with later ones."""
    return structs.replace(lean.shared(shared), tick=0)


MANY = (Fault.REPAIR, Fault.ADOPT, Fault.BRIEF_REPAIR, Fault.SLOW_REPAIR, Fault.FAST_REPAIR, Fault.DRAIN, Fault.TORN)
LONG_WITHOUT = (BRIEF, WIPED, ROLLBACK, (Fault.FILE_LOST, Fault.EMPTIED))
"""Explored without a withdrawal where nothing is forgotten: else there are millions of states."""


@pytest.mark.parametrize(
    "faults", but(*CLOCKS, *LONG_WITHOUT, among=tuple(faults for faults in ALONE if faults != LARGE)), ids=name_of
)
def test_forgetting_what_cannot_matter_loses_no_state(faults: Faults) -> None:
    """With and without the reductions of fencepost.explorer.lean the very same DNS, stores and memories are reached."""
    withdrawals = 0 if any(fault in MANY for fault in faults) else 1
    same_states(Shape(2, 1, budget=counted(faults, withdrawals=withdrawals)))


@pytest.mark.parametrize("faults", but((Fault.CRASH,), among=((), (Fault.CRASH,))), ids=name_of)
def test_forgetting_loses_no_state_of_two_stores(faults: Faults) -> None:
    """The same where two stores of one owner replace each other."""
    same_states(Shape(1, 1, stores=2, budget=counted(faults, inputs=0, withdrawals=0)))


def same_states(explored: Shape) -> None:
    """The same shared states with and without the reductions, and fewer of all with them."""
    whole, lean = Explorer(RegionModel(explored, reduce=False)), Explorer(RegionModel(explored))
    plain, least = whole.run(), lean.run()
    assert plain.verdict == least.verdict == "holds"
    forget = Lean(explored)
    assert {gist(s, forget) for s in whole.worlds.shareds} == {gist(s, forget) for s in lean.worlds.shareds}
    assert least.states < plain.states


def test_equal_parts_may_be_exchanged() -> None:
    """Symmetry: told apart or not, equal enactors reach the same shared states."""
    explored = shape(2, 1, (Fault.CRASH,))
    apart, alike = Explorer(RegionModel(explored), symmetry=False), Explorer(RegionModel(explored))
    plain, least = apart.run(), alike.run()
    assert plain.verdict == least.verdict == "holds"
    assert set(apart.worlds.shareds) == set(alike.worlds.shareds)
    assert least.states < plain.states <= 2 * least.states


def test_two_runs_are_equal() -> None:
    """No chance: the same shape gives the same states, steps and story."""
    first, second = (Explorer(RegionModel(shape(2, 1, (Fault.CRASH,)))).run() for _ in range(2))
    assert structs.replace(first, cpu_s=0) == structs.replace(second, cpu_s=0)
