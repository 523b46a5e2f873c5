"""``fencepost simulate``: seeded walks of a whole region in virtual time, on the deciders that ship."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fencepost.cli.explore import refuse_together, words
from fencepost.cli.flags import Json
from fencepost.cli.progress import Progress
from fencepost.cli.streams import Unwritable
from fencepost.cli.terminal import say
from fencepost.ports import Misconfigured

if TYPE_CHECKING:  # the simulator is loaded when it is wanted
    from fencepost.simulator.result import SimulationResult


FLEET, FLEET_MEANING = "fleet-collapse", "100,000 hosts lose their leases at once: as it was, and as it ships"
WALKS = 10
"""So many if nobody says how many."""
SEEDS_MOST = 1_000_000


def simulate(
    *,
    seeds: int | None = None,
    seed: int | None = None,
    scenario: str | None = None,
    faults: str | None = None,
    promises: str | None = None,
    trace: Path | None = None,
    write: Path | None = None,
    variants: str | None = None,
    map_: Annotated[bool, Parameter(name="--map", negative="")] = False,
    picture: Path | None = None,
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
    variants
        Of fleet-collapse: what is off, joined by commas; "base", "all", "list" names them.
    map_
        How large a loss of leases, at what load, and how long until they are held for good again.
    picture
        Where the map goes as a picture (SVG).
    """
    from fencepost.simulator import command
    from fencepost.simulator.trace import Differs

    drawn = {"seeds": seeds, "seed": seed, "scenario": scenario, "faults": faults, "promises": promises}
    fleet = {"variants": variants, "picture": picture}
    try:
        if map_ or scenario in (FLEET, "list"):
            return no_walk(map_, drawn | {"trace": trace, "write": write}, fleet, json)
        if trace is not None:
            refuse_together("--trace", drawn | {"write": write})
        refuse_together("a walk of a region", fleet)
        result = walked_anew(drawn, write) if trace is None else command.replay(trace)
    except Differs as error:
        return differs(trace or Path(), str(error), json)
    except ValueError as error:
        raise Misconfigured(str(error), where=str(trace or ""), hint="fencepost simulate --help") from None
    except OSError as error:
        raise of_file(error, trace, write or picture) from None
    return answered(result, json)


def of_file(error: OSError, read: Path | None, written: Path | None) -> Exception:
    """What is to be raised for it: itself, if it is standard output that takes no more."""
    if isinstance(error, Unwritable):
        return error
    what = f"can't be {'read' if read else 'written'}: {error.strerror}"
    return Misconfigured(what, where=f"{read or written}")


def listed() -> int:
    """Name every scenario."""
    from fencepost.simulator.scenarios import SCENARIOS

    say("\n".join(f"{name:18} {each.meaning}" for name, each in SCENARIOS.items()))
    say(f"{FLEET:18} {FLEET_MEANING}")
    return 0


def answered(result: "SimulationResult", json: bool) -> int:
    """Say what the walks came to; the exit code."""
    from fencepost.simulator.result import document, tell

    say(json_text.dumps(document(result)) if json else tell(result))
    if not result.holds:
        return 1
    if result.stopped:
        return 130
    return 2 if result.unwritten else 0


def no_walk(map_: bool, drawn: dict[str, Any], fleet: dict[str, Any], json: bool) -> int:
    """The list of scenarios, or the fleet's recovery, not a region's walk. Raises ``ValueError`` and ``OSError``."""
    from fencepost.cli import simulate_fleet

    if drawn["scenario"] == "list":
        return listed()
    seed, seeds = drawn.pop("seed"), drawn["seeds"]
    if map_:
        not_below_0(seed or 0)
        return simulate_fleet.recovery_map(drawn | {"variants": fleet["variants"]}, seed or 0, fleet["picture"], json)
    for name in ("seeds", "scenario"):
        drawn.pop(name)
    wanted = chosen_seeds(seeds, seed) if seeds is not None or seed is not None else range(1)
    return simulate_fleet.collapse(drawn | {"picture": fleet["picture"]}, wanted, fleet["variants"], json)


def walked_anew(drawn: dict[str, Any], write: Path | None) -> "SimulationResult":
    """The walks that the flags name. Raises ``ValueError``, and ``OSError`` if nothing can be written there."""
    from fencepost.simulator import command

    wanted = chosen_seeds(drawn["seeds"], drawn["seed"])
    faults, promises = words(drawn["faults"], "--faults"), words(drawn["promises"], "--promises")
    picked = command.narrowed("swarm" if drawn["scenario"] is None else drawn["scenario"], faults, promises)
    told = Progress(len(wanted))
    return command.simulate(wanted, picked, write=write, progress=told.walking, shrinking=told.shrinking)


def differs(trace: Path, where: str, json: bool) -> int:
    """Say where a replay came out otherwise: a finding."""
    from fencepost.simulator.result import differing
    from fencepost.simulator.trace import header_in

    document = differing(str(trace), header_in(trace), where)
    say(json_text.dumps(document) if json else f"DIFFERS · {trace}\n{where}")
    return 1


def not_below_0(seed: int) -> None:
    """Raise ``ValueError`` for a seed that no walk has: they are counted from 0."""
    if seed < 0:
        raise ValueError(f"--seed {seed} is below 0: walks are counted from 0 on")


def chosen_seeds(seeds: int | None, seed: int | None) -> range:
    """Which walks. Raises ``ValueError``."""
    if seed is not None:
        refuse_together("--seed", {"seeds": seeds})
        not_below_0(seed)
        return range(seed, seed + 1)
    if seeds is not None and seeds < 1:
        raise ValueError(f"--seeds {seeds}: at least one walk is needed")
    if seeds is not None and seeds > SEEDS_MOST:
        raise ValueError(f"--seeds {seeds}: at most {SEEDS_MOST:,} walks; each takes about a second")
    return range(seeds or WALKS)
