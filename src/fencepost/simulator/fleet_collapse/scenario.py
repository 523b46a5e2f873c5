"""``fencepost simulate --scenario fleet-collapse``: 100,000 hosts ask at once; what becomes of it, in figures.

The service answers 64 at a time, 40 ms each in the mean: at best all are answered in 62.5 s. A caller waits ten
seconds. ``recovers_at_capacity`` is judged by the bounds below, on the admission that ships; the deciders of the time
are handed in by the caller, since they live apart from everything that ships.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from fencepost.core.instant import HOUR, MILLISECOND, SECOND, Duration
from fencepost.simulator.fleet_collapse.production import collapse, settings_for
from fencepost.world.fleet_load import Load, Outcome

NAME = "fleet-collapse"
SCHEMA = "fencepost.fleet-collapse/1"
AFTER: Duration = HOUR
PACE: Duration = 40 * MILLISECOND
"""In the hour after, the manager looks that often, so that an hour takes seconds; while hosts wait it looks at once."""
AS_IT_WAS: Duration = 150 * SECOND
"""Fifteen times a caller's patience: who isn't answered by then never is, since the line only grows."""
SENDS_MOST, CV_MOST = 1.1, 0.1

OldFleet = Callable[[Load, int, Duration], Outcome]
"""Every host at once, under a decider of the time: load, seed, how long."""
Told = Callable[[str], None]
"""Called with what has just been done."""


class Variant(Struct, frozen=True, gc=False):
    """One thing that is off: how far L and the known service time are off, and what the service is like."""

    name: str
    meaning: str
    limit: float = 1.0
    service: float = 1.0
    cv: float = 1.0
    failing: float = 0.0
    most: float = 1.15

    def load(self, hosts: int) -> Load:
        """The service, and so many hosts."""
        return Load(hosts=hosts, cv=self.cv, failing=self.failing)


BASE = Variant("base", "as calibrated", most=1.05)
VARIANTS = {
    each.name: each
    for each in (
        BASE,
        Variant("limit-halved", "L is half of what the service takes", limit=0.5),
        Variant("limit-doubled", "L is twice what the service takes", limit=2),
        Variant("service-under-4x", "the service time is four times what it was taken for", service=0.25),
        Variant("service-under-2x", "the service time is twice what it was taken for", service=0.5),
        Variant("service-over-4x", "the service time is a quarter of what it was taken for", service=4),
        Variant("cv-2", "a few calls take very long (a coefficient of variation of 2)", cv=2),
        Variant("failures-2-percent", "2 % of the calls fail", failing=0.02),
    )
}
"""Every variant, by name."""


class Run(Struct, frozen=True):
    """One variant with one seed. ``renewal_cv`` is None where the hour after wasn't walked."""

    variant: Variant
    seed: int
    drain_ratio: float | None
    sends_per_host: float
    renewal_cv: float | None

    @property
    def met(self) -> bool:
        """Whether it is within its bounds."""
        drained = self.drain_ratio is not None and self.drain_ratio <= self.variant.most
        return drained and self.sends_per_host <= SENDS_MOST and (self.renewal_cv or 0.0) < CV_MOST

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "variant": self.variant.name,
            "seed": self.seed,
            "drain_ratio": rounded(self.drain_ratio),
            "drain_ratio_most": self.variant.most,
            "sends_per_host": rounded(self.sends_per_host),
            "renewal_cv": rounded(self.renewal_cv),
            "met": self.met,
        }


class OldRun(Struct, frozen=True):
    """One decider of the time, with one seed: the share answered, and seconds until the last useful answer."""

    name: str
    seed: int
    done_fraction: float
    sends_per_host: float
    last_gain_s: int


class Figures(Struct, frozen=True):
    """All runs. ``walked`` is false after Ctrl-C."""

    hosts: int
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]
    old: tuple[OldRun, ...]
    stopped: bool = False

    @property
    def verdict(self) -> str:
        """ "violated", "unfinished" or "holds"."""
        if not all(run.met for run in self.runs):
            return "violated"
        return "unfinished" if self.stopped or not self.runs else "holds"


def run_variant(variant: Variant, hosts: int, seed: int, after: Duration = 0) -> Run:
    """Every host at once; and how evenly renewals come in so long afterwards, if any."""
    load = variant.load(hosts)
    outcome = collapse(load, settings_for(load, variant.limit, variant.service), seed, after, PACE)
    cv = outcome.renewal_cv(after // SECOND) if after else None
    sends = outcome.sends_to_drain or outcome.sends
    return Run(variant, seed, outcome.drain_ratio, sends / hosts, cv)


def run_old(name: str, fleet: OldFleet, hosts: int, seed: int) -> OldRun:
    """The same as it was."""
    outcome = fleet(Load(hosts=hosts), seed, AS_IT_WAS)
    most = max(outcome.held)
    last = outcome.held.index(most)
    return OldRun(name, seed, outcome.first_done / hosts, outcome.sends / hosts, last)


def figures(
    seeds: range, variants: tuple[str, ...], old: dict[str, OldFleet], told: Told, hosts: int = 100_000
) -> Figures:
    """Walk them all; after Ctrl-C what there is so far. Raises ``ValueError`` for an unknown variant."""
    from fencepost.simulator.command import known

    chosen = [VARIANTS[known(name, VARIANTS, "variant")] for name in variants]
    runs: list[Run] = []
    before: list[OldRun] = []
    stopped = False
    try:
        for seed in seeds:
            for name, fleet in old.items():
                before.append(run_old(name, fleet, hosts, seed))
                told(f"as it was, {name},")
            for variant in chosen:
                runs.append(run_variant(variant, hosts, seed, AFTER if variant is BASE else 0))
                told(f"{variant.name} with seed {seed}")
    except KeyboardInterrupt:
        stopped = True
    return Figures(hosts, tuple(seeds), tuple(runs), tuple(before), stopped)


def worst(values: list[float | None]) -> float | None:
    """The largest; None if one is, or there is none."""
    found = [each for each in values if each is not None]
    return max(found) if found and len(found) == len(values) else None


def rounded(value: float | None) -> float | None:
    """To five digits after the point."""
    return None if value is None else round(value, 5)


def document(found: Figures) -> dict[str, Any]:
    """As plain JSON values; ``figures`` are the worst of all seeds, of the base variant if it was walked."""
    base = [run for run in found.runs if run.variant is BASE] or list(found.runs)
    load = BASE.load(found.hosts)
    return {
        "schema": SCHEMA,
        "scenario": NAME,
        "seeds": list(found.seeds),
        "verdict": found.verdict,
        "figures": {
            "drain_ratio": rounded(worst([run.drain_ratio for run in base])),
            "sends_per_host": rounded(worst([run.sends_per_host for run in base])),
            "renewal_cv": rounded(worst([run.renewal_cv for run in base])),
            "as_was_done_fraction": rounded(worst([run.done_fraction for run in found.old])),
            "hosts": found.hosts,
            "ideal_drain_s": round(load.ideal, 3),
        },
        "bounds": {"drain_ratio": BASE.most, "sends_per_host": SENDS_MOST, "renewal_cv": CV_MOST},
        "promises": {
            "recovers_at_capacity": {"held": found.verdict == "holds", "times_checked": len(found.runs)},
        },
        "variants": [run.document() for run in found.runs],
        "as_was": [
            {
                "name": run.name,
                "seed": run.seed,
                "done_fraction": rounded(run.done_fraction),
                "sends_per_host": rounded(run.sends_per_host),
                "last_gain_s": run.last_gain_s,
                "walked_s": AS_IT_WAS // SECOND,
            }
            for run in found.old
        ],
        "stopped": found.stopped,
    }


def tell(found: Figures) -> str:
    """For people."""
    heads = {"holds": "HOLDS", "violated": "VIOLATED recovers_at_capacity", "unfinished": "UNFINISHED"}
    load = BASE.load(found.hosts)
    lines = [f"{heads[found.verdict]} · {NAME} · {found.hosts:,} hosts at once, at best {load.ideal:.1f} s"]
    for old in found.old:
        answered = f"{old.done_fraction:.1%} answered, the last after {old.last_gain_s} s, then none"
        calls = f"{old.sends_per_host:.1f} calls a host in {AS_IT_WAS // SECOND} s"
        lines.append(f"  as it was, {old.name}: {answered}; {calls}")
    for run in found.runs:
        ratio = "never drained" if run.drain_ratio is None else f"{run.drain_ratio:.3f} × the best"
        cv = "" if run.renewal_cv is None else f"; renewals in the hour after: cv {run.renewal_cv:.3f}"
        bound = f"(at most {run.variant.most})"
        lines.append(f"  {run.variant.name:20} {ratio} {bound}, {run.sends_per_host:.3f} calls a host{cv}")
    return "\n".join(lines)
