"""What each guard buys: as it was, each guard alone, each left out, all of them, after the same outage.

A guard of the DNS writes keeps the outage from happening at all, so nothing more can be learnt of the others then.
Therefore every run has two halves: whether its guards let the endpoint become empty is found by the race; what the
others are worth is found in an outage of the reported length, whether it would have come about or not.
"""

from collections.abc import Callable

from msgspec import Struct, structs

from fencepost.incident.replay.automation import automation
from fencepost.incident.replay.guards import NONE, PRODUCTION, Guard, Guards
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.parallel import in_parallel
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Scenario

HOSTS = 10_000
"""Enough: every rate scales with them, and seconds are the same."""


class Row(Struct, frozen=True):
    """One set of guards, and the minutes that something was wrong in an outage of the reported length.

    ``emptied``: whether its own DNS writers emptied the endpoint; where they didn't, there would have been no outage.
    """

    name: str
    guards: Guards
    emptied: bool
    leases_missing: float
    launches_failing: float
    capacity_out: float
    recovery_ratio: float | None

    @property
    def forced(self) -> float:
        """Minutes that something was wrong in the outage, all three added."""
        return self.leases_missing + self.launches_failing + self.capacity_out

    @property
    def own(self) -> float:
        """The same of its own accord: none where its DNS writers keep the endpoint."""
        return self.forced if self.emptied else 0.0


def rows_to_try() -> list[tuple[str, Guards]]:
    """As it was, each alone, each left out, all."""
    tries: list[tuple[str, Guards]] = [("as it was", NONE)]
    tries += [(f"{guard.value} alone", frozenset({guard})) for guard in Guard]
    tries += [(f"all but {guard.value}", PRODUCTION - {guard}) for guard in Guard]
    return [*tries, ("all", PRODUCTION)]


def ablation(
    scenario: Scenario, options: Options, outage_s: int, told: Callable[[int], None] = lambda _: None
) -> list[Row]:
    """Every set of guards, in order of worth: what leaves least that is wrong first. On as many cores as there are.

    ``told``: how many are done.
    """
    tries = rows_to_try()
    jobs = [(scenario, name, structs.replace(options, guards=guards, outage_s=outage_s)) for name, guards in tries]
    found = []
    for row in in_parallel(_row, jobs):
        found.append(row)
        told(len(found))
    return sorted(found, key=lambda row: (row.own, row.forced, tries.index((row.name, row.guards))))


def _row(scenario: Scenario, name: str, options: Options) -> Row:
    figures = replay(scenario, options).figures
    return Row(
        name,
        options.guards,
        automation(scenario, options.guards, options.seed).empty_at is not None,
        (figures["leases_missing_s"] or 0.0) / 60,
        (figures["launch_failing_s"] or 0.0) / 60,
        (figures["capacity_out_s"] or 0.0) / 60,
        figures["recovery_ratio"],
    )
