"""What the explorer's tests share: shapes, what must be seen to happen for a promise to mean anything, the verdict."""

from fencepost.explorer.result import Result, tell
from fencepost.world.faults import Fault
from fencepost.world.region import Shape

Faults = tuple[Fault, ...]

WITNESSES: dict[Fault, tuple[str, ...]] = {
    Fault.MARKER_DELETED: ("marker-deleted",),
    Fault.EMPTIED: ("record-emptied", "healed"),
    Fault.BOTH: ("marker-and-record-deleted",),
    Fault.ALTERED: ("record-altered", "healed"),
    Fault.UNMARKED: ("marker-deleted-and-record-altered",),
    Fault.STRANGER: ("unmarked-set",),
    Fault.ADOPT: ("adopt",),
    Fault.FOREIGN: ("foreign-marker",),
    Fault.STORE_WIPED: ("store-wiped", "adopted"),
    Fault.STORE_AWAY: ("store away",),
    Fault.UNKNOWN: ("answer lost", "write lost"),
    Fault.CRASH: ("crashed", "crashed while writing"),
    Fault.DUPLICATE: ("delivered twice",),
    Fault.REPAIR: ("repair", "repair enacted", "adopted"),
    Fault.BRIEF_REPAIR: ("repair enacted", "adopted"),
    Fault.SLOW_REPAIR: ("repair-by-a-slow-clock", "repair enacted", "adopted"),
    Fault.FAST_REPAIR: ("repair-by-a-fast-clock", "repair enacted", "adopted"),
    Fault.TIME: ("time-passes", "hold ended"),
    Fault.ROLLBACK: ("rollback", "rollback enacted"),
    Fault.RELEASE: ("release", "hold ended"),
    Fault.WITHDRAW: ("withdraw", "withdraw enacted"),
    Fault.INPUT: ("input-change", "plan 2 published"),
    Fault.TORN: ("torn read",),
    Fault.TORN_STORE: ("torn store read",),
    Fault.DRAIN: ("drain",),
    Fault.KEEP: ("keep",),
    Fault.RESUME: ("resume",),
    Fault.FILE_LOST: ("file lost", "file lost while writing"),
    Fault.FILE_OLD: ("file old",),
    Fault.CLAIM: ("adopt-contested", "stands aside"),
}
"""What must have been seen to happen for a fault's exploration to mean anything: the "sometimes" partners."""


def name_of(faults: Faults) -> str:
    """The faults as a test's id."""
    return "+".join(fault.value for fault in faults) or "none"


def counted(faults: Faults, *, inputs: int = 1, withdrawals: int = 1) -> tuple[tuple[Fault, int], ...]:
    """Each fault as often as it is named, besides changes of inputs and withdrawals."""
    often = {Fault.INPUT: inputs, Fault.WITHDRAW: withdrawals}
    for fault in faults:
        often[fault] = often.get(fault, 0) + 1
    return tuple((fault, count) for fault, count in often.items() if count)


def shape(enactors: int, planners: int, faults: Faults, *, inputs: int = 1, janitors: int = 0) -> Shape:
    """A region of one endpoint, with a withdrawal and some changes of inputs besides the faults."""
    return Shape(enactors, planners, janitors, budget=counted(faults, inputs=inputs))


def holds(result: Result, explored: Shape) -> None:
    """Every promise held in every state, and each thing that should have been tried was seen to happen."""
    assert result.verdict == "holds", tell(result)
    for fault, count in explored.budget:
        if count:
            for witness in WITNESSES[fault]:
                assert result.sometimes.get(witness, 0) > 0, f"{witness} never happened:\n{tell(result)}"
    assert result.sometimes["enacted"] > 0
