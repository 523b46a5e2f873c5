"""``fencepost explore``: every interleaving of the deciders that ship, to a bound."""

import json as json_text
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.terminal import interactive, note, say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the explorer is loaded when it is wanted
    from fencepost.explorer.result import Result

WIDTH = 100
VERDICTS = {"holds": "hold", "violated": "violated", "unfinished": "unfinished"}
"""An exploration's verdict, and how it is counted."""


class Progress:
    """Says how far it is, after a second and then now and then."""

    def __init__(self) -> None:
        self.due = time.monotonic() + 1

    def __call__(self, states: int, depth: int) -> None:
        """See :class:`~fencepost.explorer.explore.Explorer`."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + (2 if interactive() else 10)
            note(f"… {states:,} state{'' if states == 1 else 's'} so far, {depth} steps deep")


def explore(
    *,
    enactors: int = 2,
    planners: int = 2,
    endpoints: int = 1,
    plans: int | None = None,
    inputs: int = 1,
    janitors: int = 0,
    withdrawals: int = 1,
    stores: int = 1,
    moves: str = "each",
    most: int | None = None,
    symmetry: Annotated[bool, Parameter(negative="--no-symmetry")] = True,
    json: Json = False,
) -> int:
    """Walk every interleaving of enactors, planners and faults, and say whether a promise breaks (then exit 1).

    Parameters
    ----------
    plans
        So many plans from changing inputs (inputs change one time less).
    inputs
        How often the inputs change.
    moves
        Faults, joined by commas (each alone) or + (together). "each" for every one of nine alone, "further" for each
        later one, "pairs" for the pairs of the nine, "all" for all of these, "none".
    withdrawals
        How often the owner takes an endpoint away.
    stores
        Two: two regions with one owner and a store each, over the same names.
    most
        Stop after so many states.
    symmetry
        Take states that differ only in the parts' names for one.
    """
    from fencepost.explorer import command
    from fencepost.explorer.explore import MOST
    from fencepost.explorer.result import document, tell

    try:
        results = command.explore(
            enactors,
            planners,
            endpoints,
            plans - 1 if plans is not None else inputs,
            tuple(word.strip() for word in moves.split(",")),
            most or MOST,
            janitors=janitors,
            withdrawals=withdrawals,
            stores=stores,
            symmetry=symmetry,
            progress=Progress(),
        )
    except ValueError as error:
        raise Misconfigured(str(error), hint="fencepost explore --help") from None
    if json:
        say(json_text.dumps({"results": [document(result) for result in results]}))
    else:
        for result in results:
            say("\n".join(folded(line) for line in tell(result).splitlines()))
        if len(results) > 1:
            say(total(results))
    return 1 if any(result.verdict == "violated" for result in results) else 0


def folded(line: str) -> str:
    """A line at 100 columns; what doesn't fit goes on under its text."""
    under = " " * (len(line) - len(line.lstrip()) + (7 if line.startswith("  ") else 2))
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent=under, break_on_hyphens=False) or [""])


def total(results: "Sequence[Result]") -> str:
    """All explorations in one line."""
    verdicts = {verdict: sum(result.verdict == verdict for result in results) for verdict in VERDICTS}
    told = ", ".join(f"{count} {VERDICTS[verdict]}" for verdict, count in verdicts.items() if count)
    states, cpu_s = sum(result.states for result in results), sum(result.cpu_s for result in results)
    return f"{len(results)} explorations: {told} · {states:,} states · {cpu_s:.1f} s CPU"
