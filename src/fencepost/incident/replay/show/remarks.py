"""What has to be said of a run besides its numbers, or they would be read as more than they are."""

from fencepost.incident.replay.guards import Guard
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.show.phases import none_of, stretches

STANDS_IN = "velocity: no decider for zones of balancers ships yet; the limits of every removal stand in its place"


def remarks(outcome: Outcome) -> tuple[str, ...]:
    """One line each: where something stands in for a decider, and where a phase wasn't what its name says."""
    found = [STANDS_IN] if Guard.VELOCITY in outcome.options.guards else []
    drawn = {each.name for each in stretches(outcome) if each.simulated is not None}
    found += [
        f"{phase.words}: {phase.otherwise}"
        for phase in outcome.scenario.phases
        if phase.otherwise and phase.name in drawn and none_of(outcome, phase)
    ]
    return tuple(found)
