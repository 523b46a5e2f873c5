"""The promise `bounded_removal`, judged from outside: rows in, a breach in words or nothing out.

Whoever sees every row that was written shows them to a witness: today the tests, which run load balancers in virtual
time. It looks at transitions only and uses nothing that the load balancer used to decide: it works like a leaking
vessel. Each ordinary removal pours in its cost, time drains it at the refill's rate, and at no moment may it hold more
than a burst. That is the same as: over every window, at most burst + rate x time. Where the pool's units change
(targets say for the first time what they can carry), what the vessel holds is counted in the new ones, so that no
change of units lets more targets go.

Awkward truth: the stamps of moves are their writers' clocks. Two writers an hour apart look like a breach, or hide one;
so it proves something only where there is one clock, and no running role asks it.
"""

import msgspec

from fencepost.core.instant import SECOND, Duration, Instant
from fencepost.core.traffic.limits import PPM, SafetySettings, burst, in_units_of, refill, standing, targets_allowed
from fencepost.core.traffic.membership import MICRO, SERVING, Membership, Mode, Move, Rule, State

TICK: Duration = SECOND
"""A pass's worth of refill is allowed on top: removals are stamped with the pass, not with the write."""


class Witness(msgspec.Struct, frozen=True, gc=False):
    """What has been seen. level: in the vessel, in micro-capacity, as of `at`.   fullest: the largest burst meanwhile.

    removals: ordinary removals seen, so that the promise can't pass because nothing happened.
    """

    level: int = 0
    at: Instant = 0
    fullest: int = 0
    removals: int = 0


def saw(was: Witness, before: Membership, after: Membership, safety: SafetySettings) -> tuple[Witness, str | None]:
    """The witness after one more row, and what is wrong with the step from `before` to `after`, if anything.

    Rows may be skipped: the moves in between are in the row, but then only the budget is judged.
    """
    moves = [move for move in after.moves if move.number > before.moved and is_ordinary(move)]
    was = msgspec.structs.replace(
        was,
        level=in_units_of(after.members, before.members, was.level),
        fullest=in_units_of(after.members, before.members, was.fullest),
    )
    if not moves:
        return was, None
    here, there = standing(before.members), standing(after.members)
    here.capacity = in_units_of(after.members, before.members, here.capacity)
    full = max(burst(each.count, each.capacity, safety) for each in (here, there))
    weights = {member.key: member.capacity for member in (*before.members, *after.members)}
    level, at, fullest = was.level, was.at, max(was.fullest, full)
    for move in moves:
        drained = max(refill(max(0, move.at - at), each.count, each.capacity, False, safety) for each in (here, there))
        if drained >= level:
            level, fullest = 0, full
        level = max(0, level - drained) + min(weights.get(move.key, 1) * MICRO, full)
        at = max(at, move.at)
    witness = Witness(level, at, fullest, was.removals + len(moves))
    tick = max(refill(TICK, each.count, each.capacity, False, safety) for each in (here, there))
    if level > fullest + tick:
        return witness, f"removals of {level / MICRO:.2f} in weight outran a budget of {fullest / MICRO:.2f}"
    return witness, _floors(after, safety) if after.version == before.version + 1 else None


def is_ordinary(move: Move) -> bool:
    """Whether the move is a removal that costs budget."""
    return move.before in SERVING and move.after is State.OUT and move.rule is Rule.FALL


def _floors(after: Membership, safety: SafetySettings) -> str | None:
    """What is wrong with a row just after an ordinary removal, limits aside that speak of time."""
    pool = standing(after.members)
    if pool.count <= 1:
        return "the only target was removed"
    if after.mode is not Mode.ENABLED:
        return f"a removal while automation was {after.mode}"
    if after.panic or after.freeze_until:
        return "a removal in fail open or freeze"
    if pool.in_count < safety.min_count or pool.in_capacity * PPM < safety.min_in_ppm * pool.capacity:
        return f"{pool.in_count} of {pool.count} in service is below min_in"
    if pool.out_count > targets_allowed(pool.count) and pool.out_capacity * PPM > safety.max_out_ppm * pool.capacity:
        return f"{pool.out_count} of {pool.count} out is above max_out"
    return None
