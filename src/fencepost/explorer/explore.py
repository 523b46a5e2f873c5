"""Every interleaving of a region's moves, to a bound: breadth first, so the first violation found is a shortest one.

Slots (a part with all it knows) and shared parts are interned to small integers, a world is one integer made of those,
and the steps of a (slot, shared) pair are worked out once by running the real decider on a copy. Parts of one kind are
interchangeable, so worlds that differ only in who is who are one.

After the search the graph itself answers `converges`: from every state reached, the goal must be reachable by the parts'
own steps alone.
"""

import time
from array import array
from collections.abc import Callable, Iterator

from msgspec import Struct

from fencepost.world.region import Move, Shape, Shared, Slot, adversary, arrivals, converged, moves, start

BITS = 20
MASK = (1 << BITS) - 1


class Step(Struct, frozen=True, gc=False):
    """One line of a story."""

    who: str
    what: str


class Result(Struct, frozen=True, gc=False):
    """What an exploration found. ``verdict`` is "holds", "violated" or "unfinished" (the bound on states was reached)."""

    verdict: str
    promise: str
    states: int
    transitions: int
    depth: int
    cpu_s: float
    story: tuple[Step, ...]
    sometimes: dict[str, int]
    not_covered: tuple[str, ...] = ()


class Explorer:
    """One exploration. ``progress`` is called every 50,000 states with (states, depth)."""

    def __init__(self, shape: Shape, *, symmetry: bool = True, progress: Callable[[int, int], None] | None = None) -> None:
        self.shape = shape
        self.symmetry = symmetry
        self.progress = progress
        self.slots: list[Slot] = []
        self.slot_ids: dict[tuple[object, ...], int] = {}
        self.shareds: list[Shared] = []
        self.shared_ids: dict[Shared, int] = {}
        self.steps: dict[int, tuple[tuple[int, int, str | None, bool], ...]] = {}
        self.outside: dict[int, tuple[tuple[int, str | None], ...]] = {}
        self.sometimes: dict[str, int] = {}
        slots, shared = start(shape)
        self.kinds = tuple((kind, sum(1 for s in slots if type(s.decider) is kind)) for kind in dict.fromkeys(type(s.decider) for s in slots))
        self.first = self.pack([self.slot_id(slot) for slot in slots], self.shared_id(shared))

    def slot_id(self, slot: Slot) -> int:
        """A slot's number."""
        key = slot.key()
        found = self.slot_ids.get(key)
        if found is None:
            found = self.slot_ids[key] = len(self.slots)
            self.slots.append(slot)
        return found

    def shared_id(self, shared: Shared) -> int:
        """A shared part's number."""
        found = self.shared_ids.get(shared)
        if found is None:
            found = self.shared_ids[shared] = len(self.shareds)
            self.shareds.append(shared)
        return found

    def pack(self, ids: list[int], shared: int) -> int:
        """A world as one integer; equal parts are put in order, if symmetry is on."""
        if self.symmetry:
            at = 0
            for _, count in self.kinds:
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

    def slot_steps(self, slot: int, shared: int) -> tuple[tuple[int, int, str | None, bool], ...]:
        """What one part may do in one shared part: (slot after, shared after, promise broken, whether of itself)."""
        found = tuple(
            (self.slot_id(move.slot) if move.slot else slot, self.shared_id(move.shared), move.broken, move.calm)
            for move in moves(self.slots[slot], self.shareds[shared])
        )
        self.steps[shared << BITS | slot] = found
        return found

    def outside_steps(self, shared: int) -> tuple[tuple[int, str | None], ...]:
        """What may happen without any part: (shared after, promise broken)."""
        here = self.shareds[shared]
        found = tuple((self.shared_id(move.shared), move.broken) for move in (*arrivals(here), *adversary(here)))
        self.outside[shared] = found
        return found

    def run(self, most: int = 5_000_000) -> Result:
        """Explore at most ``most`` states. Ctrl-C ends it with the result so far."""
        began = time.process_time()
        order = [self.first]
        seen = {self.first: 0}
        parent = array("l", [-1])
        source, target = array("l"), array("l")
        count = sum(n for _, n in self.kinds)
        shifts = [BITS * (count - 1 - n) for n in range(count)]
        top = BITS * count
        steps, outside, pack = self.steps, self.outside, self.pack
        transitions, level_end, depth = 0, 1, 0
        broken: tuple[int, int, str] | None = None
        at = 0
        try:
            while at < len(order) and broken is None and len(order) < most:
                if at == level_end:
                    depth, level_end = depth + 1, len(order)
                world = order[at]
                shared = world >> top
                for shift in shifts:
                    slot = world >> shift & MASK
                    found = steps.get(shared << BITS | slot)
                    if found is None:
                        found = self.slot_steps(slot, shared)
                    for slot_after, shared_after, wrong, calm in found:
                        ids = [slot_after if s == shift else world >> s & MASK for s in shifts]
                        after = pack(ids, shared_after)
                        transitions += 1
                        number = seen.get(after)
                        if number is None:
                            number = seen[after] = len(order)
                            order.append(after)
                            parent.append(at)
                        if calm:
                            source.append(at)
                            target.append(number)
                        if wrong and broken is None:
                            broken = (at, number, wrong)
                rest = world & ((1 << top) - 1)
                happened = outside.get(shared)
                if happened is None:
                    happened = self.outside_steps(shared)
                for shared_after, wrong in happened:
                    after = shared_after << top | rest
                    transitions += 1
                    number = seen.get(after)
                    if number is None:
                        number = seen[after] = len(order)
                        order.append(after)
                        parent.append(at)
                    if wrong and broken is None:
                        broken = (at, number, wrong)
                at += 1
                if self.progress is not None and at % 50_000 == 0:
                    self.progress(len(order), depth)
        except KeyboardInterrupt:
            pass
        verdict, promise, story = "holds", "", ()
        if broken is not None:
            verdict, promise = "violated", broken[2]
            story = self.story(order, parent, broken[0], broken[1])
        elif at < len(order):
            verdict = "unfinished"
        else:
            stuck = self.stuck(order, source, target, top)
            if stuck is not None:
                verdict, promise = "violated", "converges"
                story = self.story(order, parent, parent[stuck], stuck) if stuck else ()
        return Result(verdict, promise, len(order), transitions, depth, time.process_time() - began, tuple(story), self.sometimes)

    def stuck(self, order: list[int], source: "array[int]", target: "array[int]", top: int) -> int | None:
        """The first state from which the parts' own steps never reach the goal; None if there is none."""
        goal = [converged(shared) for shared in self.shareds]
        size = len(order)
        begins = array("l", bytes(8 * (size + 1)))
        for number in target:
            begins[number + 1] += 1
        for n in range(size):
            begins[n + 1] += begins[n]
        place = array("l", begins)
        backward = array("l", bytes(8 * len(target)))
        for number, origin in zip(target, source, strict=True):
            backward[place[number]] = origin
            place[number] += 1
        reaches = bytearray(size)
        todo = [n for n in range(size) if goal[order[n] >> top]]
        for n in todo:
            reaches[n] = 1
        while todo:
            n = todo.pop()
            for edge in range(begins[n], begins[n + 1]):
                origin = backward[edge]
                if not reaches[origin]:
                    reaches[origin] = 1
                    todo.append(origin)
        found = reaches.find(0)
        return None if found < 0 else found

    def story(self, order: list[int], parent: "array[int]", last: int, end: int) -> tuple[Step, ...]:
        """The way to ``order[end]`` through ``order[last]``, told move by move."""
        path = [end]
        at = last
        while at >= 0:
            path.append(at)
            at = parent[at]
        path.reverse()
        return tuple(self.told(order[a], order[b]) for a, b in zip(path, path[1:], strict=False))

    def told(self, before: int, after: int) -> Step:
        """Which move led from one world to the next."""
        for who, move, world in self.successors(before):
            if world == after:
                return Step(who, move.label)
        raise AssertionError("a step of the story can't be found again")

    def successors(self, world: int) -> Iterator[tuple[str, Move, int]]:
        """All moves from a world, in words."""
        count = sum(n for _, n in self.kinds)
        ids = [world >> BITS * (count - 1 - n) & MASK for n in range(count)]
        shared = world >> BITS * count
        for n, number in enumerate(ids):
            for move in moves(self.slots[number], self.shareds[shared]):
                after = list(ids)
                after[n] = self.slot_id(move.slot) if move.slot else number
                yield self.slots[number].name, move, self.pack(after, self.shared_id(move.shared))
        for move in (*arrivals(self.shareds[shared]), *adversary(self.shareds[shared])):
            yield "outside", move, self.pack(list(ids), self.shared_id(move.shared))
