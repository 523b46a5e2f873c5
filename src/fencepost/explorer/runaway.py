"""Parts that never come to rest: the same situation again and again, each time with higher numbers.

Such a region has no end to explore, so the graph of all its states can't be asked whether it converges, though nothing
is simpler to see. Along one way to a deep state it is looked for: the adversary does nothing more, and from some state
on each state is that of one period before but for its numbers, which have risen by the same amounts each time.

Awkward truth: this is arithmetic on a way already taken, no proof that it goes on. But deciders only compare numbers,
and after ``PERIODS`` equal rounds nothing stands that could end it: what counts to a few (three replacements, then a
person is asked) has counted to them.
"""

import re
from collections.abc import Sequence

DEEP = 256
"""A search looks for it from this depth on, at each doubling of it, and where it is stopped by its bound."""
PERIODS = 8
LONGEST = 200
"""Steps of a period at most."""
DRAWN = re.compile(r"\b[0-9a-f]{12,}\b")
"""Digests: they say nothing of what is greater."""
NUMBER = re.compile(r"\d+")

Figure = tuple[object, str, tuple[int, ...], int]
"""A state: what the adversary may still do, the text without numbers, its numbers, and how many are of what all see."""


def figure(left: object, shared: object, parts: object) -> Figure:
    """A state as shape and numbers."""
    seen, held = DRAWN.sub("@", repr(shared)), DRAWN.sub("@", repr(parts))
    common = len(NUMBER.findall(seen))
    text = f"{seen} {held}"
    return left, NUMBER.sub("#", text), tuple(int(found) for found in NUMBER.findall(text)), common


def rise(before: Figure, after: Figure) -> tuple[int, ...] | None:
    """By how much each number differs; None if anything else does, or a number fell."""
    if before[:2] != after[:2]:
        return None
    found = tuple(new - old for old, new in zip(before[2], after[2], strict=True))
    return found if min(found, default=0) >= 0 else None


def runaway(way: Sequence[Figure]) -> int | None:
    """Where on a way two rounds of what goes on for ever have been made; None if its end is no such thing."""
    last = len(way) - 1
    for period in range(1, min(LONGEST, last // PERIODS) + 1):
        rises = rise(way[last - period], way[last])
        if rises is None or not any(rises[: way[last][3]]):
            continue
        at = last - period
        while at >= period and rise(way[at - period], way[at]) == rises:
            at -= period
        if last - at >= PERIODS * period:
            return at + period
    return None
