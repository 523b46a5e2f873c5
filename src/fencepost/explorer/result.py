"""What an exploration found, as a value, as lines for people and as a document for programs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

WHO_WIDTH = 10

NOT_COVERED = (
    "weights and the gathering of shifts; planners' own clocks out of order; batches across domains",
    "anything bigger than the bounds stated, and moves together that were tried alone only",
)
"""What no exploration here says anything about."""

UNASKED = "every promise held in all of these states, but whether they converge was not asked to the end"
"""Why a search that saw everything is unfinished all the same."""
NO_MEMORY = "the memory ran out: try fewer parts or moves, a smaller --most, or a machine with more"
"""Why a search is unfinished that nobody stopped."""


class Step(Struct, frozen=True, gc=False):
    """One line of a story."""

    who: str
    what: str


class Result(Struct, frozen=True, gc=False):
    """What an exploration found. ``verdict`` is "holds", "violated" or "unfinished" (stopped, or the bound was
    reached).

    ``promise`` is the broken one's name, and ``story`` a shortest way to break it. ``transitions`` counts every step
    tried, ``depth`` the longest of the shortest ways to a state, ``cpu_s`` seconds. ``sometimes`` says what was seen to
    happen, and in how many different situations: a promise that holds because nothing happened is worth nothing.
    ``goal`` is where `converges` leads. ``why`` says of a broken `converges` in which of its two senses, and of what is
    unfinished why, unless the bound was reached. ``stopped``: by Ctrl-C, so nothing else is to be begun.
    """

    verdict: str
    promise: str
    states: int
    transitions: int
    depth: int
    cpu_s: float
    story: tuple[Step, ...]
    sometimes: dict[str, int]
    not_covered: tuple[str, ...] = NOT_COVERED
    region: str = ""
    faults: tuple[str, ...] = ()
    why: str = ""
    stopped: bool = False
    goal: str = "the newest plan, or a hold"


def document(result: Result) -> dict[str, Any]:
    """The result as plain JSON values: lists, objects, strings and numbers."""
    return {
        "verdict": result.verdict,
        "promise": result.promise or None,
        "region": result.region,
        "faults": list(result.faults),
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "cpu_s": round(result.cpu_s, 3),
        "story": [{"who": step.who, "what": step.what} for step in result.story],
        "sometimes": dict(sorted(result.sometimes.items())),
        "not_covered": list(result.not_covered),
        "why": result.why or None,
        "stopped": result.stopped,
    }


def together(results: Sequence[Result]) -> dict[str, Any]:
    """Several explorations as one: the first that isn't whole decides, states and CPU are summed."""
    worst = next((each for each in results if each.verdict == "violated"), None)
    worst = worst or next((each for each in results if each.verdict != "holds"), results[0])
    sometimes: Counter[str] = Counter()
    for result in results:
        sometimes.update(result.sometimes)
    return {
        **document(worst),
        "faults": sorted({fault for result in results for fault in result.faults}),
        "states": sum(result.states for result in results),
        "transitions": sum(result.transitions for result in results),
        "depth": max(result.depth for result in results),
        "cpu_s": round(sum(result.cpu_s for result in results), 3),
        "sometimes": dict(sorted(sometimes.items())),
        "stopped": any(result.stopped for result in results),
        "not_covered": sorted({what for result in results for what in result.not_covered}),
    }


def tell(result: Result) -> str:
    """The result for people: a head line, then the story move by move, or what was seen on the way."""
    faults = ", ".join(result.faults) or "no fault"
    if result.verdict == "violated":
        steps = f"shortest way, {len(result.story)} steps" if result.story else "at the start"
        lines = [f"VIOLATED {result.promise} · {steps} · {result.region} · {result.cpu_s:.1f} s CPU", *story(result)]
        if result.promise == "converges":
            lines.append(f"The goal is {result.goal}. From here {result.why}.")
        return "\n".join(lines)
    whole = result.verdict == "holds" or result.why == UNASKED
    all_of_them = "all of them" if whole else "then stopped: the rest is unknown"
    head = "HOLDS" if result.verdict == "holds" else "UNFINISHED, nothing broken so far"
    lines = [
        f"{head} · {result.states:,} states, {all_of_them} · {result.region} · {result.cpu_s:.1f} s CPU",
        f"  with   {faults}",
        f"  seen   {', '.join(f'{name} {count:,}' for name, count in sorted(result.sometimes.items())) or 'nothing'}",
    ]
    if result.why:
        lines.append(f"  but    {result.why}")
    return "\n".join(lines)


def story(result: Result) -> list[str]:
    """Numbered lines, one a step; the last is marked."""
    width = max([WHO_WIDTH, *(len(step.who) for step in result.story)])
    lines = [f"{number:3}  {step.who:{width}} {step.what}" for number, step in enumerate(result.story, 1)]
    if lines:
        lines[-1] += "   <- here"
    return lines
