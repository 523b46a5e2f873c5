"""A record from a replay has the run's own phases and times, and nothing of what was reported."""

from datetime import datetime, timedelta

import pytest
from outcomes import as_it_was, guarded, made_up

from fencepost.incident.record.checking import leaves, mistakes
from fencepost.incident.record.from_replay import COMPONENTS, MECHANISM, from_replay
from fencepost.incident.record.record import Category, Kind, document
from fencepost.incident.replay.guards import PRODUCTION
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.run import replay
from fencepost.incident.replay.scenario import Cause
from fencepost.incident.replay.scenario_file import find_scenario
from fencepost.incident.replay.show.phases import stretches
from fencepost.ports import Refused


def time(outcome: Outcome, tick: int) -> str:
    """A tick on the scenario's own clock."""
    return (datetime.fromisoformat(outcome.scenario.begins) + timedelta(seconds=tick)).isoformat()


def test_phases_and_times_are_those_of_the_outcome() -> None:
    """October 2025, step for step: each phase from when to when it was in the run."""
    outcome = as_it_was()
    made = from_replay(outcome)
    came = {each.name: each.simulated for each in stretches(outcome) if each.simulated is not None}
    assert len(made.timeline.phases) == len(came) == 5
    for phase in made.timeline.phases:
        begun, ended = came[phase.name]
        assert ended is not None
        assert (phase.begins, phase.ends) == (time(outcome, begun), time(outcome, ended))
    events = {each.at for each in made.timeline.events}
    assert events == {time(outcome, tick) for tick in outcome.happened.values()}
    assert made.root_cause_fixed is not None
    assert made.root_cause_fixed.at == time(outcome, outcome.happened["dns-restored"])
    assert made.end is not None
    assert made.end.at == time(outcome, outcome.happened["whole"])


def test_impact_is_when_each_dependent_was_down() -> None:
    """And what it depends on, by the names a reader knows."""
    outcome = as_it_was()
    found = {each.service: each for each in from_replay(outcome).impact}
    begun, ended = outcome.down["sign-in"][0]
    assert ended is not None
    assert [(each.begins, each.ends) for each in found["IAM sign-in"].down] == [
        (time(outcome, begun), time(outcome, ended))
    ]
    assert found["Lambda"].depends_on == ("store", "EC2 launches", "balancers")


def test_every_part_is_of_the_replay_and_its_source_says_how_much_was_calibrated() -> None:
    """A calibrated run must not look published."""
    made = from_replay(as_it_was())
    kinds = {value for where, value in leaves(document(made)) if where.endswith(".kind")}
    assert kinds == {Kind.REPLAY.value}
    assert "calibrated" in made.sources["replay"].title
    assert mistakes(made) == []


def test_a_forced_outage_is_said_to_be_forced() -> None:
    """Its cause isn't the race, which the guards would have kept from happening."""
    made = from_replay(guarded())
    assert made.root_cause is not None
    assert made.root_cause.category is Category.DEPENDENCY_LOST
    assert made.root_cause.trigger is None
    assert "dns-automation" not in made.components
    assert not any("lease" in each.words for each in made.contributing)


def test_another_scenario_is_recorded_as_it_is() -> None:
    """One's own scenario, with phases and dependents of its own."""
    made = from_replay(made_up())
    assert [each.name for each in made.timeline.phases] == ["away", "storm", "rest"]
    assert made.related[0].id == "made-up"


def test_where_nothing_went_wrong_there_is_nothing_to_record() -> None:
    """With the fence the endpoint is never emptied: 0 s, and no incident."""
    with pytest.raises(Refused, match="nothing went wrong"):
        from_replay(replay(find_scenario("aws-2025-10-19"), Options(hosts=500, guards=PRODUCTION)))


def test_every_kind_of_scenario_has_its_cause_in_words() -> None:
    """A new one without would be found by whoever records it."""
    assert set(MECHANISM) == set(COMPONENTS) == set(Cause)
