"""The brake: how many may be in flight just now, from how long calls took and how many failed in the last second.

A slow window (mean above 1.6 times the known service time) or one with more than 5 % failed cuts the current limit to
four fifths; any other adds 5 % of L, up to 1.1 L. After two calm windows at that ceiling, with work waiting, L itself
rises by 10 %: *calm* means that the ceiling costs no latency (mean at most 1.1 times the known), or L would creep up to
where the brake acts, and stay there.

The known service time may be wrong. If a cut by a fifth left the mean where it was, load isn't what makes calls slow:
the mean becomes the known service time, and the limit goes back to L at once. It comes down again with what is
measured, never below the setting. Without this a service time under-estimated fourfold would brake for ever.

A window ends after a second (or four service times, if that is longer, so that a cut shows in it) with at least 32
outcomes in it; with fewer it goes on.
"""

import msgspec

from fencepost.core.admission.settings import AdmissionSettings
from fencepost.core.instant import Duration, Instant

UNHELPED = 0.92
"""Past its knee a service answers a quarter faster after a cut by a fifth; above this share it wasn't helped."""
FLOOR = 0.05
"""The current limit never falls below this share of L, nor below 1."""


class Brake(msgspec.Struct):
    """The current limit and what it goes by; changes in place. ``calibrated`` is L, worth persisting."""

    settings: AdmissionSettings
    calibrated: float
    current: float
    service: float
    since: Instant | None = None
    answers: int = 0
    took: Duration = 0
    failures: int = 0
    bound: bool = False
    calm: int = 0
    cut_from: float = 0.0
    trickle: float = 1.0
    mean: float = 0.0

    @classmethod
    def of(cls, settings: AdmissionSettings) -> "Brake":
        """At L, nothing known yet."""
        return cls(settings, float(settings.limit), float(settings.limit), float(settings.service))

    def copy(self) -> "Brake":
        """The same, apart."""
        return msgspec.structs.replace(self)

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

    def answered(self, count: int, took: Duration) -> None:
        """So many were answered, in so much time together."""
        self.answers += count
        self.took += took

    def failed(self, count: int) -> None:
        """So many failed or were given up."""
        self.failures += count

    def look(self, now: Instant) -> None:
        """End the window if it is over."""
        if self.since is None:
            self.since = now
        if now - self.since < self.length:
            return
        outcomes = self.answers + self.failures
        if outcomes >= self.settings.samples:
            self._judge(outcomes)
        elif outcomes:
            return
        self.since, self.answers, self.took, self.failures, self.bound = now, 0, 0, 0, False

    def _judge(self, outcomes: int) -> None:
        settings = self.settings
        failing = self.failures > settings.failed_share * outcomes
        mean = self.took / self.answers if self.answers else 0.0
        self.mean = mean or self.mean
        slow = mean > settings.slow_ratio * self.service
        if slow and not failing and mean > UNHELPED * self.cut_from > 0:
            self.service, slow = mean, False
            self.current = max(self.current, self.calibrated)
        elif mean:
            self.service = max(float(settings.service), min(self.service, mean))
        if slow or failing:
            self.cut_from = mean if slow and not failing else 0.0
            self.current = max(1.0, FLOOR * self.calibrated, self.current * settings.cut)
            self.calm, self.trickle = 0, 1.0
            return
        self.cut_from = 0.0
        self.trickle = min(2 * self.trickle, 1 / settings.retry_share)
        self._ease(mean)

    def _ease(self, mean: float) -> None:
        settings = self.settings
        ceiling = settings.ceiling * self.calibrated
        at_ceiling = self.current >= ceiling and self.bound and mean <= settings.calm_ratio * self.service
        self.calm = self.calm + 1 if at_ceiling else 0
        if self.calm >= settings.calm_windows:
            self.calm = 0
            self.calibrated = min(float(settings.most), self.calibrated * (1 + settings.growth))
        self.current = min(self.current + settings.step * self.calibrated, settings.ceiling * self.calibrated)
