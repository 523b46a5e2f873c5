"""A promise that looks broken, judged once more by everything that happened since the last good look. Pure.

Two looks can't tell a writer of ours that undid a hold from a careless hand that deleted the marker between them, after
which what is remembered rightly falls (:mod:`fencepost.core.promises`). The DNS server can: its difference sequences
(:mod:`fencepost.core.differences`) are replayed one by one. A transaction that takes our marker away and puts none of
ours in its place is a hand's, for our writers never do that; every other marker is judged like a commit.

``broken``   one single transaction broke the promise
``kept``     none did
``unsure``   it can't be told: no differences to be had, they don't fit the looks, or a version may hold several
             transactions, or it hangs on which row the store held when a hand took the marker

Awkward truth. A hand that puts an older marker *of ours* back in one transaction is taken for a writer of ours: nothing
in DNS tells them apart. Records alone that turn out to be the set of the marker that comes next may be a person's
correction, made lasting afterwards, or half of a torn write: unsure.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from fencepost.core.differences import Difference, Records, states
from fencepost.core.fence import Marker
from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.promises import Memory, destroy, enact, undoes
from fencepost.core.store import Row
from fencepost.core.zone import Live

Verdict: TypeAlias = Literal["broken", "kept", "unsure"]

SKEW: Duration = 5 * SECOND
"""A hold whose time ends within this may have been ended by a planner whose clock is ahead of ours."""


class Base(Struct, frozen=True, gc=False):
    """A good look: what stood, a serial that the domain had before it (-1: unknown), what was remembered after it, and
    the newest row that was known then.
    """

    live: Live
    serial: int
    memory: Memory
    row: Row | None


class Suspicion(Struct, frozen=True, gc=False):
    """A promise that looks broken at ``marker``: what was seen and when; ``newest`` is the row known by then."""

    promise: str
    name: str
    marker: Marker
    what: str
    at: Instant
    base: Base | None
    newest: Row | None


class Step(Struct, frozen=True, gc=False):
    """One version of one endpoint, with what stood before it. ``alone``: surely no more than one transaction."""

    before: Live
    after: Live
    alone: bool


def verdict(suspicion: Suspicion, differences: Sequence[Difference] | None, owner: str) -> Verdict:
    """What the differences since ``suspicion.base.serial`` say; None stands for differences that can't be had."""
    base = suspicion.base
    if base is None or differences is None:
        return "unsure"
    found = _steps(suspicion.name, Records.of(base.live), differences)
    if suspicion.promise == "never_torn":
        return "unsure" if found is None or not _reached(found, suspicion.marker) else _worst(_torn(found, owner))
    if found is None:
        # The addresses don't fit what was looked at (of a weighted set that was one draw); the marker tells enough.
        only = [each.texts_only() for each in differences]
        found = _steps(suspicion.name, Records.of(base.live).texts_only(), only)
    if found is None or not _reached(found, suspicion.marker):
        return "unsure"
    row = older(base.row, suspicion.newest)
    if isinstance(base.live.marker, Marker) and base.live.marker.store != suspicion.marker.store:
        row = None  # another store: what the old one held is nothing that it must remember
    first = _worst(_falls(suspicion, base.memory, found, owner, row))
    if first != "kept":
        return first
    # Rows only grow: what was remembered is at least what the older row says, at most what the newer one does.
    again = _worst(_falls(suspicion, base.memory, found, owner, suspicion.newest))
    return "kept" if again == "kept" else "unsure"


def older(one: Row | None, other: Row | None) -> Row | None:
    """The older of two rows; none is older than any."""
    if one is None or other is None:
        return None
    return min(one, other, key=lambda row: row.generation)


def _steps(name: str, base: Records, differences: Sequence[Difference]) -> list[Step] | None:
    placed = states(base, differences)
    if placed is None:
        return None
    place, stood = placed
    lives = [each.live(name) for each in stood]
    return [
        Step(before, after, difference.alone)
        for (before, after), difference in zip(pairwise(lives), differences[place:], strict=True)
    ]


def _reached(found: list[Step], marker: Marker) -> bool:
    """Whether what looks wrong is among what happened: else the witness hasn't seen it."""
    return any(step.after.marker == marker for step in found)


def _worst(found: Iterator[bool]) -> Verdict:
    """Of broken steps, each "surely one transaction" or not."""
    all_ = list(found)
    return "kept" if not all_ else "broken" if any(all_) else "unsure"


def _falls(suspicion: Suspicion, memory: Memory, found: list[Step], owner: str, row: Row | None) -> Iterator[bool]:
    """Each step at which the generation fell, or a hold was undone; ``row`` is what the store remembered."""
    if suspicion.newest is not None:
        memory = structs.replace(memory, released=max(memory.released, suspicion.newest.released))
    for step in found:
        marker = step.after.marker
        if not isinstance(marker, Marker) or marker.owner != owner:
            memory = destroy(memory, structs.replace(step.after, marker=None), row)
            continue
        if marker == step.before.marker:
            continue
        broken = (
            marker.generation < memory.enacted
            if suspicion.promise == "never_backward"
            else undoes(memory, marker, suspicion.at + SKEW)
        )
        if broken:
            yield step.alone
        memory, _ = enact(memory, step.after, suspicion.at)


def _torn(found: list[Step], owner: str) -> Iterator[bool]:
    """Each step that put a marker of ours beside other records than its own, which is torn, if it was one transaction;
    or beside records that had come alone, just before it.
    """
    altered = False
    for step in found:
        before, marker = step.before, step.after.marker
        same = (before.a, before.aaaa) == (step.after.a, step.after.aaaa)
        if isinstance(marker, Marker) and marker.owner == owner and marker != before.marker:
            if not step.after.verified():
                yield step.alone
            elif same and altered:
                yield False
            altered = False
        elif not isinstance(marker, Marker):
            altered = False
        elif not same:
            altered = not step.after.verified()
