"""What the other modules of this package share: array types, and an entry that knows when it is out of date.

An entry of a queue or calendar is one integer: the id in the low 32 bits, above them the id's *ticket* at the time. An
id that moves elsewhere gets the next ticket, so what it leaves behind is out of date and is passed over later; nothing
is ever searched for.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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


class Tickets:
    """Each id's current ticket."""

    __slots__ = ("numbers",)

    def __init__(self, size: int) -> None:
        """All at 0."""
        self.numbers = np.zeros(size, np.int64)

    def copy(self) -> "Tickets":
        """The same, apart."""
        other = Tickets(0)
        other.numbers = self.numbers.copy()
        return other

    def grow(self, size: int) -> None:
        """Room for ids up to ``size``."""
        self.numbers = np.concatenate((self.numbers, np.zeros(size - len(self.numbers), np.int64)))

    def issue(self, ids: Ids) -> Entries:
        """New entries for some ids, none twice; all older ones of theirs are out of date."""
        numbers = self.numbers[ids] + 1
        self.numbers[ids] = numbers
        return (numbers << BITS) | ids

    def live(self, entries: Entries) -> Mask:
        """Which entries are the newest of their ids."""
        found: Mask = self.numbers[entries & LOW] == entries >> BITS
        return found
