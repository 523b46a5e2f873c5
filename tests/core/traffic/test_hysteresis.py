"""Hysteresis of one target at one checker, and what each transition is for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.instant import MINUTE, SECOND
from fencepost.core.traffic.hysteresis import (
    TRANSITIONS,
    HealthSettings,
    Hysteresis,
    Phase,
    after_gap,
    restored,
    step,
    verdict,
)
from fencepost.core.traffic.verdict import ProbeResult

SETTINGS = HealthSettings()
GOOD, BAD = ProbeResult("192.0.2.1", True), ProbeResult("192.0.2.1", False, "status 503")


def probed(pattern: str, state: Hysteresis | None = None, start: int = 0) -> Hysteresis:
    """The target after these probes ("+" passes, "-" fails), one each interval."""
    state = state or Hysteresis()
    for number, sign in enumerate(pattern):
        state = step(state, GOOD if sign == "+" else BAD, start + number * SETTINGS.interval_ns, SETTINGS)
    return state


@pytest.mark.parametrize(
    ("pattern", "phase"),
    [
        ("+++++", Phase.UP),
        ("++++", Phase.UNKNOWN),
        ("---", Phase.DOWN),
        ("+++++-", Phase.UP),  # envoy #7171: one 404 is not a death
        ("+++++--", Phase.UP),
        ("+++++---", Phase.DOWN),
        ("+++++-+-+-", Phase.DOWN),  # interleaved failures add up (October 2025, step 9)
        ("+++++-++++-++++-", Phase.DOWN),
        ("+++++--+++++-", Phase.UP),  # five straight passes clear the count
        ("+++++---+++++", Phase.HELD),
        ("+++++---+++++++", Phase.HELD),
        ("+++++---++++++++", Phase.UP),
        ("+++++---+++++-", Phase.DOWN),
    ],
)
def test_patterns_of_probes(pattern: str, phase: Phase) -> None:
    """gdnsd and HAProxy: fall 3, rise 5; then held down 30 s, which is three more probes."""
    assert probed(pattern).phase is phase


def test_every_transition_of_the_table_happens() -> None:
    """The table says neither more nor less than the code does."""
    met: dict[tuple[Phase, Phase], None] = {}
    for pattern in ("+++++---+++++-+++++++++", "---", "+++++---++++++++++"):
        state = Hysteresis()
        for number, sign in enumerate(pattern):
            was, state = state, probed(sign, state, number * SETTINGS.interval_ns)
            if was.phase is not state.phase:
                met[was.phase, state.phase] = None
    assert sorted(met) == sorted({(before, after) for (before, _), after in TRANSITIONS.items()})


def test_twenty_flaps_hold_for_no_more_than_five_minutes() -> None:
    """envoy #6016: the ejection time must not grow without end."""
    now, state = 0, probed("+++++")
    holds = []
    for _ in range(20):
        state = probed("---", state, now)
        state = probed("+++++", state, now)
        holds.append(state.hold_until - (now + 4 * SETTINGS.interval_ns))
        now = state.hold_until
        state = probed("+", state, now)
        assert state.phase is Phase.UP
    assert holds[:3] == [30 * SECOND, 60 * SECOND, 90 * SECOND]
    assert max(holds) == 300 * SECOND


def test_time_spent_up_forgets_flips() -> None:
    """One flip less for each five minutes up; the next death then holds 30 s again."""
    state = probed("---", Hysteresis(Phase.UP, flips=3, since=0), 31 * MINUTE)
    assert state.flips == 1


def test_a_new_target_that_fails_at_first_is_not_held() -> None:
    """It never fell, so there is no flip; it comes up with its fifth pass."""
    assert probed("---+++++").phase is Phase.UP


@given(st.text(alphabet="+-", max_size=40))
def test_a_restart_keeps_verdict_flips_and_hold(pattern: str) -> None:
    """haproxy #918: a restarted checker knows who was dead; but its votes wait for five probes."""
    state = probed(pattern)
    before = verdict("192.0.2.1", state, SETTINGS)
    again = restored(before, 40 * SETTINGS.interval_ns, SETTINGS)
    after = verdict("192.0.2.1", again, SETTINGS)
    assert (after.healthy, after.since, after.flips) == (before.healthy, before.since, before.flips)
    assert after.hold_until == before.hold_until
    assert not after.counts
    # What is up after five passes is up whatever was before; what fell three times is down.
    assert probed("---", again, 10_000 * SECOND).phase in (Phase.DOWN,)
    assert probed("+++++", again, 10_000 * SECOND).phase in (Phase.UP, Phase.HELD)


@given(st.text(alphabet="+-", max_size=30), st.text(alphabet="+-", min_size=5, max_size=5))
def test_a_vote_counts_from_the_fifth_probe_after_a_gap(before: str, after: str) -> None:
    """A stale "up" blocked removals and a stale "down" made them, until fresh probes had spoken."""
    state = after_gap(probed(before))
    for number, sign in enumerate(after):
        assert not verdict("192.0.2.1", state, SETTINGS).counts
        state = probed(sign, state, (100 + number) * SETTINGS.interval_ns)
    known = state.phase is not Phase.UNKNOWN
    assert verdict("192.0.2.1", state, SETTINGS).counts is known


@given(st.text(alphabet="+-", max_size=60))
def test_down_needs_three_failures_and_up_five_passes(pattern: str) -> None:
    """For any pattern: no fall without `fall` failures since the last five straight passes, no rise without five."""
    state = Hysteresis()
    for number, sign in enumerate(pattern):
        was, state = state, probed(sign, state, number * SETTINGS.interval_ns)
        if was.phase is not Phase.DOWN and was.phase is not Phase.HELD and state.phase is Phase.DOWN:
            assert pattern[: number + 1].split("+++++")[-1].count("-") >= SETTINGS.fall
        if was.phase is not Phase.UP and state.phase is Phase.UP:
            assert pattern[: number + 1].endswith("+" * SETTINGS.rise)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_ns": 10 * SECOND},
        {"fall": 0},
        {"rise": 0},
        {"hold_ns": 400 * SECOND},
        {"fresh_intervals": 1},
        {"quorum_ppm": 500_000},
    ],
)
def test_settings_that_clash_are_refused(wrong: dict[str, int]) -> None:
    """Relations between numbers are asserted, each with its reason."""
    with pytest.raises(ValueError, match=r"must|overlap"):
        HealthSettings(**wrong)
