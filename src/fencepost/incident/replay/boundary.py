"""Where something begins to hold: the first rung of a ladder on which it does, and from there by halves."""

from collections.abc import Callable, Sequence

NEAR = 1.06
"""The last number that holds and the next that doesn't are no further apart than this factor."""


def boundary(holds: Callable[[float], bool], ladder: Sequence[float]) -> float | None:
    """The number nearest to the ladder's beginning that was seen to hold; None: on no rung does it.

    What lies between two rungs is halved, by factors. Where something holds, doesn't, and holds again along the ladder,
    the first boundary is found, and no other.
    """
    bad: float | None = None
    for rung in ladder:
        if not holds(rung):
            bad = rung
            continue
        return rung if bad is None else _between(holds, bad, rung)
    return None


def _between(holds: Callable[[float], bool], bad: float, good: float) -> float:
    while max(good / bad, bad / good) > NEAR:
        middle = (bad * good) ** 0.5
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good
