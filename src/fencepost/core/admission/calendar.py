"""A calendar: entries by time, in buckets, so that a million wait and only those of the next second are ever sorted.

What is put goes to a buffer; once something in it may be wanted it is sorted and cut into buckets, all at once, so that
a put costs a copy however far apart its times are. The earliest bucket is kept open: sorted (anew if it came in several
cuts), with a place to read on from. What comes later for a time before the open bucket's end is merged into it. The
order is that of time, and of ids among equals.

Entries out of date stay where they are until their bucket is opened; the owner makes the calendar anew when most are.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from fencepost.core.admission.columns import BITS, LOW, NONE, Entries, Ids, Tickets, Times
from fencepost.core.instant import Duration, Instant

FEW = 4096
"""An empty calendar takes so many straight into its open bucket."""
WORD = 63
"""So many bits has a number."""
SHORT = 1 << 31
"""Nanoseconds that leave room for an id beside them."""
BUFFER = 1 << 16
"""A buffer of so many is sorted even if nobody asks: it bounds what is sorted at once."""


def _stable(numbers: Ids) -> Ids:
    """Where each is when sorted; equal ones in the order given.

    Numbers are sorted three times faster than places are found by which they would be: so each has its place in its
    lowest bits, if there is room for both.
    """
    count, first = len(numbers), numbers.min()
    bits = count.bit_length()
    if int(numbers.max() - first).bit_length() + bits > WORD:
        found: Ids = numbers.argsort(kind="stable")
        return found
    return np.sort(((numbers - first) << bits) | np.arange(count)) & ((1 << bits) - 1)


def _in_order(entries: Entries, times: Times) -> tuple[Entries, Times]:
    """The same, by time, then by id."""
    if not len(times) or (times[1:] > times[:-1]).all():
        return entries, times
    order = _stable(times)
    later = times[order]
    if (later[1:] == later[:-1]).any():
        order = _stable(entries & LOW)
        order = order[_stable(times[order])]
        later = times[order]
    return entries[order], later


def sorted_ids(ids: Ids, times: Times) -> Ids:
    """The ids, by time, then by id."""
    first = times.min()
    if int(times.max() - first) >= SHORT:
        order: Ids = np.lexsort((ids, times))
        return ids[order]
    return np.sort(((times - first) << BITS) | ids) & LOW


class Calendar:
    """Entries by time."""

    __slots__ = (
        "_at",
        "_buckets",
        "_buffer",
        "_buffered",
        "_end",
        "_entries",
        "_heap",
        "_low",
        "_times",
        "_width",
        "size",
    )

    def __init__(self, width: Duration) -> None:
        """An empty one with buckets of ``width`` nanoseconds."""
        self._width = width
        self._buckets: dict[int, list[tuple[Entries, Times]]] = {}
        self._heap: list[int] = []
        self._buffer: list[tuple[Entries, Times]] = []
        self._buffered = 0
        self._low = 0
        self._entries, self._times, self._at = NONE, NONE, 0
        self._end = 0
        self.size = 0
        """How many entries there are, those out of date included."""

    def copy(self) -> "Calendar":
        """The same, apart (arrays are never written in place)."""
        other = Calendar(self._width)
        other._buckets = {key: list(chunks) for key, chunks in self._buckets.items()}
        other._heap, other._buffer = list(self._heap), list(self._buffer)
        other._buffered, other._low = self._buffered, self._low
        other._entries, other._times, other._at = self._entries, self._times, self._at
        other._end, other.size = self._end, self.size
        return other

    def put(self, entries: Entries, times: Times) -> None:
        """Add some."""
        if not len(entries):
            return
        low = int(times.min())
        self._low = min(low, self._low) if self._buffered else low
        self._buffer.append((entries, times))
        self._buffered += len(entries)
        self.size += len(entries)
        if self._buffered >= BUFFER:
            self._sort_in()

    def next_at(self, tickets: Tickets) -> Instant | None:
        """The earliest time of an entry that isn't out of date; None if there is none."""
        at = self._first(tickets)
        if self._buffered and (at is None or self._low < at):
            self._sort_in()
            at = self._first(tickets)
        return at

    def loads(self, tickets: Tickets) -> Iterator[tuple[Instant, int]]:
        """How many entries there are up to a bucket's end, and a time that none of that bucket comes before, in order.

        Entries out of date are counted too, but those before the first that isn't.
        """
        if self._buffered:
            self._sort_in()
        first = self._first(tickets)
        count = len(self._entries) - self._at
        if first is not None:
            yield first, count
        for bucket in sorted(self._heap):
            count += sum(len(entries) for entries, _ in self._buckets[bucket])
            yield bucket * self._width, count

    def _first(self, tickets: Tickets) -> Instant | None:
        """The same, the buffer aside."""
        while self._fill():
            live = tickets.live(self._entries[self._at :])
            first = int(live.argmax())
            if live[first]:
                self._pass(first)
                return int(self._times[self._at])
            self._pass(len(live))
        return None

    def until(self, now: Instant, tickets: Tickets, most: int | None = None) -> tuple[Entries, Times]:
        """Take out those with a time of at most ``now``, earliest first, at most ``most`` of them."""
        if self._buffered and self._low <= now:
            self._sort_in()
        found: list[tuple[Entries, Times]] = []
        left = self.size if most is None else most
        while left > 0 and self._fill(now):
            end = min(int(self._times.searchsorted(now, "right")), self._at + 2 * left + FEW)
            entries, times = self._entries[self._at : end], self._times[self._at : end]
            if not len(entries):
                break
            live = tickets.live(entries)
            if live.all():
                entries, times = entries[:left], times[:left]
                self._pass(len(entries))
            else:
                places = live.nonzero()[0][:left]
                self._pass(int(places[-1]) + 1 if len(places) == left else len(live))
                entries, times = entries[places], times[places]
            left -= len(entries)
            found.append((entries, times))
        if len(found) == 1:
            return found[0]
        if not found:
            return NONE, NONE
        return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])

    def _pass(self, count: int) -> None:
        self._at += count
        self.size -= count

    def _fill(self, now: Instant | None = None) -> bool:
        """Open buckets (that begin by ``now``) until the open one holds something."""
        while self._at == len(self._entries) and self._heap:
            if now is not None and self._heap[0] * self._width > now:
                return False
            bucket = heappop(self._heap)
            chunks = self._buckets.pop(bucket)
            if len(chunks) == 1:
                (self._entries, self._times), self._at = chunks[0], 0
            else:
                self._open(np.concatenate([each for each, _ in chunks]), np.concatenate([each for _, each in chunks]))
            self._end = bucket + 1
        return self._at < len(self._entries)

    def _open(self, entries: Entries, times: Times) -> None:
        (self._entries, self._times), self._at = _in_order(entries, times), 0

    def _sort_in(self) -> None:
        """Empty the buffer: into the open bucket what belongs there, the rest into its buckets."""
        if len(self._buffer) == 1:
            entries, times = self._buffer[0]
        else:
            entries = np.concatenate([each for each, _ in self._buffer])
            times = np.concatenate([each for _, each in self._buffer])
        self._buffer, self._buffered = [], 0
        if len(entries) == self.size and len(entries) <= FEW:
            self._open(entries, times)
            self._end = int(times.max()) // self._width + 1
            return
        early = times < self._end * self._width
        if early.any():
            self._merge(entries[early], times[early])
            entries, times = entries[~early], times[~early]
        if len(entries):
            self._spread(entries, times)

    def _merge(self, entries: Entries, times: Times) -> None:
        """Add to the open bucket: a few to many are put in their places, since sorting a million takes 40 ms."""
        held, known = self._entries[self._at :], self._times[self._at :]
        first = min(int(times.min()), int(known[0])) if len(known) else 0
        last = max(int(times.max()), int(known[-1])) if len(known) else SHORT
        if 8 * len(entries) > len(held) or last - first >= SHORT:
            self._open(np.concatenate((held, entries)), np.concatenate((known, times)))
            return
        entries, times = _in_order(entries, times)
        keys = ((known - first) << BITS) | (held & LOW)
        places = keys.searchsorted(((times - first) << BITS) | (entries & LOW), "right")
        self._entries, self._times = np.insert(held, places, entries), np.insert(known, places, times)
        self._at = 0

    def _spread(self, entries: Entries, times: Times) -> None:
        entries, times = _in_order(entries, times)
        for bucket, start, end in self._cuts(times):
            chunks = self._buckets.get(bucket)
            if chunks is None:
                chunks = self._buckets[bucket] = []
                heappush(self._heap, bucket)
            chunks.append((entries[start:end], times[start:end]))

    def _cuts(self, times: Times) -> Iterator[tuple[int, int, int]]:
        """Which buckets these times, in order, belong to, and from where to where."""
        first, last = int(times[0]) // self._width, int(times[-1]) // self._width
        if last - first < len(times):
            ends = times.searchsorted(np.arange(first + 1, last + 2) * self._width)
            buckets, starts = range(first, last + 1), [0, *ends.tolist()]
        else:  # buckets that lie far apart aren't gone through one by one
            found = times // self._width
            starts = [0, *((found[1:] != found[:-1]).nonzero()[0] + 1).tolist(), len(times)]
            buckets = found[starts[:-1]].tolist()
        for bucket, start, end in zip(buckets, starts[:-1], starts[1:], strict=True):
            if start < end:
                yield bucket, start, end
