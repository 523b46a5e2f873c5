"""Every interleaving of a region's moves, to a bound: breadth first, so the first violation found is a shortest one.

The worlds are integers (:mod:`fencepost.explorer.worlds`), each step of which runs the real deciders once. After the
search the graph itself answers `converges`: from every state reached, the goal must be reachable by the parts' own
steps alone.
"""

import time
from array import array
from collections.abc import Callable
from typing import Generic, TypeAlias

from fencepost.explorer.reach import reaching
from fencepost.explorer.result import Result, Step
from fencepost.explorer.worlds import BITS, MASK, Worlds
from fencepost.world.model import Model, P, S

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of states and the depth so far."""

PROGRESS_EACH = 50_000
MOST = 5_000_000


class Explorer(Generic[P, S]):
    """One exploration. ``progress`` is called each 50,000 states.

    ``symmetry=False`` tells equal parts apart.
    """

    def __init__(self, model: Model[P, S], *, symmetry: bool = True, progress: Progress | None = None) -> None:
        self.model = model
        self.progress = progress
        self.worlds = Worlds(model, symmetry=symmetry)
        self.seen = {self.worlds.first: 0}
        self.parent = array("i", [-1])
        self.begins = array("I")
        self.targets = array("I")
        self.transitions = 0
        self.depth = 0
        self.broken: tuple[int, int, str] | None = None

    def run(self, most: int = MOST) -> Result:
        """Explore until about ``most`` states are known. Ctrl-C ends it with the result so far."""
        began = time.process_time()
        frontier = [self.worlds.first]
        try:
            while frontier and self.broken is None and len(self.seen) < most:
                frontier = self.level(frontier, most)
                self.depth += 1
        except KeyboardInterrupt:
            frontier = [self.worlds.first]
        self.begins.append(len(self.targets))
        states = len(self.seen)
        verdict, promise, story = self.verdict(finished=not frontier)
        sometimes = dict(self.worlds.sometimes + self.model.sometimes)
        spent = time.process_time() - began
        return Result(
            verdict,
            promise,
            states,
            self.transitions,
            max(0, self.depth - 1),
            spent,
            story,
            sometimes,
            region=self.model.title(),
            faults=self.model.faults(),
        )

    def level(self, frontier: list[int], most: int) -> list[int]:
        """Take every step from the worlds of ``frontier``, the deepest known; the new worlds. Ends at ``most``."""
        worlds, seen, parent, begins, targets = self.worlds, self.seen, self.parent, self.begins, self.targets
        reached: list[int] = []
        steps, outside, pack, relook = worlds.steps, worlds.outside, worlds.pack, worlds.relook
        shifts, top, transitions = worlds.shifts, worlds.top, 0
        for at, world in enumerate(frontier, len(begins)):
            if self.broken is not None or len(seen) >= most:
                break
            if at % PROGRESS_EACH == 0 and self.progress is not None:
                self.progress(len(seen), self.depth)
            begins.append(len(targets))
            shared = world >> top
            ids = [world >> shift & MASK for shift in shifts]
            for place in range(-1, len(ids)):
                if place < 0:
                    found = outside.get(shared)
                    if found is None:
                        found = worlds.outside_steps(shared)
                else:
                    found = steps.get(shared << BITS | ids[place])
                    if found is None:
                        found = worlds.slot_steps(ids[place], shared)
                each = iter(found)
                for slot, shared_after, stirs, calm, wrong in zip(each, each, each, each, each, strict=False):
                    after_ids = ids.copy()
                    if place >= 0:
                        after_ids[place] = slot
                    after = relook(after_ids, shared_after) if stirs else pack(after_ids, shared_after)
                    transitions += 1
                    number = seen.get(after)
                    if number is None:
                        number = seen[after] = len(seen)
                        reached.append(after)
                        parent.append(at)
                    if calm and place >= 0:
                        targets.append(number)
                    if wrong and self.broken is None:
                        self.broken = (at, number, wrong)
        self.transitions += transitions
        return reached if self.broken is None and len(seen) < most else frontier

    def verdict(self, *, finished: bool) -> tuple[str, str, tuple[Step, ...]]:
        """Verdict, broken promise and story. What only the search needed is let go of first."""
        order = list(self.seen)
        for spent in (self.seen, self.worlds.steps, self.worlds.outside):
            spent.clear()
        if self.broken is not None:
            before, after, promise = self.broken
            return "violated", promise, self.story(order, before, after)
        if not finished:
            return "unfinished", "", ()
        goal = [self.model.converged(shared) for shared in self.worlds.shareds]
        top = self.worlds.top
        goals = [number for number, world in enumerate(order) if goal[world >> top]]
        reaches = reaching(len(order), self.begins, self.targets, goals)
        for number, reached in enumerate(reaches):
            if not reached and not self.model.excused(self.worlds.shareds[order[number] >> top]):
                return "violated", "converges", self.story(order, self.parent[number], number) if number else ()
        return "holds", "", ()

    def story(self, order: list[int], before: int, after: int) -> tuple[Step, ...]:
        """The way to state ``after`` through ``before``, told move by move; ``order`` is every state's world."""
        path = [after]
        at = before
        while at >= 0:
            path.append(at)
            at = self.parent[at]
        path.reverse()
        return self.worlds.told([order[number] for number in path])
