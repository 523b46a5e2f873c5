"""What placing waits for after a store's life began, in words: for the status, and for who is turned away meanwhile."""

from collections.abc import Mapping

from fencepost.core.capacity.rows import CheckpointRow
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.settings.units import spoken

OLD: Duration = 30 * SECOND
"""A manager's word that is older is a silent manager's."""


def waits_for(counts: Mapping[str, int]) -> str:
    """What a shard's manager said that placing waits for; empty counts: nothing lately."""
    missing, unheard, left = (counts.get(name, 0) for name in ("missing", "unheard", "waits_s"))
    if missing:
        return f"{missing} of the hosts that [fleet] names"
    parts = [f"{unheard} of {counts.get('hosts', 0)} hosts to tell what they run"] if unheard else []
    if left:
        parts.append(f"{spoken(left * SECOND)} for hosts that nobody remembers")
    return ", and ".join(parts) or "its manager"


def counts_now(said: CheckpointRow | None, now: Instant) -> dict[str, int]:
    """A manager's numbers, the wait shortened by what has passed since; none if they are too old to go by."""
    since = max(0, now - said.at) if said is not None else OLD
    if said is None or since >= OLD:
        return {}
    return {**said.counts, "waits_s": max(0, said.counts.get("waits_s", 0) - since // SECOND)}
