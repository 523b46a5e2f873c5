"""What is known of each host: columns by id, and how many are in each state."""

import numpy as np
from numpy.typing import ArrayLike

from fencepost.core.admission.columns import NO_LEASE, Ids, Mask, Tickets
from fencepost.core.instant import Duration

IDLE, WAITING, READY, QUEUED, AGAIN, RENEWING, ACQUIRING, LEAVING = range(8)
"""Where a host is. Leaving: in flight, dropped meanwhile. From AGAIN on it was dispatched, from RENEWING on it is."""
NAMES = ("idle", "waiting", "ready", "queued", "again", "renewing", "acquiring", "leaving")
SIZE_MOST = 1 << 31


class Hosts:
    """Columns by id, changed in place. ``counts`` says how many are in each state."""

    __slots__ = ("_last", "counts", "deadline", "dispatched", "due", "size", "state", "tickets")

    def __init__(self, size: int) -> None:
        """All idle. Raises ``ValueError`` for a size that isn't one."""
        self.size = 0
        self.tickets, self.counts = Tickets(0), [0] * len(NAMES)
        self.state, self._last = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        self.due, self.dispatched, self.deadline = (np.zeros(0, np.int64) for _ in range(3))
        self.grow(size)

    def grow(self, size: int) -> None:
        """Room for more, idle. Raises ``ValueError`` for fewer than there are, or more than can be."""
        more = size - self.size
        if more < 0 or size > SIZE_MOST:
            raise ValueError(f"size is {size}: {self.size:,} to {SIZE_MOST:,} hosts")
        self.tickets.grow(size)
        self.state = np.concatenate((self.state, np.full(more, IDLE, np.uint8)))
        self._last = np.concatenate((self._last, np.zeros(more, np.int32)))
        self.due = np.concatenate((self.due, np.zeros(more, np.int64)))
        self.dispatched = np.concatenate((self.dispatched, np.zeros(more, np.int64)))
        self.deadline = np.concatenate((self.deadline, np.full(more, NO_LEASE, np.int64)))
        self.counts[IDLE] += more
        self.size = size

    def copy(self) -> "Hosts":
        """The same, apart."""
        other = Hosts(0)
        other.size = self.size
        for name in ("tickets", "counts", "state", "_last", "due", "dispatched", "deadline"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def age(self, by: Duration) -> None:
        """Every instant is ``by`` later."""
        self.due += by
        self.dispatched += by
        self.deadline[self.deadline != NO_LEASE] += by

    def once(self, ids: ArrayLike, first: bool = False) -> tuple[Ids, Ids | None]:
        """Each id once, where it comes last (or first); and those places, None if none came twice.

        Raises ``ValueError`` for an id that there isn't.
        """
        array = np.asarray(ids, np.int64)
        if len(array) and array.view(np.uint64).max() >= self.size:
            raise ValueError(f"an id is outside 0 to {self.size - 1}")
        if len(array) < 2:
            return array, None
        places = np.arange(len(array), dtype=np.int32)
        if first:
            self._last[array[::-1]] = places[::-1]
        else:
            self._last[array] = places
        chosen = self._last[array] == places
        if chosen.all():
            return array, None
        return array[chosen], chosen.nonzero()[0]

    def move(self, ids: Ids, state: int) -> None:
        """Each of some, none twice, is in this state now."""
        if len(ids):
            for old, count in enumerate(np.bincount(self.state[ids]).tolist()):
                self.counts[old] -= count
            self.state[ids] = state
            self.counts[state] += len(ids)

    def move_on(self, ids: Ids, old: int, new: int) -> None:
        """The same for those that are all in one state."""
        self.state[ids] = new
        self.counts[old] -= len(ids)
        self.counts[new] += len(ids)

    def too_late(self, ids: Ids, soonest: int) -> Mask:
        """Whose lease ends before ``soonest``, or who holds none."""
        late: Mask = self.deadline[ids] < soonest
        return late
