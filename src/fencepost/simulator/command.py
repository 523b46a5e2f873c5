"""What ``fencepost simulate`` does, so that the command line only has to read its flags and print."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from msgspec import structs

from fencepost.simulator import trace
from fencepost.simulator.result import SimulationResult, Violation, gathered
from fencepost.simulator.scenarios import PROMISES, SCENARIOS, Scenario
from fencepost.simulator.schedule import KINDS
from fencepost.simulator.shrink import TRIES, shrink
from fencepost.simulator.simulate import Walked, walk
from fencepost.simulator.story import story
from fencepost.simulator.trace import Header

Progress = Callable[[int, Walked], None]
"""Called after each walk with how many are done."""


def simulate(
    seeds: Iterable[int] = range(10),
    scenario: str | Scenario = "swarm",
    *,
    shrinks: bool = True,
    tries: int = TRIES,
    write: Path | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Walk each seed through a scenario, up to the first that breaks a promise; that one is shrunk and told.

    ``write`` is where a failing walk's trace goes (and, with a single seed, a walk's that holds). Ctrl-C ends it with
    what there is so far. Raises ``ValueError`` for an unknown scenario.
    """
    chosen = scenario_named(scenario) if isinstance(scenario, str) else scenario
    wanted = list(seeds)
    walks: list[Walked] = []
    stopped = False
    try:
        for seed in wanted:
            walks.append(walk(seed, chosen))
            if progress is not None:
                progress(len(walks), walks[-1])
            if walks[-1].promise:
                break
    except KeyboardInterrupt:
        stopped = True
    last = walks[-1] if walks else None
    if last is not None and last.promise:
        return gathered(chosen, walks, violation(last, chosen, tries if shrinks else 0, write), stopped=stopped)
    if write is not None and len(wanted) == 1:
        trace.record(write, wanted[0], chosen)
    return gathered(chosen, walks, None, stopped=stopped)


def violation(walked: Walked, scenario: Scenario, tries: int, write: Path | None) -> Violation:
    """A failing walk, shrunk and told."""
    upsets = shrink(walked.seed, scenario, walked.promise, walked.upsets, tries) if tries else walked.upsets
    header = Header(walked.seed, scenario, upsets)
    if write is not None:
        trace.record(write, walked.seed, scenario, upsets)
    return Violation(walked.seed, walked.promise, len(walked.upsets), upsets, tuple(story(header)), str(write or ""))


def replay(path: Path) -> SimulationResult:
    """Walk a trace again, line by line. Raises ``ValueError``, of which :class:`~fencepost.simulator.trace.Differs` is
    one, saying in which line it comes out otherwise; ``OSError`` if the file can't be read."""
    walked = trace.replay(path)
    with path.open(encoding="utf-8") as file:
        header = trace.header_of(file.readline())
    broken = None
    if walked.promise:
        broken = Violation(
            walked.seed, walked.promise, len(header.upsets), header.upsets, tuple(story(header)), str(path)
        )
    return gathered(header.scenario, [walked], broken)


def scenario_named(name: str) -> Scenario:
    """One scenario by its name; ``ValueError`` names the nearest if there is none."""
    return SCENARIOS[known(name, SCENARIOS, "scenario")]


def narrowed(name: str, faults: tuple[str, ...] | None = None, promises: tuple[str, ...] | None = None) -> Scenario:
    """A scenario by its name, with only some of its kinds of fault to be drawn, or only some promises judged.

    Raises ``ValueError`` for a name that there isn't, naming the nearest.
    """
    scenario = scenario_named(name)
    if faults is not None:
        kinds = tuple(known(fault, KINDS, "fault") for fault in faults)
        scenario = structs.replace(scenario, kinds=kinds, every=True)
    if promises is not None:
        scenario = structs.replace(scenario, promises=tuple(known(each, PROMISES, "promise") for each in promises))
    return scenario


def known(name: str, names: Iterable[str], what: str) -> str:
    """The name, if it is one of those; else ``ValueError`` names the nearest."""
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
    raise ValueError(f"unknown {what} {name!r}; {hint}")
