"""The guards: each drops one of production's decisions into the replay, in place of what decided then."""

from enum import Enum
from typing import TypeAlias


class Guard(Enum):
    """One guard; the value is its name on the command line, in order of the cascade."""

    FENCE = "fence"
    CLEAN_UP = "clean-up"
    LEASE_CLOCK = "lease-clock"
    ADMISSION = "admission"
    NETWORK_THROTTLE = "network-throttle"
    READINESS = "readiness"
    VELOCITY = "velocity"


Guards: TypeAlias = frozenset[Guard]

NONE: Guards = frozenset()
PRODUCTION: Guards = frozenset(Guard)
"""What ships."""

MEANING = {
    Guard.FENCE: "a DNS write requires the exact generation that its writer has read",
    Guard.CLEAN_UP: "clean-up never deletes what is live",
    Guard.LEASE_CLOCK: "while the store can't be reached no host lease runs out",
    Guard.ADMISSION: "a calibrated number of lease checks in flight, the deadline counted from dispatch",
    Guard.NETWORK_THROTTLE: "newest network state only, launches first, and launches slow down as the queue deepens",
    Guard.READINESS: "an instance serves only after its network state has arrived",
    Guard.VELOCITY: "automation takes out so much an hour, and never below a floor",
}
"""What each requires, in words for a table."""


def parse_guards(text: str) -> Guards:
    """ "none", "production", or names with commas between. Raises ``ValueError`` with the nearest right word."""
    if text in ("none", ""):
        return NONE
    if text == "production":
        return PRODUCTION
    known = {guard.value: guard for guard in Guard}
    chosen = []
    for word in (each.strip() for each in text.split(",")):
        if word not in known:
            from fencepost.settings.mistakes import advice

            raise ValueError(f'"{word}" is no guard; {advice(word, known)}')
        chosen.append(known[word])
    return frozenset(chosen)
