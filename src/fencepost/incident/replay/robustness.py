"""Which statements still hold when every calibrated value is drawn anew, within 30 % of what fits best.

Nobody published these values, so nothing may hang on one of them: claim the order of phases, not the minutes. Published
values and estimates stay as they are. Hours of the day are moved by nothing: they are what the values were fitted to.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from fencepost.incident.replay.guards import NONE, Guard, Guards
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome, happened_by
from fencepost.incident.replay.parallel import in_parallel
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Kind, Scenario, Tick, Value

SPREAD = 0.3
HOSTS = 5_000
LASTS_S = 11 * 3600
"""Long enough for every statement; the rest of the day says nothing of them."""
PULLED: Guards = frozenset({Guard.ADMISSION, Guard.NETWORK_THROTTLE})

Runs = dict[str, Outcome]
"""One draw's runs, by the names in :data:`RUNS`."""

RUNS: dict[str, tuple[Guards, bool]] = {
    "as it was": (NONE, True),
    "nobody": (NONE, False),
    "lease clock": (frozenset({Guard.LEASE_CLOCK}), True),
    "admission": (frozenset({Guard.ADMISSION}), False),
    "pulled, nobody": (PULLED, False),
    "velocity": (frozenset({Guard.VELOCITY}), True),
}
"""What is run of each draw: guards, and whether people act."""


class Statement(Struct, frozen=True):
    """One thing that is said, and how it is judged of a draw's runs; None where a draw can't say."""

    words: str
    holds: Callable[[Runs, Tick], bool | None]


class Counted(Struct, frozen=True):
    """In how many draws a statement held, of how many that could say."""

    words: str
    held: int
    of: int


def missing_at(outcome: Outcome, tick: Tick) -> float:
    """The share of hosts without a lease at that moment."""
    at = min(int(np.searchsorted(outcome.times, tick)), len(outcome.times) - 1)
    return float(outcome.series["leases_missing"][at])


def recovered(outcome: Outcome) -> bool:
    """Whether all leases came back, for good."""
    return "leases-back" in outcome.happened and float(outcome.series["leases_missing"][-1]) < 0.01


def back_after(outcome: Outcome) -> float | None:
    """Seconds from the store's return until all leases were back."""
    back, restored = outcome.happened.get("leases-back"), happened_by(outcome, "restore-store")
    return None if back is None or restored is None else back - restored


def _sooner(runs: Runs, _: Tick) -> bool | None:
    """Three to four times as soon, of draws in which people brought the leases back at all."""
    alone, by_hand = back_after(runs["pulled, nobody"]), back_after(runs["as it was"])
    if by_hand is None:
        return alone is not None
    return alone is not None and alone * 2 <= by_hand


def _ratio_within(most: float) -> Callable[[Runs, Tick], bool | None]:
    def judged(runs: Runs, _: Tick) -> bool | None:
        ratio = runs["admission"].figures["recovery_ratio"]
        return ratio is not None and ratio <= most

    return judged


STATEMENTS = (
    Statement("as it was, nobody at the keyboard: leases never come back", lambda r, _: not recovered(r["nobody"])),
    Statement(
        "as it was: over 90 % still miss when people step in", lambda r, at: missing_at(r["as it was"], at) >= 0.9
    ),
    Statement("as it was: what people did brings the leases back", lambda r, _: recovered(r["as it was"])),
    Statement("the lease clock keeps every lease", lambda r, _: "leases-breaking" not in r["lease clock"].happened),
    Statement("admission: leases are back within 1.25 x the ideal", _ratio_within(1.25)),
    Statement("admission: within 1.1 x", _ratio_within(1.1)),
    Statement("admission and network throttle recover alone, in half the time or less", _sooner),
    Statement("and they take no capacity out", lambda r, _: _most_out(r["pulled, nobody"]) < 0.01),
    Statement("the velocity limit keeps removals at 5 % in the mean", lambda r, _: _mean_out(r["velocity"]) <= 0.05),
)
"""What is said of the guards, and of how it was."""


def _most_out(outcome: Outcome) -> float:
    """The largest share of capacity that was out at once."""
    return float(outcome.series["capacity_out"].max())


def _mean_out(outcome: Outcome) -> float:
    """The mean share of capacity that is out while any is."""
    out = outcome.series["capacity_out"]
    return float(out[out > 0].mean()) if (out > 0).any() else 0.0


def drawn(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with each calibrated value between 0.7 and 1.3 of itself; shares stay at most 1."""
    chance = np.random.default_rng((seed, 30))
    values = {}
    for key, value in scenario.values.items():
        factor = float(chance.uniform(1 - SPREAD, 1 + SPREAD))
        values[key] = moved(value, factor) if value.kind is Kind.CALIBRATED and value.unit != "hour" else value
    return structs.replace(scenario, values=values)


def moved(value: Value, factor: float) -> Value:
    """One value times so much; whole numbers stay whole."""
    amount = value.amount * factor
    if value.unit == "share":
        amount = min(1.0, amount)
    if value.unit == "" and value.amount == int(value.amount) and value.amount >= 1:
        amount = max(1.0, float(round(amount)))
    return structs.replace(value, amount=amount)


def judge(scenario: Scenario, options: Options, outage_s: int, steps_in: Tick | None) -> list[bool | None]:
    """Every statement about one draw. ``steps_in`` is when people stepped in; None: when they do in that draw."""
    short = structs.replace(scenario, lasts_s=min(scenario.lasts_s, LASTS_S))
    runs = {
        name: replay(short, structs.replace(options, guards=guards, operators=operators, outage_s=outage_s))
        for name, (guards, operators) in RUNS.items()
    }
    if steps_in is None:
        steps_in = happened_by(runs["as it was"], "throttle-leases") or short.lasts_s
    return [statement.holds(runs, steps_in) for statement in STATEMENTS]


def count(judged: list[list[bool | None]]) -> list[Counted]:
    """All draws together."""
    columns = zip(*judged, strict=True)
    return [
        Counted(statement.words, sum(bool(each) for each in column), sum(each is not None for each in column))
        for statement, column in zip(STATEMENTS, columns, strict=True)
    ]


def robustness(
    scenario: Scenario, options: Options, outage_s: int, draws: int, told: Callable[[int], None] = lambda _: None
) -> list[Counted]:
    """Seeds and draws 1 to ``draws``, on as many cores as there are; ``told`` how many are done."""
    steps_in = next((act.reported for act in scenario.acts if act.does == "throttle-leases"), None)
    jobs = (
        (drawn(scenario, draw), structs.replace(options, seed=draw), outage_s, steps_in) for draw in range(1, draws + 1)
    )
    judged = []
    for each in in_parallel(judge, jobs):
        judged.append(each)
        told(len(judged))
    return count(judged)
