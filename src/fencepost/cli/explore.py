"""``fencepost explore``: every interleaving of the deciders that ship, to a bound."""

import json as json_text
import time
from typing import Annotated

from cyclopts import Parameter

from fencepost.cli.flags import Json
from fencepost.cli.terminal import interactive, note, say
from fencepost.ports import Misconfigured


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
    enactors, planners, endpoints, janitors
        How many of each.
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

    began, said = time.monotonic(), 0.0

    def progress(states: int, depth: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - began > 1 and now - said > (2 if interactive() else 10):
            said = now
            note(f"… {states:,} states so far, {depth} steps deep")

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
            progress=progress,
        )
    except ValueError as error:
        raise Misconfigured(str(error), hint="fencepost explore --help") from None
    if json:
        say(json_text.dumps({"results": [document(result) for result in results]}))
    else:
        for result in results:
            say(tell(result))
    return 1 if any(result.verdict == "violated" for result in results) else 0
