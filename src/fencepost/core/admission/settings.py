"""How much work a service takes at once, and when it is said to be overloaded; senseless numbers are refused.

``limit`` is calibrated once, on a quiet day, and persisted: nothing that learns it from scratch during a recovery comes
near the best. The brake only trims it.
"""

import msgspec

from fencepost.core.instant import SECOND, Duration


class AdmissionSettings(msgspec.Struct, frozen=True, gc=False):
    """What :class:`~fencepost.core.admission.Admission` goes by. Durations in nanoseconds, shares in (0, 1).

    ``limit`` is how many may be in flight (L), never grown past ``limit_most`` (0: four times ``limit``). ``service``,
    ``service_p99`` and ``service_p999`` are a call's time at that limit: mean, 99th and 99.9th percentile; better too
    high than too low. ``attempt`` is how long a call may take from its dispatch on. ``period`` is how often a lease
    is renewed: renewals that can all wait longer than that leave ``floor_share`` of the dispatches to those who lost
    theirs (0: they never do). Raises ``ValueError`` for numbers that can't work together, saying why.
    """

    limit: int
    service: Duration
    service_p99: Duration
    service_p999: Duration
    attempt: Duration
    limit_most: int = 0
    slow_ratio: float = 1.6
    failed_share: float = 0.05
    cut: float = 0.8
    step: float = 0.05
    ceiling: float = 1.1
    window: Duration = SECOND
    calm_ratio: float = 1.05
    calm_windows: int = 2
    growth: float = 0.1
    retry_share: float = 0.1
    samples: int = 32
    width: Duration = SECOND
    floor_share: float = 0.1
    period: Duration = 0

    def __post_init__(self) -> None:
        """Refuse what can't work."""
        for wrong, why in self._relations():
            if wrong:
                raise ValueError(why)

    def _relations(self) -> tuple[tuple[bool, str], ...]:
        return (
            (self.limit < 1, f"limit is {self.limit}: with nothing in flight nothing is ever done"),
            (0 < self.most < self.limit, f"limit_most is {self.limit_most}, less than the limit of {self.limit}"),
            (self.service < 1, f"service is {self.service} ns: no call takes no time"),
            (
                not self.service <= self.service_p99 <= self.service_p999,
                "service times must rise: mean, 99th, 99.9th percentile",
            ),
            (
                self.attempt < self.service_p999,
                f"attempt is {self.attempt} ns, less than the 99.9th percentile of {self.service_p999} ns: calls that "
                "would have been answered would be given up, and done again",
            ),
            (self.slow_ratio <= 1, "slow_ratio must be more than 1, or every window is slow"),
            (not 1 <= self.calm_ratio <= self.slow_ratio, "calm_ratio must lie between 1 and slow_ratio"),
            (not 0 < self.failed_share < 1, "failed_share is a share: more than 0, less than 1"),
            (not 0 < self.cut < 1, "cut must be more than 0 and less than 1, or the brake doesn't brake"),
            (not 0 < self.step <= 1, "step is a share of the limit: more than 0, at most 1"),
            (self.ceiling < 1, "ceiling is less than 1: the limit itself could never be reached"),
            (self.window < 1 or self.width < 1, "window and width are lengths of time: at least 1 ns"),
            (self.calm_windows < 1 or self.growth < 0, "calm_windows is at least 1, growth at least 0"),
            (not 0 < self.retry_share < 1, "retry_share is a share: more than 0, less than 1"),
            (not 0 < self.floor_share < 1, "floor_share is a share: more than 0, less than 1"),
            (self.period < 0, f"period is {self.period} ns: no lease is renewed before it is given"),
            (self.samples < 1, "samples is at least 1: a window without answers says nothing"),
        )

    @property
    def most(self) -> int:
        """The largest L that calm windows may grow to."""
        return self.limit_most or 4 * self.limit


def plain(part: msgspec.Struct) -> tuple[object, ...]:
    """The numbers of a part of admission, without its settings."""
    return tuple(each for each in msgspec.structs.astuple(part) if not isinstance(each, AdmissionSettings))
