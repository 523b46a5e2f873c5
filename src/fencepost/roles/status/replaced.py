"""A store that took the place of one that is gone: the planner makes that known through its findings, status reads it.

Its first plan tells: in a region's first store that is plan 1, and above where markers of ours stand, which it adopts.
A copy, a restored or a promoted store holds plans already. It is said for a day, so that whoever comes in the morning
reads it. The form is ``findings()["store"]["new"] == ("new@<nanoseconds since 1970>", "")``.
"""

import logging
from collections.abc import Mapping

from fencepost.core.instant import DAY, Duration, Instant
from fencepost.core.store import Plan
from fencepost.ports import PortError, StorePort

log = logging.getLogger(__name__)

SAID_FOR: Duration = DAY
BY, ON = "store", "new"
_WORD = "new@"

LOST = "history, who said what and why, plans to roll back to, orders not carried out yet"
LOST_OF_FLEET = "each drain, cordon and gone of a host (say it again), instances that waited for a host, launches' keys"


def takes_place(plan: Plan) -> bool:
    """Whether this is the first plan of a store that took another's place."""
    return plan.expected.number == 0 and plan.number > 1


async def put_replaced(store: StorePort, now: Instant) -> None:
    """Make known that the store is new. A store that doesn't take that now leaves it untold."""
    try:
        await store.put_findings(BY, {ON: (f"{_WORD}{now}", "")})
    except PortError as error:
        log.debug("that the store is new isn't stored: %s", error)


def replaced_at(findings: Mapping[str, Mapping[str, tuple[str, str]]], now: Instant) -> Instant:
    """When the store took another's place, if that was within a day; else 0."""
    word, _ = findings.get(BY, {}).get(ON, ("", ""))
    at = word.removeprefix(_WORD)
    if word == at or not at.isdecimal():
        return 0
    return int(at) if 0 <= now - int(at) < SAID_FOR else 0


def forgotten(*, fleet: bool) -> str:
    """What is gone with the store before, as far as nobody puts it back."""
    more = f"; of the fleet: {LOST_OF_FLEET}" if fleet else ""
    return f"a new store, in place of one that is gone, and with it {LOST}{more}"
