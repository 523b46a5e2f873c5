"""The brake: when it cuts, when it eases, and what it makes of a service time that was misjudged."""

import msgspec
from admission_model import settings

from fencepost.core.admission.brake import Brake
from fencepost.core.instant import MILLISECOND, SECOND

MEAN = 40 * MILLISECOND


def window(brake: Brake, second: int, mean: float, failed: int = 0, full: bool = True, calls: int = 1_600) -> int:
    """One second with so many calls of about that mean; the limit afterwards."""
    brake.answered(calls, int(calls * mean), 2.0 * calls * mean**2)
    brake.failed(failed)
    brake.bound = full
    brake.look(second * SECOND)
    return brake.limit


def fresh(limit: int = 64, **more: int) -> Brake:
    """A brake that has seen its first instant."""
    brake = Brake.of(settings(limit, window=SECOND, **more))
    brake.look(0)
    return brake


def test_a_slow_window_cuts_to_four_fifths() -> None:
    """A mean above 1.6 times the known one; at 1.6 itself it doesn't."""
    assert window(fresh(), 1, 1.61 * MEAN) == 51
    assert window(fresh(), 1, 1.6 * MEAN) == 67


def test_failures_cut_too() -> None:
    """More than 5 % of what ended."""
    assert window(fresh(), 1, MEAN, failed=85) == 51
    assert window(fresh(), 1, MEAN, failed=84) == 67


def test_else_it_eases_up_to_a_tenth_above() -> None:
    """5 % of L a window, and no further while nobody waits."""
    brake = fresh()
    assert [window(brake, at, MEAN, full=False) for at in range(1, 6)] == [67, 70, 70, 70, 70]
    assert brake.calibrated == 64


def test_two_calm_windows_at_the_ceiling_raise_the_limit_itself() -> None:
    """Calibrated too low: it grows by a tenth each two seconds, to the most it may."""
    brake = fresh(64, limit_most=80)
    limits = [window(brake, at, MEAN) for at in range(1, 11)]
    assert limits == [67, 70, 70, 77, 77, 85, 85, 88, 88, 88]
    assert brake.calibrated == 80


def test_a_ceiling_that_costs_latency_is_not_calm() -> None:
    """An eighth slower, as a tenth past the knee: no window is slow, yet L stays, or it would creep up to 1.6."""
    brake = fresh()
    window(brake, 1, MEAN)
    assert [window(brake, at, 1.126 * MEAN) for at in range(2, 30)][-1] == 70
    assert brake.calibrated == 64


def test_a_service_time_taken_for_a_quarter_is_found_out() -> None:
    """Two cuts didn't help, so load isn't what makes it slow: they are taken back, and it isn't cut again."""
    brake = Brake.of(settings(64, window=SECOND, service=MEAN // 4))
    brake.look(0)
    limits = [window(brake, at, MEAN) for at in range(1, 6)]
    assert limits[:3] == [51, 40, 67]
    assert min(limits[2:]) >= 64
    assert brake.service == MEAN


def test_cuts_that_help_go_on() -> None:
    """Past the knee the mean falls by a quarter at each cut: that is load, whatever the known time is."""
    brake = fresh(256)
    means = [4.0, 3.0, 2.3, 1.7]
    assert [window(brake, at, mean * MEAN) for at, mean in enumerate(means, 1)] == [204, 163, 131, 104]
    assert brake.service == MEAN


def test_what_was_learnt_comes_down_again() -> None:
    """A service that is quick again is held to that; never to less than was set."""
    brake = fresh()
    for at in range(1, 4):
        window(brake, at, 10 * MEAN)
    assert brake.service == 10 * MEAN
    for at in range(8, 12):
        window(brake, at, MEAN / 2)
    assert brake.service == MEAN


def test_few_calls_decide_nothing() -> None:
    """One slow call among three isn't a slow service: the window goes on until there are 32."""
    brake = fresh()
    assert window(brake, 1, 10 * MEAN, calls=3) == 64
    assert window(brake, 2, 10 * MEAN, calls=28) == 64
    assert window(brake, 3, 10 * MEAN, calls=1) == 51


def test_it_never_stops_altogether() -> None:
    """However long all fails, a twentieth goes on trying; else nobody would notice that it is over."""
    brake = fresh()
    for at in range(1, 100):
        window(brake, at, 0, failed=50, calls=0)
    assert brake.limit == 3
    assert msgspec.structs.replace(brake, calibrated=1.0, current=0.2).limit == 1
