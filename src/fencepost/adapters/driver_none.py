"""The driver of hosts that run nothing: attempts count as running, so that a fleet can be tried out without one.

Awkward truth: it forgets with its process. An agent that starts again finds nothing running, and everything down.
"""

from collections.abc import Callable, Collection, Sequence

from fencepost.core.capacity.messages import Instance, NetworkState


class NoDriver:
    """See :class:`~fencepost.ports.fleet.Driver`."""

    def __init__(self) -> None:
        self.attempts: set[str] = set()

    async def running(self) -> Collection[str]:
        """What was started and not stopped."""
        return self.attempts

    async def start(self, instance: Instance) -> None:
        """Note it."""
        self.attempts.add(instance.id)

    async def stop(self, id: str) -> None:  # noqa: A002  the port's word
        """Forget it."""
        self.attempts.discard(id)

    async def network(self, states: Sequence[NetworkState]) -> None:
        """Nothing needs them."""

    def cause(self, id: str) -> str:  # noqa: A002, ARG002  the port's words
        """Nothing is known of it."""
        return ""

    def on_end(self, told: Callable[[str], None]) -> None:
        """Nothing ends by itself."""
