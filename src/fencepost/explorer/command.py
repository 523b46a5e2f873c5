"""What ``fencepost explore`` does, so that the command line only has to read its flags and print."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import combinations

from fencepost.explorer.explore import MOST, Explorer, Progress
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import NO_MEMORY, Result
from fencepost.world.faults import FURTHER, NINE, Fault
from fencepost.world.region import ASKED, Shape

ENDPOINTS_MOST = 4
PARTS_MOST = 6
STORES_MOST = 3
WITHDRAWALS_MOST = 4
INPUTS_MOST = len(ASKED) - 2


def explore(
    enactors: int = 2,
    planners: int = 2,
    endpoints: int = 1,
    inputs: int = 1,
    moves: Iterable[str] = ("each",),
    most: int = MOST,
    *,
    janitors: int = 0,
    withdrawals: int = 1,
    stores: int = 1,
    symmetry: bool = True,
    reduce: bool = True,
    progress: Progress | None = None,
) -> list[Result]:
    """Explore the deciders that ship; one result for each element of ``moves``, ending at the first violation.

    ``inputs`` is how often the inputs change and ``withdrawals`` how often the owner takes an endpoint away. ``moves``
    are names of :class:`~fencepost.world.faults.Fault` values, several joined by ``+`` ("repair+release"), "none", or
    "each" for none and each of the nine moves alone, "further" for each of the later ones, "pairs" for the 36 pairs of
    the nine, "all" for all of these. ``stores`` of one owner have their own parts each. ``most`` bounds the states of
    each exploration: then its verdict is "unfinished". Ctrl-C, and no more memory, end it with the results so far, the
    last one unfinished. Raises ``ValueError`` for an unknown move or a size out of range.
    """
    check_most(most)
    check("enactors", enactors, 1, PARTS_MOST)
    check("planners", planners, 1, PARTS_MOST)
    check("janitors", janitors, 0, 1)
    check("endpoints", endpoints, 1, ENDPOINTS_MOST)
    check("inputs", inputs, 0, INPUTS_MOST)
    check("stores", stores, 1, STORES_MOST)
    check("withdrawals", withdrawals, 0, WITHDRAWALS_MOST)
    results = []
    for faults in [faults for name in moves for faults in named(name)]:
        counted = {Fault.INPUT: inputs, Fault.WITHDRAW: withdrawals}
        for fault in faults:
            counted[fault] = counted.get(fault, 0) + 1
        budget = tuple((fault, count) for fault, count in counted.items() if count)
        shape = Shape(enactors, planners, janitors, endpoints, stores, budget=budget)
        try:
            results.append(Explorer(RegionModel(shape, reduce=reduce), symmetry=symmetry, progress=progress).run(most))
        except KeyboardInterrupt:  # between two, or before one has begun
            names = tuple(fault.value for fault, _ in budget)
            results.append(Result("unfinished", "", 0, 0, 0, 0.0, (), {}, faults=names, stopped=True))
        last = results[-1]
        if last.verdict == "violated" or last.stopped or last.why == NO_MEMORY:
            break
    return results


SETS = ("none", "each", "further", "pairs", "all")
"""Names that stand for several explorations."""


def named(name: str) -> Iterator[tuple[Fault, ...]]:
    """The sets of faults that a name stands for."""
    name = name.strip()
    if name not in SETS:
        parts = [part.strip() for part in name.split("+")]
        if "" in parts:
            raise ValueError(f"moves: an empty name in {name!r}" if name else "moves: a name is empty")
        if len(parts) > 1 and (sets := [part for part in parts if part in SETS]):
            raise ValueError(f"moves: {sets[0]} can't be joined by + with others; a comma explores both")
        yield tuple(fault_named(part) for part in parts)
    if name in ("each", "none", "all"):
        yield ()
    if name in ("each", "all"):
        yield from NINE
    if name in ("further", "all"):
        yield from FURTHER
    if name in ("pairs", "all"):
        yield from (tuple(dict.fromkeys(one + other)) for one, other in combinations(NINE, 2))


def fault_named(name: str) -> Fault:
    """One fault by its name; ``ValueError`` names the nearest if there is none."""
    try:
        return Fault(name)
    except ValueError:
        known = [fault.value for fault in Fault]
        near = get_close_matches(name, [*known, *SETS], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ValueError(f"unknown move {name!r}; {hint}") from None


def check_most(most: int) -> None:
    """Refuse a bound that leaves nothing to explore."""
    if most < 1:
        raise ValueError(f"most is {most}; at least one state must be explored")


def check(what: str, value: int, least: int, most: int) -> None:
    """Refuse a size that can't be explored."""
    if not least <= value <= most:
        raise ValueError(f"{what} is {value}; from {least} to {most} can be explored")
