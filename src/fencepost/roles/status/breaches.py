"""Promises seen broken: by the observer that runs, and by those before it, which wrote them into the history.

An observer lives as long as the API's process, and what it counts ends with it. A breach must not.
"""

from fencepost.ports import HistoryRow
from fencepost.roles.status.facts import Facts
from fencepost.roles.status.promise_watch import BROKEN, WATCHED, Broken


def breaches(facts: Facts) -> list[Broken]:
    """What was seen broken, by this observer or, as the history has it, by the one before; in the order it was seen."""
    now = facts.observer.violations if facts.observer else ()
    known = {(each.promise, each.on, each.at) for each in now}
    earlier = facts.store.breaches if facts.store else ()
    before = [each for each in earlier if (each.promise, each.on, each.at) not in known]
    return sorted([*before, *now], key=lambda each: each.at)


def breach(row: HistoryRow) -> Broken | None:
    """A promise seen broken, as the API wrote it into the history; None for any other line."""
    promise, broken, what = row.text.partition(BROKEN)
    if row.by != "observer" or not broken or promise not in WATCHED:
        return None
    return Broken(promise, row.on, what, row.at)
