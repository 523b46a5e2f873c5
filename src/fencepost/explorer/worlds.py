"""Worlds as rows of integers: slots and shared parts are interned, and the steps of a pair are worked out once.

A world is the number of its shared part followed by each slot's. A slot and a shared part make a pair, and pairs are
few where worlds are many: only for a new pair do the real deciders run. All else is done for whole columns of worlds.

Parts of one kind are interchangeable, so with symmetry on, worlds that differ only in who is who are one.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise
from typing import Generic, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.explorer.known import Ints, Known, Numbers
from fencepost.explorer.result import Step
from fencepost.world.model import Model, Move, P, S

OUTSIDE = -1
"""The place of what happens without any part."""

NumberedStep: TypeAlias = tuple[int, int, bool, bool, int]
"""Slot after, shared part after, whether the other parts are to be looked at again, calm, number of the promise broken.
"""


class Expansion(NamedTuple):
    """All steps from several worlds, one a row: from which (its place among them), to which, and how.

    ``label`` is the kind of part that took the step, -1 for a fault or none; ``broken`` is the number of the promise
    that it broke, 0 for none.
    """

    source: Numbers
    rows: Ints
    label: NDArray[np.int8]
    broken: NDArray[np.int16]


class Steps:
    """What pairs may do. A pair's steps stand together, in columns: the slot and the shared part after, and how."""

    def __init__(self) -> None:
        self.pairs = Known(2)
        self._begin, self._count = array("q"), array("q")
        self._slot, self._shared = array("i"), array("i")
        self._stirs, self._calm, self._broken = array("b"), array("b"), array("h")

    def of(self, pairs: Ints, work: Callable[[int, int], Iterable[NumberedStep]]) -> tuple[Numbers, Numbers]:
        """The steps of each pair (a shared part and a slot): from which row of ``pairs``, and which step.

        ``work`` is asked for those of a new pair.
        """
        numbers, new = self.pairs.add(pairs)
        for shared, slot in pairs[new].tolist():
            begin = len(self._slot)
            for step in work(shared, slot):
                self._note(step)
            self._begin.append(begin)
            self._count.append(len(self._slot) - begin)
        begins = np.frombuffer(self._begin, np.int64)[numbers]
        counts = np.frombuffer(self._count, np.int64)[numbers]
        source = np.repeat(np.arange(len(pairs)), counts)
        skipped = begins - (np.cumsum(counts) - counts)
        return source, np.arange(len(source)) + skipped[source]

    def _note(self, step: NumberedStep) -> None:
        slot, shared, stirs, calm, broken = step
        self._slot.append(slot)
        self._shared.append(shared)
        self._stirs.append(stirs)
        self._calm.append(calm)
        self._broken.append(broken)

    def after(self, steps: Numbers) -> tuple[Ints, Ints]:
        """The slots and the shared parts after these steps."""
        if not len(steps):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        return np.frombuffer(self._slot, np.int32)[steps], np.frombuffer(self._shared, np.int32)[steps]

    def how(self, steps: Numbers) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int16]]:
        """Of these steps: whether others are to be looked at again, whether calm, and the promise broken."""
        if not len(steps):
            return np.empty(0, np.int8), np.empty(0, np.int8), np.empty(0, np.int16)
        stirs, calm = np.frombuffer(self._stirs, np.int8)[steps], np.frombuffer(self._calm, np.int8)[steps]
        return stirs, calm, np.frombuffer(self._broken, np.int16)[steps]


class Worlds(Generic[P, S]):
    """The worlds of one model, and the steps between them. ``sometimes``: in how many situations things happened."""

    def __init__(self, model: Model[P, S], *, symmetry: bool = True) -> None:
        self.symmetry = symmetry
        self.model = model
        self.sometimes: Counter[str] = Counter()
        self.promises = [""]
        self.slots: list[P] = []
        self.slot_ids: dict[tuple[object, ...], int] = {}
        self.shareds: list[S] = []
        self.shared_ids: dict[S, int] = {}
        self.steps = Steps()
        self.outside = Steps()
        self.relooked = Known(2)
        self._looked = array("i")
        slots, shared = model.start()
        self.count = len(slots)
        self.groups: list[slice] = []
        for _, same in groupby(slots, model.kind):
            begin = self.groups[-1].stop if self.groups else 1
            self.groups.append(slice(begin, begin + len(list(same))))
        self.kinds = [kind for kind, group in enumerate(self.groups) for _ in range(group.start, group.stop)]
        if not symmetry:
            self.kinds = list(range(self.count))
        shared = model.lean_shared(shared)
        self.names = [slot.name for slot in slots]
        self.started = [self.slot_id(model.lean_part(slot, shared)) for slot in slots]
        self.first = self.ordered(np.array([[self.shared_id(shared), *self.started]], np.int32))

    def slot_id(self, slot: P) -> int:
        """A slot's number."""
        key = slot.key()
        found = self.slot_ids.get(key)
        if found is None:
            found = self.slot_ids[key] = len(self.slots)
            self.slots.append(slot)
        return found

    def shared_id(self, shared: S) -> int:
        """A shared part's number."""
        found = self.shared_ids.get(shared)
        if found is None:
            found = self.shared_ids[shared] = len(self.shareds)
            self.shareds.append(shared)
        return found

    def ordered(self, rows: Ints) -> Ints:
        """The same worlds with equal parts in order (in place), if symmetry is on."""
        if self.symmetry:
            for group in self.groups:
                if group.stop - group.start > 1:
                    rows[:, group].sort(axis=1)
        return rows

    def expand(self, rows: Ints) -> Expansion:
        """All steps from these worlds."""
        sources, afters, labels, breaks, stirred = [], [], [], [], []
        for place in range(OUTSIDE, self.count):
            if place == OUTSIDE:
                table = self.outside
                source, steps = table.of(rows[:, [0, 0]], self.outside_steps)
            else:
                table = self.steps
                source, steps = table.of(rows[:, [0, 1 + place]], self.part_steps)
            after = rows[source]
            slots, after[:, 0] = table.after(steps)
            if place != OUTSIDE:
                after[:, 1 + place] = slots
            stirs, calm, broken = table.how(steps)
            sources.append(source)
            afters.append(after)
            stirred.append(stirs)
            breaks.append(broken)
            kind = self.kinds[place] if place >= 0 else OUTSIDE
            labels.append(np.where(calm == 1, kind, OUTSIDE).astype(np.int8))
        after = np.concatenate(afters)
        again = np.flatnonzero(np.concatenate(stirred))
        if len(again):
            after[again] = self.look(after[again])
        return Expansion(np.concatenate(sources), self.ordered(after), np.concatenate(labels), np.concatenate(breaks))

    def part_steps(self, shared: int, slot: int) -> list[NumberedStep]:
        """What one part may do in one shared part."""
        moves = self.model.moves(self.slots[slot], self.shareds[shared])
        return [self.numbered(move, slot, shared) for move in moves]

    def outside_steps(self, shared: int, _: int) -> list[NumberedStep]:
        """What may happen without any part."""
        return [self.numbered(move, 0, shared) for move in self.model.outside(self.shareds[shared])]

    def numbered(self, move: Move, slot: int, shared: int) -> NumberedStep:
        """One move in numbers, counted."""
        if move.event:
            self.sometimes[move.event] += 1
        slot_after, shared_after = self.reduced(move)
        stirs = self.model.stirred(self.shareds[shared], shared_after)
        number = slot if slot_after is None else self.slot_id(slot_after)
        return number, self.shared_id(shared_after), stirs, move.calm, self.promise_id(move.broken)

    def promise_id(self, broken: str | None) -> int:
        """The number of a promise, 0 for none."""
        name = broken or ""
        if name not in self.promises:
            self.promises.append(name)
        return self.promises.index(name)

    def reduced(self, move: Move) -> tuple[P | None, S]:
        """Slot and shared part after a move, without what can't matter."""
        shared = self.model.lean_shared(move.shared)
        return (None if move.slot is None else self.model.lean_part(move.slot, shared)), shared

    def look(self, rows: Ints) -> Ints:
        """Each part as it is worth in its shared part, since what it holds may be outdated now."""
        for column in range(1, rows.shape[1]):
            pairs = rows[:, [0, column]]
            numbers, new = self.relooked.add(pairs)
            for shared, slot in pairs[new].tolist():
                self._looked.append(self.looked(shared, slot))
            rows[:, column] = np.frombuffer(self._looked, np.int32)[numbers]
        return rows

    def looked(self, shared: int, slot: int) -> int:
        """One part as it is worth in one shared part."""
        return self.slot_id(self.model.lean_part(self.slots[slot], self.shareds[shared]))

    def over_shareds(self, question: Callable[[S], bool]) -> NDArray[np.bool_]:
        """The answer for each shared part known."""
        return np.fromiter((question(shared) for shared in self.shareds), np.bool_, len(self.shareds))

    def told(self, path: list[list[int]]) -> tuple[Step, ...]:
        """The moves that lead through these worlds, from the first on, each with its part's own name.

        A world doesn't say which of two equal parts is which, so the names are followed from the start.
        """
        ids = list(self.started)
        steps = []
        for before, after in pairwise(path):
            who, move, ids = next(found for found in self.successors(ids, before[0]) if found[3] == after)[:3]
            steps.append(Step(self.names[who] if who >= 0 else "outside", move.label))
        return tuple(steps)

    def successors(self, ids: list[int], shared: int) -> Iterator[tuple[int, Move, list[int], list[int]]]:
        """All moves from a world: the part's place (-1: of none), the move, the parts after it, the world after it."""
        here = self.shareds[shared]
        places = [(at, move) for at, number in enumerate(ids) for move in self.model.moves(self.slots[number], here)]
        places += [(OUTSIDE, move) for move in self.model.outside(here)]
        for at, move in places:
            slot, shared_after = self.reduced(move)
            after = list(ids)
            if slot is not None:
                after[at] = self.slot_id(slot)
            number = self.shared_id(shared_after)
            if self.model.stirred(here, shared_after):
                number, *after = self.look(np.array([[number, *after]], np.int32))[0].tolist()
            yield at, move, after, self.ordered(np.array([[number, *after]], np.int32))[0].tolist()
