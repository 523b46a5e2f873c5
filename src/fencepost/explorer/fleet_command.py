"""What ``fencepost explore`` does with ``--part leases`` and ``--part network``: the fleet's worlds."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import Enum
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias, TypeVar

from msgspec import structs

from fencepost.explorer.command import check, check_most
from fencepost.explorer.explore import MOST, Explorer, Progress
from fencepost.explorer.lease_model import LeaseModel
from fencepost.explorer.network_model import NetworkModel
from fencepost.explorer.result import NO_MEMORY, Result
from fencepost.world import leases, network
from fencepost.world.lease_minds import Minds

Part: TypeAlias = Literal["leases", "network"]
PARTS: dict[str, Part] = {"leases": "leases", "network": "network"}
F = TypeVar("F", bound=Enum)

MANAGERS_MOST = 2
TIME_MOST = 12
GOALS = {
    "leases": "a host that holds its lease and runs what its row says; a dead one that has lapsed",
    "network": "the newest network state in place, and known to be",
}
NOT_COVERED = {
    "leases": (
        "more than one watched host, one instance and one shard; when hosts are checked; the mass-lapse rule",
        "that an outage of the store lapses nothing: see the simulator",
        "anything bigger than the bounds stated, and moves together that were tried alone only",
    ),
    "network": (
        "two attempts at once, deletion of rows, leases that lapse",
        "anything bigger than the bounds stated, and moves together that were tried alone only",
    ),
}
GRANTS = 2
NEEDS_ONE_MORE = frozenset((leases.Fault.FORGET, leases.Fault.WIPE, leases.Fault.RESTORE))
"""After each of these a host may need one more grant than after others to come out well."""
RENEWALS = 3
LONGER = 5
TAKES_LONGER = frozenset((leases.Fault.DIE, leases.Fault.UNKNOWN))
"""So many pass unless it is said how many: what is under way is worth nothing after three. A dead host takes four to
lapse, and what is first written about a host that is held is mostly its lapse, whose answer may be lost."""
FOR_EVER = -1
BEYOND = (leases.Fault.SKEW, leases.Fault.SKEW)
"""A clock that loses the margin twice in one lease: that isn't promised anything."""


def explore(
    part: Part,
    managers: int | None = None,
    moves: Iterable[str] = ("each",),
    most: int = MOST,
    *,
    time: int | None = None,
    from_nothing: bool = False,
    symmetry: bool = True,
    progress: Progress | None = None,
) -> list[Result]:
    """Explore the fleet's deciders; one result for each element of ``moves``, ending at the first violation.

    ``managers``: of leases one if not given, of network states two. Leases are explored from where the host's is held,
    for ``time`` renewals (if not given three, or five where that says too little: ``TAKES_LONGER``); or
    ``from_nothing``: from where nobody owns anything yet, and for ever if no time is given. ``moves`` are names of the
    part's own faults, several joined by ``+``, or "none", or "each" for none and each alone, or "pairs" for each two of
    them, twice the same included, but for ``BEYOND``. Raises ``ValueError`` for an unknown move, a size out of range,
    or a time for network states, which have none.
    """
    check_most(most)
    managers = (1 if part == "leases" else 2) if managers is None else managers
    check("managers", managers, 1, MANAGERS_MOST)
    if part != "leases" and (time is not None or from_nothing):
        raise ValueError(f"{'time' if time is not None else 'from-nothing'} is of leases only: these have no clock")
    if time is not None:
        check("time", time, 0, TIME_MOST)
    results: list[Result] = []
    for model in models(part, managers, moves, time, from_nothing=from_nothing):
        result = walked(model, most, symmetry=symmetry, progress=progress)
        results.append(structs.replace(result, not_covered=NOT_COVERED[part], goal=GOALS[part]))
        if result.verdict == "violated" or result.stopped or result.why == NO_MEMORY:
            break
    return results


def models(
    part: Part, managers: int, moves: Iterable[str], time: int | None, *, from_nothing: bool
) -> Iterator[LeaseModel | NetworkModel]:
    """One model for each set of faults, made when its turn comes; the names are all read before the first."""
    if part == "leases":
        known = leases.BESIDES if managers == 1 else tuple(leases.Fault)
        found = [leases_of(faults, time, managers, from_nothing=from_nothing) for faults in sets(moves, known)]
        minds = Minds()
        return (LeaseModel(shape, minds) for shape in found)
    shapes = [network_of(managers, faults) for faults in sets(moves, tuple(network.Fault))]
    return (NetworkModel(shape) for shape in shapes)


def leases_of(
    faults: tuple[leases.Fault, ...],
    time: int | None = None,
    managers: int = 1,
    *,
    from_nothing: bool = False,
    room: int = 1,
) -> leases.Shape:
    """A launch and these faults besides; with two managers the second takes over. ``time`` -1: for ever."""
    if time is None:
        time = FOR_EVER if from_nothing else LONGER if TAKES_LONGER & set(faults) else RENEWALS
    others = (leases.Fault.TAKE,) if managers > 1 else ()
    often = (leases.Fault.LAUNCH, *others, *faults)
    budget = tuple((fault, often.count(fault)) for fault in dict.fromkeys(often))
    grants = GRANTS + sum(fault in NEEDS_ONE_MORE for fault in faults)
    grants += from_nothing and leases.Fault.FORGET in faults
    return leases.Shape(managers, budget, grants=grants, room=room, time=time, held=not from_nothing)


def network_of(managers: int, faults: tuple[network.Fault, ...]) -> network.Shape:
    """One change of inputs and these faults."""
    budget = tuple((fault, max(1, faults.count(fault))) for fault in dict.fromkeys((network.Fault.INPUT, *faults)))
    return network.Shape(managers, budget)


def walked(model: LeaseModel | NetworkModel, most: int, *, symmetry: bool, progress: Progress | None) -> Result:
    """One exploration."""
    if isinstance(model, LeaseModel):
        return Explorer(model, symmetry=symmetry, rounds=False, progress=progress).run(most)
    return Explorer(model, symmetry=symmetry, progress=progress).run(most)


def sets(moves: Iterable[str], known: tuple[F, ...]) -> Iterator[tuple[F, ...]]:
    """The sets of faults that these names stand for."""
    for name in moves:
        if name in ("none", "each"):
            yield ()
            yield from ((fault,) for fault in known if name == "each")
        elif name == "pairs":
            yield from (pair for pair in combinations_with_replacement(known, 2) if pair != BEYOND)
        else:
            yield tuple(named(each.strip(), known) for each in name.split("+"))


def named(name: str, faults: tuple[F, ...]) -> F:
    """One fault by its name; ``ValueError`` names the nearest if there is none."""
    known = {str(fault.value): fault for fault in faults}
    if name not in known:
        near = get_close_matches(name, [*known, "each", "none", "pairs"], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ValueError(f"unknown move {name!r}; {hint}")
    return known[name]
