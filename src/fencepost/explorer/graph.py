"""The steps between numbered states, and what can be said of all of them at once: who reaches whom, who goes round.

States are numbered in the order in which they were found, so most edges lead to higher numbers. Walking backwards is
therefore done block by block from the highest on, and comes to rest after a few rounds; no edge is ever turned round.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.explorer.known import Ints

Some = NDArray[np.bool_]
"""A set of states: True for each that is in it."""


class Block(NamedTuple):
    """The edges from states ``begin`` to ``end``: source (counted from ``begin``), target, label."""

    begin: int
    end: int
    sources: NDArray[np.uint16]
    targets: Ints
    labels: NDArray[np.int8]


class Graph:
    """Edges, in blocks of at most 65,536 states that follow each other."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def add(self, begin: int, end: int, sources: NDArray[np.int64], targets: Ints, labels: NDArray[np.int8]) -> None:
        """Add the edges from the next states; sources are counted from ``begin``."""
        self.blocks.append(Block(begin, end, sources.astype(np.uint16), targets, labels))

    def reaching(self, goals: Some, within: Some | None = None) -> Some:
        """The states from which a goal can be reached, through states of ``within`` only. Goals do, by no step."""
        reaches = goals.copy()
        may = np.ones(len(goals), np.bool_) if within is None else within
        moved = True
        while moved:
            moved = False
            for block in reversed(self.blocks):
                here, left = reaches[block.begin : block.end], may[block.begin : block.end]
                while not here[left].all():
                    found = block.sources[reaches[block.targets]]
                    found = found[left[found] & ~here[found]]
                    if not len(found):
                        break
                    here[found] = moved = True
        return reaches

    def going_round(self, within: Some, labels: list[int]) -> Some:
        """The states of ``within`` from which one can stay in it for ever, taking each label's steps again and again.

        That is where a schedule that is fair to every label never leaves: the greatest set each of whose states can
        reach, inside of it, a step of each label that stays inside (Emerson and Lei, 1986).
        """
        stays = within.copy()
        while stays.any():
            before = int(stays.sum())
            for label in labels:
                stays = self.reaching(self._begins(label, stays), stays)
            if int(stays.sum()) == before:
                break
        return stays

    def _begins(self, label: int, within: Some) -> Some:
        """The states of ``within`` with a step of this label that stays inside."""
        begins = np.zeros(len(within), np.bool_)
        for block in self.blocks:
            here = within[block.begin : block.end]
            if here.any():
                found = block.sources[(block.labels == label) & within[block.targets]]
                begins[block.begin : block.end][found] = True
        return begins & within
