"""How leases are walked leaves nothing out: each thing worked out once, against each time anew.

The explorer's counts say that every situation was met. That rests on three things, each held against doing without it:
a manager's acts and their effects, worked out once each (:mod:`fencepost.explorer.factored`); a decider's steps, kept
with its state (:mod:`fencepost.world.lease_minds`); and answers that come too late for anybody, which are as good as
lost (:func:`fencepost.world.leases.without_old_answers`).
"""

from collections.abc import Callable, Hashable

import pytest
from lease_mutants import shape
from test_leases import few

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.core.capacity.lease_calls import Effect, Event
from fencepost.explorer.explore import Explorer
from fencepost.explorer.factored import FactoredWorlds
from fencepost.explorer.lease_model import LeaseModel
from fencepost.explorer.result import Result
from fencepost.world import leases
from fencepost.world.lease_minds import NOW, Mind, lean
from fencepost.world.leases import Fault, Shape, Shared, Slot

World = tuple[tuple[str, ...], Shared]
"""Parts as text, since a state of a decider is another object in each walk, and what is shared."""
SHORT = (
    few((), time=1),
    few((Fault.CRASH, Fault.REPEAT), time=0),
    few((Fault.SKEW, Fault.UNKNOWN), time=1),
    few((Fault.WIPE,), time=0),
    few((Fault.FORGET, Fault.TERMINATE), time=0),
    few((Fault.RESTORE, Fault.MIDWAY), time=0),
    few((Fault.REBOOT,), room=2, time=0),
    few((Fault.SILENT,), time=1),
)
LONG = (
    few((Fault.CRASH, Fault.REPEAT), time=1),
    few((Fault.WIPE, Fault.MIDWAY), time=0),
    few((Fault.FORGET, Fault.TERMINATE), time=1),
    few((Fault.RESTORE,), time=1),
    few((Fault.SILENT, Fault.DIE), time=2),
    few((Fault.REBOOT, Fault.RESTART), room=2, time=0),
    shape(2, Fault.LAUNCH, Fault.TAKE, time=0, grants=2, held=True),
)


def anew(self: Mind, _: Hashable, event: Callable[[], Event]) -> tuple[Mind, tuple[Effect, ...]]:
    """A decider's step, worked out each time."""
    decider = self.decider.copy()
    effects = decider.on(event(), NOW)
    lean(decider)
    return self.minds.of(decider), effects


def one_by_one(model: LeaseModel) -> tuple[set[World], int, set[str]]:
    """Every world, the number of steps between them, and the promises broken: by the model's moves, one at a time."""
    start = model.start()
    front, seen, steps = [start], {written(*start)}, 0
    broken: set[str] = set()
    while front:
        slots, shared = front.pop()
        moves = [(at, move) for at, slot in enumerate(slots) for move in model.moves(slot, shared)]
        for at, move in [*moves, *((-1, move) for move in model.outside(shared))]:
            after = [*slots]
            if at >= 0:
                after[at] = move.slot
            there = model.lean_shared(move.shared)
            after = [leases.caught_up(slot, there.passed, there.boot) for slot in after]
            there = leases.rested(there)
            steps += 1
            broken |= {move.broken} if move.broken else set()
            if written(tuple(after), there) not in seen:
                seen.add(written(tuple(after), there))
                front.append((tuple(after), there))
    return seen, steps, broken


def written(slots: tuple[Slot, ...], shared: Shared) -> World:
    """A world as a value that two walks can have in common."""
    return tuple(repr(slot) for slot in slots), shared


def walked(what: Shape) -> tuple[set[World], Result]:
    """Every world by the explorer, and its result."""
    explorer = Explorer(LeaseModel(what), rounds=False)
    result = explorer.run()
    assert isinstance(explorer.worlds, FactoredWorlds)
    rows = explorer.known.rows[: explorer.known.size].tolist()
    worlds, texts = explorer.worlds, [repr(slot) for slot in explorer.worlds.slots]
    return {(tuple(texts[slot] for slot in row[1:]), worlds.shareds[row[0]]) for row in rows}, result


def name_of(what: Shape) -> str:
    """A shape as a test's id."""
    return f"{what.managers}-{'+'.join(fault.value for fault, _ in what.budget)}-{what.time}-{what.room}"


@pytest.mark.parametrize(
    "what", [*SHORT, *(pytest.param(each, marks=[pytest.mark.soak]) for each in LONG)], ids=name_of
)
def test_what_is_worked_out_once_is_the_same_each_time(what: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same worlds, as many steps, and nothing broken, where each step runs the deciders anew."""
    worlds, result = walked(what)
    monkeypatch.setattr(Mind, "on", anew)
    seen, steps, broken = one_by_one(LeaseModel(what))
    assert worlds == seen
    assert (result.states, result.transitions, broken) == (len(seen), steps, set())


@pytest.mark.parametrize("what", [each for each in SHORT if not LeaseModel(each).whole], ids=name_of)
def test_answers_that_come_too_late_for_anybody_are_as_good_as_lost(what: Shape) -> None:
    """With and without them the same rows, hosts and memories are reached, and the same messages but for those."""
    lean_model, whole_model = LeaseModel(what), LeaseModel(what)
    whole_model.whole = True
    less, more = Explorer(lean_model, rounds=False), Explorer(whole_model, rounds=False)
    assert less.run().verdict == more.run().verdict == "holds"
    assert {leases.without_old_answers(each) for each in more.worlds.shareds} == set(less.worlds.shareds)


def test_a_step_of_a_decider_with_a_rule_taken_out_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are kept for one walk only: what another decider decided isn't met in the next."""
    what = few((Fault.SILENT,), time=0)
    before = walked(what)[0]
    with monkeypatch.context() as spoilt:
        spoilt.setattr(HostLeases, "silent", lambda *_: ())
        assert walked(what)[0] != before
    assert walked(what)[0] == before
