"""Phases from troubles: a new one begins where a kind of trouble comes up or goes, and none where all is well.

Shorter stretches than :data:`SHORT` go into the one before, or a flapping target would make hundreds of phases. Where
there would still be more than :data:`MOST`, only well and not well are told apart.
"""

from collections.abc import Sequence

from msgspec import Struct

from fencepost.core.instant import SECOND, Instant
from fencepost.incident.record.troubles import LASTING, Trouble, What

SHORT = 2 * SECOND
MOST = 40

NAMES = {
    What.EMPTIED: "emptied",
    What.ALTERED: "altered",
    What.FAIL_OPEN: "fail-open",
    What.REMOVED: "targets-out",
    What.KEPT: "dead-kept",
}
"""What a phase is called in which it lasts."""


class Stretch(Struct, frozen=True, gc=False):
    """From when to when (None: not over) which kinds of trouble there were."""

    begun: Instant
    ended: Instant | None
    kinds: tuple[What, ...]


def stretches(found: Sequence[Trouble], first: Instant) -> tuple[Stretch, ...]:
    """Those of all troubles that last; what began before counts from ``first``."""
    spells = [each for each in found if each.what in LASTING]
    fine = _merged(_swept(spells, first, fine=True))
    return fine if len(fine) <= MOST else _merged(_swept(spells, first, fine=False))


def _swept(spells: Sequence[Trouble], first: Instant, *, fine: bool) -> list[Stretch]:
    steps = sorted(
        [(each.begun if each.begun is not None else first, 1, each.what) for each in spells]
        + [(each.ended, -1, each.what) for each in spells if each.ended is not None],
        key=lambda step: (step[0], -step[1]),
    )
    there = dict.fromkeys(What, 0)
    swept: list[Stretch] = []
    since = first
    last: tuple[What, ...] = ()
    for at, step, what in steps:
        there[what] += step
        kinds = tuple(each for each in What if there[each] > 0)
        if (kinds != last) if fine else (bool(kinds) != bool(last)):
            if last and at > since:
                swept.append(Stretch(since, at, last))
            since, last = at, kinds
        elif not fine:
            last = tuple(each for each in What if each in (*last, *kinds)) if kinds else ()
    if last:
        swept.append(Stretch(since, None, last))
    return swept


def _merged(swept: Sequence[Stretch]) -> tuple[Stretch, ...]:
    found: list[Stretch] = []
    for each in swept:
        before = found[-1] if found else None
        short = each.ended is not None and each.ended - each.begun < SHORT
        joins = before is not None and before.ended is not None and each.begun - before.ended < SHORT
        if before is not None and joins and (short or before.kinds == each.kinds):
            found[-1] = Stretch(before.begun, each.ended, before.kinds)
        else:
            found.append(each)
    return tuple(found)


def words(kinds: Sequence[What]) -> str:
    """What there was, as in "targets out, dead ones kept"."""
    said = {
        What.EMPTIED: "an endpoint without addresses",
        What.ALTERED: "an endpoint altered",
        What.FAIL_OPEN: "fail open",
        What.REMOVED: "targets out",
        What.KEPT: "dead targets kept",
    }
    return ", ".join(said[each] for each in kinds if each in said)
