"""The DNS race in time: emptied at the hour that was published, by nothing but how long calls take; and never behind
the fence."""

import importlib
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from fencepost.core.instant import MINUTE, SECOND
from fencepost.core.traffic.dns_enactor import DnsEnactor
from fencepost.core.traffic.dns_planner import DnsPlanner
from fencepost.core.traffic.janitor import Janitor
from fencepost.core.zone import Batch, Domain, Live, after
from fencepost.incident.enactor import FAR_OLDER, TreeEnactor
from fencepost.incident.messages import DeletePlan, ListPlans, PlanDeleted, PlansListed, PlansRead, Turn, Turned
from fencepost.incident.replay import automation_fenced
from fencepost.incident.replay.automation import Automation, automation
from fencepost.incident.replay.automation_as_it_was import Race, Raced, Walker
from fencepost.incident.replay.automation_time import ENACTORS, REGIONAL, DnsValues, dns_values, orders
from fencepost.incident.replay.guards import NONE, PRODUCTION, Guard
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Cause, Kind, Scenario, Value
from fencepost.incident.replay.scenario_file import find_scenario, set_values
from fencepost.incident.tree import Guard as TreeGuard
from fencepost.incident.tree import Outcome
from fencepost.ports import Misconfigured

SCENARIO = find_scenario("aws-2025-10-19")
PUBLISHED = 18 * 60
"""23:48, in seconds since 23:30."""
FENCE, CLEAN_UP = frozenset({Guard.FENCE}), frozenset({Guard.CLEAN_UP})
SEEDS = st.integers(1, 2**31)


def slowed(times: float) -> Scenario:
    """The scenario with another latency multiplier of enactor A."""
    return set_values(SCENARIO, {"dns.slow": f"{times:g}"})


def raced(guards: frozenset[TreeGuard], seed: int = 1) -> Raced:
    """The race as it was, with guards of the trees' own."""
    return Race(dns_values(SCENARIO), guards, seed, SCENARIO.lasts_s * SECOND).run()


def places(told: Automation, *words: str) -> list[int]:
    """At which line each of these is said first."""
    return [next(at for at, line in enumerate(told.told) if word in line.what) for word in words]


@pytest.mark.parametrize("seed", range(1, 21))
def test_the_endpoint_is_emptied_at_the_published_minute(seed: int) -> None:
    """Summary of October 2025: 11:48 PM PDT. When the slow spell begins is calibrated for it; the rest follows."""
    found = automation(SCENARIO, NONE, seed)
    assert found.empty_at is not None
    assert abs(found.empty_at - PUBLISHED) <= 60
    assert found.stuck


@pytest.mark.parametrize("seed", range(1, 21))
def test_it_comes_about_as_it_was_told(seed: int) -> None:
    """Incident, steps 1 to 5: one check; the late turn; the clean-up by another; no addresses; nobody can go on."""
    found = automation(SCENARIO, NONE, seed)
    at = places(
        found, "checks it, once", "comes to the regional", "deletes plan", "NOERROR", "can't be saved", "can't mend"
    )
    assert at == sorted(at)
    (cleaner,) = {line.who for line in found.told if "deletes plan" in line.what}
    assert cleaner in ENACTORS[1:]
    assert {line.who for line in found.told if "can't be saved" in line.what} == set(ENACTORS)
    assert [line.at for line in found.told] == sorted(line.at for line in found.told)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_enactor_that_is_hardly_slower_empties_nothing(times: float) -> None:
    """Estimate: 10 to 100 times. The clean-up is the same, and nobody is left on what it deletes."""
    for seed in range(1, 6):
        found = automation(slowed(times), NONE, seed)
        assert (found.empty_at, found.emptied, found.stuck) == (None, 0, False)


@pytest.mark.parametrize("times", [10, 13, 20, 40, 100])
def test_from_ten_times_on_it_is_emptied(times: float) -> None:
    """The lower end of the outside estimate is enough, and more only makes it later."""
    at = [automation(slowed(times), NONE, seed).empty_at for seed in range(1, 6)]
    assert all(tick is not None and tick >= PUBLISHED - 60 for tick in at)


def test_the_knee_lies_between_nine_and_ten() -> None:
    """It is where enactor A comes to the regional endpoint only after the last sweep before its plan is deleted."""
    emptied = {
        times: sum(automation(slowed(times), NONE, seed).empty_at is not None for seed in range(1, 6))
        for times in (8, 9, 10)
    }
    assert emptied[8] == 0
    assert emptied[9] <= 2
    assert emptied[10] == 5


def test_an_enactor_without_the_spell_is_never_late() -> None:
    """As on any day before: no turn goes back, so no answer is stale."""
    found = automation(slowed(1), NONE, 1)
    assert (found.stale_s, found.fenced) == (0, 0)
    assert found.writes > 1000


@given(SEEDS)
@settings(max_examples=10)
def test_a_cleanup_that_spares_what_is_live_leaves_it_stale(seed: int) -> None:
    """Incident, changed afterwards: clean-up is a write. The old plan then answers, until somebody sweeps by."""
    found = automation(SCENARIO, CLEAN_UP, seed)
    assert (found.empty_at, found.emptied, found.stuck) == (None, 0, False)
    assert 0 < found.stale_s < 2 * SCENARIO.amount("dns.plans")


def test_a_cleanup_that_spares_isnt_enough_for_the_slowest() -> None:
    """As the explorer finds for this guard alone: a plan that nobody refers to just then goes, then it is turned to."""
    found = [automation(slowed(100), CLEAN_UP, seed) for seed in (1, 2)]
    assert all(each.empty_at is not None and each.stuck for each in found)
    assert any("deleted meanwhile" in line.what for line in found[0].told)


@given(SEEDS, st.sampled_from([1.0, 10.0, 30.0]))
@settings(max_examples=5, deadline=None)
def test_behind_the_fence_nothing_is_emptied_or_goes_back(seed: int, times: float) -> None:
    """RFC 2136 section 2.4: a write requires what its writer has read. However late it comes, it does no harm."""
    found = automation(slowed(times), FENCE, seed)
    assert (found.empty_at, found.emptied, found.stale_s, found.stuck) == (None, 0, 0, False)
    assert found.writes > 1000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_late_write_of_the_regional_endpoint_is_refused(seed: int) -> None:
    """The same delay, the same endpoint, the old plan: what emptied it is one of the writes that were fenced."""
    late = automation(SCENARIO, FENCE, seed)
    assert late.fenced > 100
    assert any("with plan" in line.what and "refused" in line.what for line in late.told)
    assert automation(slowed(1), FENCE, seed).fenced == 0


def test_without_the_requirement_the_same_run_goes_back() -> None:
    """That nothing goes back is found, not given: production's deciders on a provider that requires nothing."""

    def careless(domain: Domain, batch: Batch) -> dict[str, Live]:
        return {change.name: after(domain[change.name], change) for change in batch}

    values, end = dns_values(SCENARIO), SCENARIO.lasts_s * SECOND
    late = raced(frozenset()).late
    with patch.object(automation_fenced, "transact", careless):
        found = automation_fenced.fenced(values, 1, end, late)
    assert found.stale > 0
    assert found.refused == 0
    assert found.empty_at is None  # the addresses stand in the endpoint: no pointer to delete under it


def test_fence_and_clean_up_together_are_production() -> None:
    """The fence brings the three deciders that ship, and their janitor has the other guard in it."""
    assert automation(SCENARIO, PRODUCTION, 1) is automation(SCENARIO, FENCE, 1)


def test_a_run_is_remembered_and_repeatable() -> None:
    """Ablations ask again and again; the same values and seed give the same story."""
    first = automation(SCENARIO, NONE, 7)
    assert automation(SCENARIO, frozenset({Guard.ADMISSION}), 7) is first
    assert raced(frozenset(), 7).lines == first.told
    assert automation(SCENARIO, NONE, 8).told != first.told


def test_a_rollback_record_that_tolerates_mends_itself() -> None:
    """The race is the same, but the next turn goes through: what made it last was the missing rollback record."""
    found = raced(frozenset({TreeGuard.ROLLBACK_TOLERATES}))
    assert found.empty_at is not None
    assert found.mended_at is not None
    assert found.mended_at - found.empty_at < 2 * MINUTE
    assert found.failed == 0


def test_a_conditional_write_on_the_tree_would_have_been_enough_here() -> None:
    """As the explorer finds where nothing is skipped and nobody rolls back: what is live must be older."""
    found = raced(frozenset({TreeGuard.CONDITIONAL_WRITE}))
    assert (found.empty_at, found.emptied, found.stale) == (None, 0, 0)


def test_left_to_itself_every_enactor_only_fails() -> None:
    """Incident, step 5. Not a flag: after the last failing turn began, no turn of any enactor has applied."""
    values = dns_values(SCENARIO)
    race = Race(values, frozenset(), 1, SCENARIO.lasts_s * SECOND)
    done: list[tuple[int, Outcome]] = []
    turn = race.turn

    def noted(who: Walker, endpoint: int) -> Outcome:
        outcome = turn(who, endpoint)
        done.append((race.time.now, outcome))
        return outcome

    race.turn = noted  # type: ignore[method-assign]
    found = race.run()
    assert found.empty_at is not None
    late = {outcome for at, outcome in done if at > found.empty_at + 10 * MINUTE}
    assert late == {Outcome.BEFORE_MISSING}
    assert found.trees.empty(REGIONAL)
    assert found.trees.written > found.trees.live[REGIONAL] + 10


@given(SEEDS, st.integers(2, 6), st.sampled_from([1.0, 4.0, 12.0]))
@settings(max_examples=20, deadline=None)
def test_a_walker_decides_as_the_explored_enactor_does(seed: int, endpoints: int, slow: float) -> None:
    """One model of October 2025, not two: in time each step is one that the explorer's enactor has outstanding."""
    values = DnsValues(endpoints, 0.8, 0.3, 0.1, 0.1, 0.3, 3.0, 0.2, FAR_OLDER, 0.5, 0.3, slow, 6.0, 0.2, 2.0)
    shadows = {name: TreeEnactor() for name in ENACTORS}
    look, list_plans, delete, turn = Walker.look, Walker.list_plans, Race.delete, Race.turn

    def looked(walker: Walker) -> None:
        trees, shadow = walker.race.trees, shadows[walker.name]
        look(walker)
        shadow.on(PlansRead(trees.written, trees.live), 0)
        assert sorted(walker.todo) == sorted(shadow.todo)

    def turned(race: Race, walker: Walker, endpoint: int) -> Outcome:
        shadow = shadows[walker.name]
        assert Turn(endpoint, walker.plan) in shadow.next()
        outcome = turn(race, walker, endpoint)
        shadow.on(Turned(endpoint, outcome), 0)
        return outcome

    def listed(walker: Walker) -> None:
        trees, shadow = walker.race.trees, shadows[walker.name]
        assert shadow.next() == (ListPlans(),)
        list_plans(walker)
        shadow.on(PlansListed(tuple(plan for plan in range(1, trees.written + 1) if not trees.gone(plan))), 0)
        assert walker.spent[::-1] == list(shadow.spent)

    def deleted(race: Race, walker: Walker, plan: int) -> None:
        assert shadows[walker.name].next() == (DeletePlan(plan),)
        delete(race, walker, plan)
        shadows[walker.name].on(PlanDeleted(Outcome.DONE), 0)

    with (
        patch.object(Walker, "look", looked),
        patch.object(Walker, "list_plans", listed),
        patch.object(Race, "turn", turned),
        patch.object(Race, "delete", deleted),
    ):
        found = Race(values, frozenset(), seed, 2 * MINUTE).run()
    assert found.turns > 0
    assert found.trees.deleted


def test_each_enactor_comes_to_the_regional_endpoint_in_its_own_time() -> None:
    """Enactors start at different places of one list and go round."""
    values = dns_values(SCENARIO)
    walks = orders(values)
    assert [round(walk.index(REGIONAL) / values.endpoints, 2) for walk in walks] == [0.89, 0.1, 0.05]
    assert all(sorted(walk) == list(range(values.endpoints)) for walk in walks)


def test_the_fenced_run_has_the_classes_that_ship() -> None:
    """A replay of look-alikes would show nothing: the roles import the very same."""
    for decider, role in ((DnsEnactor, "enactor"), (DnsPlanner, "planner"), (Janitor, "janitor")):
        shipped = getattr(importlib.import_module(f"fencepost.roles.{role}"), decider.__name__)
        assert shipped is decider is getattr(automation_fenced, decider.__name__)


def test_the_values_say_where_they_come_from() -> None:
    """Estimate: 10 to 100 times the latency. Nobody has published the rest, so it says that it is calibrated."""
    kinds = {key: value.kind for key, value in SCENARIO.values.items() if key.startswith("dns.")}
    assert kinds.pop("dns.slow") is Kind.ESTIMATE
    assert set(kinds.values()) == {Kind.CALIBRATED}


def test_an_outage_that_begins_otherwise_has_no_race() -> None:
    """The store is away from an hour that the scenario gives; a bad probe empties nothing."""
    begins = {"outage.begins": Value(600.0, "seconds", Kind.CALIBRATED, "here")}
    away = changed(SCENARIO, Cause.STORE_AWAY, begins)
    assert automation(away, PRODUCTION, 1) == Automation(600)
    assert automation(changed(SCENARIO, Cause.BAD_PROBE, {}), NONE, 1) == Automation()


def changed(scenario: Scenario, cause: Cause, values: dict[str, Value]) -> Scenario:
    """The same with another cause and these values only."""
    return replaced(scenario, cause=cause, values=values)


@pytest.mark.parametrize(("key", "text"), [("dns.plans", "0s"), ("dns.call", "0s"), ("dns.endpoints", "0")])
def test_values_that_nothing_can_be_walked_with_are_refused(key: str, text: str) -> None:
    """They would divide by nothing, or walk no endpoint; the error names the value."""
    with pytest.raises(Misconfigured) as caught:
        automation(set_values(SCENARIO, {key: text}), NONE, 1)
    assert key in str(caught.value)


def test_a_missing_section_is_named() -> None:
    """A scenario of one's own that has a race but not its values."""
    with pytest.raises(Misconfigured) as caught:
        automation(changed(SCENARIO, Cause.DNS_RACE, {}), NONE, 1)
    assert "dns" in str(caught.value)


def test_a_replay_tells_what_the_parts_believed() -> None:
    """The page has it: who wrote what, and believed that it was newer."""
    outcome = replay(SCENARIO, Options(hosts=1000, seed=2))
    assert outcome.lines[: len(automation(SCENARIO, NONE, 2).told)] == automation(SCENARIO, NONE, 2).told
    assert outcome.happened["endpoint-empty"] // 60 == PUBLISHED // 60
