"""The adversary's moves, by name. Each is something that a person, a network or a machine has done to such a system."""

from enum import Enum


class Fault(Enum):
    """What may happen to a region besides its own steps; a scenario says which, and how often."""

    MARKER_DELETED = "marker-deleted"
    EMPTIED = "record-emptied"
    BOTH = "marker-and-record-deleted"
    STORE_WIPED = "store-wiped"
    REPAIR = "repair"
    ROLLBACK = "rollback"
    FOREIGN = "foreign-marker"
    CRASH = "crash"
    DUPLICATE = "duplicate-delivery"
    RELEASE = "release"
    WITHDRAW = "withdraw"
    INPUT = "input-change"


NINE: tuple[tuple[Fault, ...], ...] = (
    (Fault.MARKER_DELETED,),
    (Fault.EMPTIED,),
    (Fault.BOTH,),
    (Fault.STORE_WIPED,),
    (Fault.REPAIR, Fault.RELEASE),
    (Fault.ROLLBACK, Fault.RELEASE),
    (Fault.FOREIGN,),
    (Fault.CRASH,),
    (Fault.DUPLICATE,),
)
"""The nine moves that the protocol was checked against, each alone; a repair or rollback comes with its release."""
