"""Host leases, every interleaving: what was promised holds, and no rule of them is for show.

October 2025: hosts whose leases nobody could renew lapsed by the ten thousand, and no instance could be placed until
they were all taken up again. A lease protocol is where such a manager's haste, or an old one's late order, starts
something twice.
"""

from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import changing_hands
import lease_pairs
import pytest
from lease_mutants import MUTANTS, Mutant, shape
from msgspec import structs

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.explorer.explore import Explorer
from fencepost.explorer.fleet_command import BEYOND, leases_of
from fencepost.explorer.lease_model import LeaseModel
from fencepost.explorer.result import Result, tell
from fencepost.world import leases
from fencepost.world.lease_minds import Minds
from fencepost.world.leases import Fault, Shape

MOST = 30_000_000
LAUNCH, TAKE = Fault.LAUNCH, Fault.TAKE
UNHURRIED = pytest.mark.timeout(1800)
ALWAYS = ("checked", "delivered", "heard", "lost", "placed", "proven", "started", "granted")
"""What must have happened in each walk."""
WITNESSES = {
    Fault.LAUNCH: ("placed", "started", "lapsed", "replaced"),
    Fault.TERMINATE: ("ending", "ended"),
    Fault.CORDON: ("cordoned",),
    Fault.TAKE: ("took over", "refused", "outdated"),
    Fault.REPEAT: ("repeated",),
    Fault.CRASH: ("crashed",),
    Fault.RESTART: ("restart",),
    Fault.MIDWAY: ("crash-midway",),
    Fault.REBOOT: ("reboot", "replaced"),
    Fault.FORGET: ("host-memory-lost", "adopted"),
    Fault.DIE: ("died", "lapsed"),
    Fault.SKEW: ("skew",),
    Fault.SILENT: ("silent", "marked"),
    Fault.UNKNOWN: ("answer lost", "write lost"),
    Fault.WIPE: ("wiped", "registered", "adopted", "placed elsewhere"),
    Fault.RESTORE: ("copied", "put back", "adopted", "refused"),
    Fault.FULL: ("disk-full", "wrote again"),
}
"""What must have happened for a fault's walk to mean anything."""
LONG = ("the proof has the store's life",)
"""Ways that are minutes long: 2.5 million states without the rule; with it the test walks up to 6 million."""
LONG_HOLDS = (
    *LONG,
    "a proof after the stamp",
    "writes are under the claim",
    "a lapse of another life is none",
    "a mark goes before the next order",
    "the stamp has the boot",
    "the host's set wins",
    "the epoch is raised above what a host has met",
)


few = leases_of
"""A launch and some faults besides, as ``fencepost explore --part leases`` has them."""
MINDS = Minds()
"""What the deciders that ship decide, worked out once for all walks here."""


def explored(what: Shape, most: int = MOST, minds: Minds | None = None) -> Result:
    """All of it, or to the first violation."""
    return Explorer(LeaseModel(what, minds), rounds=False).run(most)


def holds(what: Shape, states: int) -> None:
    """Every promise in every one of so many states, and each thing that should have been tried was seen to happen."""
    result = explored(what, minds=MINDS)
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in (*ALWAYS, *(name for fault, _ in what.budget for name in WITNESSES[fault])):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


def name_of(row: tuple[Any, ...]) -> str:
    """A row's faults as a test's id."""
    return "+".join(each.value for each in row if isinstance(each, Fault)) or "none"


FEW: tuple[tuple[Any, ...], ...] = (
    (2_865,),
    (LAUNCH, 2_963),
    (Fault.TERMINATE, 8_543),
    (Fault.CORDON, 8_116),
    (Fault.REPEAT, 5_798),
    (Fault.CRASH, 6_070),
    (Fault.RESTART, 13_236),
    (Fault.MIDWAY, 5_926),
    (Fault.REBOOT, 15_091),
    (Fault.FORGET, 23_270),
    (Fault.DIE, 23_248),
    (Fault.SKEW, 5_174),
    (Fault.SILENT, 16_954),
    (Fault.UNKNOWN, 29_822),
    (Fault.WIPE, 31_653),
    (Fault.RESTORE, 28_426),
    (Fault.FULL, 14_641),
)
"""One manager, the host held, time passing three times (or five, where it takes longer), one message under way."""
MANY: tuple[tuple[Any, ...], ...] = (
    (27_340,),
    (LAUNCH, 37_092),
    (Fault.TERMINATE, 50_961),
    (Fault.CORDON, 83_775),
    (Fault.REPEAT, 54_848),
    (Fault.CRASH, 107_869),
    (Fault.RESTART, 150_521),
    (Fault.MIDWAY, 83_442),
    (Fault.REBOOT, 157_669),
    (Fault.FORGET, 434_990),
    (Fault.DIE, 54_680),
    (Fault.SKEW, 60_085),
    (Fault.SILENT, 144_729),
    (Fault.UNKNOWN, 299_425),
    (Fault.WIPE, 871_487),
    (Fault.FULL, 94_279),
)
"""One manager, nothing owned yet, time passing for ever, one message under way: all states."""
WIDE: tuple[tuple[Any, ...], ...] = (
    (17_192,),
    (Fault.UNKNOWN, 160_291),
    (Fault.SKEW, 29_640),
    (Fault.CRASH, 35_946),
    (Fault.REPEAT, 36_212),
)
"""One manager, the host held, time passing three times (or five), two messages under way: all states."""
PAIRS: tuple[tuple[Any, ...], ...] = (
    (Fault.REPEAT, Fault.REPEAT, 8_731),
    (Fault.SKEW, Fault.REPEAT, 10_477),
    (Fault.SKEW, Fault.MIDWAY, 10_734),
    (Fault.CRASH, Fault.SKEW, 11_255),
    (Fault.UNKNOWN, Fault.UNKNOWN, 37_526),
)
"""The same with two faults, of which all are in ``lease_pairs.py``: those here are short."""
TWO: tuple[tuple[int, int], ...] = ((2, 214_432), (3, 702_518))
"""Two managers of which the second takes over: how often time passes, and all states."""
OVERTAKEN: tuple[tuple[tuple[Fault, ...], int, int], ...] = (
    ((Fault.FULL, Fault.RESTART), 1, 71_221),
    ((Fault.FULL, Fault.RESTART, Fault.RESTART), 1, 239_629),
)
"""An attempt is placed, two messages under way: faults, how often time passes, and all states."""


@pytest.mark.parametrize("row", FEW, ids=name_of)
def test_every_promise_holds_in_every_state(row: tuple[Any, ...]) -> None:
    """Messages lost and late and calls that take effect late, with each fault at any point, and a launch."""
    *faults, states = row
    holds(few(tuple(faults)), states)


@pytest.mark.parametrize("row", PAIRS, ids=name_of)
def test_every_promise_holds_with_two_faults(row: tuple[Any, ...]) -> None:
    """Both at any point, in any order: what the second does to what the first left behind. Some short walks of many."""
    *faults, states = row
    holds(few(tuple(faults)), states)


@UNHURRIED
@pytest.mark.soak
@pytest.mark.parametrize("row", lease_pairs.WALKED, ids=name_of)
def test_every_promise_holds_with_each_pair_of_faults(row: lease_pairs.Row) -> None:
    """Each two faults, twice the same included, for as many renewals as are walked to the end."""
    one, other, time, states = row
    holds(few((one, other), time), states)


def test_each_pair_of_faults_is_in_the_table() -> None:
    """None is left out by being forgotten: 16 faults, so 136 pairs. The page has the counts that are walked."""
    pairs = [frozenset(pair) for pair in combinations_with_replacement(leases.BESIDES, 2)]
    told = [frozenset(row[:2]) for row in (*lease_pairs.WALKED, BEYOND)]
    assert len(told) == len(pairs) == 136
    assert set(told) == set(pairs)
    page = (Path(__file__).parents[2] / "docs/concepts/leases.md").read_text()
    assert "\n".join(lease_pairs.table()) in page


def test_a_clock_that_loses_twice_the_margin_is_beyond_what_is_promised() -> None:
    """The margin is for clocks that are one per cent off each: it is lost once in a lease, and not twice."""
    result = explored(few(BEYOND))
    assert (result.verdict, result.promise) == ("violated", "ended_stays_ended"), tell(result)


@UNHURRIED
@pytest.mark.soak
@pytest.mark.parametrize("row", MANY, ids=name_of)
def test_every_promise_holds_for_ever(row: tuple[Any, ...]) -> None:
    """The same from the very beginning, and however much time passes: each lease lapses and is given again."""
    *faults, states = row
    holds(few(tuple(faults), from_nothing=True), states)


@UNHURRIED
@pytest.mark.soak
def test_nothing_breaks_in_four_million_states_of_a_store_put_back() -> None:
    """The one fault whose walk for ever is too large to be walked to its end."""
    result = explored(few((Fault.RESTORE,), from_nothing=True), 4_000_000)
    assert result.verdict == "unfinished", tell(result)
    for witness in (*ALWAYS, *WITNESSES[Fault.RESTORE]):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


@UNHURRIED
@pytest.mark.soak
@pytest.mark.parametrize("row", WIDE, ids=name_of)
def test_two_messages_under_way_overtake_each_other(row: tuple[Any, ...]) -> None:
    """An order and a check at once, in any order."""
    *faults, states = row
    holds(few(tuple(faults), room=2), states)


@pytest.mark.parametrize(("faults", "time", "states"), OVERTAKEN, ids=str)
def test_what_was_refused_stays_so_whoever_starts_the_agent(faults: tuple[Fault, ...], time: int, states: int) -> None:
    """An answer of the agent before comes after one of the agent that is: what it refused, that one may be ordered."""
    result = explored(shape(1, *faults, room=2, time=time, placed=True), minds=MINDS)
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in ("restart", "disk-full", "wrote again", "refused for good", "started"):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


def test_two_managers_believe_and_one_acts() -> None:
    """A second manager takes the shard while the first goes on: both believe, and no order of the first is obeyed."""
    time, states = TWO[0]
    result = explored(shape(2, LAUNCH, TAKE, time=time, grants=2, held=True), minds=MINDS)
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in ("took over", "outdated", "started", "proven"):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


@UNHURRIED
@pytest.mark.soak
@pytest.mark.parametrize("row", TWO[1:], ids=str)
def test_two_managers_until_a_lease_may_lapse(row: tuple[int, int]) -> None:
    """The same for as long as a lease is, so that the second manager lets it lapse that the first thinks it holds."""
    holds(shape(2, LAUNCH, TAKE, time=row[0], grants=2, held=True), row[1])


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, marks=[pytest.mark.soak] if each.rule in LONG else [], id=each.rule) for each in MUTANTS],
)
def test_without_the_rule_a_promise_breaks(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the table in docs/concepts/leases.md: the rule out, the promise broken, as short as said."""
    for owner, name, replacement in mutant.patches:
        monkeypatch.setattr(owner, name, replacement)
    result = explored(mutant.shape)
    assert (result.verdict, result.promise) == ("violated", mutant.breaks), tell(result)
    assert len(result.story) == mutant.steps, tell(result)


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, marks=[pytest.mark.soak] if each.rule in LONG_HOLDS else [], id=each.rule) for each in MUTANTS],
)
def test_with_the_rule_the_same_holds(mutant: Mutant) -> None:
    """The same managers, faults and bounds with the deciders that ship; one is too large to be walked to the end."""
    bounded = mutant.rule in LONG
    result = explored(structs.replace(mutant.shape, margin=1), 6_000_000 if bounded else MOST, MINDS)
    assert result.verdict in (("holds", "unfinished") if bounded else ("holds",)), tell(result)


def test_a_dead_host_lapses_however_often_the_shard_changes_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left is in the host's row, so the next manager waits no longer; without marks each begins anew."""
    held = shape(1, held=True)
    assert changing_hands.longest(held) == 3
    monkeypatch.setattr(HostLeases, "silent", lambda *_: ())
    assert changing_hands.longest(held) == changing_hands.FOR_EVER
