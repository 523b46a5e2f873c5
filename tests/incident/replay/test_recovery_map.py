"""How long it takes to recover for good, by the outage's length and the workers there are (after October 2025)."""

import json

import numpy as np
import pytest
from called import call
from msgspec import structs
from outcomes import as_it_was

from fencepost.incident.replay import recovery_map as maps
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.scenario_file import find_scenario


def test_the_map_has_a_knee_as_it_was_and_none_with_every_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short outage ends with its cause; a long one never does, but with more workers than needed."""
    monkeypatch.setattr(maps, "OUTAGES_S", (600, 157 * 60))
    monkeypatch.setattr(maps, "SHARES", (0.34, 1.25))
    told: list[tuple[int, int]] = []
    found = maps.recovery_map(
        find_scenario("aws-2025-10-19"), Options(hosts=1_000), lambda done, of: told.append((done, of))
    )
    bare, guarded = found.panes
    assert (bare.guards, len(guarded.guards)) == ((), 7)
    (short, short_more), (long, long_more) = bare.minutes
    assert long is None
    assert short is not None
    assert short < 20
    assert short_more is not None
    assert long_more is not None
    assert long_more < 90
    for row in guarded.minutes:
        for minutes in row:
            assert minutes is not None
            assert minutes <= 60
    assert told == [(done, 8) for done in range(1, 9)]


def test_needed_is_a_lease_anew_for_each_host_while_callers_come_back() -> None:
    """100,000 hosts, 10 s each, in 15 minutes; and a tenth of a second for each in 2 minutes."""
    needed = maps.workers_needed(find_scenario("aws-2025-10-19"))
    assert needed == pytest.approx(100_000 * 10 / 900 + 100_000 * 0.1 / 120)


def test_a_moment_without_trouble_is_no_recovery() -> None:
    """Leases that haven't run out yet look recovered: only what stays well counts."""
    outcome = as_it_was()
    calm = np.zeros(len(outcome.times), np.float32)
    wrong = calm.copy()
    wrong[[100, 200]] = 0.5
    series = outcome.series | {"leases_missing": wrong, "launches_failing": calm}
    times = outcome.times
    changed = structs.replace(outcome, series=series)
    assert maps.recovered_after(changed, int(times[100])) == times[200] - times[100]
    assert maps.recovered_after(structs.replace(outcome, series=series | {"leases_missing": calm}), 600) == 0
    wrong[-5] = 0.5
    assert maps.recovered_after(changed, int(times[100])) is None


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
