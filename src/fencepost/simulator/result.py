"""What simulated walks came to, as a value, as lines for people and as a document for programs."""

from typing import Any

from msgspec import Struct

from fencepost.core.instant import SECOND
from fencepost.simulator.scenarios import Scenario
from fencepost.simulator.schedule import Upset
from fencepost.simulator.simulate import added
from fencepost.simulator.trace import Header
from fencepost.simulator.walked import Walked
from fencepost.simulator.watch import clock_face

PARTNERS: dict[str, tuple[str, ...]] = {
    "never_empty": ("healed", "withdraw enacted"),
    "never_backward": ("fenced",),
    "never_torn": ("enacted",),
    "spares_others": ("foreign-marker", "marker-deleted-and-record-altered"),
    "inputs_never_backward": ("published", "outrun"),
    "cleanup_spares_live": ("row deleted",),
    "hold_stands": ("repair enacted", "rollback enacted", "hold ended", "healed a hold"),
    "bounded_removal": ("removal", "kept"),
    "converges": ("adopted",),
}
"""For each promise, what must have happened somewhere for it to mean anything: its "sometimes" partners."""

FLEET_PARTNERS: dict[str, tuple[str, ...]] = {
    "single_holder": ("taken over", "epoch raised"),
    "started_once": ("replaced",),
    "ended_stays_ended": ("ended",),
    "outage_lapses_nothing": ("lapsed",),
    "backlog_bounded": ("granted",),
    "recovers": ("lapsed", "adopted"),
}
"""The same for a fleet's."""


def partners(name: str) -> tuple[str, ...]:
    """What must have happened for a promise to mean anything."""
    return PARTNERS.get(name) or FLEET_PARTNERS[name]


class Violation(Struct, frozen=True):
    """A promise broken by one seed: by how many upsets at first, by which ones after shrinking, the story, the trace's
    file ("" if none was written), why shrinking ended early and why nothing was written ("" if neither)."""

    seed: int
    promise: str
    drawn: int
    upsets: tuple[Upset, ...]
    story: tuple[str, ...]
    trace: str = ""
    cut_short: str = ""
    unwritten: str = ""


class SimulationResult(Struct, frozen=True):
    """What the walks came to. ``checked`` is how often each promise was judged, ``seen`` what happened how often.

    ``moves`` and ``region_s`` (seconds of simulated region) are sums over all walks, ``cpu_s`` that of the walks alone.
    """

    scenario: str
    seeds: tuple[int, ...]
    checked: dict[str, int]
    judged: tuple[str, ...]
    seen: dict[str, int]
    moves: int
    region_s: float
    slowest_s: float
    cpu_s: float
    violation: Violation | None = None
    stopped: bool = False
    unwritten: str = ""

    @property
    def verdict(self) -> str:
        """ "violated", "unfinished" (stopped before every walk was done) or "holds"."""
        if self.violation is not None:
            return "violated"
        return "unfinished" if self.stopped or not self.seeds else "holds"

    @property
    def holds(self) -> bool:
        """Whether no promise broke."""
        return self.violation is None

    def vacuous(self) -> list[str]:
        """Promises none of whose partners happened."""
        return [name for name in self.judged if not any(self.seen.get(event) for event in partners(name))]


def gathered(
    scenario: Scenario,
    walks: list[Walked],
    violation: Violation | None,
    *,
    stopped: bool = False,
    unwritten: str = "",
) -> SimulationResult:
    """Several walks as one result."""
    return SimulationResult(
        scenario=scenario.name,
        seeds=tuple(walked.seed for walked in walks),
        checked=added([walked.checked for walked in walks]),
        judged=scenario.promises,
        seen=added([walked.seen for walked in walks]),
        moves=sum(walked.moves for walked in walks),
        region_s=sum(walked.ended for walked in walks) / SECOND,
        slowest_s=max((walked.converged_after for walked in walks), default=0) / SECOND,
        cpu_s=sum(walked.cpu_s for walked in walks),
        violation=violation,
        stopped=stopped,
        unwritten=unwritten,
    )


def document(result: SimulationResult) -> dict[str, Any]:
    """The result as plain JSON values."""
    broken = result.violation
    cpu_s = max(result.cpu_s, 1e-9)
    return {
        "scenario": result.scenario,
        "seeds": list(result.seeds),
        "verdict": result.verdict,
        "promises": {
            name: {
                "held": (broken is None or broken.promise != name) if result.seeds else None,
                "times_checked": result.checked.get(name, 0),
                "sometimes": {event: result.seen.get(event, 0) for event in partners(name)},
            }
            for name in result.judged
        },
        "figures": {
            "moves": result.moves,
            "region_s": round(result.region_s, 3),
            "moves_per_cpu_s": round(result.moves / cpu_s),
            "region_s_per_cpu_s": round(result.region_s / cpu_s),
            "longest_to_converge_s": round(result.slowest_s, 3),
            "seen": result.seen,
        },
        "cpu_s": round(result.cpu_s, 3),
        "stopped": result.stopped,
        "violation": None
        if broken is None
        else {
            "seed": broken.seed,
            "promise": broken.promise,
            "upsets_drawn": broken.drawn,
            "upsets": [
                {"at_s": each.at / SECOND, "kind": each.kind, "lasts_s": each.lasts / SECOND} for each in broken.upsets
            ],
            "story": list(broken.story),
            "trace": broken.trace or None,
            "shrinking_stopped": broken.cut_short or None,
            "trace_error": broken.unwritten or None,
        },
        "trace_error": result.unwritten or None,
    }


def differing(path: str, header: Header, where: str) -> dict[str, Any]:
    """A replay that came out otherwise than its file, as plain JSON values."""
    return {
        "scenario": header.scenario.name,
        "seeds": [header.seed],
        "verdict": "differs",
        "trace": path,
        "difference": where,
    }


def tell(result: SimulationResult) -> str:
    """The result for people: a head line, then how often each promise was checked, or the story that broke one."""
    walks, broken = len(result.seeds), result.violation
    rate = f"{result.moves:,} moves, {result.region_s / 3600:.1f} h of region in {result.cpu_s:.1f} s CPU"
    count = f"{walks} walk{'' if walks == 1 else 's'}"
    if broken is not None:
        after = f"VIOLATED {broken.promise} · seed {broken.seed} · {result.scenario} · {rate}"
        kinds = ", ".join(sorted({each.kind for each in broken.upsets})) or "none at all"
        lines = [after, f"  {broken.drawn} upsets were drawn, {len(broken.upsets)} of them suffice: {kinds}"]
        if broken.cut_short:
            lines.append(f"  shrinking was stopped {broken.cut_short}: fewer may suffice")
        lines += [f"  {clock_face(each.at)}  {each.kind}" for each in broken.upsets]
        lines += ["the story:", *(f"  {line}" for line in broken.story)]
        if broken.trace:
            lines.append(f"trace: {broken.trace}")
        if broken.unwritten:
            lines.append(f"no trace: {broken.unwritten}")
        return "\n".join(lines)
    stopped = ", then stopped" if result.stopped else ""
    head = "HOLDS" if result.verdict == "holds" else "UNFINISHED, nothing broken so far"
    lines = [f"{head} · {count}{stopped} · {result.scenario} · {rate}"]
    for name in result.judged:
        happened = [f"{event} {n:,}" for event in partners(name) if (n := result.seen.get(event, 0))]
        said = ", ".join(happened) or "nothing that it speaks of happened"
        lines.append(f"  {name:24} checked {result.checked.get(name, 0):>9,} times · {said}")
    if result.unwritten:
        lines.append(f"no trace: {result.unwritten}")
    return "\n".join(lines)
