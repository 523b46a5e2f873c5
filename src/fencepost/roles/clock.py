"""The roles' clock: nanoseconds since 1970 that only move forward, at the rate of the machine's own clock.

The time of day as of the process's start, carried on by CLOCK_BOOTTIME, which counts a suspended machine's time too. A
time of day that is set while the process runs would otherwise fill a removal budget, or end every hold, at a stroke.
"""

import time

from fencepost.core.instant import Instant

_OFFSET = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def now() -> Instant:
    """Nanoseconds since 1970."""
    return _OFFSET + time.clock_gettime_ns(time.CLOCK_BOOTTIME)
