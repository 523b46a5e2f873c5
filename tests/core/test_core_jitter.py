"""Jitter is a hash: in range, the same twice, and spread."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.instant import SECOND
from fencepost.core.jitter import jitter


@given(st.integers(-5, 10**12), st.text(max_size=8), st.integers())
def test_it_is_in_range_and_replays(spread: int, who: str, attempt: int) -> None:
    """A simulation must come out the same twice."""
    length = jitter(spread, who, attempt)
    assert 0 <= length < max(spread, 1)
    assert length == jitter(spread, who, attempt)


def test_different_words_are_spread_evenly() -> None:
    """Enactors backing off after the same refusal must not meet again at the same instant."""
    lengths = [jitter(SECOND, f"enactor/{n}", 1) for n in range(1_000)]
    tenths = [sum(1 for length in lengths if length * 10 // SECOND == tenth) for tenth in range(10)]
    assert all(60 <= count <= 140 for count in tenths)
    assert len(set(lengths)) == 1_000


def test_words_do_not_run_together() -> None:
    """("a", "bc") and ("ab", "c") are different things."""
    assert jitter(SECOND, "a", "bc") != jitter(SECOND, "ab", "c")
