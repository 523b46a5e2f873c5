"""The fleet's collapse and its recovery, in figures: within their bounds on every seed, the same for the same seed."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from fencepost.core.admission.columns import Ids, Mask, Times
from fencepost.core.admission.spread import shares
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND
from fencepost.simulator.fleet_collapse.picture import lines, svg
from fencepost.simulator.fleet_collapse.production import Fleet, collapse, settings_for, shock
from fencepost.simulator.fleet_collapse.recovery_map import document as map_document
from fencepost.simulator.fleet_collapse.recovery_map import load_of, lost_of, mapped
from fencepost.simulator.fleet_collapse.scenario import BASE, VARIANTS, document, figures, run_variant, tell
from fencepost.world.fleet_load import Load, Outcome, Service

SMALL: dict[str, Any] = {"hosts": 4_000, "slots": 16, "mean": 250 * MILLISECOND}
"""At best 62.5 s for all, as the large one."""


def never(load: Load, seed: int, lasts: int) -> Outcome:
    """An old decider that a quarter gets past."""
    return Outcome(load, first_done=load.hosts // 4, sends=2 * load.hosts, held=[0, load.hosts // 4, 0], renewed=[])


QUARTER: dict[str, Any] = {"hosts": 25_000, "slots": 16}
EIGHTH: dict[str, Any] = {"hosts": 12_500, "slots": 8}


@pytest.mark.soak
def test_a_hundred_thousand_at_once_are_answered_in_hardly_more_than_the_best_time() -> None:
    """`recovers_at_capacity`: at most 1.05 × 62.5 s, one call a host, each misjudgement within 1.15, on several
    seeds."""
    for seed in range(3):
        for variant in VARIANTS.values():
            run = run_variant(variant, 100_000, seed)
            assert run.met, run
            assert run.drain_ratio is not None
            assert run.drain_ratio > 1


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "service-under-2x"])
def test_what_is_misjudged_costs_little(name: str) -> None:
    """L off by 2, service time off by 4, uneven calls, failures: with an eighth of hosts and slots, where a second says
    less about the mean, within 1.2 of the best, and 1.06 if nothing is misjudged. To find a limit that is too low takes
    the same time in any fleet: a quarter for that."""
    variant = VARIANTS[name]
    load = Load(**(QUARTER if variant.limit < 1 else EIGHTH), cv=variant.cv, failing=variant.failing)
    outcome = collapse(load, settings_for(load, variant.limit, variant.service), 1)
    assert outcome.drain_ratio is not None
    assert 1 < outcome.drain_ratio <= (1.06 if variant is BASE else 1.2)
    assert outcome.sends_to_drain / load.hosts <= (1.1 if variant.failing else 1.0)


def test_renewals_leave_no_echo() -> None:
    """After a mass grant their rate is even, from one period on (fleetdm/fleet #3271); `make bench` walks the hour."""
    outcome = collapse(Load(**SMALL), settings_for(Load(**SMALL)), 1, 10 * MINUTE, 40 * MILLISECOND)
    assert outcome.renewal_cv(10 * 60, 60) < 0.1
    assert sum(outcome.renewed[-600:]) / 600 == pytest.approx(4_000 / 120, rel=0.01)
    assert min(outcome.held[70:]) == 4_000


def half_of(load: Load) -> Load:
    """As much load on half of the hosts and slots."""
    return structs.replace(load, hosts=load.hosts // 2, slots=load.slots // 2)


class Hasty(Fleet):
    """Renews between a fifth of a period and a whole one: jitter that shortens."""

    def due(self, ids: Ids, held: Mask) -> Times:  # noqa: ARG002  overrides
        """Early, each time."""
        period = self.load.period
        return self.now + period // 5 + (shares(ids, self.calls[ids], self.now) * period * 4 // 5).astype(np.int64)


def test_jitter_that_shortens_is_metastable_and_ours_lengthens() -> None:
    """Seen with renewals first: stuck for good with a part of the hosts held, every slot busy with early renewals.

    The floor, by which renewals with time to spare leave some slots to those without a lease, ends that as well.
    """
    load = half_of(load_of(75))
    floor, bare = settings_for(load), structs.replace(settings_for(load), period=0)
    held = {}
    for kind, settings in ((Hasty, bare), (Hasty, floor), (Fleet, bare), (Fleet, floor)):
        fleet = kind(load, settings, 0)
        fleet.admission.acquire(np.arange(load.hosts), 0)
        fleet.run(3 * load.lease)
        held[kind, settings] = [count / load.hosts for count in fleet.outcome.held[-load.lease // SECOND :]]
    assert max(held[Hasty, bare]) < 0.9
    assert min(held[Hasty, floor]) == min(held[Fleet, bare]) == min(held[Fleet, floor]) == 1.0


@pytest.mark.parametrize("per_cent", [25, 80, 94])
def test_whatever_is_lost_is_made_good(per_cent: int) -> None:
    """At any load below 95 %: all leases lost at once are held again within little more than the best time, for
    good."""
    load = load_of(per_cent)
    for lost in (20, 100):
        recovered = shock(load, settings_for(load), 1, lost_of(lost), 6 * load.lease).recovered()
        assert recovered is not None
        assert recovered <= 1.15 * load.ideal + 1


def test_leases_not_yet_expired_are_no_recovery() -> None:
    """Held by 99 % and still so less than a lease later says nothing; a dip begins it anew."""
    load = Load(hosts=100, period=10 * SECOND)
    assert Outcome(load, held=[0, *[100] * 30]).recovered() is None
    assert Outcome(load, held=[0, *[100] * 32]).recovered() == 1
    assert Outcome(load, held=[0, *[100] * 40, 98]).recovered() is None
    assert Outcome(load, held=[98, *[100] * 40, 98, *[99] * 31]).recovered() == 42


def test_the_service_slows_down_past_its_knee_exactly() -> None:
    """Twice as many as it has slots take 2^1.25 times as long, and go faster once some have gone."""
    service = Service(Load(slots=2, exponent=1.25))
    service.begin([0, 1, 2, 3], [100, 100, 100, 200], 0)
    at = service.next_at()
    assert at is not None
    assert abs(at - 100 * 2**1.25) <= 2
    assert sorted(service.until(at + 2)) == [0, 1, 2]
    last = service.next_at()
    assert last is not None
    assert abs(last - at - 100) <= 4
    assert service.until(last) == [3]
    assert len(service) == 0


@pytest.mark.parametrize("cv", [0.0, 1.0, 2.0])
def test_service_times_are_what_they_are_said_to_be(cv: float) -> None:
    """Mean, spread and 99th percentile of a hundred thousand calls."""
    load = Load(cv=cv)
    times = load.work(3, np.arange(100_000), np.zeros(100_000, np.int64)) / load.mean
    assert times.mean() == pytest.approx(1, rel=0.03)
    assert times.std() == pytest.approx(cv, rel=0.05, abs=1e-9)
    assert np.quantile(times, 0.99) == pytest.approx(load.quantile(0.01) / load.mean, rel=0.06)


def test_same_seed_same_bytes_other_seed_other_bytes() -> None:
    """The document holds nothing that differs from run to run."""
    texts = []
    for seed in (3, 3, 4):
        found = figures(range(seed, seed + 1), ("limit-halved",), {"never": never}, lambda _: None, hosts=3_000)
        texts.append(json.dumps(document(found)))
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["figures"]["drain_ratio"] != json.loads(texts[2])["figures"]["drain_ratio"]


def test_a_bound_that_is_not_kept_is_said() -> None:
    """With so few hosts the last calls are a tenth of all time, and the bound of the large fleet isn't kept."""
    found = figures(range(1), ("limit-doubled", "cv-2"), {"never": never}, lambda _: None, hosts=600)
    made = document(found)
    assert made["verdict"] == "violated"
    assert made["figures"]["as_was_done_fraction"] == 0.25
    assert not all(each["met"] for each in made["variants"])
    assert tell(found).startswith("VIOLATED recovers_at_capacity · fleet-collapse · 600 hosts")
    assert "25.0% answered, the last after 1 s, then none" in tell(found)


def test_a_map_says_both_and_draws_both() -> None:
    """As it was beside production: numbers as JSON, as lines, and as a picture in which each cell says its own."""

    def stuck(load: Load, seed: int, lost: list[int], most: int) -> Outcome:
        return Outcome(load, held=[0] if len(lost) > 500 else [load.hosts] * (load.lease // SECOND + 9))

    found = mapped(stuck, lambda _: None, loads=(80, 90), losses=(10, 50))
    made = map_document(found)
    assert (made["verdict"], made["production_cells_that_fail"]) == ("holds", 0)
    assert made["as_was"] == [[0.0, 0.0], [None, None]]
    assert made["hysteresis_at_loads_percent"] == [80, 90]
    assert "    50 %   never  never" in lines(found)
    drawn = svg(found)
    assert drawn.count(">never</text>") == 3
    assert all(f">{cell:.0f}</text>" in drawn for row in found.production for cell in row if cell is not None)


def test_the_page_shows_the_map_of_what_ships() -> None:
    """docs/concepts/recovery.md and its picture went on saying 31 s where a floor for those who acquire had made it
    16 s: that cell is walked anew here."""
    pages = Path(__file__).parents[2] / "docs/concepts"
    load = load_of(94)
    recovered = shock(load, settings_for(load), 0, lost_of(5), 6 * load.lease).recovered()
    assert f"({recovered:.0f} s instead of 3 s at 5 % and 94 %)" in (pages / "recovery.md").read_text()
    drawn = re.findall(r'font-size="\d+"[^>]*>(\d+|never)</text>', (pages / "recovery-map.svg").read_text())
    assert drawn[64 + 8 + 7] == f"{recovered:.0f}"  # production is the second panel, its rows of eight losses
