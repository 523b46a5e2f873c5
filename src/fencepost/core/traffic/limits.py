"""How much automation may take out, and how fast."""

import msgspec

from fencepost.core.instant import MINUTE, SECOND, Duration

PPM = 1_000_000
"""Shares are integers in parts per million."""


class SafetySettings(msgspec.Struct, frozen=True, gc=False):
    """The limits of one pool. Shares are of its capacity, in parts per million.

    max_out_ppm: 20 %; automation holds out at most this, or one target (two from six targets on).
    min_in_ppm: 50 %; in service (kept ones included) never falls below this by automation.
    min_count: 1; nor below this many targets.
    burst_ppm: 10 %; the removal budget when full, or one target (two from six on).
    rate_ppm_per_min: 5 %; its refill, never under one target in 5 minutes.
    fail_open_ppm: 50 %; with this much dead at once the checks are the likelier fault, or removal can't help.
    exit_ppm: 30 %; fail open ends below this after `exit_rounds` rounds of fresh reports ...
    exit_quiet_ns: ... or below `fail_open_ppm` when no verdict has changed for 10 minutes.
    suspect_ppm: 15 % dead and still in service: the refill falls to a tenth.
    edge_ppm, edge_window_ns, freeze_ns: 30 points more sick within 20 s: no removal for 60 s from that edge.
    flap_ppm: 20 % of targets with two falls in `flap_window_ns` (300 s): as suspect.
    put_back_ns: fail open puts back what automation removed in the last 15 minutes.
    ready_age_ns: 30 s; a new target waits at least this long.   ready_wait_ns: 90 s; after it two zones' word is enough.
    ramp_ns: 60 s of slow start, from `ramp_floor_ppm` (10 %) up.
    """

    max_out_ppm: int = 200_000
    min_in_ppm: int = 500_000
    min_count: int = 1
    burst_ppm: int = 100_000
    rate_ppm_per_min: int = 50_000
    fail_open_ppm: int = 500_000
    exit_ppm: int = 300_000
    exit_rounds: int = 3
    exit_quiet_ns: Duration = 10 * MINUTE
    suspect_ppm: int = 150_000
    edge_ppm: int = 300_000
    edge_window_ns: Duration = 20 * SECOND
    freeze_ns: Duration = MINUTE
    flap_ppm: int = 200_000
    flap_window_ns: Duration = 5 * MINUTE
    put_back_ns: Duration = 15 * MINUTE
    ready_age_ns: Duration = 30 * SECOND
    ready_wait_ns: Duration = 90 * SECOND
    ramp_ns: Duration = MINUTE
    ramp_floor_ppm: int = 100_000

    def __post_init__(self) -> None:
        """Raises ValueError where two numbers don't go together."""
        for share in (self.max_out_ppm, self.min_in_ppm, self.burst_ppm, self.fail_open_ppm):
            if not 0 <= share <= PPM:
                raise ValueError("a share lies between 0 % and 100 %")
        if self.max_out_ppm + self.min_in_ppm > PPM:
            raise ValueError("max_out and min_in together are over 100 %, so max_out can't be used in full")
        if self.burst_ppm > self.max_out_ppm:
            raise ValueError("burst is over max_out, so the budget could never be spent")
        if not self.exit_ppm < self.fail_open_ppm:
            raise ValueError("fail open must end below where it begins, or it flaps")
        if self.ready_wait_ns < self.ready_age_ns:
            raise ValueError("two zones' word can't be enough before a target is old enough")
