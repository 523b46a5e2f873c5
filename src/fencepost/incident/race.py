"""The race of October 2025, found: :func:`find_race` tells it, :func:`guard_table` tries what would have stopped it.

Both are given an explorer, since nothing here may import one: any callable that walks a model. With the explorer of
this project that is::

    def explore(model: TreeModel, *, symmetry: bool) -> Exploration:
        return Explorer(model, symmetry=symmetry).run()

:func:`count` counts every situation, broken ones and what follows them included; Spin gives the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

from msgspec import Struct

from fencepost.incident.story import Line, Step, layout, lines, retake
from fencepost.incident.stuck import Aftermath, aftermath
from fencepost.incident.tree import GUARD_MEANING, Guard, Guards
from fencepost.incident.tree_model import BACKWARD, EMPTY, PERTURBATION_MEANING, Perturbation, TreeModel

NOT_COVERED = (
    "more than one planner, crashes, lost answers: the race needs none of them",
    "load balancers below a plan, and caches above it",
    "real lengths of time: a step may come at any time after another",
)
"""What no exploration here says anything about."""

NEXT = "The deciders that ship, same bounds: fencepost explore.   Which guard is enough: explore --guards"


class Exploration(Protocol):
    """What an explorer found: see ``fencepost.explorer.result.Result``, which is one."""

    @property
    def verdict(self) -> str:
        """ "holds", "violated" or "unfinished"."""
        ...

    @property
    def promise(self) -> str:
        """The broken promise, or nothing."""
        ...

    @property
    def states(self) -> int:
        """How many situations were seen."""
        ...

    @property
    def transitions(self) -> int:
        """How many steps were tried."""
        ...

    @property
    def depth(self) -> int:
        """The longest of the shortest ways to a situation."""
        ...

    @property
    def cpu_s(self) -> float:
        """Seconds."""
        ...

    @property
    def story(self) -> Sequence[Step]:
        """A shortest way to the violation."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether a person has stopped it."""
        ...

    @property
    def sometimes(self) -> Mapping[str, int]:
        """What was seen to happen, in how many situations."""
        ...


class Explore(Protocol):
    """Walks a model."""

    def __call__(self, model: TreeModel, *, symmetry: bool) -> Exploration:
        """Every interleaving, breadth first; ``symmetry`` takes interchangeable enactors for one."""
        ...


class Race(Struct, frozen=True):
    """The race as it was: what was found, the story in the incident's words, and what follows (None: nothing broke).

    ``stopped``: Ctrl-C came while it was asked what follows, so that is not known.
    """

    found: Exploration
    title: str
    told: tuple[Line, ...]
    after: Aftermath | None
    stopped: bool = False

    @property
    def violated(self) -> bool:
        """Whether the endpoint came to be empty: exit code 1."""
        return self.found.verdict == "violated"


class Tried(Struct, frozen=True):
    """One set of guards under some perturbations: the promise that broke ("" if none) after so many steps.

    ``after`` is what follows where an endpoint came to be empty.
    """

    guards: Guards
    perturbations: tuple[Perturbation, ...]
    promise: str
    steps: int
    states: int
    after: Aftermath | None = None


class GuardTable(Struct, frozen=True):
    """Every set of guards, each alone with every set of perturbations; ``backward`` says which let a plan fall.

    ``finished`` is False if an exploration was stopped or reached its bound: then the sets from there on are missing.
    ``stopped`` says that it was Ctrl-C.
    """

    title: str
    tried: tuple[Tried, ...]
    backward: tuple[Tried, ...]
    cpu_s: float
    finished: bool = True
    stopped: bool = False


PERTURBED: tuple[tuple[Perturbation, ...], ...] = (
    (),
    (Perturbation.SKIP,),
    (Perturbation.ROLLBACK,),
    (Perturbation.SKIP, Perturbation.ROLLBACK),
)
"""What each set of guards is tried under."""


def find_race(
    explore: Explore, enactors: int = 3, plans: int = 3, endpoints: int = 2, *, symmetry: bool = True
) -> Race:
    """Find the shortest way to an empty endpoint without any guard, and what follows it.

    Raises ``ValueError`` for a size out of range.
    """
    model = TreeModel(enactors, plans, endpoints, watch=(EMPTY,))
    found = explore(model, symmetry=symmetry)
    if found.verdict != "violated" or found.promise != EMPTY:
        return Race(found, model.title(), (), None)
    taken, end = retake(model, found.story)
    told = tuple(lines(model, taken))
    try:
        return Race(found, model.title(), told, aftermath(model, end))
    except KeyboardInterrupt:
        return Race(found, model.title(), told, None, stopped=True)


def count(
    explore: Explore,
    enactors: int = 3,
    plans: int = 3,
    endpoints: int = 2,
    guards: Guards = frozenset(),
    *,
    symmetry: bool = False,
) -> Exploration:
    """Every situation there is, whatever is broken in it."""
    return explore(TreeModel(enactors, plans, endpoints, guards, watch=()), symmetry=symmetry)


def guard_table(
    explore: Explore, enactors: int = 3, plans: int = 3, endpoints: int = 2, *, symmetry: bool = True
) -> GuardTable:
    """Try each of the sixteen sets of guards: alone, with an endpoint skipped, with one rolled back, with both.

    Ends at the first exploration that is stopped. Raises ``ValueError`` for a size out of range.
    """
    title = TreeModel(enactors, plans, endpoints).title()
    sizes = (enactors, plans, endpoints)
    tried: list[Tried] = []
    backward: list[Tried] = []
    cpu_s = 0.0
    for guards in subsets():
        models = [TreeModel(*sizes, guards, perturbations, watch=(EMPTY,)) for perturbations in PERTURBED]
        models.append(TreeModel(*sizes, guards, PERTURBED[-1], watch=(BACKWARD,)))
        found = []
        try:
            for model in models:
                found.append(explore(model, symmetry=symmetry))
                cpu_s += found[-1].cpu_s
                if found[-1].verdict == "unfinished" or found[-1].stopped:
                    stopped = found[-1].stopped
                    return GuardTable(title, tuple(tried), tuple(backward), cpu_s, finished=False, stopped=stopped)
            cells = [outcome(model, each) for model, each in zip(models, found, strict=True)]
        except KeyboardInterrupt:
            return GuardTable(title, tuple(tried), tuple(backward), cpu_s, finished=False, stopped=True)
        tried += cells[:-1]
        fell = cells[-1]
        backward.append(fell if fell.promise == BACKWARD else Tried(guards, PERTURBED[-1], "", 0, fell.states))
    return GuardTable(title, tuple(tried), tuple(backward), cpu_s)


def outcome(model: TreeModel, found: Exploration) -> Tried:
    """One exploration as a cell of the table."""
    after = aftermath(model, retake(model, found.story)[1]) if found.promise == EMPTY else None
    return Tried(model.guards, model.perturbations, found.promise, len(found.story), found.states, after)


def subsets() -> Iterator[Guards]:
    """Every set of guards, the smaller first."""
    for size in range(len(Guard) + 1):
        for chosen in combinations(Guard, size):
            yield frozenset(chosen)


def needed(table: GuardTable, perturbations: tuple[Perturbation, ...], *, backward: bool = False) -> list[Guards]:
    """The smallest sets of guards under which no endpoint is ever empty or stuck: those without a safe set inside them.

    ``backward`` asks besides that no enactor ever turns an endpoint to an older plan.
    """
    fallen = [each.guards for each in table.backward if each.promise] if backward else []
    safe = [each.guards for each in table.tried if each.perturbations == perturbations and not each.promise]
    safe = [guards for guards in safe if guards not in fallen]
    return [guards for guards in safe if not any(other < guards for other in safe)]


def tell(found: Race) -> str:
    """The race for people, at most 100 columns wide."""
    result, cpu = found.found, f"{found.found.cpu_s:.1f} s CPU"
    if not found.violated:
        holds = result.verdict == "holds"
        head = "HOLDS" if holds else "UNFINISHED, nothing broken so far"
        said = "Too small for the race." if holds else "Then it was stopped: the rest is unknown."
        return f"{head} · {result.states:,} states · {found.title} · {cpu}\n{said}\n{NEXT}"
    head = f"VIOLATED {result.promise} · shortest way, {len(found.told)} steps · {found.title} · {cpu}"
    cut = ["What follows was not asked to the end: it was stopped."] if found.stopped else []
    return "\n".join([head, *layout(found.told), *told_after(found.after), *cut, NEXT])


def told_after(after: Aftermath | None) -> list[str]:
    """What follows the race, in words."""
    if after is None:
        return []
    if not after.stuck:
        return [f"Left to itself it is mended in {after.mended:,} of the {after.situations:,} situations that follow."]
    gone = " and ".join(f"plan {plan}" for plan in after.missing)
    if not after.failing or after.endless:
        return [f"Nothing mends it: {gone} is gone in each of the {after.situations:,} situations that follow."]
    names = [name.removeprefix("enactor ") for name in after.failing]
    listed = f"{', '.join(names[:-1])} and {names[-1]} fail" if len(names) > 1 else f"{names[0]} fails"
    return [
        f"Then it can't get up: each change must first save what was live before ({gone}), and that is gone.",
        f"Enactor{'s' * (len(names) > 1)} {listed} at that step for ever; only a person can write this record now.",
    ]


def tell_guards(table: GuardTable) -> str:
    """The table for people, at most 100 columns wide."""
    rows: list[tuple[str, ...]] = [
        ("WRITE", "TARGET", "CLEAN-UP", "RECORD", "ALONE", "A SKIP", "A ROLLBACK", "BOTH", "THEN", "BACKWARD")
    ]
    for fell, cells in zip(table.backward, batches(table), strict=True):
        marks = ["yes" if guard in fell.guards else "-" for guard in Guard]
        after = cells[-1].after
        then = "-" if after is None else "stuck" if after.stuck else "mends"
        rows.append((*marks, *(cell(each) for each in cells), then, f"at {fell.steps}" if fell.promise else "never"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    laid = ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    meanings = [
        f"  {name:9} {guard.value}: {GUARD_MEANING[guard]}" for name, guard in zip(rows[0], Guard, strict=False)
    ]
    head = f"GUARDS on plan trees, and what breaks at which step · {table.title} · {table.cpu_s:.1f} s CPU"
    return "\n".join([head, *laid, *meanings, *conclusions(table)])


def batches(table: GuardTable) -> Iterator[Sequence[Tried]]:
    """The cells of each set of guards."""
    for at in range(0, len(table.tried), len(PERTURBED)):
        yield table.tried[at : at + len(PERTURBED)]


def cell(tried: Tried) -> str:
    """What broke, and at which step."""
    if not tried.promise:
        return "safe"
    return f"{'empty' if tried.promise == EMPTY else 'stuck'} at {tried.steps}"


def conclusions(table: GuardTable) -> list[str]:
    """The smallest safe sets, in words; none is called safe before all were tried."""
    if not table.finished:
        return [f"Stopped after {len(table.backward)} of {2 ** len(Guard)} sets: the rest is unknown."]
    cases = [
        ("alone", PERTURBED[0], False),
        ("with a skip", PERTURBED[1], False),
        ("with a rollback", PERTURBED[2], False),
        ("with both", PERTURBED[3], False),
        ("nor backward", PERTURBED[3], True),
    ]
    said = ["The smallest sets under which no endpoint is ever empty or stuck:"]
    for words, perturbations, backward in cases:
        sets = needed(table, perturbations, backward=backward)
        listed = [" + ".join(guard.value for guard in Guard if guard in each) or "none at all" for each in sets]
        said.append(f"  {words:16} {', or '.join(listed) or 'there is none'}")
    return said


def document(found: Race) -> dict[str, Any]:
    """The race as plain JSON values, with the keys of every exploration and ``stuck`` besides."""
    result, after = found.found, found.after
    stuck = None
    if after is not None:
        stuck = {
            "stuck": after.stuck,
            "endpoints": list(after.empty),
            "missing": list(after.missing),
            "situations": after.situations,
            "mended": after.mended,
            "ends": after.ends,
            "failing": list(after.failing),
        }
    return {
        "verdict": result.verdict,
        "promise": result.promise or None,
        "region": found.title,
        "faults": [],
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "cpu_s": round(result.cpu_s, 3),
        "story": [{"who": who, "what": what} for who, what in found.told],
        "sometimes": dict(sorted(result.sometimes.items())),
        "not_covered": list(NOT_COVERED),
        "stuck": stuck,
    }


def guards_document(table: GuardTable) -> dict[str, Any]:
    """The table as plain JSON values: one element of ``sets`` for each set of guards."""
    sets = []
    for fell, cells in zip(table.backward, batches(table), strict=True):
        sets.append(
            {
                "guards": [guard.value for guard in Guard if guard in fell.guards],
                "safe": not any(each.promise for each in cells),
                "tried": [
                    {
                        "perturbations": [perturbation.value for perturbation in each.perturbations],
                        "promise": each.promise or None,
                        "steps": each.steps or None,
                        "states": each.states,
                        "stuck": each.after.stuck if each.after is not None else None,
                    }
                    for each in cells
                ],
                "backward_at": fell.steps if fell.promise else None,
            }
        )
    return {
        "region": table.title,
        "cpu_s": round(table.cpu_s, 3),
        "guards": {guard.value: meaning for guard, meaning in GUARD_MEANING.items()},
        "perturbations": {each.value: meaning for each, meaning in PERTURBATION_MEANING.items()},
        "finished": table.finished,
        "sets": sets,
        "not_covered": list(NOT_COVERED),
    }
