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
    refill,
    refill_time,
    standing,
    targets_allowed,
    within_max_out,
)
from fencepost.core.traffic.membership import MICRO, Member, Membership, Mode, Rule


class Allowance(msgspec.Struct, frozen=True, gc=False):
    """The limits of one pool as they apply now. Weights are micro-capacity; one target is `each` on average.

    count, capacity, each: the pool.   in_count, out_count, out: in service; held out, in targets and weight.
    max_out: the most that may be held out.   max_out_count: the same in average targets, rounded down.
    min_in: the least that must serve.   min_in_count: the same in average targets, rounded up.
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
    most = 0
    if within_max_out(0, 0, pool, safety):
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
        most // each if each else 0,
        least,
        -(-least // each) if each else 0,
        budget,
        full,
        None if stopped or budget >= unit else refill_time(unit - budget, count, capacity, suspect, safety),
    )


def why_kept(member: Member, row: Membership, safety: SafetySettings, now: Instant) -> str:
    """The limit that keeps a dead target in service, with its two numbers; empty for a target that isn't kept."""
    now_allowed = allowance(row, safety, now)
    count, out, serving = now_allowed.count, now_allowed.out_count, now_allowed.in_count
    budget, each = now_allowed.budget / MICRO, min(member.capacity, now_allowed.burst / MICRO)
    match member.rule:
        case Rule.OPERATOR:
            return "an override or the mode keeps it; automation doesn't touch it"
        case Rule.FAILING_NOW:
            return "its newest probe passed at a checker, or there is no quorum: not removed yet"
        case Rule.MIN_IN:
            return f"min_in: {serving - 1} of {count} would be in, at least {now_allowed.min_in_count} must"
        case Rule.LAST_OF_FAMILY:
            return "it is the last address of its family in service"
        case Rule.FAIL_OPEN:
            return f"fail open: too much of {count} looks dead at once, so nothing is removed"
        case Rule.FREEZE:
            return f"freeze: too much turned sick at once; removal waits {max(0, row.freeze_until - now) // 10**9} s"
        case Rule.MAX_OUT:
            return f"max_out: {out + 1} of {count} would be out, allowed {now_allowed.max_out_count}"
        case Rule.BUCKET:
            return f"budget: {budget:.1f} left, it takes {each:.1f}"
        case _:
            return ""
