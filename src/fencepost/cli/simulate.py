"""``fencepost simulate``: seeded walks of a whole region in virtual time, on the deciders that ship."""

import json as json_text
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.cli.explore import refuse_together
from fencepost.cli.flags import Json
from fencepost.cli.terminal import interactive, note, say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the simulator is loaded when it is wanted
    from fencepost.simulator.simulate import Walked


WALKS = 10
"""So many if nobody says how many."""


class Progress:
    """Says how many walks are done, after a second and then now and then."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.due = time.monotonic() + 1

    def __call__(self, done: int, walked: "Walked") -> None:
        """See :func:`~fencepost.simulator.command.simulate`."""
        if time.monotonic() >= self.due and done < self.wanted:
            self.due = time.monotonic() + (2 if interactive() else 10)
            note(f"… {done} of {self.wanted} walks, seed {walked.seed} just now")


def simulate(
    *,
    seeds: int | None = None,
    seed: int | None = None,
    scenario: str | None = None,
    faults: str | None = None,
    promises: str | None = None,
    trace: Path | None = None,
    write: Path | None = None,
    json: Json = False,
) -> int:
    """Walk whole regions through an hour of faults each; exit 1 with the shrunk story if a promise breaks.

    Parameters
    ----------
    seeds
        So many walks, from seed 0 on; 10.
    seed
        This one alone.
    scenario
        Which region, and what may go wrong in it: "swarm" unless given; "list" names them.
    faults
        Only these kinds of fault may be drawn, joined by commas.
    promises
        Judge only these, joined by commas.
    trace
        Walk this file's moves again, and compare each.
    write
        Where the trace of a walk that breaks a promise goes (or of the only one).
    """
    from fencepost.simulator import command
    from fencepost.simulator.result import document, tell
    from fencepost.simulator.scenarios import SCENARIOS

    if scenario == "list":
        say("\n".join(f"{name:18} {each.meaning}" for name, each in SCENARIOS.items()))
        return 0
    drawn = {"seeds": seeds, "seed": seed, "scenario": scenario, "faults": faults, "promises": promises}
    try:
        if trace is not None:
            refuse_together("--trace", drawn)
            result = command.replay(trace)
        else:
            wanted = chosen_seeds(seeds, seed)
            picked = command.narrowed(scenario or "swarm", words(faults), words(promises))
            result = command.simulate(wanted, picked, write=write, progress=Progress(len(wanted)))
    except ValueError as error:
        raise Misconfigured(str(error), where=str(trace or ""), hint="fencepost simulate --help") from None
    except OSError as error:
        raise Misconfigured(f"can't be read: {error.strerror}", where=str(trace or write)) from None
    say(json_text.dumps(document(result)) if json else tell(result))
    if not result.holds:
        return 1
    return 130 if result.stopped else 0


def chosen_seeds(seeds: int | None, seed: int | None) -> range:
    """Which walks. Raises ``ValueError``."""
    if seed is not None:
        refuse_together("--seed", {"seeds": seeds})
        return range(seed, seed + 1)
    if seeds is not None and seeds < 1:
        raise ValueError(f"--seeds {seeds}: at least one walk is needed")
    return range(seeds or WALKS)


def words(text: str | None) -> tuple[str, ...] | None:
    """Names joined by commas."""
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())
