"""The brake: how many may be in flight just now, from how long calls took and how many failed in the last second.

A slow window (mean above 1.6 times the known service time) or one with more than 5 % failed cuts the current limit to
four fifths; any other adds 5 % of L, up to 1.1 L. After two calm windows at that ceiling, with work waiting, L itself
rises by 10 %, and the current limit with it. *Calm* means that the ceiling costs nothing: the mean is within a
twentieth of the lowest that was seen, and is known to a few per cent (which takes more than two windows where calls are
few or uneven). Else L would creep up to where the brake acts, and stay there.

The known service time may be wrong. If two cuts in a row hardly made calls faster, load isn't what makes them slow: the
mean becomes the known service time, and the two cuts are taken back at once. It comes down again with what is measured,
never below the setting. Without this a service time under-estimated fourfold would brake for ever.

A window ends after a second (or four service times, if that is longer, so that a cut shows in it) with at least 32
outcomes in it; with fewer it goes on.
"""

from math import sqrt

import msgspec

from fencepost.core.admission.settings import AdmissionSettings
from fencepost.core.instant import Duration, Instant

UNHELPED = 0.8
"""Past its knee a service answers in three fifths of the time after two cuts by a fifth; above this it wasn't
helped."""
CUTS = 2
"""After so many cuts in a row it is asked whether they helped."""
FASTER = 0.8
"""A learnt service time comes down to a mean below this share of it; less than that is the noise of one window."""
SURE = 0.04
"""A mean is known when its standard error is at most this share of it."""
FLOOR = 0.05
"""The current limit never falls below this share of L, nor below 1."""


class Sample(msgspec.Struct):
    """Calls answered: how many, their time together, and the sum of its squares."""

    count: int = 0
    took: int = 0
    squares: float = 0.0

    def add(self, other: "Sample") -> None:
        """These too."""
        self.count += other.count
        self.took += other.took
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """Of the times; 0 without any."""
        return self.took / self.count if self.count else 0.0

    @property
    def error(self) -> float:
        """The mean's standard error."""
        if not self.count:
            return 0.0
        return sqrt(max(0.0, self.squares / self.count - self.mean**2) / self.count)

    @property
    def sure(self) -> bool:
        """Whether the mean is known to a few per cent."""
        return self.mean > 0 and self.error <= SURE * self.mean


class Brake(msgspec.Struct):
    """The current limit and what it goes by; changes in place. ``calibrated`` is L, worth persisting."""

    settings: AdmissionSettings
    calibrated: float
    current: float
    service: float
    since: Instant | None = None
    window: Sample = msgspec.field(default_factory=Sample)
    steady: Sample = msgspec.field(default_factory=Sample)
    failures: int = 0
    bound: bool = False
    calm: int = 0
    cut_at: tuple[float, ...] = ()
    trickle: float = 1.0
    mean: float = 0.0
    lowest: float = 0.0

    @classmethod
    def of(cls, settings: AdmissionSettings) -> "Brake":
        """At L, nothing known yet."""
        return cls(settings, float(settings.limit), float(settings.limit), float(settings.service))

    def copy(self) -> "Brake":
        """The same, apart."""
        window, steady = msgspec.structs.replace(self.window), msgspec.structs.replace(self.steady)
        return msgspec.structs.replace(self, window=window, steady=steady)

    @property
    def limit(self) -> int:
        """How many may be in flight: at least 1."""
        return max(1, int(self.current + 1e-9))

    @property
    def rate(self) -> float:
        """Calls a second that the service carries at the current limit, as far as is known."""
        return self.limit * 1e9 / (self.mean or self.service)

    @property
    def length(self) -> Duration:
        """How long a window is."""
        return max(self.settings.window, int(4 * self.service))

    def answered(self, count: int, took: int, squares: float) -> None:
        """So many were answered, in so much time together."""
        self.window.add(Sample(count, took, squares))

    def failed(self, count: int) -> None:
        """So many failed or were given up."""
        self.failures += count

    def look(self, now: Instant) -> None:
        """End the window if it is over."""
        if self.since is None:
            self.since = now
        if now - self.since < self.settings.window or now - self.since < self.length:
            return
        outcomes = self.window.count + self.failures
        if outcomes >= self.settings.samples:
            self._judge(outcomes)
        elif outcomes:
            return
        self.since, self.window, self.failures, self.bound = now, Sample(), 0, False

    def _judge(self, outcomes: int) -> None:
        settings, mean = self.settings, self.window.mean
        self.mean = mean or self.mean
        failing = self.failures > settings.failed_share * outcomes
        slow = mean > settings.slow_ratio * self.service
        if slow and not failing and len(self.cut_at) == CUTS and mean > UNHELPED * self.cut_at[0]:
            self.service, slow = mean, False
            self.current /= settings.cut**CUTS
        elif 0 < mean < FASTER * self.service:
            self.service = max(float(settings.service), mean)
        if slow or failing:
            self._cut(mean, failing)
        else:
            self.cut_at = ()
            self.trickle = min(2 * self.trickle, 1 / settings.retry_share)
            self._ease()

    def _cut(self, mean: float, failing: bool) -> None:
        self.cut_at = () if failing else (*self.cut_at[-CUTS + 1 :], mean)
        self.current = max(1.0, FLOOR * self.calibrated, self.current * self.settings.cut)
        self.calm, self.steady, self.trickle = 0, Sample(), 1.0

    def _ease(self) -> None:
        settings = self.settings
        ceiling = settings.ceiling * self.calibrated
        if self.current < ceiling or not self.bound:
            self._know(self.window)
            self.current = min(self.current + settings.step * self.calibrated, ceiling)
            self.calm, self.steady = 0, Sample()
            return
        self.calm += 1
        self.steady.add(self.window)
        if self.calm < settings.calm_windows or not self.steady.sure:
            return
        least = self.steady.mean - self.steady.error
        calm = least <= settings.calm_ratio * min(self.lowest or self.service, self.service)
        self._know(self.steady)
        self.calm, self.steady = 0, Sample()
        if calm:
            self.calibrated = min(float(settings.most), self.calibrated * (1 + settings.growth))
            self.current = settings.ceiling * self.calibrated

    def _know(self, sample: Sample) -> None:
        """The lowest mean that is known, and its error: the lowest of many would else be a lucky one."""
        found = sample.mean + sample.error
        if sample.sure and not 0 < self.lowest <= found:
            self.lowest = found
