"""A decider: a plain object that owns its state and does nothing but answer ``on(event, now)`` with effects.

It has no IO, clock or chance of its own, so the same class runs in a role's loop, under the explorer and in tests
in virtual time. Deciders are level-based: each pass reads what is, compares, and asks for the difference, so there is
no program counter that a crash could leave in the middle. A serial decider has at most one call outstanding: of the
effects it returns, only the last may await an answer, so answers need no ids.
"""

from typing import Protocol

from fencepost.core.effects import Effect
from fencepost.core.events import Event
from fencepost.core.instant import Instant


class Decider(Protocol):
    """What every driver (a role's loop, the explorer) knows of a decider."""

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """The effects to carry out, in order. ``now`` is nanoseconds since 1970 on the role's own clock."""
        ...
