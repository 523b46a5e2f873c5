"""Which worlds are known already: a hash table of whole columns at a time, so that a million look-ups are some dozen
array operations.

A world is a row of small integers. It is found by a 64-bit hash of that row, by open addressing with linear probing,
and then compared with the row that is kept: so two worlds never pass for one, and the counts are exact. Were two
different rows to have one hash, which a hundred million worlds make likely once in three thousand runs, the search
ends with an error rather than with a wrong answer.
"""

import contextlib

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

NONE = np.int32(-1)
FULLEST = 0.6
RESERVED = 4_000_000
"""Rows for which room is taken beforehand at most: more would be refused on a small machine, needed or not."""
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio (Knuth, TAOCP 6.4)
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # the first multiplier of splitmix64's finalizer
_SHIFT = np.uint64(29)


def hashes(rows: Ints) -> Hashes:
    """A 64-bit hash of each row of a (count, columns) array."""
    found = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        found = (found + column.astype(np.uint64) + _ODD) * _MIX
        found ^= found >> _SHIFT
    return found


class Known:
    """Rows of ``width`` integers, numbered in the order in which they came."""

    def __init__(self, width: int) -> None:
        self.rows: Ints = np.empty((1024, width), np.int32)
        self.size = 0
        self._hashes: Hashes = np.zeros(4096, np.uint64)
        self._numbers: Ints = np.full(4096, NONE)

    def add(self, rows: Ints) -> tuple[Ints, Numbers]:
        """The number of each row, new ones included, and where in ``rows`` each new one came first, in order.

        Raises ``OverflowError`` if two different rows have one hash.
        """
        self._make_room(len(rows))
        wanted = hashes(rows)
        places = self._places(wanted)
        found = np.full(len(rows), NONE)
        tags = -2 - np.arange(len(rows), dtype=np.int32)  # stand for new rows until it is known which are
        news: list[Numbers] = []
        spots: list[Numbers] = []
        left = np.arange(len(rows))
        while len(left):
            free = left[self._numbers[places[left]] == NONE]
            if len(free):
                # Several may want one place. The one written last has it, so the first comer is; the others look again.
                self._numbers[places[free[::-1]]] = tags[free[::-1]]
                won = free[self._numbers[places[free]] == tags[free]]
                self._hashes[places[won]] = wanted[won]
                news.append(won)
                spots.append(places[won])
            same = left[self._hashes[places[left]] == wanted[left]]
            found[same] = self._numbers[places[same]]
            left = left[self._hashes[places[left]] != wanted[left]]
            places[left] = (places[left] + 1) & (len(self._numbers) - 1)
        new = np.sort(np.concatenate(news)) if news else left
        renamed = np.empty(len(rows), np.int32)
        renamed[new] = np.arange(self.size, self.size + len(new), dtype=np.int32)
        for won, spot in zip(news, spots, strict=True):
            self._numbers[spot] = renamed[won]
        fresh = found < NONE
        found[fresh] = renamed[-2 - found[fresh]]
        self._keep(rows[new])
        if not np.array_equal(self.rows[found], rows):
            raise OverflowError("two situations have one hash: start again with other bounds")
        return found, new

    def reserve(self, rows: int) -> None:
        """Have room for so many rows without copying, or for 4,000,000 if they are more; memory is only used as they
        come. Where there isn't so much, the room grows with the rows."""
        with contextlib.suppress(MemoryError):
            self._grow(min(rows, RESERVED))

    def forget_hashes(self) -> None:
        """Let go of what only :meth:`add` needs; nothing can be added any more."""
        self._hashes, self._numbers = self._hashes[:0], self._numbers[:0]

    def _places(self, wanted: Hashes) -> Numbers:
        """Where to look first."""
        return (wanted >> np.uint64(64 - len(self._numbers).bit_length() + 1)).astype(np.int64)

    def _keep(self, rows: Ints) -> None:
        after = self.size + len(rows)
        if after > len(self.rows):
            try:
                self._grow(max(after, len(self.rows) * 3 // 2))
            except MemoryError:  # there may be room for just these
                self._grow(after)
        self.rows[self.size : after] = rows
        self.size = after

    def _grow(self, rows: int) -> None:
        """Have room for so many rows. Raises ``MemoryError``, and then all is as it was."""
        if rows > len(self.rows):
            grown = np.empty((rows, self.rows.shape[1]), np.int32)
            grown[: self.size] = self.rows[: self.size]
            self.rows = grown

    def _make_room(self, more: int) -> None:
        """Grow the table so that it stays loose enough even if every row is new."""
        length = len(self._numbers)
        if self.size + more <= FULLEST * length:
            return
        while self.size + more > FULLEST * length:
            length *= 2
        self._hashes = np.zeros(length, np.uint64)
        self._numbers = np.full(length, NONE)
        step = 1 << 20
        for begin in range(0, self.size, step):
            self._enter(np.arange(begin, min(begin + step, self.size), dtype=np.int32))

    def _enter(self, numbers: Ints) -> None:
        """Put rows that are all different, and kept already, into the table."""
        wanted = hashes(self.rows[numbers])
        places = self._places(wanted)
        left = np.arange(len(numbers))
        while len(left):
            free = left[self._numbers[places[left]] == NONE]
            self._numbers[places[free]] = numbers[free]
            won = self._numbers[places[left]] == numbers[left]
            self._hashes[places[left[won]]] = wanted[left[won]]
            left = left[~won]
            places[left] = (places[left] + 1) & (len(self._numbers) - 1)
