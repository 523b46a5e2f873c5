"""A failing walk made small: the fewest kinds of upset, then the fewest upsets, that still break the same promise.

Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002) over the
schedule, which is explicit data. Each try is a whole walk of the same seed; with other upsets its latencies fall
otherwise, so what is left is a schedule that breaks the promise, not a proof that nothing smaller does.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from fencepost.simulator.scenarios import Scenario
from fencepost.simulator.schedule import Upset
from fencepost.simulator.simulate import walk

TRIES = 200
"""Walks spent at most."""


Shrinking = Callable[[int, int], None]
"""Called after each try with how many were made, and how many upsets were asked about in this one."""


class Shrunk(Struct, frozen=True):
    """The smallest schedule found; why none smaller was looked for ("" if all were tried that are)."""

    upsets: tuple[Upset, ...]
    cut_short: str = ""


def shrink(
    seed: int,
    scenario: Scenario,
    promise: str,
    upsets: Sequence[Upset],
    most: int = TRIES,
    progress: Shrinking | None = None,
) -> Shrunk:
    """The smallest schedule found that breaks ``promise`` in this seed's walk. Ctrl-C ends the search."""
    tried, ended = 0, ""

    def breaks(chosen: Sequence[Upset]) -> bool:
        nonlocal tried, ended
        if not ended and tried >= most:
            ended = f"after {most} tries"
        if ended:
            return False
        try:
            broke = walk(seed, scenario, tuple(chosen)).promise == promise
            tried += 1
            if progress is not None:
                progress(tried, len(chosen))
        except KeyboardInterrupt:  # what has been found so far is worth telling
            ended = "by Ctrl-C"
            return False
        return broke

    found = fewer(fewer_kinds(tuple(upsets), breaks), breaks)
    return Shrunk(found, ended)


def fewer_kinds(upsets: tuple[Upset, ...], breaks: Callable[[Sequence[Upset]], bool]) -> tuple[Upset, ...]:
    """Without every kind that isn't needed."""
    for kind in sorted({upset.kind for upset in upsets}):
        without = tuple(upset for upset in upsets if upset.kind != kind)
        if len(without) < len(upsets) and breaks(without):
            upsets = without
    return upsets


def fewer(upsets: tuple[Upset, ...], breaks: Callable[[Sequence[Upset]], bool]) -> tuple[Upset, ...]:
    """Without every part of the list that isn't needed: halves, then quarters, down to single ones."""
    parts = 2
    while len(upsets) >= 1:
        size = max(1, -(-len(upsets) // parts))
        for start in range(0, len(upsets), size):
            without = upsets[:start] + upsets[start + size :]
            if breaks(without):
                upsets, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(upsets))
    return upsets
