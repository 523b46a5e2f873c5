"""The hours at which something happened, named above the charts: as many names as fit, in a few lines."""

from collections.abc import Sequence

from msgspec import Struct

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Act, Event, Tick
from fencepost.incident.replay.show.drawing import Frame
from fencepost.incident.replay.show.naming import moments

Taken = tuple[float, float, float]
"""From where to where a name stands, and where its stem goes down."""
LEVELS = 7
"""Lines of names at most; only those that are needed take room."""
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

    Named from the right, so that a name stands above the stems that it reaches over. What was reported in the incident
    itself is what a reader looks for: where not all names fit, those come first.
    """
    acts = {act.name for act in outcome.scenario.acts}
    happened = [each for each in moments(outcome.scenario) if each.name in outcome.happened]
    happened.sort(key=lambda each: -outcome.happened[each.name])
    told = [each for each in happened if each.reported is not None]

    def placed(order: list[Act | Event]) -> list[Mark]:
        taken: list[list[Taken]] = [[] for _ in range(LEVELS)]
        found = []
        for each in order:
            at, name = outcome.happened[each.name], each.name.replace("-", " ")
            level, leftwards = _level(frame.across(at), len(name) * letter + 12, frame, taken)
            found.append(Mark(at, name, each.words, each.name in acts, level, leftwards))
        return found

    found = placed(happened)
    if any(mark.level is None for mark in found):
        found = placed([*told, *(each for each in happened if each.reported is None)])
    return tuple(sorted(found, key=lambda mark: (mark.at, mark.name)))


def tall(found: Sequence[Mark]) -> float:
    """Pixels that the lines of names take."""
    return LEVEL * max((mark.level + 1 for mark in found if mark.level is not None), default=0)


def _level(x: float, width: float, frame: Frame, taken: Sequence[list[Taken]]) -> tuple[int | None, bool]:
    """The lowest free line for a name to the right of its hour, else to its left; no stem crosses a name."""
    for leftwards in (False, True):
        span = (x - width, x) if leftwards else (x, x + width)
        if span[0] < frame.x or span[1] > frame.x + frame.width:
            continue
        for level, spans in enumerate(taken):
            stems = [stem for above in taken[level:] for _, _, stem in above]
            if any(span[0] < right and left < span[1] for left, right, _ in spans):
                continue
            if any(span[0] + 3 < stem < span[1] - 3 for stem in stems):
                continue
            if any(left + 3 < x < right - 3 for below in taken[:level] for left, right, _ in below):
                continue
            spans.append((*span, x))
            return level, leftwards
    return None, False
