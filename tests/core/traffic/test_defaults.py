"""The numbers that hold where nobody writes others: each was chosen for a reason, so none may drift by an edit."""

from msgspec import structs

from fencepost.core.instant import DAY, MINUTE, SECOND
from fencepost.core.traffic.dns_enactor import EnactorSettings
from fencepost.core.traffic.dns_planner import PlannerSettings
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.janitor import JanitorSettings
from fencepost.core.traffic.limits import LEAST_REFILL_NS, SUSPECT_SLOWDOWN, SafetySettings

PERCENT = 10_000


def test_how_targets_are_judged() -> None:
    """HAProxy's fall and rise, Envoy's ejection time, Route 53's 18 %: docs/concepts/health-and-limits.md says why."""
    assert structs.asdict(HealthSettings()) == {
        "interval_ns": 10 * SECOND,
        "timeout_ns": 2 * SECOND,
        "fall": 3,
        "rise": 5,
        "hold_ns": 30 * SECOND,
        "hold_max_ns": 300 * SECOND,
        "flip_window_ns": 300 * SECOND,
        "fresh_intervals": 3,
        "dissent_ns": 60 * SECOND,
        "quorum_ppm": 18 * PERCENT,
    }


def test_how_much_automation_may_take_out() -> None:
    """Out a fifth at most, in a half at least; a tenth at once, a twentieth a minute; fail open from half dead."""
    assert structs.asdict(SafetySettings()) == {
        "max_out_ppm": 20 * PERCENT,
        "min_in_ppm": 50 * PERCENT,
        "min_count": 1,
        "burst_ppm": 10 * PERCENT,
        "rate_ppm_per_min": 5 * PERCENT,
        "fail_open_ppm": 50 * PERCENT,
        "exit_ppm": 30 * PERCENT,
        "exit_rounds": 3,
        "exit_quiet_ns": 10 * MINUTE,
        "suspect_ppm": 15 * PERCENT,
        "edge_ppm": 30 * PERCENT,
        "edge_window_ns": 20 * SECOND,
        "freeze_ns": 60 * SECOND,
        "flap_ppm": 20 * PERCENT,
        "flap_window_ns": 300 * SECOND,
        "put_back_ns": 15 * MINUTE,
        "ready_age_ns": 30 * SECOND,
        "ready_wait_ns": 90 * SECOND,
        "ramp_ns": 60 * SECOND,
        "ramp_floor_ppm": 10 * PERCENT,
    }
    assert (LEAST_REFILL_NS, SUSPECT_SLOWDOWN) == (5 * MINUTE, 10)


def test_what_is_kept_for_a_rollback() -> None:
    """Fifty generations and seven days; October 2025, step 4, deleted a plan by its age alone."""
    assert structs.asdict(JanitorSettings()) == {"keep_generations": 50, "keep_for": 7 * DAY, "idle": MINUTE}


def test_how_planner_and_enactors_pace_themselves() -> None:
    """Shifts are gathered for 30 s; failures are tried again after 2 s at most, each minute if a person must act."""
    planner, enactor = PlannerSettings("planner", "o"), EnactorSettings("enactor", "o")
    assert planner.gather == 30 * SECOND
    assert (enactor.batch, enactor.idle, enactor.retry_most, enactor.misconfigured) == (200, SECOND, 2 * SECOND, MINUTE)
