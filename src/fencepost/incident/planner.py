"""The planner of October 2025: it writes plan after plan, whatever becomes of them."""

from msgspec import Struct

from fencepost.core.effects import Effect
from fencepost.core.events import Event, Woke
from fencepost.core.instant import Instant
from fencepost.incident.messages import PlanWritten, WritePlan


class PlanWriter(Struct, gc=False):
    """``left`` is how many plans it still writes: a bound of the exploration, not of the planner that was."""

    left: int

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """One step. Nothing here goes by time."""
        del now
        match event:
            case Woke():
                pass
            case PlanWritten():
                self.left -= 1
            case _:
                raise TypeError(f"this planner is never told {type(event).__name__}")
        return (WritePlan(),) if self.left else ()
