"""How long it takes to recover for good, by the outage's length and the workers there are (after October 2025)."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from outcomes import as_it_was

from fencepost.cli import replay_map as command
from fencepost.incident.replay import boundary as bounds
from fencepost.incident.replay import hysteresis as loads
from fencepost.incident.replay import least as kinds
from fencepost.incident.replay import recovery as recoveries
from fencepost.incident.replay import recovery_map as maps
from fencepost.incident.replay.boundary import boundary
from fencepost.incident.replay.guards import PRODUCTION
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.recovery import (
    MANAGERS,
    NOTHING,
    Intervention,
    Recovery,
    recovered_after,
    recovery,
    workers_needed,
)
from fencepost.incident.replay.scenario import Scenario
from fencepost.incident.replay.scenario_file import find_scenario

LONG = Options(hosts=500, operators=False, outage_s=157 * 60)


@cache
def october() -> Scenario:
    """The shipped one."""
    return find_scenario("aws-2025-10-19")


@cache
def after(done: Intervention) -> Recovery:
    """What comes of that, an hour after the store's return."""
    return recovery(october(), LONG, done)


def test_the_map_has_a_knee_as_it_was_and_none_with_every_guard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A short outage ends with its cause; a long one never does, but with more workers than needed.

    What is done for nothing is told for the same cells: most of it where it never ends, none where guards decide.
    """
    monkeypatch.setattr(maps, "OUTAGES_S", (600, 157 * 60))
    monkeypatch.setattr(maps, "SHARES", (0.34, 1.25))
    monkeypatch.setattr(maps, "TRIGGERS_S", (157 * 60,))
    tried = {"throttle": (0.5,), "drop": (float(MANAGERS),)}
    fewer = tuple(structs.replace(each, ladder=tried[each.name]) for each in kinds.KINDS if each.name in tried)
    monkeypatch.setattr(kinds, "KINDS", fewer)
    monkeypatch.setattr(maps, "KINDS", fewer)
    monkeypatch.setattr(loads, "LOADS", (3.0, 1.0))
    monkeypatch.setattr(loads, "TIMES", (32.0, 64.0))
    monkeypatch.setattr(bounds, "NEAR", 4.0)
    told: list[tuple[int, int]] = []
    found = maps.recovery_map(october(), Options(hosts=1_000), 157 * 60, lambda done, of: told.append((done, of)))
    bare, guarded = found.panes
    assert (bare.guards, len(guarded.guards)) == ((), 7)
    (short, short_more), (long, long_more) = bare.minutes
    assert long is None
    assert short is not None
    assert short < 20
    assert short_more is not None
    assert long_more is not None
    assert long_more < 90
    assert bare.work[0] == (1.0, 1.0)
    assert bare.work[1][0] is not None
    assert bare.work[1][0] > 14  # nine tenths and more of it wasted
    for row in guarded.minutes:
        for minutes in row:
            assert minutes is not None
            assert minutes <= 60
    assert all(each is not None and each <= 1.1 for row in guarded.work for each in row)
    assert [(each.name, each.amount) for each in found.least] == [("throttle", None), ("drop", None)]
    assert [(each.borne, each.tipped) for each in guarded.hysteresis] == [(3.0, None)]
    assert told == [(done, 12) for done in range(1, 13)]
    monkeypatch.setattr(maps, "recovery_map", lambda *_: found)
    assert command.recovery(october(), Options(hosts=0), False) == 0
    said = capsys.readouterr().out
    for words in ("157 min", "never", "3.00 and more", "not enough", "from an outage of 2h37m", "own is 3.0"):
        assert words in said


def test_what_recovers_by_itself_needs_no_intervention(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After ten minutes without the store nothing has to be done, and that is said."""
    for name in ("OUTAGES_S", "TRIGGERS_S"):
        monkeypatch.setattr(maps, name, ())
    found = maps.recovery_map(october(), Options(hosts=500), 600)
    assert found.least == ()
    monkeypatch.setattr(maps, "recovery_map", lambda *_: found)
    command.recovery(october(), Options(hosts=0), False)
    assert "well again by itself" in capsys.readouterr().out


@given(st.floats(0.02, 40), st.booleans())
def test_a_boundary_is_found_as_near_as_is_said(knee: float, falling: bool) -> None:
    """By halves between two rungs; what it gives was seen to hold, and what is a little further does not."""
    tried: dict[float, bool] = {}

    def holds(number: float) -> bool:
        tried[number] = number <= knee if falling else number >= knee
        return tried[number]

    ladder = (64.0, 16.0, 4.0, 1.0, 0.25, 0.01) if falling else (0.01, 0.25, 1.0, 4.0, 16.0, 64.0)
    found = boundary(holds, ladder)
    assert found is not None
    assert tried[found]
    assert max(found / knee, knee / found) <= bounds.NEAR
    assert len(tried) <= len(ladder) + 8


def test_on_no_rung_is_no_boundary_and_on_the_first_no_search() -> None:
    """A search that found nothing says so; one that needn't search doesn't."""
    assert boundary(lambda _: False, (1.0, 2.0)) is None
    tried = iter([True])
    assert boundary(lambda _: next(tried), (1.0, 2.0)) == 1.0


def test_each_loop_alone_keeps_it_down_and_both_broken_bring_it_back() -> None:
    """October 2025, 04:14: throttled *and* restarted. Either alone was tried by the replay's parts, and isn't enough.

    Nor is twice the workers: there are too many calls in line that nobody waits for.
    """
    rate = 24.5
    for done in (NOTHING, Intervention(rate=rate), Intervention(managers=MANAGERS), Intervention(workers=2)):
        assert after(done).minutes is None
    both = after(Intervention(rate=rate, managers=MANAGERS))
    assert both.minutes is not None
    assert 60 < both.minutes < 200
    assert both.work is not None
    alone = after(NOTHING).work
    assert alone is not None
    assert both.work < alone / 10
    half = after(Intervention(rate=rate, managers=MANAGERS // 2))
    assert half.minutes is None


def test_the_least_is_the_gentlest_that_was_seen_to_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 leases a second that all workers could give, 33 recovers and 36 doesn't, in the second simulation too."""
    monkeypatch.setattr(recoveries, "WITHIN_S", 2 * 3600)
    throttled = next(each for each in kinds.KINDS if each.name == "drop-and-throttle")
    monkeypatch.setattr(kinds, "KINDS", (structs.replace(throttled, ladder=(1.0, 0.75)),))
    found = kinds.least(october(), LONG, "drop-and-throttle")
    assert found.amount is not None
    assert 30 <= found.amount <= 37
    assert found.minutes is not None


def test_once_tipped_the_load_has_to_fall_far_below_what_it_could_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hysteresis: between the two loads both states last."""
    monkeypatch.setattr(bounds, "NEAR", 1.5)
    monkeypatch.setattr(recoveries, "WITHIN_S", 2 * 3600)
    monkeypatch.setattr(loads, "LOADS", (4.0, 2.0))
    monkeypatch.setattr(loads, "TIMES", (32.0, 64.0))
    found = loads.hysteresis(october(), structs.replace(LONG, outage_s=1200))
    assert found.borne is not None
    assert 2 <= found.borne <= 3.3
    assert found.tipped is not None
    assert found.returns is not None
    assert found.returns < found.borne / 10
    guarded = loads.hysteresis(october(), structs.replace(LONG, outage_s=1200, guards=PRODUCTION))
    assert (guarded.borne, guarded.tipped, guarded.returns) == (loads.LOADS[0], None, None)


def test_needed_is_a_lease_anew_for_each_host_while_callers_come_back() -> None:
    """100,000 hosts, 10 s each, in 15 minutes; and a tenth of a second for each in 2 minutes."""
    needed = workers_needed(october())
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
    assert recovered_after(changed, int(times[100])) == times[200] - times[100]
    assert recovered_after(structs.replace(outcome, series=series | {"leases_missing": calm}), 600) == 0
    wrong[-5] = 0.5
    assert recovered_after(changed, int(times[100])) is None
