"""The DNS automation's own part of the incident. Not replayed yet: the hour at which the endpoint was emptied."""

from fencepost.incident.replay.guards import Guard, Guards
from fencepost.incident.replay.scenario import Scenario, Tick


def emptied_at(scenario: Scenario, guards: Guards, seed: int) -> Tick | None:  # noqa: ARG001  they will decide it
    """When the endpoint is empty; None if it never is."""
    return None if guards & {Guard.FENCE, Guard.CLEAN_UP} else 18 * 60
