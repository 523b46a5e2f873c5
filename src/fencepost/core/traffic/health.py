"""One checker's opinion: hysteresis for each target, and doubt about itself.

A target is judged by a small state machine (`TRANSITIONS`). Failures that are interleaved with passes still add up:
only `rise` straight passes clear the count, so a target that fails every second probe is found down and stays down.
After the passes it is held down 30 s for each fall so far, at most 300 s (the ejection time of Envoy; gdnsd and
HAProxy know `fall` and `rise`).

A checker that is itself unwell must not vote. It doubts itself while its canary can't be reached, while its event loop
is late, while it is out of file descriptors, and until it has probed every target once. In doubt it throws its probe
results away: a starved loop times out its own probes, and those failures are no evidence. When the doubt ends, each
target's vote counts from the fifth probe on, because an "up" from before a gap is as stale as a "down". The last
verdicts are kept throughout, over restarts too (haproxy #918: a restart must not forget who is dead).

Awkward truth: between the moment the network breaks and the canary's failure some probes fail honestly. `fall` probes
take longer than one canary round, so the doubt comes first, as long as the canary is probed each interval.
"""

import msgspec

from fencepost.core.effects import Effect
from fencepost.core.events import Event
from fencepost.core.instant import MILLISECOND, MINUTE, SECOND, Duration
from fencepost.core.traffic.verdict import Beat, CheckerReport, ProbeResult


class HealthSettings(msgspec.Struct, frozen=True, gc=False):
    """How a pool is probed and judged.

    interval_ns: 10 s, the field's usual; a dead target is found after `fall` of them.
    timeout_ns: 2 s; below the interval, so a target never has two probes in flight.
    fall: 3 failures; 2 would let 30 % probe loss take out one target in five.
    rise: 5 passes in a row; coming back wrongly costs callers, waiting costs only capacity.
    hold_ns, hold_max_ns: 30 s for each fall, at most 300 s (envoy #6016: holds that grew without end).
    flip_window_ns: 300 s spent up forgets one fall.
    fresh_intervals: 3; a verdict whose checker is silent longer doesn't count.
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
        if self.hold_max_ns < self.hold_ns:
            raise ValueError("the longest hold must be at least one hold")
        if self.fresh_intervals < 2:
            raise ValueError("a report may be late by one interval: fresh_intervals must be at least 2")
        if not 0 <= self.quorum_ppm < 500_000:
            raise ValueError("quorum must be under half, or a minority takes targets out")

    @property
    def lag_limit_ns(self) -> Duration:
        """A loop later than this makes time-outs of its own: a quarter of the timeout."""
        return self.timeout_ns // 4

    @property
    def gather_ns(self) -> Duration:
        """Small changes (failing now, readings) wait this long for company; changed verdicts never wait."""
        return min(self.interval_ns // 4, SECOND)

    @property
    def tick_ns(self) -> Duration:
        """How often the checker asks to be woken: it notices a stalled loop by ticks that didn't come."""
        return max(min(self.interval_ns // 4, SECOND), 10 * MILLISECOND)


class TargetsListed(Event, frozen=True, gc=False):
    """The pool's targets, in order. One that is not here any more is forgotten at once, and its late results too."""

    keys: tuple[str, ...]


class Probed(Event, frozen=True, gc=False):
    """A batch of finished probes, in the order they finished."""

    results: tuple[ProbeResult, ...]


class CanaryProbed(Event, frozen=True, gc=False):
    """The canary addresses were tried: reached or not. At least once an interval; never told if there are none."""

    ok: bool


class LoopLag(Event, frozen=True, gc=False):
    """How late the event loop runs its callbacks: 99th percentile over the last second or so."""

    p99_ns: Duration


class FilesExhausted(Event, frozen=True, gc=False):
    """Opening a socket failed for want of file descriptors (or memory for one), or works again."""

    exhausted: bool


class Restarted(Event, frozen=True, gc=False):
    """The process started. `last` is its own newest report as read from the store, or None; likewise its beat's number.

    Must come before any other event.
    """

    last: CheckerReport | None = None
    beat: int = 0


class PublishReport(Effect, frozen=True, gc=False):
    """Write the body. Not answered; if the write fails, write the newest body again later. Must come before its beat."""

    report: CheckerReport


class PublishBeat(Effect, frozen=True, gc=False):
    """Write the beat. Not answered; a beat that can't be written is dropped, never queued."""

    beat: Beat
