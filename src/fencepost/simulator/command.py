"""What ``fencepost simulate`` does, so that the command line only has to read its flags and print."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from msgspec import structs

from fencepost.simulator import trace
from fencepost.simulator.result import SimulationResult, Violation, gathered
from fencepost.simulator.scenarios import SCENARIOS, Scenario
from fencepost.simulator.shrink import TRIES, Shrinking, Shrunk, shrink
from fencepost.simulator.simulate import walk
from fencepost.simulator.story import story
from fencepost.simulator.trace import Header
from fencepost.simulator.walked import Walked

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
    shrinking: Shrinking | None = None,
) -> SimulationResult:
    """Walk each seed through a scenario, up to the first that breaks a promise; that one is shrunk and told.

    ``write`` is where a failing walk's trace goes (and, with a single seed, a walk's that holds). Ctrl-C ends it with
    what there is so far. Raises ``ValueError`` for an unknown scenario, or one that judges nothing, and ``OSError``,
    before any walk, if nothing can be written there; if that fails later the result says so.
    """
    chosen = scenario_named(scenario) if isinstance(scenario, str) else scenario
    if not chosen.promises:
        raise ValueError("no promise is to be judged: a walk would hold and say nothing")
    if write is not None:
        check_writable(write)
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
        small = (
            shrink(last.seed, chosen, last.promise, last.upsets, tries, shrinking) if shrinks and not stopped else None
        )
        return gathered(chosen, walks, violation(last, chosen, small, write), stopped=stopped)
    unwritten = ""
    if write is not None and len(wanted) == 1 and not stopped:
        try:
            unwritten = written(write, Header(wanted[0], chosen, chosen.upsets(wanted[0])))
        except KeyboardInterrupt:
            stopped, unwritten = True, f"{write} isn't whole: stopped by Ctrl-C"
    return gathered(chosen, walks, None, stopped=stopped, unwritten=unwritten)


def check_writable(path: Path) -> None:
    """Raise ``OSError`` if a file can't be written; it is left as it was."""
    there = path.exists()
    with path.open("a", encoding="utf-8"):
        pass
    if not there:
        path.unlink()


def written(path: Path, header: Header) -> str:
    """Write a walk's trace; why that failed, or ""."""
    try:
        trace.record(path, header.seed, header.scenario, header.upsets)
    except OSError as error:
        return f"{path} can't be written: {error.strerror or type(error).__name__}"
    return ""


def violation(walked: Walked, scenario: Scenario, small: Shrunk | None, write: Path | None) -> Violation:
    """A failing walk, shrunk if it was, and told. Ctrl-C leaves out what isn't told or written yet."""
    small = small or Shrunk(walked.upsets)
    header = Header(walked.seed, scenario, small.upsets)
    told: tuple[str, ...] = ("stopped by Ctrl-C before it was told",)
    unwritten = ""
    try:
        told = tuple(story(header))
        if write is not None:
            unwritten = written(write, header)
    except KeyboardInterrupt:
        unwritten = f"{write} isn't whole: stopped by Ctrl-C" if write is not None else ""
    return Violation(
        walked.seed,
        walked.promise,
        len(walked.upsets),
        small.upsets,
        told,
        "" if unwritten else str(write or ""),
        small.cut_short,
        unwritten,
    )


def replay(path: Path) -> SimulationResult:
    """Walk a trace again, line by line. Raises ``ValueError``, of which :class:`~fencepost.simulator.trace.Differs` is
    one, saying in which line it comes out otherwise; ``OSError`` if the file can't be read. After
    Ctrl-C nothing is judged."""
    header = trace.header_in(path)
    try:
        walked = trace.replay(path)
    except KeyboardInterrupt:
        return gathered(header.scenario, [], None, stopped=True)
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
        kinds = tuple(known(fault, scenario.drawn_from, "fault") for fault in faults)
        scenario = structs.replace(scenario, kinds=kinds, every=True)
    if promises is not None:
        scenario = structs.replace(
            scenario, promises=tuple(known(each, scenario.judgeable, "promise") for each in promises)
        )
    return scenario


def known(name: str, names: Iterable[str], what: str) -> str:
    """The name, if it is one of those; else ``ValueError`` names the nearest."""
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
    raise ValueError(f"unknown {what} {name!r}; {hint}")
