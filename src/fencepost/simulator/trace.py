"""Traces: a walk as a file that another process, on another machine, walks again and compares line by line.

JSON lines. The first is the header: ``fencepost_trace`` (the format's version, 1), ``seed``, ``scenario`` (its name),
``sizes`` (endpoints, targets, enactors, planners, for readers), ``promises`` (those judged), and ``upsets``, the
schedule: each ``[at, kind, where, lasts, pick]``, times in nanoseconds. Then a line a move: ``[number, at, who, what,
digest]``, ``at`` in nanoseconds since the walk's start. The digest stands for the outcome and everything before it: it
is a hash over the digest of the line before, the words, and what the move left (the part's next call, records, rows) as
text. The last line is ``["end", promise, words, moves]``, ``promise`` "" if all held.

A replay executes the walk anew from the header; it doesn't believe the lines but makes its own and compares. The first
that differs is told with its number: the deciders, the world or the format have changed since, or something in them
isn't a function of the seed.
"""

import json
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, structs

from fencepost.core.instant import Instant
from fencepost.simulator.fleet.simulate import FleetSimulation
from fencepost.simulator.scenarios import SCENARIOS, Scenario
from fencepost.simulator.schedule import Upset
from fencepost.simulator.simulate import Simulation
from fencepost.simulator.simulate import simulation as chosen
from fencepost.simulator.walk import Operation
from fencepost.simulator.walked import Walked
from fencepost.world.model import Move

VERSION = 1
Line = Callable[[str], None]


class Header(Struct, frozen=True):
    """What a walk is made from."""

    seed: int
    scenario: Scenario
    upsets: tuple[Upset, ...]


Natural = Annotated[int, Meta(ge=0, lt=1 << 62)]


class Head(Struct, frozen=True):
    """A header as it stands in a file; the names in it are yet to be looked up."""

    seed: int
    scenario: str
    promises: tuple[str, ...]
    upsets: tuple[tuple[Natural, str, Natural, Natural, Natural], ...]


class Differs(ValueError):  # noqa: N818  a verdict on a file
    """A replay came out otherwise than its file says; the text tells where."""


class Recorder:
    """Turns moves into lines."""

    def __init__(self, write: Line) -> None:
        self.write = write
        self.number = 0
        self.chain = b""

    def told(self, at: Instant, who: str, what: str, outcome: object) -> None:
        """One move; see :class:`~fencepost.simulator.watch.Watch`."""
        self.number += 1
        left = (outcome.slot and outcome.slot.pending, outcome.broken) if isinstance(outcome, Move) else outcome
        text = f"{at}|{who}|{what}|{left!r}"
        self.chain = blake2b(self.chain + text.encode(), digest_size=6).digest()
        self.write(json.dumps([self.number, at, who, what, self.chain.hex()]))


def simulation_of(header: Header) -> Simulation:
    """The region that a header speaks of, before its first move."""
    return Simulation(header.seed, header.scenario, header.upsets)


def walkable(header: Header) -> Simulation | FleetSimulation:
    """The region or fleet that a header speaks of, before its first move."""
    return chosen(header.seed, header.scenario, header.upsets)


def lines_of(
    header: Header,
    write: Line,
    operated: Callable[[Operation], None] | None = None,
    simulation: Simulation | FleetSimulation | None = None,
) -> Walked:
    """Walk, and give each line of the trace."""
    scenario = header.scenario
    sizes = {
        "endpoints": scenario.endpoints,
        "targets": [targets for _, targets in scenario.pools],
        "enactors": scenario.enactors,
        "planners": scenario.planners,
    }
    upsets = [[each.at, each.kind, each.where, each.lasts, each.pick] for each in header.upsets]
    head = {"fencepost_trace": VERSION, "seed": header.seed, "scenario": scenario.name, "sizes": sizes}
    write(json.dumps(head | {"promises": list(scenario.promises), "upsets": upsets}))
    walked = (simulation or walkable(header)).run(Recorder(write).told, operated)
    write(json.dumps(["end", walked.promise, walked.words, walked.moves]))
    return walked


def record(path: Path, seed: int, scenario: Scenario, upsets: tuple[Upset, ...] | None = None) -> Walked:
    """Walk, and write the trace to a file."""
    header = Header(seed, scenario, scenario.upsets(seed) if upsets is None else upsets)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        return lines_of(header, lambda line: print(line, file=file))


def header_of(line: str) -> Header:
    """The header of a trace. Raises ``ValueError`` saying what is wrong with it."""
    try:
        head = json.loads(line)
        version = head["fencepost_trace"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"its first line is no header of a trace ({error})") from None
    if version != VERSION:
        raise ValueError(f"it is in format {version}; this fencepost replays format {VERSION}")
    try:
        read = convert(head, Head)
    except ValidationError as error:
        raise ValueError(f"its first line is no header of a trace ({error})") from None
    scenario = SCENARIOS.get(read.scenario)
    unknown = [f"scenario {read.scenario!r}"] if scenario is None else []
    if scenario is not None:
        unknown += [f"kind of upset {upset[1]!r}" for upset in read.upsets if upset[1] not in scenario.drawn_from]
        unknown += [f"promise {name!r}" for name in read.promises if name not in scenario.judgeable]
    if scenario is None or unknown:
        raise ValueError(f"its first line names what this fencepost doesn't know: {unknown[0]}")
    if not read.promises:
        raise ValueError("its first line names no promise: nothing would be judged")
    upsets = tuple(Upset(*upset) for upset in read.upsets)
    return Header(read.seed, structs.replace(scenario, promises=read.promises), upsets)


def header_in(path: Path) -> Header:
    """The header of a file. Raises ``ValueError`` and ``OSError``."""
    with path.open(encoding="utf-8") as file:
        return header_of(next(file, ""))


def replay(
    path: Path,
    operated: Callable[[Operation], None] | None = None,
    simulation: Simulation | FleetSimulation | None = None,
) -> Walked:
    """Walk a trace again. Raises :class:`Differs` at the first line that comes out otherwise.

    ``operated`` is told of each operation that reaches DNS or store, before the walk takes it up: whoever drives real
    ones beside it looks at ``simulation`` (of the file's header) to see what stands.
    """
    with path.open(encoding="utf-8") as file:
        first = next(file, "")
        header = header_of(first)
        expected = following(first, file)
        walked = lines_of(header, lambda line: compare(line, next(expected, (0, ""))), operated, simulation)
        left = next(expected, None)
        if left is not None:
            raise Differs(f"line {left[0]}: the file goes on where the walk has ended: {left[1]}")
        return walked


def following(first: str, rest: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Each line with its number, the first being 1."""
    yield 1, first.rstrip("\n")
    for number, line in enumerate(rest, 2):
        yield number, line.rstrip("\n")


def compare(line: str, expected: tuple[int, str]) -> None:
    """One line of the walk against the file's."""
    number, there = expected
    if not number:
        raise Differs(f"the file ends where the walk goes on with: {line}")
    if line != there:
        raise Differs(f"line {number}: the file has {there}\n{' ' * len(f'line {number}')}  the walk has {line}")


def told_by(header: Header, listen: Callable[[Instant, str, str, Any], None]) -> Walked:
    """Walk again for whoever wants to hear it."""
    return walkable(header).run(listen)
