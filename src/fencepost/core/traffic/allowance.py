"""What the limits allow right now, in words and numbers for people: how much is out, how much may be, what is left.

A limit is only understood with its two numbers: what would be, and what is allowed. Readers of a row get both here, so
that status, explain and the dashboard can't disagree with the rules that decided.
"""

import msgspec

from fencepost.core.instant import Duration, Instant
from fencepost.core.traffic.limits import (
    PPM,
    SafetySettings,
    burst,
    cost,
    least_in,
    most_out,
    refill,
    refill_time,
    standing,
    targets_allowed,
)
from fencepost.core.traffic.membership import MICRO, Member, Membership, Mode, Rule
from fencepost.core.traffic.quorum import LEAST_VOTES


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The limits of one pool as they apply now. Weights are micro-capacity; one target is `each` on average.

    count, capacity, each: the pool.   in_count, out_count, out: in service; held out, in targets and weight.
    max_out, max_out_count: the most that may be held out, in weight and in targets; both must hold.
    min_in, min_in_count: the least that must serve, in weight and in targets; both must hold.
    budget, burst: removal budget now and when full.
    next_ns: until the budget is worth one average target; None if it already is, or removals are stopped.
    """

    count: int
    capacity: int
    each: int
    in_count: int
    out_count: int
    out: int
    max_out: int
    max_out_count: int
    min_in: int
    min_in_count: int
    budget: int
    burst: int
    next_ns: Duration | None


def allowance(row: Membership, safety: SafetySettings, now: Instant) -> Allowance:
    """What the row and these settings allow at `now` (the reader's clock: for display, not for deciding)."""
    pool = standing(row.members)
    count, capacity = pool.count, pool.capacity
    each = capacity // count if count else 0
    full = burst(count, capacity, safety)
    suspect = bool(row.suspect)
    budget = min(full, row.tokens + refill(max(0, now - row.refilled_at), count, capacity, suspect, safety))
    most, most_count = 0, most_out(count, safety)
    if most_count:
        most = max(targets_allowed(count) * each, safety.max_out_ppm * capacity // PPM)
    least = max(-(-safety.min_in_ppm * capacity // PPM), safety.min_count * each)
    unit = min(each, full)
    stopped = row.panic or now < row.freeze_until or row.mode is not Mode.ENABLED
    return Allowance(
        count,
        capacity,
        each,
        pool.in_count,
        pool.out_count,
        pool.out_capacity,
        most,
        most_count,
        least,
        least_in(count, safety) if count else 0,
        budget,
        full,
        None if stopped or budget >= unit else refill_time(unit - budget, count, capacity, suspect, safety),
    )


def why_kept(member: Member, row: Membership, safety: SafetySettings, now: Instant) -> str:
    """The limit that keeps a dead target in service, with its two numbers; empty for a target that isn't kept.

    The numbers are targets, unless only the weights object.
    """
    allowed = allowance(row, safety, now)
    count = allowed.count
    match member.rule:
        case Rule.OPERATOR:
            return "an override or the mode keeps it; automation doesn't touch it"
        case Rule.FAILING_NOW:
            if member.votes.fresh < LEAST_VOTES:
                return "too few checkers vote for anything new to be decided"
            return "a checker's newest probe of it passed, though too few yet to call it healthy: not removed meanwhile"
        case Rule.MIN_IN:
            if allowed.in_count - 1 >= allowed.min_in_count and (weights := _short_in_weight(member, row, safety)):
                return f"min_in: {weights}"
            return f"min_in: {allowed.in_count - 1} of {count} would be in, at least {allowed.min_in_count} must"
        case Rule.LAST_OF_FAMILY:
            return "it is the last address of its family in service"
        case Rule.FAIL_OPEN:
            return f"fail open: too much of {count} looks dead at once, so nothing is removed"
        case Rule.FREEZE:
            return f"freeze: too much turned sick at once; removal waits {max(0, row.freeze_until - now) // 10**9} s"
        case Rule.MAX_OUT:
            if allowed.out_count < allowed.max_out_count and (weights := _over_in_weight(member, row, safety)):
                return f"max_out: {weights}"
            return f"max_out: {allowed.out_count + 1} of {count} would be out, allowed {allowed.max_out_count}"
        case Rule.BUCKET:
            price = cost(member, count, allowed.capacity, allowed.burst)
            return f"budget: {allowed.budget / MICRO:.1f} left, it takes {price / MICRO:.1f}"
        case _:
            return ""


def _short_in_weight(member: Member, row: Membership, safety: SafetySettings) -> str:
    pool = standing(row.members)
    left, least = pool.in_capacity - member.capacity * MICRO, safety.min_in_ppm * pool.capacity // PPM
    if left >= least:
        return ""
    return f"{_number(left)} of {_number(pool.capacity)} in weight would be in, at least {_number(least)} must"


def _over_in_weight(member: Member, row: Membership, safety: SafetySettings) -> str:
    pool = standing(row.members)
    gone, most = pool.out_capacity + member.capacity * MICRO, safety.max_out_ppm * pool.capacity // PPM
    if gone <= most:
        return ""
    return f"{_number(gone)} of {_number(pool.capacity)} in weight would be out, allowed {_number(most)}"


def _number(micro: int) -> str:
    return f"{micro / MICRO:.1f}".removesuffix(".0")
