"""Host leases, every interleaving: what was promised holds, and no rule of them is for show.

October 2025: hosts whose leases nobody could renew lapsed by the ten thousand, and no instance could be placed until
they were all taken up again. A lease protocol is where such a manager's haste, or an old one's late order, starts
something twice.
"""

import changing_hands
import pytest
from lease_mutants import MUTANTS, Mutant, shape
from msgspec import structs

from fencepost.core.capacity.host_lease import HostLeases
from fencepost.explorer.explore import Explorer
from fencepost.explorer.lease_model import LeaseModel
from fencepost.explorer.result import Result, tell
from fencepost.world.leases import Fault, Shape

MOST = 30_000_000
LAUNCH, TAKE = Fault.LAUNCH, Fault.TAKE
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


def few(*faults: Fault, time: int = 3, room: int = 1, held: bool = True) -> Shape:
    """One manager and some faults besides a launch; as many grants as are needed for all to come out well again."""
    grants = 2 + sum(each in (Fault.FORGET, Fault.WIPE, Fault.RESTORE) for each in faults)
    often = faults if LAUNCH in faults else (LAUNCH, *faults)
    return shape(1, *often, grants=grants, time=time, room=room, held=held)


def explored(what: Shape, most: int = MOST) -> Result:
    """All of it, or to the first violation."""
    return Explorer(LeaseModel(what), rounds=False).run(most)


def holds(what: Shape, states: int) -> None:
    """Every promise in every one of so many states, and each thing that should have been tried was seen to happen."""
    result = explored(what)
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in (*ALWAYS, *(name for fault, _ in what.budget for name in WITNESSES[fault])):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


def name_of(row: tuple[Fault, int]) -> str:
    """A fault as a test's id."""
    return row[0].value


def names_of(row: tuple[Fault, Fault, int]) -> str:
    """Two faults as a test's id."""
    return f"{row[0].value}+{row[1].value}"


FEW: tuple[tuple[Fault, int], ...] = (
    (Fault.LAUNCH, 2_865),
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
    (Fault.UNKNOWN, 3_102),
    (Fault.WIPE, 31_653),
    (Fault.RESTORE, 28_605),
)
"""One manager, the host held, time passing three times (a dead host: five), one message under way: all states."""
MANY: tuple[tuple[Fault, int], ...] = (
    (Fault.LAUNCH, 54_679),
    (Fault.TERMINATE, 101_921),
    (Fault.CORDON, 167_548),
    (Fault.REPEAT, 109_695),
    (Fault.CRASH, 215_737),
    (Fault.RESTART, 301_040),
    (Fault.MIDWAY, 166_883),
    (Fault.SKEW, 120_169),
)
"""One manager, nothing owned yet, time passing for ever, one message under way: all states."""
WIDE: tuple[tuple[Fault, int], ...] = (
    (Fault.LAUNCH, 17_192),
    (Fault.UNKNOWN, 18_391),
    (Fault.SKEW, 29_640),
    (Fault.CRASH, 35_946),
    (Fault.REPEAT, 36_212),
)
"""One manager, the host held, time passing three times, two messages under way: all states."""
PAIRS: tuple[tuple[Fault, Fault, int], ...] = (
    (Fault.SKEW, Fault.UNKNOWN, 5_599),
    (Fault.REPEAT, Fault.UNKNOWN, 6_274),
    (Fault.CRASH, Fault.UNKNOWN, 8_238),
    (Fault.REPEAT, Fault.REPEAT, 8_731),
    (Fault.TERMINATE, Fault.UNKNOWN, 9_052),
)
"""One manager, the host held, time passing three times, one message under way, two faults: all states."""
MORE_PAIRS: tuple[tuple[Fault, Fault, int], ...] = (
    (Fault.CORDON, Fault.UNKNOWN, 8_827),
    (Fault.SKEW, Fault.REPEAT, 10_477),
    (Fault.SKEW, Fault.MIDWAY, 10_734),
    (Fault.CRASH, Fault.SKEW, 11_255),
    (Fault.REPEAT, Fault.MIDWAY, 11_976),
    (Fault.CRASH, Fault.REPEAT, 12_527),
    (Fault.CRASH, Fault.CRASH, 14_524),
    (Fault.MIDWAY, Fault.UNKNOWN, 15_285),
    (Fault.SKEW, Fault.TERMINATE, 15_454),
    (Fault.CRASH, Fault.MIDWAY, 17_270),
    (Fault.CRASH, Fault.TERMINATE, 18_877),
    (Fault.CRASH, Fault.REBOOT, 30_596),
    (Fault.CRASH, Fault.SILENT, 35_168),
)
"""The same, for a soak."""
TWO: tuple[tuple[int, int], ...] = ((2, 214_432), (3, 702_518))
"""Two managers of which the second takes over: how often time passes, and all states."""


@pytest.mark.parametrize("row", FEW, ids=name_of)
def test_every_promise_holds_in_every_state(row: tuple[Fault, int]) -> None:
    """Messages lost and late and calls that take effect late, with each fault at any point, and a launch."""
    fault, states = row
    holds(few(fault, time=5 if fault is Fault.DIE else 3), states)


@pytest.mark.parametrize("row", PAIRS, ids=names_of)
def test_every_promise_holds_with_two_faults(row: tuple[Fault, Fault, int]) -> None:
    """Both at any point, in any order: what the second does to what the first left behind."""
    holds(few(*row[:2]), row[2])


@pytest.mark.soak
@pytest.mark.parametrize("row", MORE_PAIRS, ids=names_of)
def test_every_promise_holds_with_two_worse_faults(row: tuple[Fault, Fault, int]) -> None:
    """The same, of those that take longer to walk."""
    holds(few(*row[:2]), row[2])


def test_a_clock_that_loses_twice_the_margin_is_beyond_what_is_promised() -> None:
    """The margin is for clocks that are one per cent off each: it is lost once in a lease, and not twice."""
    result = explored(few(Fault.SKEW, Fault.SKEW))
    assert (result.verdict, result.promise) == ("violated", "ended_stays_ended"), tell(result)


@pytest.mark.soak
@pytest.mark.parametrize("row", MANY, ids=name_of)
def test_every_promise_holds_for_ever(row: tuple[Fault, int]) -> None:
    """The same from the very beginning, and however much time passes: each lease lapses and is given again."""
    holds(few(row[0], time=-1, held=False), row[1])


@pytest.mark.soak
@pytest.mark.parametrize("row", WIDE, ids=name_of)
def test_two_messages_under_way_overtake_each_other(row: tuple[Fault, int]) -> None:
    """An order and a check at once, in any order."""
    holds(few(row[0], room=2), row[1])


def test_two_managers_believe_and_one_acts() -> None:
    """A second manager takes the shard while the first goes on: both believe, and no order of the first is obeyed."""
    time, states = TWO[0]
    result = explored(shape(2, LAUNCH, TAKE, time=time, grants=2, held=True))
    assert (result.verdict, result.states) == ("holds", states), tell(result)
    for witness in ("took over", "outdated", "started", "proven"):
        assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"


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
    result = explored(structs.replace(mutant.shape, margin=1), 6_000_000 if bounded else MOST)
    assert result.verdict in (("holds", "unfinished") if bounded else ("holds",)), tell(result)


def test_a_dead_host_lapses_however_often_the_shard_changes_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left is in the host's row, so the next manager waits no longer; without marks each begins anew."""
    held = shape(1, held=True)
    assert changing_hands.longest(held) == 3
    monkeypatch.setattr(HostLeases, "silent", lambda *_: ())
    assert changing_hands.longest(held) == changing_hands.FOR_EVER
