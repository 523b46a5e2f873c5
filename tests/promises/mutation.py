"""Each rule, guard and line taken out or spoilt, one at a time: by which tool it is found, and after how much.

    python tests/promises/mutation.py docs/concepts/mutation.md

writes the table anew (about a quarter of an hour). The explorer walks small regions in a fixed order, the simulator
each scenario's first seed and then drawn seeds; what neither finds within its bound is listed as such.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from mutants import MUTANTS, Patch
from seeded import MISTAKES

from fencepost.explorer.explore import Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.simulator.command import simulate
from fencepost.simulator.scenarios import SCENARIOS
from fencepost.world.faults import FURTHER, NINE, Fault
from fencepost.world.region import Shape

STATES_MOST = 150_000
"""An exploration that needs more than this with a mutant, and less without, is one that numbers run away in."""
SEEDS_MOST = 10
DEFAULT = "swarm"


class Found(NamedTuple):
    """By what it was found, the promise that broke (or the error), and after how much."""

    promise: str
    where: str
    much: str


def shapes() -> Iterator[Shape]:
    """Small regions first: one enactor, then two; a planner, sometimes a janitor; each fault, then pairs."""
    singles: list[tuple[Fault, ...]] = [(), *NINE, *FURTHER]
    pairs = [tuple(dict.fromkeys(one + other)) for one, other in combinations(NINE, 2)]
    for enactors, sets in ((1, singles), (2, singles), (1, pairs)):
        for faults in sets:
            yield from of(enactors, faults)


def of(enactors: int, faults: tuple[Fault, ...]) -> Iterator[Shape]:
    """One set of faults, with and without a janitor."""
    counted = {Fault.INPUT: 1, Fault.WITHDRAW: 1}
    for fault in faults:
        counted[fault] = counted.get(fault, 0) + 1
    for janitors in (0, 1):
        yield Shape(enactors, 1, janitors, last=10, budget=tuple(counted.items()))


def by_explorer(first: Shape | None) -> Found | None:
    """The first region in which a promise breaks; ``first`` is tried before all others."""
    states = 0
    for shape in [*([first] if first is not None else []), *shapes()]:
        model = RegionModel(shape, reduce=shape is not first)
        try:
            result = Explorer(model).run(STATES_MOST)
        except Exception as error:
            return Found(type(error).__name__, told(shape), f"{states:,} states")
        states += result.states
        if result.verdict == "violated":
            return Found(result.promise, told(shape), f"{len(result.story)} steps, {states:,} states")
    return None


def told(shape: Shape) -> str:
    """A region in a few words."""
    faults = " + ".join(fault.value for fault, count in shape.budget for _ in range(count)) or "no fault"
    parts = [(shape.enactors, "E"), (shape.planners, "P"), (shape.janitors, "J"), (shape.stores - 1, "S")]
    return f"{''.join(f'{word}{count}' for count, word in parts if count)}: {faults}"


def by_simulator() -> Found | None:
    """The first walk in which a promise breaks: each scenario's first seed, then more seeds of the default one."""
    hours = 0.0
    for name, seeds in [*((name, range(1)) for name in SCENARIOS), (DEFAULT, range(1, SEEDS_MOST))]:
        try:
            result = simulate(seeds, name, shrinks=False)
        except Exception as error:
            return Found(type(error).__name__, name, f"{hours:.1f} h of region")
        hours += result.region_s / 3600
        if result.violation is not None:
            return Found(result.violation.promise, f"{name}, seed {result.violation.seed}", f"{hours:.1f} h of region")
    return None


@contextmanager
def patched(patches: tuple[Patch, ...]) -> Iterator[None]:
    """With these replaced."""
    right = [(owner, name, vars(owner)[name]) for owner, name, _ in patches]
    for owner, name, wrong in patches:
        setattr(owner, name, wrong)
    try:
        yield
    finally:
        for owner, name, was in right:
            setattr(owner, name, was)


def all_of_them() -> Iterator[tuple[str, str, tuple[Patch, ...], Shape | None]]:
    """Kind, name, what is replaced, and the region made for it, if there is one."""
    for mutant in MUTANTS:
        yield "rule", mutant.rule, mutant.patches, mutant.shape
    for mistake in MISTAKES:
        yield "line", mistake.name, ((mistake.owner, mistake.function, mistake.made()),), None


HEAD = """# What finds which mistake

Each rule of the protocol taken out, and small mistakes put into deciders, one line each, one at a time
(`tests/promises/mutants.py`, `seeded.py`). The explorer walks the region made for the rule, or else small regions in a
fixed order (E enactors, P planners, J janitors, S further stores; a withdrawal and a change of inputs besides the
faults named); the simulator walks each scenario's first seed, then seeds of the default one.
`tests/promises/mutation.py` writes this page. The guards of October 2025's plan trees have a table of their own:
`fencepost explore --guards`, and [the race](the-race.md).

Where an error stands instead of a promise, nothing was judged: the mistake makes a decider use what it hasn't read in
this pass, and the model, which keeps no old reads, stops there. The mistake shows, but not what it would do.

| | Without, or with | Explorer: promise | where | after | Simulator: promise | where | after |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


WHY = {
    "an equal number is the same set": (
        "A marker of the row's generation with another digest is then healed to the row's content, not left to the "
        "planner. Numbers are drawn above every marker and epochs above every hold, so such a tie takes a late write "
        "after a lost store, and either way one set comes to stand whole."
    ),
    "compares the head's number only": (
        "A plan made before the store was lost may then be published into the new one. In these models a new store "
        "asks for what the old one asked for, so nobody can tell."
    ),
    "heals without a look at the digest": (
        "What is put back was matched with the marker's digest before, by other lines: this look is a second lock, for "
        "markers that a hand has damaged."
    ),
}
"""Why neither finds a mistake, where that is known."""


def cells(found: Found | None) -> str:
    """Three columns."""
    return " | ".join(found) if found is not None else "**not found** | – | –"


def main(path: Path) -> None:
    """Write the table."""
    lines, missed = [], []
    for kind, name, patches, shape in all_of_them():
        began = time.process_time()
        with patched(patches):
            explorer, simulator = by_explorer(shape), by_simulator()
        lines.append(f"| {kind} | {name} | {cells(explorer)} | {cells(simulator)} |")
        if explorer is None and simulator is None:
            missed.append(name)
        print(lines[-1], f"{time.process_time() - began:.0f} s CPU", file=sys.stderr, flush=True)  # noqa: T201
    count = len(lines)
    said = f"\nOf {count}, {count - len(missed)} are found by at least one of the two"
    said += "; by neither:\n\n" if missed else ".\n"
    said += "".join(f"- *{name}.* {WHY.get(name, 'Why not is open.')}\n" for name in missed)
    path.write_text(HEAD + "\n".join(lines) + "\n" + said)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
