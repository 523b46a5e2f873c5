"""Hysteresis: when one checker calls one target down, and when up again.

Each finished probe moves a target through four phases (`TRANSITIONS`). Failures that are interleaved with passes still
add up: only `rise` straight passes clear the count, so a target that fails every second probe is found down and stays
down (gdnsd, HAProxy `fall` and `rise`). A target that passes again is first held down, 30 s for each fall so far and at
most 300 s (Envoy's ejection time), so that flapping gets slower by itself.

Awkward truth: the hold ends with the first passing probe after it, so up to one interval late; and a healthy restart
quicker than the hold costs the hold. Drain a target before restarting it.
"""

from enum import StrEnum

import msgspec

from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration, Instant
from fencepost.core.traffic.verdict import ProbeResult, Verdict


class HealthSettings(msgspec.Struct, frozen=True, gc=False):
    """How a pool is probed and judged.

    interval_ns: 10 s, the field's usual; a dead target is found after `fall` of them.
    timeout_ns: 2 s; below the interval, so a target never has two probes in flight.
    fall: 3 failures; 2 would let 30 % probe loss take a target down within minutes at every checker.
    rise: 5 passes in a row; coming back wrongly costs callers, waiting costs only capacity.
    hold_ns, hold_max_ns: 30 s for each fall, at most 300 s (envoy #6016: holds that grew without end).
    flip_window_ns: 300 s spent up forgets one fall.
    fresh_intervals: 3; the votes of a checker that is silent longer don't count.
    dissent_ns: 60 s; a lone checker that calls a target healthy against all others is outvoted after it.
    quorum_ppm: 180,000; unhealthy iff at most this share of votes says healthy (Route 53's 18 %).
    """

    interval_ns: Duration = 10 * SECOND
    timeout_ns: Duration = 2 * SECOND
    fall: int = 3
    rise: int = 5
    hold_ns: Duration = 30 * SECOND
    hold_max_ns: Duration = 300 * SECOND
    flip_window_ns: Duration = 5 * MINUTE
    fresh_intervals: int = 3
    dissent_ns: Duration = MINUTE
    quorum_ppm: int = 180_000

    def __post_init__(self) -> None:
        """Raises ValueError where two numbers don't go together."""
        if not 0 < self.timeout_ns < self.interval_ns:
            raise ValueError("timeout must be under interval, or probes of one target overlap")
        if self.fall < 1 or self.rise < 1:
            raise ValueError("fall and rise must be at least 1")
        if not 0 <= self.hold_ns <= self.hold_max_ns:
            raise ValueError("the longest hold must be at least one hold")
        if self.fresh_intervals < 2:
            raise ValueError("a beat may be late by one interval: fresh_intervals must be at least 2")
        if not 0 <= self.quorum_ppm < 500_000:
            raise ValueError("quorum must be under half, or a minority takes targets out")

    @property
    def warm_probes(self) -> int:
        """Probes after which a vote reflects what is now: enough for a fall and for a rise."""
        return max(self.rise, self.fall)

    @property
    def lag_limit_ns(self) -> Duration:
        """A loop later than this makes time-outs of its own: a quarter of the timeout."""
        return self.timeout_ns // 4

    @property
    def gather_ns(self) -> Duration:
        """Small changes (failing now, readings) wait this long for company; changed verdicts don't."""
        return min(self.interval_ns // 4, SECOND)

    @property
    def tick_ns(self) -> Duration:
        """How often the checker asks to be woken: it notices a stalled loop by ticks that didn't come."""
        return max(min(self.interval_ns // 4, SECOND), 10 * MILLISECOND)


class Phase(StrEnum):
    """Where one checker has one target."""

    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"
    HELD = "held"
    """Down, but passing: waits out its hold."""


class Signal(StrEnum):
    """What a probe can mean for the phase; most mean nothing."""

    FALL = "fall"
    """The failures since the last `rise` straight passes have reached `fall`."""
    RISE = "rise"
    """The last `rise` probes passed."""
    FAIL = "fail"
    """Any failure."""
    RELEASE = "release"
    """A pass after the hold, with `rise` straight passes behind it."""


TRANSITIONS: dict[tuple[Phase, Signal], Phase] = {
    (Phase.UNKNOWN, Signal.FALL): Phase.DOWN,
    (Phase.UNKNOWN, Signal.RISE): Phase.UP,
    (Phase.UP, Signal.FALL): Phase.DOWN,
    (Phase.DOWN, Signal.RISE): Phase.HELD,
    (Phase.HELD, Signal.FAIL): Phase.DOWN,
    (Phase.HELD, Signal.RELEASE): Phase.UP,
}
"""Every change of phase there is; whatever isn't here leaves the phase as it was."""


class Hysteresis(msgspec.Struct, frozen=True, gc=False):
    """One target at one checker.

    phase: see `Phase`.   failures: since the last `rise` straight passes, while not down.
    passes: straight passes, counted up to `rise`.   probes: since the last gap, counted up to `warm_probes`.
    flips, since, hold_until, cause, capacity: as in `Verdict`.   failing: the newest probe failed.
    """

    phase: Phase = Phase.UNKNOWN
    failures: int = 0
    passes: int = 0
    probes: int = 0
    flips: int = 0
    since: Instant = 0
    hold_until: Instant = 0
    cause: str = ""
    capacity: int | None = None
    failing: bool = False


def step(was: Hysteresis, probe: ProbeResult, now: Instant, settings: HealthSettings) -> Hysteresis:
    """The target after one more probe; the same object when nothing changed, which is the usual case."""
    return _passed(was, probe, now, settings) if probe.ok else _failed(was, probe, now, settings)


def _passed(was: Hysteresis, probe: ProbeResult, now: Instant, settings: HealthSettings) -> Hysteresis:
    rise = settings.rise
    capacity = was.capacity if probe.capacity is None else probe.capacity
    passes = was.passes + 1 if was.passes < rise else rise
    probes = min(was.probes + 1, settings.warm_probes)
    if was.phase is Phase.UP and passes == was.passes and probes == was.probes and capacity == was.capacity:
        return was
    phase, since, hold_until, cause = was.phase, was.since, was.hold_until, was.cause
    failures = was.failures
    if passes >= rise:
        failures = 0
        if phase is Phase.DOWN:
            hold_until = now + min(settings.hold_ns * was.flips, settings.hold_max_ns)
        phase = TRANSITIONS.get((phase, Signal.RISE), phase)
        if phase is Phase.HELD and now >= hold_until:
            phase = TRANSITIONS[phase, Signal.RELEASE]
        if phase is Phase.UP and was.phase is not Phase.UP:
            since, hold_until, cause = now, 0, ""
    return Hysteresis(phase, failures, passes, probes, was.flips, since, hold_until, cause, capacity, False)


def _failed(was: Hysteresis, probe: ProbeResult, now: Instant, settings: HealthSettings) -> Hysteresis:
    capacity = was.capacity if probe.capacity is None else probe.capacity
    probes = min(was.probes + 1, settings.warm_probes)
    phase, since, flips, failures = was.phase, was.since, was.flips, was.failures
    if phase in (Phase.UP, Phase.UNKNOWN):
        failures += 1
        if failures >= settings.fall:
            if phase is Phase.UP:
                flips = max(0, flips - max(0, now - since) // settings.flip_window_ns) + 1
            phase, since, failures = TRANSITIONS[phase, Signal.FALL], now, 0
    else:
        phase = TRANSITIONS.get((phase, Signal.FAIL), phase)
    if (
        was.failing
        and phase is was.phase
        and (failures, probes, was.passes, probe.cause, capacity)
        == (was.failures, was.probes, 0, was.cause, was.capacity)
    ):
        return was
    return Hysteresis(phase, failures, 0, probes, flips, since, 0, probe.cause, capacity, True)


def after_gap(was: Hysteresis) -> Hysteresis:
    """The target after a time in which its probes said nothing: verdict and hold stay, the counts start anew."""
    if not (was.failures or was.passes or was.probes):
        return was
    return msgspec.structs.replace(was, failures=0, passes=0, probes=0)


def rejudged(was: Hysteresis, before: HealthSettings, settings: HealthSettings) -> Hysteresis:
    """The target once other numbers judge the same probes: what was observed stays, and a vote that counted counts."""
    probes = settings.warm_probes if was.probes >= before.warm_probes else min(was.probes, settings.warm_probes)
    return msgspec.structs.replace(was, passes=min(was.passes, settings.rise), probes=probes)


def verdict(key: str, state: Hysteresis, settings: HealthSettings) -> Verdict:
    """What is published of it."""
    phase = state.phase
    healthy = None if phase is Phase.UNKNOWN else phase is Phase.UP
    counts = healthy is not None and state.probes >= settings.warm_probes
    cause = "" if healthy and not state.failing else state.cause
    return Verdict(
        key, healthy, counts, state.failing, state.since, cause, state.flips, state.hold_until, state.capacity
    )


def restored(last: Verdict, now: Instant, settings: HealthSettings) -> Hysteresis:
    """The target as its checker's last report had it; no vote counts until it has been probed anew."""
    if last.healthy is None:
        phase = Phase.UNKNOWN
    elif last.healthy:
        phase = Phase.UP
    else:
        phase = Phase.HELD if last.hold_until else Phase.DOWN
    hold_until = min(last.hold_until, now + settings.hold_max_ns)
    return Hysteresis(phase, 0, 0, 0, last.flips, last.since, hold_until, last.cause, last.capacity, last.failing_now)
