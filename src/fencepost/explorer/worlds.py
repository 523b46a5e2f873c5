"""Worlds as integers: slots and shared parts are interned, and the steps of a pair are worked out once.

A world is one integer made of the number of its shared part and, below it, of each slot's number. Parts of one kind are
interchangeable, so with symmetry on, worlds that differ only in who is who are one.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any, Generic

from fencepost.explorer.result import Step
from fencepost.world.model import Model, Move, P, S

BITS = 14  # three parts and 16,384 shared parts make 56 bits: a Python integer of two digits, the smallest there is
MASK = (1 << BITS) - 1

Steps = tuple[Any, ...]
"""What a part may do, five values a step: slot after (int), shared part after (int), whether to look at the others
again (bool), calm (bool), promise broken (str or None). Flat: a tuple a step would take three times the memory."""


class Worlds(Generic[P, S]):
    """The worlds of one model, and the steps between them. ``sometimes``: in how many situations things happened."""

    def __init__(self, model: Model[P, S], *, symmetry: bool = True) -> None:
        self.symmetry = symmetry
        self.model = model
        self.sometimes: Counter[str] = Counter()
        self.slots: list[P] = []
        self.slot_ids: dict[tuple[object, ...], int] = {}
        self.shareds: list[S] = []
        self.shared_ids: dict[S, int] = {}
        self.steps: dict[int, Steps] = {}
        self.outside: dict[int, Steps] = {}
        self.relooked: dict[int, int] = {}
        slots, shared = model.start()
        self.count = len(slots)
        kinds = groupby(slots, model.kind)
        self.groups = tuple(len(list(same)) for _, same in kinds)
        self.sorts = symmetry and max(self.groups) > 1
        self.shifts = tuple(BITS * (self.count - 1 - n) for n in range(self.count))
        self.top = BITS * self.count
        shared = self.model.lean_shared(shared)
        self.names = [slot.name for slot in slots]
        self.started = [self.slot_id(self.model.lean_part(slot, shared)) for slot in slots]
        self.first = self.pack(list(self.started), self.shared_id(shared))

    def slot_id(self, slot: P) -> int:
        """A slot's number."""
        key = slot.key()
        found = self.slot_ids.get(key)
        if found is None:
            found = self.slot_ids[key] = len(self.slots)
            self.slots.append(slot)
            if found > MASK:
                raise OverflowError(f"more than {MASK + 1:,} situations of one part: too big a shape to explore")
        return found

    def shared_id(self, shared: S) -> int:
        """A shared part's number."""
        found = self.shared_ids.get(shared)
        if found is None:
            found = self.shared_ids[shared] = len(self.shareds)
            self.shareds.append(shared)
        return found

    def pack(self, ids: list[int], shared: int) -> int:
        """A world as one integer; equal parts are put in order (in place), if symmetry is on."""
        if self.sorts:
            at = 0
            for count in self.groups:
                if count == 2:
                    if ids[at] > ids[at + 1]:
                        ids[at], ids[at + 1] = ids[at + 1], ids[at]
                elif count > 2:
                    ids[at : at + count] = sorted(ids[at : at + count])
                at += count
        world = shared
        for number in ids:
            world = world << BITS | number
        return world

    def relook(self, ids: list[int], shared: int) -> int:
        """The world with every part looked at again, since what it holds may be outdated now."""
        self.look(ids, shared)
        return self.pack(ids, shared)

    def look(self, ids: list[int], shared: int) -> None:
        """Each part as it is worth in this shared part, in place."""
        for at, slot in enumerate(ids):
            found = self.relooked.get(shared << BITS | slot)
            if found is None:
                found = self.slot_id(self.model.lean_part(self.slots[slot], self.shareds[shared]))
                self.relooked[shared << BITS | slot] = found
            ids[at] = found

    def slot_steps(self, slot: int, shared: int) -> Steps:
        """What one part may do in one shared part."""
        here = self.shareds[shared]
        found = tuple(
            value for move in self.model.moves(self.slots[slot], here) for value in self.numbered(move, slot, shared)
        )
        self.steps[shared << BITS | slot] = found
        return found

    def outside_steps(self, shared: int) -> Steps:
        """What may happen without any part."""
        here = self.shareds[shared]
        found = tuple(value for move in self.model.outside(here) for value in self.numbered(move, 0, shared))
        self.outside[shared] = found
        return found

    def numbered(self, move: Move, slot: int, shared: int) -> tuple[int, int, bool, bool, str | None]:
        """One move in numbers, counted."""
        if move.event:
            self.sometimes[move.event] += 1
        slot_after, shared_after = self.reduced(move)
        stirs = self.model.stirred(self.shareds[shared], shared_after)
        number = slot if slot_after is None else self.slot_id(slot_after)
        return number, self.shared_id(shared_after), stirs, move.calm, move.broken

    def reduced(self, move: Move) -> tuple[P | None, S]:
        """Slot and shared part after a move, without what can't matter."""
        shared = self.model.lean_shared(move.shared)
        return (None if move.slot is None else self.model.lean_part(move.slot, shared)), shared

    def told(self, path: list[int]) -> tuple[Step, ...]:
        """The moves that lead through these worlds, from the first on, each with its part's own name.

        A world doesn't say which of two equal parts is which, so the names are followed from the start.
        """
        ids = list(self.started)
        steps = []
        for before, after in pairwise(path):
            who, move, ids = next(found for found in self.successors(ids, before >> self.top) if found[3] == after)[:3]
            steps.append(Step(self.names[who] if who >= 0 else "outside", move.label))
        return tuple(steps)

    def successors(self, ids: list[int], shared: int) -> Iterator[tuple[int, Move, list[int], int]]:
        """All moves from a world: the part's place (-1: of none), the move, the parts after it, the world after it."""
        here = self.shareds[shared]
        places = [(at, move) for at, number in enumerate(ids) for move in self.model.moves(self.slots[number], here)]
        places += [(-1, move) for move in self.model.outside(here)]
        for at, move in places:
            slot, shared_after = self.reduced(move)
            after = list(ids)
            if slot is not None:
                after[at] = self.slot_id(slot)
            number = self.shared_id(shared_after)
            if self.model.stirred(here, shared_after):
                self.look(after, number)
            yield at, move, after, self.pack(list(after), number)
