"""``fencepost explore``: every interleaving of the deciders that ship, or of October 2025's, to a bound."""

import json as json_text
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.progress import Progress
from fencepost.cli.terminal import say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the explorer is loaded when it is wanted
    from fencepost.explorer.result import Result
    from fencepost.incident.tree_model import TreeModel

VERDICTS = {"holds": "hold", "violated": "violated", "unfinished": "unfinished"}
"""An exploration's verdict, and how it is counted."""


@dataclass(frozen=True)
class Fleet:
    """Parts of the fleet instead of DNS, and their own bounds.

    Parameters
    ----------
    part
        "dns" (as if not given); of the fleet "leases" or "network".
    managers
        Of the fleet's parts, how many; 1 of leases, 2 of network.
    time
        Of leases, how many renewals pass; 3 (5 where it takes longer), from nothing for ever.
    from_nothing
        Of leases, begin where nobody owns anything yet, and not where the host's is held.
    """

    part: str | None = None
    managers: int | None = None
    time: int | None = None
    from_nothing: Annotated[bool | None, Parameter(negative="")] = None

    def chosen(self) -> bool:
        """Whether it is the fleet that is asked for. Raises ``ValueError`` for its bounds beside DNS."""
        if self.part in (None, "dns"):
            refuse_together("--part dns", self.bounds())
            return False
        return True

    def bounds(self) -> dict[str, int | bool | None]:
        """What means nothing to DNS."""
        return {"managers": self.managers, "time": self.time, "from-nothing": self.from_nothing}


DNS = Fleet()


def explore(
    *,
    fleet: Annotated[Fleet, Parameter(name="*")] = DNS,
    as_was: Annotated[bool, Parameter(name="--as-was", negative="")] = False,
    guards: Annotated[bool, Parameter(name="--guards", negative="")] = False,
    enactors: int | None = None,
    planners: int | None = None,
    endpoints: int | None = None,
    plans: int | None = None,
    inputs: int | None = None,
    janitors: int | None = None,
    withdrawals: int | None = None,
    stores: int | None = None,
    moves: str | None = None,
    most: int | None = None,
    symmetry: Annotated[bool, Parameter(negative="--no-symmetry")] = True,
    json: Json = False,
) -> int:
    """Walk every interleaving of enactors, planners and faults, and say whether a promise breaks (then exit 1).

    Parameters
    ----------
    as_was
        The automation of October 2025 instead of the one that ships: the race, and what follows it.
    guards
        The same with every set of four guards: which are enough, and what breaks the others.
    enactors
        How many; 2, as it was 3.
    planners
        How many; 2.
    endpoints
        How many; 1, as it was 2.
    plans
        So many plans from changing inputs (inputs change one time less); as it was 3.
    inputs
        How often the inputs change; once.
    janitors
        How many; none.
    moves
        Faults, joined by commas (each alone) or + (together); or "each" (of nine), "further", "pairs", "all", "none".
    withdrawals
        How often the owner takes an endpoint away; once.
    stores
        Two: two regions with one owner and a store each, over the same names; else 1.
    most
        Stop after so many states.
    symmetry
        Take states that differ only in the parts' names for one.
    """
    flags: dict[str, Any] = {"planners": planners, "inputs": inputs, "janitors": janitors}
    flags |= {"withdrawals": withdrawals, "stores": stores, "moves": moves}
    sizes = {"enactors": enactors, "plans": plans, "endpoints": endpoints}
    was = {"guards" if guards else "as-was": as_was or guards or None}
    with refused():
        if fleet.chosen():
            return explore_fleet(fleet, flags | sizes | was, most, symmetry, json)
        if as_was or guards:
            return explore_incident(given(sizes), flags, most, guards, symmetry, json)
        return explore_shipping(flags | sizes | {"most": most}, symmetry, json)


@contextmanager
def refused() -> Iterator[None]:
    """What can't be explored is the flags' fault."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        raise Misconfigured(words_of(error), hint="fencepost explore --help") from None


def words_of(error: ValueError | MemoryError) -> str:
    """What was refused, in words."""
    from fencepost.explorer.result import NO_MEMORY

    return NO_MEMORY if isinstance(error, MemoryError) else str(error)


def given(flags: dict[str, Any]) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def refuse_together(one: str, others: dict[str, Any]) -> None:
    """Raise ``ValueError`` if a flag was given that means nothing beside ``one``."""
    if given(others):
        raise ValueError(f"{' and '.join(f'--{name}' for name in given(others))} can't be combined with {one}")


def explore_shipping(flags: dict[str, Any], symmetry: bool, json: bool) -> int:
    """The deciders that ship. Raises ``ValueError`` for a size out of range or an unknown move."""
    from fencepost.explorer import command

    plans = flags.pop("plans")
    if plans is not None:
        refuse_together("--plans", {"inputs": flags["inputs"]})
        command.check("plans", plans, 1, command.INPUTS_MOST + 1)
        flags["inputs"] = plans - 1
    moves = words(flags.pop("moves"), "--moves") or ("each",)
    results = command.explore(**given(flags), moves=moves, symmetry=symmetry, progress=Progress().exploring)
    return told(results, json)


def explore_fleet(fleet: Fleet, others: dict[str, Any], most: int | None, symmetry: bool, json: bool) -> int:
    """Leases, or network states. Raises ``ValueError`` for another part, an unknown move or a bound out of range."""
    from fencepost.explorer import fleet_command

    moves = words(others.pop("moves"), "--moves") or ("each",)
    refuse_together(f"--part {fleet.part}", others)
    known = fleet_command.PARTS.get(fleet.part or "")
    if known is None:
        raise ValueError(f"--part {fleet.part!r}: known are dns, leases and network")
    bounds = {name.replace("-", "_"): value for name, value in given({**fleet.bounds(), "most": most}).items()}
    return told(
        fleet_command.explore(known, moves=moves, symmetry=symmetry, progress=Progress().exploring, **bounds), json
    )


def told(results: "Sequence[Result]", json: bool) -> int:
    """Say what was found; the exit code."""
    from fencepost.explorer.result import document, tell, together

    if json:
        say(json_text.dumps({**together(results), "results": [document(result) for result in results]}))
    else:
        for result in results:
            say(tell(result))
        if len(results) > 1:
            say(total(results))
    return code_of(results, violated=any(result.verdict == "violated" for result in results))


def explore_incident(
    sizes: dict[str, int], others: dict[str, Any], most: int | None, guards: bool, symmetry: bool, json: bool
) -> int:
    """October 2025. Raises ``ValueError`` for a size out of range, or a bound too small to call anything safe."""
    from fencepost.explorer.command import check_most
    from fencepost.explorer.explore import MOST, Explorer
    from fencepost.incident import race

    refuse_together("--guards" if guards else "--as-was", others)
    most = MOST if most is None else most
    check_most(most)
    results: list[Result] = []

    def walk(model: "TreeModel", *, symmetry: bool) -> "Result":
        results.append(Explorer(model, symmetry=symmetry, progress=Progress().exploring).run(most))
        return results[-1]

    if guards:
        table = race.guard_table(walk, **sizes, symmetry=symmetry)
        say(json_text.dumps(race.guards_document(table)) if json else race.tell_guards(table))
        return 130 if table.stopped else code_of(results, violated=False)
    found = race.find_race(walk, **sizes, symmetry=symmetry)
    say(json_text.dumps(race.document(found)) if json else race.tell(found))
    return code_of(results, violated=found.violated)


def code_of(results: "Sequence[Result]", *, violated: bool) -> int:
    """The exit code: a finding before all; then interrupted, or no memory for what was asked."""
    from fencepost.explorer.result import NO_MEMORY

    if violated:
        return 1
    if any(result.stopped for result in results):
        return 130
    return 2 if any(result.why == NO_MEMORY for result in results) else 0


def words(text: str | None, flag: str) -> tuple[str, ...] | None:
    """Names joined by commas; None if the flag wasn't given. Raises ``ValueError`` for an empty one."""
    if text is None:
        return None
    found = tuple(word.strip() for word in text.split(","))
    if "" in found:
        raise ValueError(f"{flag} {text!r}: name {found.index('') + 1} of {len(found)} is empty")
    return found


def total(results: "Sequence[Result]") -> str:
    """All explorations in one line."""
    verdicts = {verdict: sum(result.verdict == verdict for result in results) for verdict in VERDICTS}
    told = ", ".join(f"{count} {VERDICTS[verdict]}" for verdict, count in verdicts.items() if count)
    states, cpu_s = sum(result.states for result in results), sum(result.cpu_s for result in results)
    return f"{len(results)} explorations: {told} · {states:,} states · {cpu_s:.1f} s CPU"
