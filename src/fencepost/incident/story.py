"""The story of a violation in the incident's words, from the labels that the explorer gives back.

An explorer tells a shortest way as pairs of who and what. Taking that way again step by step shows each step with what
stood before it, which is what the words depend on. Of the shortest ways the one told is that in which clean-up comes as
late as it can, because it happened so: steps of different parts that end in the same place are put in that order.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fencepost.incident.enactor import TreeEnactor
from fencepost.incident.messages import DeletePlan
from fencepost.incident.tree_model import Situation, TreeModel, TreePart, TreeShared
from fencepost.world.model import Move

OUTSIDE = "outside"
WHO_WIDTH = 9
LEFT_WIDTH, SECOND_AT, HERE_AT, WIDTH = 46, 48, 87, 100
"""Columns: two short steps share a line if the first ends by LEFT_WIDTH and the second by WIDTH."""
CLEANING = ("found old plans", "deleted")


class Step(Protocol):
    """One step of an explorer's story."""

    @property
    def who(self) -> str:
        """The part's name, or "outside"."""
        ...

    @property
    def what(self) -> str:
        """The move's label."""
        ...


class Taken(NamedTuple):
    """One step, with the part that took it before and after (None: nobody's) and what was shared before."""

    who: str
    move: Move
    part: TreePart | None
    before: TreeShared


Line = tuple[str, str]
"""Who, and what in the incident's words."""


def take(model: TreeModel, steps: Sequence[tuple[str, str]]) -> tuple[list[Taken], Situation] | None:
    """Every step taken again from the start, and where that ends; None if one can't be taken there."""
    parts, shared = model.start()
    taken = []
    for who, what in steps:
        place = next((at for at, part in enumerate(parts) if part.name == who), None)
        moves = model.outside(shared) if place is None else model.moves(parts[place], shared)
        move = next((move for move in moves if move.label == what), None)
        if move is None:
            return None
        taken.append(Taken(who, move, None if place is None else parts[place], shared))
        if place is not None and move.slot is not None:
            parts = (*parts[:place], move.slot, *parts[place + 1 :])
        shared = model.lean_shared(move.shared)
    return taken, (parts, shared)


def retake(model: TreeModel, story: Sequence[Step]) -> tuple[list[Taken], Situation]:
    """An explorer's story with clean-up as late as it can be, and where it ends.

    Raises ``ValueError`` if it isn't a story of this model.
    """
    steps = [(step.who, step.what) for step in story]
    found = take(model, steps)
    if found is None:
        raise ValueError("this story can't be taken again from the model's start: it is another model's")
    at = 0
    while at + 1 < len(steps):
        first, second = found[0][at], found[0][at + 1]
        if first.move.event in CLEANING and second.part is not None and second.move.event not in CLEANING:
            swapped = [*steps[:at], steps[at + 1], steps[at], *steps[at + 2 :]]
            other = take(model, swapped) if first.who != second.who else None
            if other is not None and other[1] == found[1]:
                steps, found, at = swapped, other, -1
        at += 1
    return found


def lines(model: TreeModel, taken: Sequence[Taken]) -> list[Line]:
    """Each step in words."""
    picked: dict[str, int] = {}
    told = []
    for number, step in enumerate(taken, 1):
        told.append(words(model, step, picked))
        if step.move.event == "picked":
            picked[step.who] = number
    return told


def words(model: TreeModel, step: Taken, picked: dict[str, int]) -> Line:
    """One step in words; ``picked`` has the step at which each enactor made its check."""
    after, trees = step.move.slot, step.before.tree
    decider = after.decider if after is not None else None
    match step.move.event:
        case "picked" if isinstance(decider, TreeEnactor):
            if picked:
                return step.who, f"picks plan {decider.plan}; its check is true too"
            return step.who, f"picks plan {decider.plan} and checks it, once: newer than what is live? Yes, now."
        case "went backward" | "turned":
            return step.who, turned(step, picked.get(step.who, 0))
        case "found old plans" if isinstance(decider, TreeEnactor):
            return step.who, f"{step.move.label} far older than {decider.plan}"
        case "deleted":
            (plan,) = (call.plan for call in (step.part.pending if step.part else ()) if isinstance(call, DeletePlan))
            lost = [name for name, live in zip(model.names, trees.live, strict=True) if live == plan]
            those = f", and with it the addresses {' and '.join(lost)} point{'s' * (len(lost) == 1)} at" if lost else ""
            return step.who, f"deletes it{those}"
        case "found empty":
            return "a caller", f"{step.move.label}: NOERROR, no addresses"
        case "rolled back":
            return "an operator", f"{step.move.label}, as its rollback record says"
        case "spared":
            return step.who, f"{step.move.label}: it is referred to"
        case _:
            return step.who, step.move.label


def turned(step: Taken, checked: int) -> str:
    """A turn of an alias: late, the last of its pass, or neither."""
    before = step.part.decider if step.part is not None else None
    if isinstance(before, TreeEnactor) and before.plan < max(step.before.tree.live):
        return f"wakes, {step.move.label}. Nothing ties the check of step {checked} to this write."
    done = isinstance(before, TreeEnactor) and len(before.todo) == 1
    return f"{step.move.label}{', and is done' * done}"


def layout(told: Sequence[Line]) -> list[str]:
    """Numbered lines within 100 columns, two short steps on one; the last is marked."""
    width = max([WHO_WIDTH, *(len(who) for who, _ in told)])
    laid: list[str] = []
    pairs = False
    for number, (who, what) in enumerate(told, 1):
        second = f"{number:2}  {who}  {what}"
        last = number == len(told)
        if laid and not pairs and not last and len(laid[-1]) <= LEFT_WIDTH and SECOND_AT + len(second) <= WIDTH:
            laid[-1] = f"{laid[-1]:{SECOND_AT}}{second}"
            pairs = True
        else:
            laid.append(f"{number:3}  {who:{width}}  {what}")
            pairs = False
    if laid:
        laid[-1] = f"{laid[-1]:{HERE_AT - 1}} <- here"
    return laid
