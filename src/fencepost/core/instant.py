"""Time as an argument: integer nanoseconds, and never read here.

Inside a process an instant is what its own monotonic clock says; where a value leaves the process (a hold's expiry, a
hold's epoch, a display time) it is nanoseconds since 1970 and the name says so. Nothing safe rests on comparing two
machines' clocks.
"""

from typing import TypeAlias

Instant: TypeAlias = int
"""A point in time, integer nanoseconds."""

Duration: TypeAlias = int
"""A length of time, integer nanoseconds."""

MILLISECOND: Duration = 1_000_000
SECOND: Duration = 1_000_000_000
MINUTE: Duration = 60 * SECOND
HOUR: Duration = 60 * MINUTE
DAY: Duration = 24 * HOUR
