"""What is known of each host: columns by id, and how many are in each state."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fencepost.core.admission.columns import NO_LEASE, NONE, Ids, Mask, Tickets
from fencepost.core.instant import Duration
from fencepost.core.records import records as aligned

IDLE, WAITING, READY, QUEUED, AGAIN, RENEWING, ACQUIRING, LEAVING = range(8)
"""Where a host is. Leaving: in flight, dropped meanwhile. From AGAIN on it was dispatched, from RENEWING on it is."""
NAMES = ("idle", "waiting", "ready", "queued", "again", "renewing", "acquiring", "leaving")
SIZE_MOST = 1 << 31
APART_MOST = 1 << 16
"""So many ids are told apart by a mark on each, and remembered: more would be kept for nothing after all were asked for
at once."""
PLACES = np.arange(APART_MOST, dtype=np.uint16)

RECORD = np.dtype(
    [
        ("due", np.int64),
        ("deadline", np.int64),
        ("dispatched", np.int64),
        ("ticket", np.int32),
        ("state", np.uint8),
        ("spare", "V1"),
        ("mark", np.uint16),
    ]
)
"""All of one host's facts, half a cache line: ids come from all over a million, and each place in memory costs at its
first touch what ten cost after it."""


class Hosts:
    """Columns by id, changed in place: views of one array of records. ``counts`` says how many are in each state.

    ``_mark`` is where each came when ids were last told apart. ``_apart`` are ids that were last found to be all
    different: they mostly come again: taken, answered, renewed.
    """

    __slots__ = ("_apart", "_mark", "_records", "counts", "deadline", "dispatched", "due", "size", "state", "tickets")

    def __init__(self, size: int) -> None:
        """All idle. Raises ``ValueError`` for a size that isn't one."""
        self.counts, self._apart = [0] * len(NAMES), NONE
        self._set(np.zeros(0, RECORD))
        self.grow(size)

    def _set(self, records: NDArray[Any]) -> None:
        """These are the records; the columns are views of their fields."""
        self._records, self.size = records, len(records)
        self.due, self.deadline, self.dispatched = records["due"], records["deadline"], records["dispatched"]
        self.tickets, self.state, self._mark = Tickets(records["ticket"]), records["state"], records["mark"]

    def grow(self, size: int) -> None:
        """Room for more, idle. Raises ``ValueError`` for fewer than there are, or more than can be."""
        before = self.size
        if size < before or size > SIZE_MOST:
            raise ValueError(f"size is {size}: {before:,} to {SIZE_MOST:,} hosts")
        records = aligned(size, RECORD)
        records[:before] = self._records
        self._set(records)
        self.deadline[before:] = NO_LEASE
        self.counts[IDLE] += size - before

    def copy(self) -> "Hosts":
        """The same, apart."""
        other = Hosts(0)
        other._set(self._records.copy())
        other.counts = self.counts.copy()
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
        if not len(array) or (len(array) == len(self._apart) and (array == self._apart).all()):
            return array, None
        if array.min() < 0 or array.max() >= self.size:
            raise ValueError(f"an id is outside 0 to {self.size - 1}")
        if self._all_apart(array):
            self.remember(array)
            return array, None
        chosen = np.unique(array if first else array[::-1], return_index=True)[1]
        chosen = np.sort(chosen if first else len(array) - 1 - chosen)
        return array[chosen], chosen

    def _all_apart(self, ids: Ids) -> bool:
        """Whether none comes twice: each is marked with its place, and finds its own mark there afterwards."""
        if len(ids) > APART_MOST:
            ordered = np.sort(ids)
            return not (ordered[1:] == ordered[:-1]).any()
        places = PLACES[: len(ids)]
        self._mark[ids] = places
        return bool((self._mark[ids] == places).all())

    def remember(self, ids: Ids) -> None:
        """These are all different, and may be told of next."""
        self._apart = ids.copy() if len(ids) <= APART_MOST else NONE

    def move(self, ids: Ids, state: int, before: NDArray[np.uint8] | None = None) -> None:
        """Each of some, none twice, is in this state now; ``before`` is where they are, if the caller has looked."""
        if not len(ids):
            return
        before = self.state[ids] if before is None else before
        if (before == before[0]).all():
            self.move_on(ids, int(before[0]), state)
            return
        for old, count in enumerate(np.bincount(before).tolist()):
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
