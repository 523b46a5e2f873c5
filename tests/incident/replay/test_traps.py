"""Each trap is a named run that shows what it says (guards that look right, from the October 2025 replay)."""

import json

import pytest
from called import call

from fencepost.incident.replay.options import Options
from fencepost.incident.replay.scenario import Scenario
from fencepost.incident.replay.scenario_file import find_scenario, set_values
from fencepost.incident.replay.traps import TRAPS, show_trap

OUTAGE_S = 157 * 60


@pytest.fixture(scope="module")
def october() -> Scenario:
    """The scenario that is shipped."""
    return find_scenario("aws-2025-10-19")


@pytest.mark.parametrize("name", TRAPS)
def test_each_trap_shows_what_it_says(october: Scenario, name: str) -> None:
    """Its figures side by side bear the statement out."""
    shown = show_trap(name, october, Options(hosts=2_000), OUTAGE_S)
    assert shown.holds, shown.runs
    assert len(shown.runs) >= 2
    assert len({tuple(run.figures) for run in shown.runs}) == 1


@pytest.mark.parametrize(
    ("name", "changes", "outage_s"),
    [
        pytest.param("one-stage", {"network.drain": "400/s"}, OUTAGE_S, marks=pytest.mark.soak),
        ("long-back-off", {"leases.length": "20m"}, OUTAGE_S),
        ("single-checks", {"guards.grace": "5m"}, OUTAGE_S),
        pytest.param("counters-kept", {"network.drain": "400/s"}, OUTAGE_S, marks=pytest.mark.soak),
        ("throttle-at-first", {"workers.knee": "600"}, OUTAGE_S),
        pytest.param("fixed-times", {"throttle.burst": "5m"}, OUTAGE_S, marks=pytest.mark.soak),
        ("service-time", {"workers.knee": "1600", "workers.pool": "3200"}, OUTAGE_S),
        pytest.param("grace-one-hour", {}, 45 * 60, marks=pytest.mark.soak),
    ],
)
def test_a_trap_does_not_show_where_there_is_none(
    october: Scenario, name: str, changes: dict[str, str], outage_s: int
) -> None:
    """What makes it one taken away, it says that it isn't shown: the statement can be false."""
    shown = show_trap(name, set_values(october, changes), Options(hosts=2_000), outage_s)
    assert not shown.holds, shown.runs


def test_a_trap_is_run_by_its_name_and_a_slip_is_told_the_nearest() -> None:
    """What the command says and its exit codes."""
    names = call("replay", "--trap", "list", "--json")
    assert "grace-one-hour" in {each["name"] for each in json.loads(names.stdout)["traps"]}
    shown = call("replay", "--trap", "single-checks", "--hosts", "1000", "--json")
    document = json.loads(shown.stdout)
    assert (shown.returncode, document["schema"], document["holds"]) == (0, "fencepost.trap/1", True)
    told = call("replay", "--trap", "single-checks", "--hosts", "1000")
    assert "These runs show it" in told.stdout
    refuted = call("replay", "--trap", "single-checks", "--hosts", "1000", "--set", "guards.grace=5m")
    assert (refuted.returncode, "do NOT show" in refuted.stdout) == (1, True)
    slip = call("replay", "--trap", "single-check")
    assert slip.returncode == 2
    assert "single-checks" in slip.stderr
    both = call("replay", "--trap", "single-checks", "--guards", "fence")
    assert (both.returncode, "guards of its own" in both.stderr) == (2, True)
