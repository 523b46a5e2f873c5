"""``fencepost explore``: every interleaving of the deciders that ship, to a bound."""

import json as json_text
import time
from typing import Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.terminal import interactive, note, say
from fencepost.ports import Misconfigured


class Progress:
    """Says how far it is, after a second and then now and then."""

    def __init__(self) -> None:
        self.due = time.monotonic() + 1

    def __call__(self, states: int, depth: int) -> None:
        """See :class:`~fencepost.explorer.explore.Explorer`."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + (2 if interactive() else 10)
            note(f"… {states:,} states so far, {depth} steps deep")


def explore(
    *,
    enactors: int = 2,
    planners: int = 2,
    endpoints: int = 1,
    plans: int | None = None,
    inputs: int = 1,
    janitors: int = 0,
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
        Faults, joined by commas (each alone) or + (together): "each" for every one alone, "further", "none".
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
            symmetry=symmetry,
            progress=Progress(),
        )
    except ValueError as error:
        raise Misconfigured(str(error), hint="fencepost explore --help") from None
    if json:
        say(json_text.dumps({"results": [document(result) for result in results]}))
    else:
        for result in results:
            say(tell(result))
    return 1 if any(result.verdict == "violated" for result in results) else 0
