"""What the deciders of October 2025 ask for, and what they are told: see :mod:`fencepost.incident.tree`."""

from fencepost.core.effects import Effect
from fencepost.core.events import Event
from fencepost.incident.tree import Outcome


class WritePlan(Effect, frozen=True, gc=False):
    """Write the next plan. Answered by ``PlanWritten``."""


class ReadPlans(Effect, frozen=True, gc=False):
    """Read the newest plan's number, and which plan each endpoint points at. Answered by ``PlansRead``."""


class Turn(Effect, frozen=True, gc=False):
    """Point one endpoint at a plan: a transaction. Answered by ``Turned``, or ``Skipped`` if it is never tried."""

    endpoint: int
    plan: int


class ListPlans(Effect, frozen=True, gc=False):
    """List the plans that exist. Answered by ``PlansListed``."""


class DeletePlan(Effect, frozen=True, gc=False):
    """Delete a plan's tree: a transaction. Answered by ``PlanDeleted``."""

    plan: int


class PlanWritten(Event, frozen=True, gc=False):
    """The plan with this number exists."""

    plan: int


class PlansRead(Event, frozen=True, gc=False):
    """The newest plan (0 if there is none), and each endpoint's live one."""

    newest: int
    live: tuple[int, ...]


class Turned(Event, frozen=True, gc=False):
    """How the turn of one endpoint ended."""

    endpoint: int
    outcome: Outcome


class Skipped(Event, frozen=True, gc=False):
    """An endpoint was passed over, for whatever reason: a time-out, a bad name, a partial list."""

    endpoint: int


class PlansListed(Event, frozen=True, gc=False):
    """The plans that exist, oldest first."""

    plans: tuple[int, ...]


class PlanDeleted(Event, frozen=True, gc=False):
    """A deletion ended, whether or not it was carried out."""

    outcome: Outcome
