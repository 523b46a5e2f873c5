"""The two scenarios that are nobody's incident: what each shows as it was, and with what ships in its place."""

import json
from functools import cache

import pytest
from called import call
from msgspec import structs
from outcomes import guarded

from fencepost.incident.replay.guards import NONE, PRODUCTION, Guard, Guards
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.region import STEP_S
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Kind
from fencepost.incident.replay.scenario_file import SHIPPED, find_scenario
from fencepost.incident.replay.show.naming import outage_s
from fencepost.incident.replay.show.phases import length_s, stretches
from fencepost.incident.replay.show.remarks import remarks
from fencepost.incident.replay.traps import show_trap

HOUR = 3600


@cache
def run(name: str, guards: Guards = NONE, *, operators: bool = True, seed: int = 1) -> Outcome:
    """With few hosts."""
    return replay(find_scenario(name), Options(hosts=2_000, guards=guards, operators=operators, seed=seed))


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_scenario_reads_and_says_where_all_its_values_come_from(name: str) -> None:
    """Made-up facts are never called published."""
    scenario = find_scenario(name)
    assert scenario.name == name
    assert {value.source for value in scenario.values.values()} <= scenario.sources.keys()
    if name != "aws-2025-10-19":
        assert all(value.kind is not Kind.PUBLISHED for value in scenario.values.values())
        assert all(act.reported is None for act in scenario.acts)
        assert all(event.reported is None for event in scenario.events)


NEEDS_AN_OUTAGE = {
    "cause-found", "mitigated", "dns-restored", "pollers-restarted", "throttles-relaxed", "failover-on",
    "network-normal",
}  # fmt: skip


def test_nobody_mends_what_was_never_broken() -> None:
    """Where the endpoint was never emptied no act has its occasion, so no phase begins (docs/operating/replay.md)."""
    outcome = run("aws-2025-10-19", frozenset({Guard.FENCE}))
    assert not NEEDS_AN_OUTAGE & outcome.happened.keys()
    assert all(each.simulated is None for each in stretches(outcome))
    assert not remarks(outcome)
    assert not any(outcome.down.values())


def test_nothing_is_switched_on_again_that_nobody_switched_off() -> None:
    """Guards, a forced outage: no throttle is set, failover never switched off (docs/operating/replay-scenarios.md)."""
    happened = guarded().happened
    assert {"cause-found", "mitigated", "dns-restored", "pollers-restarted"} <= happened.keys()
    assert not {"launches-limited", "throttles-relaxed", "failover-off", "failover-on"} & happened.keys()
    away = run("database-away", PRODUCTION).happened
    assert "launches-limited" not in away
    assert "limit-relaxed" not in away


def test_a_shorter_outage_is_no_longer_than_it_was() -> None:
    """30 min forced: the endpoint is gone so long, not until the reported hour at which its cause was found, and what
    people ended by hand elsewhere ends (docs/operating/replay-scenarios.md: ends by hand aren't moved by guards).
    """
    outcome = replay(find_scenario("aws-2025-10-19"), Options(hosts=2_000, outage_s=1800))
    gone, mended, *_ = stretches(outcome)
    assert gone.simulated is not None
    assert gone.by_script
    assert not gone.equal
    assert length_s(gone.simulated, 0) == pytest.approx(1800, abs=STEP_S)
    assert mended.simulated is None
    ends = {name: [ended for _, ended in outcome.down[name]] for name in ("tokens", "sign-in", "functions")}
    assert all(spans[0] is not None for spans in ends.values()), ends


@pytest.mark.parametrize("seed", [1, 2])
def test_two_hours_without_the_database_are_many_more_as_it_was(seed: int) -> None:
    """Every lease runs out; nothing comes back until people throttle; launches fail until late at night."""
    outcome = run("database-away", seed=seed)
    happened = outcome.happened
    assert outcome.figures["broken_leases_max"] == 2_000
    assert outcome.figures["capacity_out_max"] is not None
    assert happened["leases-throttled"] == happened["store-back"] + 30 * 60
    assert happened["leases-back"] > happened["leases-throttled"] + HOUR
    assert happened["launches-normal"] - happened["store-back"] > 6 * HOUR
    assert outcome.figures["capacity_out_max"] > 0.1


def test_without_people_the_database_comes_back_and_leases_never_do() -> None:
    """All callers are back within two minutes: the storm sustains itself."""
    outcome = run("database-away", operators=False)
    assert "store-back" in outcome.happened
    assert "leases-back" not in outcome.happened


def test_with_every_guard_no_lease_is_lost_and_launches_fail_an_hour_longer_at_most() -> None:
    """Nobody at the keyboard."""
    outcome = run("database-away", PRODUCTION, operators=False)
    assert outcome.figures["leases_missing_s"] == 0
    assert outcome.figures["capacity_out_s"] == 0
    assert 2 * HOUR < (outcome.figures["launch_failing_s"] or 0) <= 3 * HOUR
    assert outage_s(outcome.scenario) == 2 * HOUR


def test_a_bad_check_takes_a_zone_of_every_balancer_at_once_as_it_was() -> None:
    """A third of all capacity and more, by day; and it goes on when the check is mended, until failover is off."""
    outcome = run("bad-probe")
    happened = outcome.happened
    at_once = outcome.series["capacity_out"][outcome.times <= happened["zones-removed"] + 6 * 60]
    assert float(at_once.max()) > 1 / 3
    assert float(outcome.series["connection_errors"].max()) > 0.25
    assert happened["failover-off"] == happened["probe-mended"] + 30 * 60
    assert happened["capacity-back"] >= happened["failover-off"]


def test_the_limits_of_removal_keep_four_fifths_in_service_and_give_people_time() -> None:
    """There is no decider for zones yet; the limits alone keep max_out, and need half an hour to come to it."""
    bare, bounded = run("bad-probe"), run("bad-probe", frozenset({Guard.VELOCITY}))
    assert bounded.figures["capacity_out_max"] == pytest.approx(0.2, abs=0.005)
    soon = bounded.series["capacity_out"][bounded.times <= bounded.happened["zones-removed"] + 15 * 60]
    assert float(soon.max()) < 0.1
    assert (bounded.figures["capacity_out_s"] or 0) < (bare.figures["capacity_out_s"] or 0) / 4
    assert bounded.happened["errors-seen"] > bare.happened["errors-seen"] + 10 * 60
    every = run("bad-probe", PRODUCTION)
    assert every.figures["capacity_out_s"] == bounded.figures["capacity_out_s"]


def test_that_limits_stand_in_for_a_decider_is_said() -> None:
    """Whoever looks at what guards buy has to know what was looked at."""
    said = call("replay", "bad-probe", "--guards", "velocity", "--hosts", "500")
    assert said.returncode == 0
    assert "no decider for zones of balancers ships yet" in said.stdout
    assert "no decider" not in call("replay", "bad-probe", "--hosts", "500").stdout


def test_what_is_asked_of_october_can_be_asked_of_the_database_too() -> None:
    """Whatever its acts and events are called, and though nothing of it was reported."""
    away = structs.replace(find_scenario("database-away"), lasts_s=7 * HOUR)
    for name in ("one-stage", "counters-kept", "throttle-at-first"):
        assert len(show_trap(name, away, Options(hosts=500), 2 * HOUR).runs) >= 2
    assert show_trap("grace-one-hour", away, Options(hosts=500), 2 * HOUR).holds
    counted = call("replay", "database-away", "--robust", "1", "--hosts", "500", "--json")
    statements = {each["words"]: each for each in json.loads(counted.stdout)["statements"]}
    assert statements["the lease clock keeps every lease"]["held"] == 1
    assert statements["as it was: over 90 % still miss when people step in"]["held"] == 1


@pytest.mark.parametrize(
    "asked", [["--dns-outage", "1h"], ["--map"], ["--ablate"], ["--robust", "1"], ["--trap", "one-stage"]]
)
def test_an_outage_can_t_be_asked_of_a_scenario_without_one(asked: list[str]) -> None:
    """It would be left out silently."""
    refused = call("replay", "bad-probe", *asked)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the store is never away" in refused.stderr
