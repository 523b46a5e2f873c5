"""The names that have to be looked at again, in order, going round from a cursor.

A hundred thousand may be unsettled at a cold start while each pass takes a few hundred of them, so the order is kept
between passes: names that have been settled are skipped where they stand, and new ones are put in their place.

Names that are in a hurry come first, wherever the walk is: what has just changed shouldn't wait for what is written for
the first time.

Others walk the same names. Each is refused what another writes first, so where another was last seen is kept too, and
the walk keeps away from there. That is a guess and no more: what is refused is read again, whatever was guessed.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator

FEW = 256
"""More new names than that at once, and sorting anew is cheaper than putting each in its place."""


class Unsettled:
    """A set of names that is walked in order."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._order: list[str] = []
        self._placed: set[str] = set()
        self._unplaced: set[str] = set()
        self._aside: dict[str, int] = {}
        self._hurried: dict[str, None] = {}
        self._fronts: set[str] = set()  # unsettled names that another writer comes to next

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """One more; one that was put off isn't any longer."""
        self._names.add(name)
        self._aside.pop(name, None)
        if name not in self._placed:
            self._unplaced.add(name)

    def update(self, names: Iterable[str]) -> None:
        """Several more."""
        for name in names:
            self.add(name)

    def discard(self, name: str) -> None:
        """That one is settled. Allowed while walking."""
        self._names.discard(name)
        self._aside.pop(name, None)
        self._hurried.pop(name, None)
        self._fronts.discard(name)

    def put_off(self, name: str, until: int) -> None:
        """Pass this one over until then (the caller's clock), unless it is added again before."""
        self._aside[name] = until
        self._hurried.pop(name, None)

    def hurry(self, names: Iterable[str]) -> None:
        """These come first until they are settled or put off."""
        self._hurried |= dict.fromkeys(names)

    def after(self, cursor: str, now: int = 0) -> Iterator[str]:
        """Every name that isn't put off: those in a hurry, then the others, beginning with the first after ``cursor``.

        What is added meanwhile comes at the next walk.
        """
        self._arrange()
        hurried = dict(self._hurried)
        yield from (name for name in hurried if name in self._names)
        order = self._order
        start = bisect_right(order, cursor)
        for at in range(start, start + len(order)):
            name = order[at - len(order)] if at >= len(order) else order[at]
            if name in self._names and name not in hurried and self._aside.get(name, 0) <= now:
                yield name

    def overtaken(self, names: Iterable[str]) -> None:
        """Another writer wrote these names. After one that it settled comes what it likely writes just now."""
        settled = sorted(name for name in names if name not in self._names)
        if not settled or not self._names:
            return
        self._arrange()
        order = self._order
        at = bisect_left(order, settled[0])
        for name in settled:
            if at < len(order) and order[at] < name:
                self._work_at(at)
                at = bisect_left(order, name)
            if at < len(order) and order[at] == name:
                at += 1
        self._work_at(at)

    def _work_at(self, at: int) -> None:
        """Another writer goes on at this place in the order, unless what stands there is settled."""
        if at < len(self._order) and self._order[at] in self._names:
            self._fronts.add(self._order[at])

    def overtakes(self, name: str) -> bool:
        """Whether another writer was last seen right before this name."""
        return name in self._fronts

    def meets(self, cursor: str) -> bool:
        """Whether the walk from a cursor begins where another writer was last seen."""
        return next(self.after(cursor), "") in self._fronts

    def in_widest(self, under_way: int, of: Callable[[int], int]) -> str:
        """A place to walk on from where nobody else is soon: around the middle of the widest stretch between writers.

        So many names at its beginning are taken to be under way. Anywhere, if no other writer is known of. ``of``
        chooses, of so many. "" if nothing is left.
        """
        self._arrange()
        left = [name for name in self._order if name in self._names]
        if not left:
            return ""
        begins = [at for at, name in enumerate(left) if name in self._fronts]
        if not begins:
            return left[of(len(left)) - 1]
        if begins[0]:
            begins.insert(0, 0)
        stretches = zip(begins, [*begins[1:], len(left)], strict=True)
        room, begin = max((end - begin, begin) for begin, end in stretches)
        if room > 3 * under_way:
            begin, room = begin + under_way, room - under_way
        chosen = begin + room // 4 + of(max(1, room // 2))
        return left[chosen - 1]

    def _arrange(self) -> None:
        if len(self._unplaced) > FEW or len(self._order) > 2 * len(self._names) + FEW:
            # Built anew: a set that once held many walks all its empty places whenever it is walked.
            self._names = set(self._names)
            self._order = sorted(self._names)
            self._placed = set(self._names)
        else:
            for name in sorted(self._unplaced):
                insort(self._order, name)
            self._placed |= self._unplaced
        self._unplaced = set()
