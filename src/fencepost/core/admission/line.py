"""A line: entries in the order they came. What is out of date is passed over, and squeezed out when there is no
room."""

import numpy as np

from fencepost.core.admission.columns import NONE, Entries, Ids, Tickets

START = 64


class Line:
    """Entries in order, each with its place in the order of all lines of its owner."""

    __slots__ = ("_entries", "_head", "_looked", "_places", "_tail")

    def __init__(self) -> None:
        """An empty one."""
        self._entries, self._places = np.empty(START, np.int64), np.empty(START, np.int64)
        self._head = self._tail = 0
        self._looked: Ids = NONE

    def copy(self) -> "Line":
        """The same, apart."""
        other = Line()
        other._entries, other._places = self._entries.copy(), self._places.copy()
        other._head, other._tail, other._looked = self._head, self._tail, self._looked
        return other

    def join(self, entries: Entries, place: int, tickets: Tickets) -> None:
        """Add some at the tail; their places are ``place`` and the following."""
        count = len(entries)
        if self._tail + count > len(self._entries):
            self._make_room(count, tickets)
        self._entries[self._tail : self._tail + count] = entries
        self._places[self._tail : self._tail + count] = np.arange(place, place + count)
        self._tail += count

    def _make_room(self, count: int, tickets: Tickets) -> None:
        live = tickets.live(self._entries[self._head : self._tail])
        entries = self._entries[self._head : self._tail][live]
        places = self._places[self._head : self._tail][live]
        size = max(START, 2 * (len(entries) + count))
        self._entries, self._places = np.empty(size, np.int64), np.empty(size, np.int64)
        self._entries[: len(entries)], self._places[: len(entries)] = entries, places
        self._head, self._tail = 0, len(entries)

    def look(self, most: int, tickets: Tickets) -> tuple[Entries, Ids]:
        """The first ``most`` that aren't out of date, with their places; they stay."""
        most = min(most, self._tail - self._head)
        start, width, count = self._head, most, 0
        found: list[Ids] = []
        while count < most and start < self._tail:
            slots = start + tickets.live(self._entries[start : min(start + width, self._tail)]).nonzero()[0]
            if not found and not len(slots):
                self._head = min(start + width, self._tail)
            found.append(slots)
            count += len(slots)
            start += width
            width *= 2
        self._looked = np.concatenate(found)[:most] if found else NONE
        return self._entries[self._looked], self._places[self._looked]

    def leave(self, count: int) -> None:
        """The first ``count`` of those just looked at are gone."""
        if count:
            self._head = int(self._looked[count - 1]) + 1

    def all(self, tickets: Tickets) -> tuple[Entries, Ids]:
        """Every entry that isn't out of date, in order, with their places."""
        entries, places = self._entries[self._head : self._tail], self._places[self._head : self._tail]
        live = tickets.live(entries)
        return entries[live], places[live]
