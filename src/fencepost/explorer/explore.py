"""Every interleaving of a region's moves, to a bound: breadth first, so the first violation found is a shortest one.

The worlds are rows of integers (:mod:`fencepost.explorer.worlds`), each step of which runs the real deciders once, and
a whole front of them is taken on at a time. After the search the graph itself answers `converges`: from every state
reached, the goal must be reachable by the parts' own steps alone, and no schedule that lets every part go on may keep
them from it for ever. Where the numbers run away there is no last state; :mod:`fencepost.explorer.runaway` sees that.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias

import numpy as np

from fencepost.explorer.factored import FactoredModel, FactoredWorlds
from fencepost.explorer.graph import Graph, Some
from fencepost.explorer.known import Ints, Known
from fencepost.explorer.result import NO_MEMORY, UNASKED, Result, Step
from fencepost.explorer.runaway import DEEP, Figure, figure, runaway
from fencepost.explorer.worlds import OUTSIDE, Worlds
from fencepost.world.model import Model, P, S

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of states and the depth so far."""

AT_ONCE = 1 << 15
MOST = 30_000_000
NUMBERED_MOST = 2_000_000_000
"""States have numbers of 32 bits."""

STUCK = "no step of the parts leads there any more"
ROUND = "the parts may go round for ever without getting there, though each goes on"
ENDLESS = "the parts never come to rest: the same situation comes again and again, each time with higher numbers"
DEPTHS = frozenset(DEEP << doubling for doubling in range(20))
LOOKED_AT = 16
"""So many of the deepest states are looked at for that."""


class Explorer(Generic[P, S]):
    """One exploration. ``progress`` is called after each 32,768 states. ``symmetry=False`` tells equal parts apart.

    ``rounds=False`` asks only whether the goal can be reached from everywhere, and not whether a schedule that lets
    every part go on may keep from it for ever: where each message may always come too late, one always can.
    """

    def __init__(
        self,
        model: Model[P, S] | FactoredModel[P, S],
        *,
        symmetry: bool = True,
        rounds: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self.model = model
        self.rounds = rounds
        self.progress = progress
        self.worlds: Worlds[P, S] = worlds_of(model, symmetry=symmetry)
        self.known = Known(1 + self.worlds.count)
        self.parents: list[Ints] = [np.array([-1], np.int32)]
        self.graph = Graph()
        self.transitions = 0
        self.depth = 0
        self.broken: tuple[int, int, str] | None = None
        self.why = ""
        self.stopped = False

    def run(self, most: int = MOST) -> Result:
        """Explore until about ``most`` states are known. Ctrl-C, or no more memory, ends it with the result so far."""
        began = time.process_time()
        with collector_at_rest():
            return self.walked(most, began)

    def walked(self, most: int, began: float) -> Result:
        """All of it, from ``began`` (CPU seconds) on."""
        finished = self.guarded(lambda: self.search(min(most, NUMBERED_MOST)))
        holds = self.broken is None and finished and self.guarded(self.converges)
        if finished and not holds and self.broken is None:
            self.why = self.why or UNASKED
        verdict, promise = "holds" if holds else "unfinished", ""
        story: tuple[Step, ...] = ()
        if self.broken is not None:
            before, after, promise = self.broken
            verdict, story = "violated", self.told(before, after)
        return Result(
            verdict,
            promise,
            self.known.size,
            self.transitions,
            max(0, self.depth - 1) if finished else self.depth,
            time.process_time() - began,
            story,
            dict(self.worlds.sometimes + self.model.sometimes),
            region=self.model.title(),
            faults=self.model.faults(),
            why=self.why,
            stopped=self.stopped,
        )

    def guarded(self, work: Callable[[], bool]) -> bool:
        """What the work says; False if it was stopped by Ctrl-C, or memory ran out."""
        try:
            return work()
        except KeyboardInterrupt:
            self.stopped = True
        except MemoryError:
            self.known.forget_hashes()
            self.why = NO_MEMORY
        return False

    def search(self, most: int) -> bool:
        """Look at all states, to the bound or to the first violation; whether all were seen."""
        self.known.reserve(most)
        self.known.add(self.worlds.first)
        first = 0
        while self.broken is None and self.known.size <= most:
            end = self.known.size
            if first == end:
                return True
            self.level(first, end, most)
            deepest, first, self.depth = first, end, self.depth + 1
            full = self.known.size > most
            if self.broken is None and (full or self.depth in DEPTHS):
                self.endless(deepest, end)
        return False

    def endless(self, first: int, end: int) -> None:
        """Whether the parts run away on a way to one of the states ``first`` to ``end``, the deepest whole level."""
        for number in sorted({first + (end - 1 - first) * each // (LOOKED_AT - 1) for each in range(LOOKED_AT)}):
            path = self.path(number)
            at = runaway([self.figure(each) for each in path])
            if at is not None:
                self.why, self.broken = ENDLESS, (path[at - 1], path[at], "converges")
                return

    def figure(self, number: int) -> Figure:
        """One state, to be compared with others. Of the adversary's moves each takes something from its budget."""
        shared, *slots = self.known.rows[number].tolist()
        common = self.worlds.shareds[shared]
        parts = [self.worlds.slots[slot].key() for slot in slots]
        return figure(getattr(common, "budget", ()), common, parts)

    def level(self, first: int, end: int, most: int) -> None:
        """Take every step from the states ``first`` to ``end``, the deepest known."""
        at_once = max(64, min(AT_ONCE, most // 8))
        for begin in range(first, end, at_once):
            if self.broken is not None or self.known.size > most:
                return
            if self.progress is not None:
                self.progress(self.known.size, self.depth)
            self.take(begin, min(begin + at_once, end))

    def take(self, begin: int, end: int) -> None:
        """Take every step from some states: new worlds become known, the parts' own steps are kept as edges."""
        steps = self.worlds.expand(self.known.rows[begin:end])
        numbers, new = self.known.add(steps.rows)
        self.transitions += len(numbers)
        self.parents.append((steps.source[new] + begin).astype(np.int32))
        own = steps.label != OUTSIDE
        self.graph.add(begin, end, steps.source[own], numbers[own], steps.label[own])
        wrong = np.flatnonzero(steps.broken)
        if len(wrong):
            at = int(wrong[0])
            promise = self.worlds.promises[int(steps.broken[at])]
            self.broken = (int(steps.source[at]) + begin, int(numbers[at]), promise)

    def converges(self) -> bool:
        """Ask the graph of all states; whether `converges` holds. What only the search needed is let go of first."""
        self.known.forget_hashes()
        shareds = self.known.rows[: self.known.size, 0]
        goal = self.worlds.over_shareds(self.model.converged)[shareds]
        excused = self.worlds.over_shareds(self.model.excused)[shareds]
        readings: tuple[tuple[str, Callable[[], Some]], ...] = (
            (STUCK, lambda: ~self.graph.reaching(goal) & ~excused),
            (ROUND, lambda: self.graph.going_round(~goal & ~excused, sorted(set(self.worlds.kinds)))),
        )
        for why, reading in readings[: 1 + self.rounds]:
            states = reading()
            if states.any():
                number = int(states.argmax())
                self.why, self.broken = why, (self.parent(number), number, "converges")
                return False
        return True

    def told(self, before: int, after: int) -> tuple[Step, ...]:
        """The story of a violation, also where Ctrl-C comes while it is told; () if it is the first state itself."""
        if after == 0 and before < 0:
            return ()
        try:
            return self.story(before, after)
        except KeyboardInterrupt:  # it takes a moment; the next one is heard
            self.stopped = True
            return self.story(before, after)

    def parent(self, number: int) -> int:
        """The state from which this one was first reached; -1 for the first."""
        if len(self.parents) > 1:
            self.parents = [np.concatenate(self.parents)]
        return int(self.parents[0][number])

    def story(self, before: int, after: int) -> tuple[Step, ...]:
        """The way to state ``after`` through ``before``, told move by move."""
        path = [*self.path(before), after]
        return self.worlds.told([self.known.rows[number].tolist() for number in path])

    def path(self, number: int) -> list[int]:
        """The way to a state, from the first on; of none for -1."""
        path = []
        while number >= 0:
            path.append(number)
            number = self.parent(number)
        return path[::-1]


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without Python's search for cycles: a walk keeps all that it makes, by the million, to its end."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def worlds_of(model: Model[P, S] | FactoredModel[P, S], *, symmetry: bool) -> Worlds[P, S]:
    """The worlds of a model, as it is made."""
    if isinstance(model, FactoredModel):
        return FactoredWorlds(model, symmetry=symmetry)
    return Worlds(model, symmetry=symmetry)
