"""What the other modules of this package share: array types, and an entry that knows when it is out of date.

An entry of a queue or calendar is one integer: the id in the low 32 bits, above them the id's *ticket* at the time. An
id that moves elsewhere gets the next ticket, so what it leaves behind is out of date and is passed over later; nothing
is ever searched for.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids: TypeAlias = NDArray[np.int64]
"""Ids of hosts: 0 to size - 1."""
Times: TypeAlias = NDArray[np.int64]
"""Instants or durations, nanoseconds."""
Entries: TypeAlias = NDArray[np.int64]
"""Ids with their tickets."""
Mask: TypeAlias = NDArray[np.bool_]
"""Which of some."""

BITS = 32
LOW = (1 << BITS) - 1
NONE: Ids = np.empty(0, np.int64)
"""No ids, no entries, no times."""
NO_LEASE = -(1 << 62)
"""The deadline of an id that holds nothing."""


def each_of(value: ArrayLike, places: Ids | None, count: int) -> Times:
    """One number for each of ``count`` ids: as given, at ``places`` if some ids came twice, or one for all.

    The caller's own array is never kept.
    """
    array = np.array(value, np.int64)
    if array.ndim == 0:
        return np.full(count, int(array), np.int64)
    chosen: Times = array if places is None else array[places]
    return chosen


class Tickets:
    """Each id's current ticket."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: NDArray[np.int32]) -> None:
        """By id; changed in place."""
        self.numbers = numbers

    def issue(self, ids: Ids) -> Entries:
        """New entries for some ids, none twice; all older ones of theirs are out of date."""
        numbers = self.numbers[ids] + np.int32(1)
        self.numbers[ids] = numbers
        return (numbers.astype(np.int64) << BITS) | ids

    def entries(self, ids: Ids) -> Entries:
        """The newest entries of some ids."""
        return (self.numbers[ids].astype(np.int64) << BITS) | ids

    def live(self, entries: Entries) -> Mask:
        """Which entries are the newest of their ids."""
        found: Mask = self.numbers[entries & LOW] == entries >> BITS
        return found
