"""The hours at which something happened, named above the charts: as many names as fit, in a few lines."""

from collections.abc import Sequence

from msgspec import Struct

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.drawing import Frame
from fencepost.incident.replay.show.naming import moments

LEVELS = 5
LEVEL = 15.0
"""Pixels from one line of names to the next."""


class Mark(Struct, frozen=True, gc=False):
    """Something that happened: ``act`` if people did it. ``level`` 0 is the lowest line; None: its name didn't fit."""

    at: Tick
    name: str
    words: str
    act: bool
    level: int | None
    leftwards: bool = False


def marks(outcome: Outcome, frame: Frame, letter: float) -> tuple[Mark, ...]:
    """What happened in a run, in order of time; ``letter`` is how wide one is, in pixels.

    What was reported in the incident itself is named first, since it is what a reader looks for.
    """
    acts = {act.name for act in outcome.scenario.acts}
    happened = [each for each in moments(outcome.scenario) if each.name in outcome.happened]
    happened.sort(key=lambda each: (each.reported is None, outcome.happened[each.name]))
    taken: list[list[tuple[float, float]]] = [[] for _ in range(LEVELS)]
    found = []
    for each in happened:
        at, name = outcome.happened[each.name], each.name.replace("-", " ")
        level, leftwards = _level(frame.across(at), len(name) * letter + 12, frame, taken)
        found.append(Mark(at, name, each.words, each.name in acts, level, leftwards))
    return tuple(sorted(found, key=lambda mark: (mark.at, mark.name)))


def _level(x: float, width: float, frame: Frame, taken: Sequence[list[tuple[float, float]]]) -> tuple[int | None, bool]:
    """The lowest free line for a name to the right of its hour, else to its left; no name crosses another's stem."""
    for leftwards in (False, True):
        span = (x - width, x) if leftwards else (x, x + width)
        if span[0] < frame.x or span[1] > frame.x + frame.width:
            continue
        for level, spans in enumerate(taken):
            stems = [left for above in taken[level:] for left, _ in above]
            if any(span[0] < right and left < span[1] for left, right in spans):
                continue
            if any(span[0] + 3 < stem < span[1] for stem in stems):
                continue
            spans.append(span if not leftwards else (span[0], span[1]))
            return level, leftwards
    return None, False
