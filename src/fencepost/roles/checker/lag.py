"""How late an event loop runs its callbacks, as a percentile of time rather than of callbacks.

A sampler asks to be called each 80 ms and notes by how much it was late. One stall of 5 s would be a single late call
among hundreds of punctual ones, and no percentile would show it. So a late call stands for all the calls that could
not be made while the loop stood still, each 80 ms less late than the one before ("coordinated omission", as load
generators know it).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

SAMPLE_NS = 80_000_000
WINDOW_SAMPLES = 100
"""Eight seconds: the p99 then exceeds a limit as soon as a stall was longer than the limit and one sample."""
TELL_EACH = 12
"""Samples between two tellings: one second, nearly."""


class LagWindow:
    """The lateness of the last eight seconds."""

    def __init__(self) -> None:
        self._samples: deque[int] = deque(maxlen=WINDOW_SAMPLES)

    def late_by(self, late_ns: int) -> None:
        """Note one call, and those that should have been made while it was awaited."""
        late_ns = min(max(late_ns, 0), WINDOW_SAMPLES * SAMPLE_NS)
        while True:
            self._samples.append(late_ns)
            late_ns -= SAMPLE_NS
            if late_ns <= 0:
                return

    @property
    def p99_ns(self) -> int:
        """The 99th percentile (nearest rank), 0 before the first sample."""
        ordered = sorted(self._samples)
        return ordered[-(-99 * len(ordered) // 100) - 1] if ordered else 0


class LagSampler:
    """Tells `tell` the p99 each second, and at once when a call was late by more than a whole second."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._window = LagWindow()
        self._due_ns = 0
        self._untold = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin; must run inside the event loop."""
        self._due_ns = time.monotonic_ns()
        self._sample()

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sample(self) -> None:
        now = time.monotonic_ns()
        late_ns = now - self._due_ns
        # On whole multiples of 80 ms, where the probers' ticks are too: a quiet checker wakes once for all of them.
        wait_ns = SAMPLE_NS - now % SAMPLE_NS
        wait_ns += SAMPLE_NS if wait_ns < SAMPLE_NS // 2 else 0
        self._due_ns = now + wait_ns
        self._timer = asyncio.get_running_loop().call_later(wait_ns / 1e9, self._sample)
        self._window.late_by(late_ns)
        self._untold += 1
        if self._untold >= TELL_EACH or late_ns > TELL_EACH * SAMPLE_NS:
            self._untold = 0
            self._tell(self._window.p99_ns)
