"""What ``fencepost explore`` does with ``--part leases`` and ``--part network``: the fleet's worlds."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import Enum
from typing import Literal, TypeAlias, TypeVar

from msgspec import structs

from fencepost.explorer.command import check, check_most
from fencepost.explorer.explore import MOST, Explorer, Progress
from fencepost.explorer.lease_model import LeaseModel
from fencepost.explorer.network_model import NetworkModel
from fencepost.explorer.result import NO_MEMORY, Result
from fencepost.world import leases, network

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
NEEDS_THREE = frozenset((leases.Fault.FORGET, leases.Fault.WIPE, leases.Fault.RESTORE))
"""After these a host may need one more grant than after others to come out well."""


def explore(
    part: Part,
    managers: int | None = None,
    moves: Iterable[str] = ("each",),
    most: int = MOST,
    *,
    time: int | None = None,
    symmetry: bool = True,
    progress: Progress | None = None,
) -> list[Result]:
    """Explore the fleet's deciders; one result for each element of ``moves``, ending at the first violation.

    ``managers``: of leases one if not given, of network states two. ``time`` (of leases) is how many renewals pass, and
    for ever if not given. ``moves`` are names of the part's own faults, several joined by ``+``, or "none", or "each"
    for none and each alone. Raises ``ValueError`` for an unknown move, a size out of range, or a time for network
    states, which have none.
    """
    check_most(most)
    managers = (1 if part == "leases" else 2) if managers is None else managers
    check("managers", managers, 1, MANAGERS_MOST)
    if time is not None:
        if part != "leases":
            raise ValueError("time is of leases only: network states have no clock")
        check("time", time, 0, TIME_MOST)
    results: list[Result] = []
    for model in models(part, managers, moves, -1 if time is None else time):
        result = walked(model, most, symmetry=symmetry, progress=progress)
        results.append(structs.replace(result, not_covered=NOT_COVERED[part], goal=GOALS[part]))
        if result.verdict == "violated" or result.stopped or result.why == NO_MEMORY:
            break
    return results


def models(part: Part, managers: int, moves: Iterable[str], time: int) -> list[LeaseModel | NetworkModel]:
    """One model for each set of faults."""
    if part == "leases":
        return [LeaseModel(leases_of(managers, faults, time)) for faults in sets(moves, leases.Fault)]
    return [NetworkModel(network_of(managers, faults)) for faults in sets(moves, network.Fault)]


def leases_of(managers: int, faults: tuple[leases.Fault, ...], time: int) -> leases.Shape:
    """A launch and these faults, from where nothing is owned; with two managers the second takes over."""
    others = (leases.Fault.TAKE,) if managers > 1 else ()
    often = (leases.Fault.LAUNCH, *others, *faults)
    budget = tuple((fault, max(1, faults.count(fault))) for fault in dict.fromkeys(often))
    grants = 3 if NEEDS_THREE & set(faults) else 2
    return leases.Shape(managers, budget, grants=grants, room=1, time=time)


def network_of(managers: int, faults: tuple[network.Fault, ...]) -> network.Shape:
    """One change of inputs and these faults."""
    budget = tuple((fault, max(1, faults.count(fault))) for fault in dict.fromkeys((network.Fault.INPUT, *faults)))
    return network.Shape(managers, budget)


def walked(model: LeaseModel | NetworkModel, most: int, *, symmetry: bool, progress: Progress | None) -> Result:
    """One exploration."""
    if isinstance(model, LeaseModel):
        return Explorer(model, symmetry=symmetry, rounds=False, progress=progress).run(most)
    return Explorer(model, symmetry=symmetry, progress=progress).run(most)


def sets(moves: Iterable[str], kind: type[F]) -> Iterator[tuple[F, ...]]:
    """The sets of faults that these names stand for."""
    for name in moves:
        if name in ("none", "each"):
            yield ()
            yield from ((fault,) for fault in kind if name == "each")
        else:
            yield tuple(named(each.strip(), kind) for each in name.split("+"))


def named(name: str, kind: type[F]) -> F:
    """One fault by its name; ``ValueError`` names the nearest if there is none."""
    known = [str(fault.value) for fault in kind]
    if name not in known:
        near = get_close_matches(name, [*known, "each", "none"], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ValueError(f"unknown move {name!r}; {hint}")
    return kind(name)
