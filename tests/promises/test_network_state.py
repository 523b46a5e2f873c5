"""Network state and readiness, every interleaving: what was promised holds, and no rule of it is for show.

October 2025, from 05:28 on: instances were served before their network state had arrived, and a backlog of such states
was what took longest to drain.
"""

from pathlib import Path

import pytest
from network_mutants import MUTANTS, Mutant, shape

from fencepost.core.promises import NETWORK
from fencepost.explorer.explore import Explorer
from fencepost.explorer.network_model import NetworkModel
from fencepost.explorer.result import Result, tell
from fencepost.world.network import PROMISES, Fault, Shape

MOST = 500_000
INPUT = Fault.INPUT
STATES: tuple[tuple[tuple[Fault, ...], int], ...] = (
    ((INPUT, INPUT), 37_812),
    ((INPUT, INPUT, Fault.REPEAT), 74_210),
    ((INPUT, INPUT, Fault.CRASH), 76_378),
    ((INPUT, Fault.RESTART), 121_084),
    ((INPUT, INPUT, Fault.REBOOT), 275_447),
    ((INPUT, Fault.FORGET), 29_999),
    ((INPUT, Fault.WIPE), 67_899),
    ((INPUT, Fault.RESTORE), 266_893),
)
"""Two managers and these faults: all states there are. The larger are for a soak: one manager stands for them."""
LARGER = (Fault.RESTART, Fault.REBOOT, Fault.RESTORE)
ALONE: tuple[tuple[tuple[Fault, ...], int], ...] = (
    ((INPUT, Fault.RESTART), 5_124),
    ((INPUT, INPUT, Fault.REBOOT), 8_879),
    ((INPUT, Fault.RESTORE), 9_905),
)
"""One manager and these faults: all states there are."""
WITNESSES = {
    INPUT: ("input changed",),
    Fault.REPEAT: ("repeated",),
    Fault.CRASH: ("crashed",),
    Fault.RESTART: ("restart", "notes what the host says"),
    Fault.REBOOT: ("reboot", "heard"),
    Fault.FORGET: ("host-memory-lost", "grants a lease"),
    Fault.WIPE: ("wiped", "raises the epoch", "published above what the host has"),
    Fault.RESTORE: ("copied", "put back", "published above what the host has"),
}


def explored(what: Shape) -> Result:
    """All of it, or to the first violation."""
    return Explorer(NetworkModel(what)).run(MOST)


def name_of(row: tuple[tuple[Fault, ...], int]) -> str:
    """A row's faults as a test's id."""
    return "+".join(each.value for each in row[0])


@pytest.mark.parametrize(
    ("faults", "states"),
    [pytest.param(*row, marks=[pytest.mark.soak] if row[0][-1] in LARGER else [], id=name_of(row)) for row in STATES],
)
def test_every_promise_holds_in_every_state(faults: tuple[Fault, ...], states: int) -> None:
    """Two managers at once, messages lost and late: never older, ready only if in place, and the newest in the end."""
    holds(2, faults, states)


@pytest.mark.parametrize(("faults", "states"), ALONE, ids=[name_of(row) for row in ALONE])
def test_every_promise_holds_with_one_manager(faults: tuple[Fault, ...], states: int) -> None:
    """The same of the faults after which most is to be tried."""
    holds(1, faults, states)


def holds(managers: int, faults: tuple[Fault, ...], states: int) -> None:
    """Every promise in every one of so many states, and each thing that should have been tried was seen to happen."""
    result = explored(shape(managers, *faults))
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in ("published", "ready", "lost", *(name for fault in faults for name in WITNESSES[fault])):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"
    assert managers == 1 or result.sometimes["gave up"] > 0


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_without_the_rule_a_promise_breaks(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the table in docs/concepts/network-state.md: the rule out, the promise broken, as short as said."""
    for owner, name, replacement in mutant.patches:
        monkeypatch.setattr(owner, name, replacement)
    result = explored(mutant.shape)
    assert (result.verdict, result.promise) == ("violated", mutant.breaks), tell(result)
    assert len(result.story) == mutant.steps, tell(result)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_with_the_rule_the_same_holds(mutant: Mutant) -> None:
    """The same managers, faults and bounds with the deciders that ship."""
    result = explored(mutant.shape)
    assert result.verdict == "holds", tell(result)


def test_each_promise_of_network_state_has_a_name_and_breaks_without_some_rule() -> None:
    """What is judged here is named where all promises are; one that no rule is needed for would say nothing."""
    assert {mutant.breaks for mutant in MUTANTS} == set(PROMISES)
    page = (Path(__file__).parents[2] / "docs/concepts/network-state.md").read_text()
    assert [name for name in NETWORK if f"**{name}.**" not in page] == []
