"""When each target is probed, and how many probes may be under way: plain values, no IO, no clock.

Each target has a *phase*, a point in the interval that stays its own, and is due once a round at phase + round x
interval, moved by a jitter that is a hash of target and round, so that a run can be repeated. Targets that arrive
together are spread evenly over one interval (in the order of a hash, so that neighbours in a list don't go together):
10,000 targets at start make a steady rate, where plain random phases would exceed it in some seconds (Envoy #4132).

After the process stood still many targets are due at once. They are let go at no more than about twice the ordinary
rate; one that is overdue by a whole interval just misses that round. Nobody owes a target the rounds that were
missed.

Healthy and suspect targets have a *lane* each. A dead target holds its place for the whole timeout; with one shared
limit the dead ones crowd out the living, and the living then look dead (measured: 1,000 probes a second fell to 202).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from fencepost.core.jitter import jitter

JITTER_PERCENT = 10
"""A round is put off by up to this share of the interval. Never brought forward: the second round would run into the
end of the first, and the rate there would exceed the steady one by an eighth.
"""
SPARE_IN_FLIGHT = 16
"""Places in each lane beyond rate x timeout, so that a pool of three has some slack too."""


def phases(keys: Iterable[str], salt: str, interval_ns: int) -> dict[str, int]:
    """An offset in 0 .. interval_ns - 1 for each of several targets that start together, evenly spread."""
    ordered = sorted(keys, key=lambda key: (jitter(2**32, salt, key), key))
    if not ordered:
        return {}
    step = interval_ns / len(ordered)
    shift = step * jitter(2**32, salt, ordered[0]) / 2**32
    return {key: min(int(step * rank + shift), interval_ns - 1) for rank, key in enumerate(ordered)}


def jitter_ns(key: str, salt: str, turn: int, interval_ns: int) -> int:
    """How far round `turn` of a target is put off, 0 to 10 % of the interval; the first round not at all."""
    return jitter(interval_ns * JITTER_PERCENT // 100, salt, key, turn) if turn else 0


def until_tick(now: int, tick_ns: int) -> int:
    """How long to wait for the next tick, half to one and a half: those of all a process's probers fall together.

    Most of what a quiet checker costs is waking up, and four timers that end at once wake it once.
    """
    wait_ns = tick_ns - now % tick_ns
    return wait_ns if wait_ns >= tick_ns // 2 else wait_ns + tick_ns


def lane_limit(targets: int, interval_ns: int, timeout_ns: int, files: int) -> int:
    """How many probes a lane may have in flight: rate x timeout and a quarter, within half of the `files` there are."""
    needed = -(-targets * timeout_ns * 5 // (interval_ns * 4)) + SPARE_IN_FLIGHT
    return max(1, min(needed, files // 2))


T = TypeVar("T")


class Rounds(Generic[T]):
    """Who is due when. A target that was dropped is forgotten when its turn comes, so dropping costs nothing."""

    def __init__(self, salt: str, interval_ns: int) -> None:
        self.salt = salt
        self.interval_ns = interval_ns
        self._heap: list[tuple[int, int, int, str, int, T]] = []
        self._entries = 0

    def add(self, key: str, target: T, first_ns: int) -> None:
        """Make `target` due for the first time at `first_ns`."""
        self._push(first_ns, 0, key, first_ns, target)

    def _push(self, due_ns: int, turn: int, key: str, first_ns: int, target: T) -> None:
        self._entries += 1  # a tie-breaker: targets themselves are never compared
        heappush(self._heap, (due_ns, self._entries, turn, key, first_ns, target))

    def pop_due(self, now: int) -> tuple[int, int, str, int, T] | None:
        """The next one due by `now` as (due_ns, turn, key, first_ns, target), or None; it isn't due again until
        `next_round`.
        """
        if not self._heap or self._heap[0][0] > now:
            return None
        due_ns, _, turn, key, first_ns, target = heappop(self._heap)
        return due_ns, turn, key, first_ns, target

    def next_due_ns(self, otherwise: int) -> int:
        """When the next one is due; ``otherwise`` if there is none."""
        return self._heap[0][0] if self._heap else otherwise

    def next_round(self, now: int, turn: int, key: str, first_ns: int, target: T) -> None:
        """Put a target back for the round after `turn`, or for the first after `now` if rounds were missed."""
        interval = self.interval_ns
        turn = max(turn, (now - first_ns) // interval - 1)
        due_ns = now
        while due_ns <= now:  # at most twice: a round may lie before now, or be put off beyond it
            turn += 1
            due_ns = first_ns + turn * interval + jitter_ns(key, self.salt, turn, interval)
        self._push(due_ns, turn, key, first_ns, target)


class Lane(Generic[T]):
    """A limit on probes in flight, and those who wait for a place, in order."""

    def __init__(self) -> None:
        self.limit = 1
        self.in_flight = 0
        self.waiting: deque[T] = deque()

    @property
    def full(self) -> bool:
        """Whether a further probe must wait."""
        return self.in_flight >= self.limit
