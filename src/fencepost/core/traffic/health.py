"""A checker: the verdicts of one zone on one pool, and doubt about itself.

Each target goes through hysteresis (see `hysteresis`). A checker that is itself unwell must not vote: it doubts itself
while its canary can't be reached, while its event loop is late, while it is out of file descriptors, while no probe
finishes at all, and until it has probed every target once. In doubt it throws probe results away: a starved loop times
out its own probes, and those failures are no evidence. When the doubt ends, a vote counts only from the fifth probe of
its target on, because an "up" from before a gap is as stale as a "down". The last verdicts are kept throughout, over
restarts too (haproxy #918: a restart must not forget who is dead).

It owns the state of up to 10,000 targets, so it changes a table of immutable values in place and publishes a body only
when something in it changed: falls and rises at once, small things gathered, a beat each interval.

Awkward truth: between the moment the network breaks and the canary's first failure, some probes of targets fail
honestly. `fall` of them take longer than one canary round, so the doubt comes first, provided the canary is tried each
interval and no failures were counted before. And a stall is noticed by events that didn't come, so a role that stops
sending ticks looks stalled.
"""

from copy import copy

import msgspec

from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event, Woke
from fencepost.core.instant import MILLISECOND, Duration, Instant
from fencepost.core.traffic.hysteresis import (
    HealthSettings,
    Hysteresis,
    after_gap,
    rejudged,
    restored,
    step,
    verdict,
)
from fencepost.core.traffic.verdict import Beat, CheckerReport, ProbeResult, Suspicion, Verdict

BODY_COST_NS: Duration = 50_000
"""What writing and reading a body costs for each target in it (about 50 µs); bodies are spaced by their cost."""

BODY_SPACING_LEAST_NS: Duration = 5 * MILLISECOND
"""Even a tiny body isn't written twice within this, so that a burst of falls becomes one body."""


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
    """Opening a socket failed for want of file descriptors, or works again. Must be told before the failed probes."""

    exhausted: bool


class Restarted(Event, frozen=True, gc=False):
    """The process started: its own newest report as read from the store, or None, and its newest beat's number.

    Must come before any other event, and be followed by `TargetsListed`.
    """

    last: CheckerReport | None = None
    beat: int = 0


class Rejudged(Event, frozen=True, gc=False):
    """Other numbers judge the same probes from now on: `fall` and `rise` of a file that was loaded.

    No gap, so no vote is lost: with every zone's gone at once nothing could be decided for six intervals.
    """

    settings: HealthSettings


class PublishReport(Effect, frozen=True, gc=False):
    """Write the body. Not answered; if the write fails, the newest body is written later. Must come before its beat."""

    report: CheckerReport


class PublishBeat(Effect, frozen=True, gc=False):
    """Write the beat. Not answered; a beat that can't be written is dropped, never queued."""

    beat: Beat


class Checker(msgspec.Struct):
    """The decider of one checker for one pool. Events are those of this module and `Woke`.

    zone, pool: its name.   settings: see `HealthSettings`.
    targets: hysteresis of each target, in listed order.   verdicts: what the newest body says of each.
    sequence, number: of the newest body and beat.   started, heard, probed_at: instants; None before the first.
    """

    zone: str
    pool: str
    settings: HealthSettings
    targets: dict[str, Hysteresis] = msgspec.field(default_factory=dict)
    verdicts: dict[str, Verdict] = msgspec.field(default_factory=dict)
    remembered: dict[str, Verdict] = msgspec.field(default_factory=dict)
    touched: dict[str, None] = msgspec.field(default_factory=dict)
    urgent: bool = False
    listed: bool = False
    sequence: int = 0
    number: int = 0
    suspect: Suspicion | None = Suspicion.WARMING
    canary_failed: bool = False
    files_exhausted: bool = False
    late_until: Instant = 0
    started: Instant | None = None
    heard: Instant = 0
    probed_at: Instant = 0
    body_at: Instant = 0
    body_suspect: Suspicion | None = None
    beat_at: Instant = 0

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """See `fencepost.core.decider.Decider`. Cost: about 1 µs a probe result."""
        self._notice_stall(now)
        match event:
            case Probed(results=results):
                self._doubt(now)
                self._probed(results, now)
            case Restarted(last=last, beat=beat):
                self._restarted(last, beat, now)
            case TargetsListed(keys=keys):
                self._list(keys, now)
            case Rejudged(settings=settings):
                before, self.settings = self.settings, settings
                self.targets = {key: rejudged(state, before, settings) for key, state in self.targets.items()}
                self.touched = dict.fromkeys(self.targets)
            case CanaryProbed(ok=ok):
                if ok and self.canary_failed:
                    self._late(now)
                self.canary_failed = not ok
            case LoopLag(p99_ns=p99):
                if p99 > self.settings.lag_limit_ns:
                    self._late(now)
            case FilesExhausted(exhausted=exhausted):
                if self.files_exhausted and not exhausted:
                    self._late(now)
                self.files_exhausted = exhausted
            case _:
                pass
        self._doubt(now)
        effects = self._publish(now)
        tick = self.settings.tick_ns
        tick = min(tick, max(self.settings.interval_ns - now % self.settings.interval_ns, MILLISECOND))
        if self.urgent:
            return (*effects, Wake(min(max(self.body_at + self._spacing() - now, MILLISECOND), tick)))
        return (*effects, Wake(tick)) if isinstance(event, Woke | Restarted) else effects

    def __copy__(self) -> "Checker":
        """An independent copy: the tables are copied, their immutable values shared."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in ("targets", "verdicts", "remembered", "touched"):
            fields[name] = copy(fields[name])
        return Checker(**fields)

    def _notice_stall(self, now: Instant) -> None:
        if self.started is None:
            self.started = self.heard = self.probed_at = now
        if now - self.heard > self.settings.tick_ns + self.settings.lag_limit_ns:
            self._late(now)
        self.heard = now

    def _late(self, now: Instant) -> None:
        # Probes under way now may yet time out by our own fault; after one timeout all of them are through.
        self.late_until = now + self.settings.timeout_ns + self.settings.lag_limit_ns

    def _doubt(self, now: Instant) -> None:
        """Find out whether we trust ourselves; at the onset of doubt every count starts anew."""
        was, self.suspect = self.suspect, self._suspicion(now)
        if self.suspect is not None and was is None:
            for key, state in self.targets.items():
                self.targets[key] = after_gap(state)
            self.touched = dict.fromkeys(self.targets)

    def _suspicion(self, now: Instant) -> Suspicion | None:
        settings = self.settings
        if self.files_exhausted:
            return Suspicion.FILES
        if self.canary_failed:
            return Suspicion.CANARY
        if now < self.late_until:
            return Suspicion.LAG
        if self.started is None or now - self.started < settings.interval_ns + settings.timeout_ns:
            return Suspicion.WARMING
        if self.targets and now - self.probed_at > settings.fresh_intervals * settings.interval_ns:
            return Suspicion.BLIND
        return None

    def _probed(self, results: tuple[ProbeResult, ...], now: Instant) -> None:
        if results:
            self.probed_at = now
        # While warming up, probes are as good as later ones; only the votes wait.
        if self.suspect not in (None, Suspicion.WARMING, Suspicion.BLIND):
            return
        targets, touched, settings = self.targets, self.touched, self.settings
        for result in results:
            was = targets.get(result.key)
            if was is None:
                continue
            state = step(was, result, now, settings)
            if state is not was:
                targets[result.key] = state
                touched[result.key] = None
                if state.since != was.since:
                    self.urgent = True

    def _restarted(self, last: CheckerReport | None, beat: int, now: Instant) -> None:
        self.started = self.probed_at = now
        self.number = beat
        if last is not None:
            self.sequence = last.sequence
            self.remembered = {each.key: each for each in last.verdicts}

    def _list(self, keys: tuple[str, ...], now: Instant) -> None:
        if self.listed and keys == tuple(self.targets):
            return
        was, remembered = self.targets, self.remembered
        fresh = Hysteresis(since=now)
        self.targets = {
            key: was[key]
            if key in was
            else restored(remembered[key], now, self.settings)
            if key in remembered
            else fresh
            for key in keys
        }
        self.verdicts = {key: verdict(key, state, self.settings) for key, state in self.targets.items()}
        # A first list may be half of one, so what is remembered stays until the warm-up is over.
        warming = self.suspect is Suspicion.WARMING
        self.remembered = {key: last for key, last in remembered.items() if warming and key not in self.targets}
        self.touched = {}
        self.urgent = self.listed = True

    def _spacing(self) -> Duration:
        return max(BODY_SPACING_LEAST_NS, BODY_COST_NS * len(self.targets))

    def _publish(self, now: Instant) -> tuple[Effect, ...]:
        if not self.listed:
            return ()
        effects: tuple[Effect, ...] = ()
        doubt_changed = self.suspect is not self.body_suspect or self.sequence == 0
        patience = self._spacing() if self.urgent else max(self.settings.gather_ns, self._spacing())
        if doubt_changed or ((self.urgent or self.touched) and not 0 <= now - self.body_at < patience):
            effects = self._body(now, doubt_changed)
        if doubt_changed or self._beat_due(now):
            self.number += 1
            self.beat_at = now
            effects += (PublishBeat(Beat(self.zone, self.pool, self.number, self.sequence, self.suspect)),)
        return effects

    def _beat_due(self, now: Instant) -> bool:
        """An interval after the last, at a whole multiple of it: beats of all checkers fall together, and whoever reads
        them looks once.
        """
        interval = self.settings.interval_ns
        return not 0 <= now - self.beat_at < interval or now // interval != self.beat_at // interval

    def _body(self, now: Instant, doubt_changed: bool) -> tuple[Effect, ...]:
        """The new body, unless every touched verdict still reads the same."""
        changed = doubt_changed or self.urgent
        for key in self.touched:
            fresh = verdict(key, self.targets[key], self.settings)
            if fresh != self.verdicts[key]:
                self.verdicts[key] = fresh
                changed = True
        self.touched, self.urgent = {}, False
        if not changed:
            return ()
        self.sequence += 1
        self.body_at, self.body_suspect = now, self.suspect
        body = CheckerReport(self.zone, self.pool, self.sequence, self.suspect, tuple(self.verdicts.values()))
        return (PublishReport(body),)
