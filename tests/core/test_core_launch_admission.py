"""Launches let in: less as the queue before them deepens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.instant import SECOND
from fencepost.core.launch_admission import LaunchAdmission, LaunchSettings, launch_rate


@pytest.mark.parametrize(("depth", "rate"), [(0, 20.0), (50, 10.0), (75, 5.0), (100, 0.0), (500, 0.0), (-3, 20.0)])
def test_the_rate_falls_with_depth(depth: int, rate: float) -> None:
    """In a straight line: the queue's depth slows what comes in, before its delay shows anything."""
    assert launch_rate(20.0, depth, 100) == rate


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300)), max_size=60))
def test_the_queue_never_passes_its_bound(steps: list[tuple[int, int]]) -> None:
    """Whatever is wanted, and however unevenly time passes, while the stage behind drains at its rate."""
    admission, depth, now = LaunchAdmission.of(LaunchSettings(20.0, 100, 30), 0), 0, 0
    for seconds, wanted in steps:
        now += seconds * SECOND
        depth = max(0, depth - 20 * seconds)
        came = admission.admit(wanted, depth, now)
        assert 0 <= came <= wanted
        depth += came
        assert depth <= 100


def test_the_queue_settles_where_as_much_comes_as_goes() -> None:
    """More is wanted than drains: a known, shallow backlog instead of one that grows."""
    admission, depth = LaunchAdmission.of(LaunchSettings(20.0, 100), 0), 0
    depths = []
    for tick in range(1, 6_000):
        depth = max(0, depth - (tick % 10 == 0))
        depth += admission.admit(50, depth, tick * SECOND // 200)
        depths.append(depth)
    assert max(depths) <= 10


@pytest.mark.parametrize(
    ("rate", "bound", "burst", "words"),
    [
        (0.0, 10, 1, "ever be let in"),
        (1.0, 0, 1, "full when empty"),
        (1.0, 10, 11, "1 to the bound"),
        (1.0, 9, 0, "1 to"),
    ],
)
def test_senseless_settings_are_refused(rate: float, bound: int, burst: int, words: str) -> None:
    """Each with its reason."""
    with pytest.raises(ValueError, match=words):
        LaunchSettings(rate, bound, burst)
