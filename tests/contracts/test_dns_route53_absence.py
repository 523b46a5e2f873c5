"""What it can lead to that Route 53 can't be asked to require the absence of a set that isn't written.

A world small enough to look at every order of events: two plans, a writer for each, and another's hand that may delete
the marker once and add a set once. It is played twice: by the reference transaction, which requires absence too, and by
what a batch of Route 53 requires. What differs, and what doesn't, is asserted; ``docs/concepts/route53.md`` tells it.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest


class Zone(NamedTuple):
    """What stands at the endpoint: the marker's number (0: none), and who wrote each family ("" : nobody)."""

    marker: int = 0
    a: str = ""
    aaaa: str = ""


class World(NamedTuple):
    """The zone; what each writer has read (None: nothing yet); how far plans went; what the hand may still do."""

    zone: Zone
    seen: tuple[Zone | None, ...]
    rows: tuple[int, ...]
    published: int
    may_unmark: bool
    may_add: str


PLANS_DIFFER = {1: Zone(1, a="1"), 2: Zone(2, aaaa="2")}
"""Plan 1 publishes A alone, plan 2 AAAA alone."""
PLANS_ALIKE = {1: Zone(1, a="1"), 2: Zone(2, a="2")}


def moves(world: World, plans: dict[int, Zone], *, strict: bool) -> Iterator[tuple[str, World]]:
    """Every next step. A writer reads DNS, then its row: the newest that is published (the protocol's order)."""
    zone = world.zone
    if world.published == 1:
        yield "plan 2 is published", world._replace(published=2)
    for who in (0, 1):
        if world.seen[who] is None:
            seen, rows = list(world.seen), list(world.rows)
            seen[who], rows[who] = zone, world.published
            yield f"writer {who} reads", world._replace(seen=tuple(seen), rows=tuple(rows))
            continue
        saw, plan = world.seen[who], plans[world.rows[who]]
        assert saw is not None
        forgotten = world._replace(seen=tuple(None if index == who else each for index, each in enumerate(world.seen)))
        known = saw.marker or saw == Zone()
        drifted = saw.marker == plan.marker and saw != plan
        if not known or not (saw.marker < plan.marker or drifted):
            yield f"writer {who} has nothing to write", forgotten
        elif not applies(zone, saw, plan, strict=strict):
            yield f"writer {who} is refused", forgotten
        else:
            a = plan.a if strict or saw.a or plan.a else zone.a
            aaaa = plan.aaaa if strict or saw.aaaa or plan.aaaa else zone.aaaa
            yield f"writer {who} writes plan {plan.marker}", forgotten._replace(zone=Zone(plan.marker, a, aaaa))
    if world.may_unmark and zone.marker:
        yield "the marker is deleted", world._replace(zone=zone._replace(marker=0), may_unmark=False)
    if world.may_add and not getattr(zone, world.may_add):
        added = zone._replace(a="hand") if world.may_add == "a" else zone._replace(aaaa="hand")
        yield "a set is added", world._replace(zone=added, may_add="")


def applies(zone: Zone, saw: Zone, plan: Zone, *, strict: bool) -> bool:
    """Whether the transaction takes it: all that was seen is exact; and what wasn't seen is absent, if created."""
    if strict:
        return zone == saw
    return zone.marker == saw.marker and all(
        stands == seen or (not seen and not wanted)
        for stands, seen, wanted in ((zone.a, saw.a, plan.a), (zone.aaaa, saw.aaaa, plan.aaaa))
    )


def reached(begin: World, plans: dict[int, Zone], *, strict: bool) -> dict[World, tuple[str, ...]]:
    """Every world that can come about, each with the shortest way there."""
    found: dict[World, tuple[str, ...]] = {begin: ()}
    todo = deque([begin])
    while todo:
        world = todo.popleft()
        for step, after in moves(world, plans, strict=strict):
            if after not in found:
                found[after] = (*found[world], step)
                todo.append(after)
    return found


def begins(*, unmark: bool, add: str) -> World:
    """An empty name and plan 1."""
    return World(Zone(), (None, None), (0, 0), 1, unmark, add)


def torn(zone: Zone) -> bool:
    """Whether sets of two plans stand side by side."""
    return {"1", "2"} <= {zone.a, zone.aaaa}


@pytest.mark.parametrize("plans", [PLANS_ALIKE, PLANS_DIFFER], ids=["one-family", "families-differ"])
@pytest.mark.parametrize("add", ["", "a", "aaaa"])
def test_while_no_marker_is_deleted_nothing_is_lost(plans: dict[int, Zone], add: str) -> None:
    """Every zone that comes about also comes about where absence is required: as if the hand had come a little later.

    ``never_backward`` and ``never_torn`` hold as ever: each writer of ours exchanges the marker, so whatever of ours
    has come between is noticed by it.
    """
    begin = begins(unmark=False, add=add)
    strict = {world.zone for world in reached(begin, plans, strict=True)}
    loose = reached(begin, plans, strict=False)
    assert {world.zone for world in loose} == strict
    assert not any(torn(world.zone) for world in loose)
    for world in loose:
        for _, after in moves(world, plans, strict=False):
            assert after.zone.marker >= world.zone.marker


def test_a_deleted_marker_is_harmless_while_plans_publish_the_same_families() -> None:
    """The addresses give a newer write away: its A stands where A is to be created."""
    loose = reached(begins(unmark=True, add=""), PLANS_ALIKE, strict=False)
    strict = reached(begins(unmark=True, add=""), PLANS_ALIKE, strict=True)
    assert {world.zone for world in loose} == {world.zone for world in strict}


def test_what_remains_takes_a_deleted_marker_and_a_change_of_families_at_once() -> None:
    """The one difference, and the shortest ways to it: two writers who both saw nothing, and a marker gone between."""
    begin = begins(unmark=True, add="")
    assert not any(torn(world.zone) for world in reached(begin, PLANS_DIFFER, strict=True))
    ways = [way for world, way in reached(begin, PLANS_DIFFER, strict=False).items() if torn(world.zone)]
    assert all("the marker is deleted" in way for way in ways)
    read = {"writer 0 reads", "plan 2 is published", "writer 1 reads"}
    shortest = [way for way in ways if len(way) == min(map(len, ways))]
    assert all(set(way[:3]) == read and way[4] == "the marker is deleted" for way in shortest)
    assert {(way[3].split()[-1], way[5].split()[-1]) for way in shortest} == {("1", "2"), ("2", "1")}


def test_it_heals_by_itself() -> None:
    """From every torn zone a pass of any writer, which reads the newest row, leaves plan 2 and nothing else."""
    worlds = [w for w in reached(begins(unmark=True, add=""), PLANS_DIFFER, strict=False) if torn(w.zone)]
    assert worlds
    for world in worlds:
        fresh = world._replace(seen=(None, world.seen[1]), published=2)
        read = dict(moves(fresh, PLANS_DIFFER, strict=False))["writer 0 reads"]
        written = dict(moves(read, PLANS_DIFFER, strict=False))["writer 0 writes plan 2"]
        assert written.zone == PLANS_DIFFER[2]
