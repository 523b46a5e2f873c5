"""The enactor of October 2025: it checks once, walks the endpoints, and cleans up by age.

It takes the newest plan and asks once where that is newer than what is live. Then it points those endpoints at it, in
whatever order they get through (enactors start at different places of the list, and retry), and never asks again:
nothing ties the check to the writes that follow, however much later they come. When all are done it lists the plans and
deletes those far older than its own; that nothing points at them any more is what it takes for granted.

A turn that loses the lock is tried again as it is. So is one that can't save what was live before: it can never
succeed, and the enactor never comes to anything else. A turn that a guard refuses is dropped: something newer is live,
or the plan is gone, and the next look will tell. Each pass forgets everything in the end.
"""

from msgspec import Struct

from fencepost.core.effects import Effect
from fencepost.core.events import Event, Woke
from fencepost.core.instant import Instant
from fencepost.incident.messages import (
    DeletePlan,
    ListPlans,
    PlanDeleted,
    PlansListed,
    PlansRead,
    ReadPlans,
    Skipped,
    Turn,
    Turned,
)
from fencepost.incident.tree import Outcome

FAR_OLDER = 2
"""So many plans behind is "many generations older": the smallest number that leaves a plan between."""

AGAIN = (Outcome.LOCK_LOST, Outcome.BEFORE_MISSING)
"""Outcomes after which the same turn is tried again."""


class TreeEnactor(Struct, gc=False):
    """The plan being applied (0 between passes), the endpoints still to do, in order, and the plans left to delete.

    The effects returned are all that is outstanding; the turns among them may be carried out in any order.
    """

    plan: int = 0
    todo: tuple[int, ...] = ()
    spent: tuple[int, ...] = ()

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """One step. Nothing here goes by time: a back-off is told as others having their turn first."""
        del now
        match event:
            case Woke():
                self.plan, self.todo, self.spent = 0, (), ()
            case PlansRead(newest=newest, live=live):
                self.check(newest, live)
            case Turned(endpoint=endpoint, outcome=outcome):
                if outcome not in AGAIN:
                    self.drop(endpoint)
            case Skipped(endpoint=endpoint):
                self.drop(endpoint)
            case PlansListed(plans=plans):
                self.spent = tuple(plan for plan in plans if self.plan - plan >= FAR_OLDER)
                self.plan = self.plan if self.spent else 0
            case PlanDeleted():
                self.spent = self.spent[1:]
                self.plan = self.plan if self.spent else 0
            case _:
                raise TypeError(f"this enactor is never told {type(event).__name__}")
        return self.next()

    def check(self, newest: int, live: tuple[int, ...]) -> None:
        """The one check: where is the newest plan newer than what is live?"""
        self.todo = tuple(endpoint for endpoint, plan in enumerate(live) if plan < newest)
        self.plan = newest if self.todo else 0

    def drop(self, endpoint: int) -> None:
        """An endpoint is done with in this pass."""
        self.todo = tuple(other for other in self.todo if other != endpoint)

    def next(self) -> tuple[Effect, ...]:
        """What is outstanding now."""
        if self.todo:
            return tuple(Turn(endpoint, self.plan) for endpoint in self.todo)
        if self.spent:
            return (DeletePlan(self.spent[0]),)
        return (ListPlans(),) if self.plan else (ReadPlans(),)
