"""Durations, shares and rates: exact integers, and back to what one would write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.settings import units
from fencepost.settings.units import (
    NS,
    Rate,
    duration_ns,
    duration_text,
    rate,
    rate_text,
    share_ppm,
    share_text,
    spoken,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("500ms", 5 * 10**8), ("10s", 10**10), ("1.5s", 15 * 10**8), ("5m", 3 * 10**11), ("7d", 7 * NS["d"]), ("0s", 0)],
)
def test_durations_are_nanoseconds(text: str, ns: int) -> None:
    """No float on the way, so that no rounding differs between explorer and role."""
    assert duration_ns(text) == ns


@pytest.mark.parametrize("text", ["10", "", "s", "-1s", "1 0s", "1e3s", "10 sec", "1,5s", "٣s", "9" * 12 + "s"])
def test_what_has_no_unit_is_no_duration(text: str) -> None:
    """`10` has been ten seconds to one reader and ten milliseconds to another."""
    for read in (duration_ns, share_ppm, rate):
        with pytest.raises(ValueError, match=r"write a"):
            read(text)


def test_shares_and_rates_are_millionths() -> None:
    """20 % is 200,000 ppm; a rate keeps its own time, since 5 %/h divides evenly by neither minute nor day."""
    assert share_ppm("20%") == 200_000
    assert share_ppm("12.5 %") == 125_000
    assert rate("5%/min") == Rate(50_000, NS["m"])
    for text in ("101%", "100.1%"):
        with pytest.raises(ValueError, match="over 100%"):
            share_ppm(text)


@given(st.integers(0, 10**6).map(lambda ms: ms * NS["ms"]))
def test_a_duration_reads_back_as_written(ns: int) -> None:
    """What a message shows can be pasted into the file."""
    assert duration_ns(duration_text(ns)) == ns


@given(st.integers(0, units.WHOLE // 100).map(lambda part: part * 100), st.sampled_from(["s", "min", "h", "d"]))
def test_a_share_and_a_rate_read_back_as_written(ppm: int, per: str) -> None:
    """The same for shares and rates."""
    assert share_ppm(share_text(ppm)) == ppm
    value = rate(f"{share_text(ppm)}/{per}")
    assert rate(rate_text(value)) == value


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (2 * 10**9, "2 s"),
        (35 * 10**8, "3.5 s"),
        (200 * 10**9, "3 min 20 s"),
        (7200 * 10**9, "2 h"),
        (599 * 10**8, "1 min"),
        (90061 * 10**9, "1 d 1 h"),
    ],
)
def test_times_are_said_in_two_units_at_most(ns: int, text: str) -> None:
    """A person wants 3 min 20 s, not 200.0 s."""
    assert spoken(ns) == text
