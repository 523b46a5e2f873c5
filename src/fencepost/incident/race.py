"""The race of October 2025, found: :func:`as_was` tells it, :func:`guard_table` tries what would have stopped it.

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
        """"holds", "violated" or "unfinished"."""
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
    def sometimes(self) -> Mapping[str, int]:
        """What was seen to happen, in how many situations."""
        ...


class Explore(Protocol):
    """Walks a model."""

    def __call__(self, model: TreeModel, *, symmetry: bool) -> Exploration:
        """Every interleaving, breadth first; ``symmetry`` takes interchangeable enactors for one."""
        ...


class AsWas(Struct, frozen=True):
    """The race as it was: what was found, the story in the incident's words, and what follows (None: nothing broke)."""

    found: Exploration
    title: str
    told: tuple[Line, ...]
    after: Aftermath | None

    @property
    def violated(self) -> bool:
        """Whether the endpoint came to be empty: exit code 1."""
        return self.found.verdict == "violated"


class Tried(Struct, frozen=True):
    """One set of guards under some perturbations: the promise that broke ("" if none) after so many steps."""

    guards: Guards
    perturbations: tuple[Perturbation, ...]
    promise: str
    steps: int
    states: int


class GuardTable(Struct, frozen=True):
    """Every set of guards, each alone with every set of perturbations; ``backward`` says which let a plan fall."""

    title: str
    tried: tuple[Tried, ...]
    backward: tuple[Tried, ...]
    cpu_s: float


PERTURBED: tuple[tuple[Perturbation, ...], ...] = (
    (),
    (Perturbation.SKIP,),
    (Perturbation.ROLLBACK,),
    (Perturbation.SKIP, Perturbation.ROLLBACK),
)
"""What each set of guards is tried under."""


def as_was(explore: Explore, enactors: int = 3, plans: int = 3, endpoints: int = 2, *, symmetry: bool = True) -> AsWas:
    """Find the shortest way to an empty endpoint without any guard, and what follows it.

    Raises ``ValueError`` for more enactors or endpoints than there are names.
    """
    model = TreeModel(enactors, plans, endpoints, watch=(EMPTY,))
    found = explore(model, symmetry=symmetry)
    if found.verdict != "violated" or found.promise != EMPTY:
        return AsWas(found, model.title(), (), None)
    taken, end = retake(model, found.story)
    return AsWas(found, model.title(), tuple(lines(model, taken)), aftermath(model, end))


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
    """Try each of the sixteen sets of guards: alone, with an endpoint skipped, with one rolled back, with both."""
    sizes = (enactors, plans, endpoints)
    tried, backward, cpu_s = [], [], 0.0
    for guards in subsets():
        for perturbations in PERTURBED:
            found = explore(TreeModel(*sizes, guards, perturbations, watch=(EMPTY,)), symmetry=symmetry)
            tried.append(outcome(guards, perturbations, found))
            cpu_s += found.cpu_s
        found = explore(TreeModel(*sizes, guards, PERTURBED[-1], watch=(BACKWARD,)), symmetry=symmetry)
        fell = outcome(guards, PERTURBED[-1], found)
        backward.append(fell if fell.promise == BACKWARD else Tried(guards, PERTURBED[-1], "", 0, found.states))
        cpu_s += found.cpu_s
    return GuardTable(TreeModel(*sizes).title(), tuple(tried), tuple(backward), cpu_s)


def outcome(guards: Guards, perturbations: tuple[Perturbation, ...], found: Exploration) -> Tried:
    """One exploration as a cell of the table. Raises ``ValueError`` if it wasn't finished."""
    if found.verdict == "unfinished":
        raise ValueError(f"stopped after {found.states:,} situations: not enough to call a set of guards safe")
    return Tried(guards, perturbations, found.promise, len(found.story), found.states)


def subsets() -> Iterator[Guards]:
    """Every set of guards, the smaller first."""
    for size in range(len(Guard) + 1):
        for chosen in combinations(Guard, size):
            yield frozenset(chosen)


def needed(table: GuardTable, perturbations: tuple[Perturbation, ...]) -> list[Guards]:
    """The smallest sets of guards under which nothing breaks: those without a safe set inside them."""
    safe = [each.guards for each in table.tried if each.perturbations == perturbations and not each.promise]
    return [guards for guards in safe if not any(other < guards for other in safe)]


def tell(found: AsWas) -> str:
    """The race for people, at most 100 columns wide."""
    result, cpu = found.found, f"{found.found.cpu_s:.1f} s CPU"
    if not found.violated:
        head = "HOLDS" if result.verdict == "holds" else "UNFINISHED, nothing broken so far"
        return f"{head} · {result.states:,} states · {found.title} · {cpu}\nToo small for the race.\n{NEXT}"
    head = f"VIOLATED {result.promise} · shortest way, {len(found.told)} steps · {found.title} · {cpu}"
    return "\n".join([head, *layout(found.told), *told_after(found.after), NEXT])


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
    heads = ("", "CONDITIONAL", "TARGET", "CLEAN-UP", "ROLLBACK", "", "AN ENDPOINT", "ONE IS", "", "GOES")
    under = ("", "WRITE", "EXISTS", "SPARES", "TOLERATES", "ALONE", "IS SKIPPED", "ROLLED BACK", "BOTH", "BACKWARD")
    rows = [heads, under]
    for at, fell in enumerate(table.backward):
        cells = table.tried[at * len(PERTURBED) : (at + 1) * len(PERTURBED)]
        marks = ["yes" if guard in fell.guards else "-" for guard in Guard]
        rows.append(("", *marks, *(cell(each) for each in cells), f"at {fell.steps}" if fell.promise else "never"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    laid = ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"GUARDS on plan trees · {table.title} · {table.cpu_s:.1f} s CPU", *laid, *conclusions(table)])


def cell(tried: Tried) -> str:
    """What broke, and at which step."""
    if not tried.promise:
        return "safe"
    return f"{'empty' if tried.promise == EMPTY else 'stuck'} at {tried.steps}"


def conclusions(table: GuardTable) -> list[str]:
    """The smallest safe sets, in words."""
    said = []
    for words, perturbations in zip(("Alone", "With a skip", "With a rollback", "With both"), PERTURBED, strict=True):
        sets = [" + ".join(guard.value for guard in Guard if guard in each) for each in needed(table, perturbations)]
        said.append(f"{words:16} enough: {', or '.join(sets) or 'nothing'}")
    return said


def document(found: AsWas) -> dict[str, Any]:
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
    for at, fell in enumerate(table.backward):
        cells = table.tried[at * len(PERTURBED) : (at + 1) * len(PERTURBED)]
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
        "sets": sets,
        "not_covered": list(NOT_COVERED),
    }
