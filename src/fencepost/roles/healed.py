"""What an enactor says of an endpoint that it wrote: also what another writer had done to it, once that is healed."""

import time

from fencepost.core.fence import Generation, Marker
from fencepost.core.instant import MILLISECOND, SECOND, Duration, Instant
from fencepost.core.judge import Remembered
from fencepost.core.zone import Change
from fencepost.ports import HistoryRow
from fencepost.settings.units import spoken

CLOSELY: Duration = 2 * SECOND
"""Looks at DNS that are no further apart tell when something happened."""


def written(
    change: Change, known: Remembered | None, by: str, looked: Instant, seen: Instant, began: Instant, now: Instant
) -> list[HistoryRow]:
    """All that is to be said of one write, which took from ``began`` to ``now``.

    ``known`` is what was remembered of an endpoint that has no marker; None of one that has. ``looked`` and ``seen``
    are as for :func:`healed`.
    """
    to, old = change.marker.generation, change.seen.marker
    before = old.generation if isinstance(old, Marker) else None
    if before == to:
        return healed(change, by, looked, seen, now)
    rows: list[HistoryRow] = []
    had = known.generation if known is not None and known.content.addresses else None
    if had is not None:
        rows = lost_its_marker(change, had, by, looked, seen, now)
    if had != to:
        took = (now - began) // MILLISECOND
        rows.append(HistoryRow("enacted", change.name, by, f"{before or '-'} -> {to} in {took} ms", time.time_ns()))
    return rows


def healed(change: Change, by: str, looked: Instant, seen: Instant, now: Instant) -> list[HistoryRow]:
    """What another writer had done, as of when it was read (by whom isn't known), and that it is healed.

    It was read whole at ``looked`` (0: never) and otherwise at ``seen``. Both lines are told by the enactor that healed
    it, so that three that saw it tell it once.
    """
    marker = change.marker
    count = len(change.content.addresses)
    did = "emptied" if change.seen.empty else "altered"
    says = f"its marker still says gen {marker.generation}, {count} address{'' if count == 1 else 'es'}"
    done = f"healed: gen {marker.generation}, {nth(marker.writes)} write"
    if change.seen.empty:
        done += f"; it was empty {empty_for(looked, seen, now)}"
    return [
        HistoryRow("finding", change.name, "", f"{did} by another writer; {says}", seen),
        HistoryRow("healed", change.name, by, done, time.time_ns()),
    ]


def lost_its_marker(
    change: Change, had: Generation, by: str, looked: Instant, seen: Instant, now: Instant
) -> list[HistoryRow]:
    """What is said of an endpoint that is written where no marker stands, and that had one: of generation ``had``.

    Our writers never take a marker away; a server that lost its domain does. Times are as for :func:`healed`.
    """
    did, done = "altered by another writer: its marker is gone", f"healed: gen {change.marker.generation}, marker anew"
    if change.seen.empty:
        did = "emptied by another writer, its marker too, unless the server lost both"
        done = f"healed: gen {change.marker.generation}, all anew; it was empty {empty_for(looked, seen, now)}"
    return [
        HistoryRow("finding", change.name, "", f"{did}; it was gen {had}", seen),
        HistoryRow("healed", change.name, by, done, time.time_ns()),
    ]


def empty_for(looked: Instant, seen: Instant, now: Instant) -> str:
    """For how long a record was empty that was read whole at ``looked`` (0: never), and at ``seen`` no more.

    Where DNS is watched closely (NOTIFY, or its serial each second) that is the time since it was seen; else from when
    to when it may have been.
    """
    if not looked:
        return "before this enactor looked"
    shortest, longest = now - seen, now - looked
    if seen - looked > CLOSELY:
        return f"for {spoken(shortest)} to {spoken(longest)}"
    return f"for {shortest // MILLISECOND} ms" if shortest < SECOND else f"for {spoken(shortest)}"


def nth(number: int) -> str:
    """An ordinal, as the first few are said."""
    words = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
    ends = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return words.get(number, f"{number}{ends}")
