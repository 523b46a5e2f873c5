"""How much automation may take out, and how fast.

`max_out` bounds what is out, `min_in` what is in, and a bucket of capacity how fast one becomes the other. A dead
target that a limit keeps in service is *kept*, with the limit's name. Rules are asked in a fixed order and the first
that objects decides: the operator, then `min_in` (and the last of a family), zone failover, fail open, freeze,
`max_out`, bucket. Everything is integer arithmetic in micro-capacity: one target of three is exactly one third.

Every share holds twice: of the pool's targets and of its weight, and the stricter decides. A weight may be a target's
own word (its `capacity` reading), and by weight alone one of six that says 255 is 98 % of the pool: the other five
could all die and go. So no number that a target says of itself lets automation take out more than the same pool with
equal weights would lose. It can only hold a removal back: a dead target that claims half of the weight is kept.

Pools are often small, so limits in shares have a least number of targets: one, and two from six targets on (20 % of
four would be nothing at all). A pool of one is never removed (envoy #3263).

The budget credits only time that the crediting process has itself seen pass since the row was last written. A clock
that jumps, or another machine's that is ahead, so can't fill the bucket; a restart forgets up to a minute of refill.

It is a share of the pool, kept in the pool's units: where targets say for the first time what they can carry (100 each,
say, and not 1), or say something else, what is left of the budget is worth the same share of the pool as before.
"""

from collections.abc import Iterable

import msgspec

from fencepost.core.instant import MINUTE, SECOND, Duration
from fencepost.core.traffic.membership import MICRO, SERVING, Family, Member, Rule, State, family

PPM = 1_000_000
"""Shares are integers in parts per million."""


class SafetySettings(msgspec.Struct, frozen=True, gc=False):
    """The limits of one pool. Shares are of its targets and of its capacity (both must hold), in parts per million.

    max_out_ppm: 20 %; automation holds out at most this, or one target (two from six targets on).
    min_in_ppm: 50 %; in service (kept ones included) never falls below this by automation.
    min_count: 1; nor below this many targets.
    burst_ppm: 10 %; the removal budget when full, or one target (two from six on).
    rate_ppm_per_min: 5 %; its refill, never under one target in 5 minutes.
    fail_open_ppm: 50 %; with this much dead at once the checks are the likelier fault, or removal can't help.
    exit_ppm: 30 %; fail open ends below this after `exit_rounds` rounds of fresh reports ...
    exit_quiet_ns: ... or below `fail_open_ppm` when no verdict has changed for 10 minutes.
    suspect_ppm: 15 % dead and still in service: the refill falls to a tenth.
    edge_ppm, edge_window_ns, freeze_ns: 30 points more sick within 20 s: no removal for 60 s from that edge.
    flap_ppm: 20 % of targets with two falls in `flap_window_ns` (300 s): as suspect.
    put_back_ns: fail open puts back what automation removed in the last 15 minutes.
    ready_age_ns: 30 s; a new target waits at least this long.   ready_wait_ns: 90 s; then two zones' word is enough.
    ramp_ns: 60 s of slow start, from `ramp_floor_ppm` (10 %) up.
    """

    max_out_ppm: int = 200_000
    min_in_ppm: int = 500_000
    min_count: int = 1
    burst_ppm: int = 100_000
    rate_ppm_per_min: int = 50_000
    fail_open_ppm: int = 500_000
    exit_ppm: int = 300_000
    exit_rounds: int = 3
    exit_quiet_ns: Duration = 10 * MINUTE
    suspect_ppm: int = 150_000
    edge_ppm: int = 300_000
    edge_window_ns: Duration = 20 * SECOND
    freeze_ns: Duration = MINUTE
    flap_ppm: int = 200_000
    flap_window_ns: Duration = 5 * MINUTE
    put_back_ns: Duration = 15 * MINUTE
    ready_age_ns: Duration = 30 * SECOND
    ready_wait_ns: Duration = 90 * SECOND
    ramp_ns: Duration = MINUTE
    ramp_floor_ppm: int = 100_000

    def __post_init__(self) -> None:
        """Raises ValueError where two numbers don't go together."""
        for share in (self.max_out_ppm, self.min_in_ppm, self.burst_ppm, self.fail_open_ppm):
            if not 0 <= share <= PPM:
                raise ValueError("a share lies between 0 % and 100 %")
        if self.max_out_ppm + self.min_in_ppm > PPM:
            raise ValueError("max_out and min_in together are over 100 %, so max_out can't be used in full")
        if self.burst_ppm > self.max_out_ppm:
            raise ValueError("burst is over max_out, so the budget could never be spent")
        if not self.exit_ppm < self.fail_open_ppm:
            raise ValueError("fail open must end below where it begins, or it flaps")
        if self.ready_wait_ns < self.ready_age_ns:
            raise ValueError("two zones' word can't be enough before a target is old enough")


COUNTED = (*SERVING, State.OUT)
"""Who counts in fractions."""

LEAST_REFILL_NS: Duration = 5 * MINUTE
"""The budget always gains one average target in this time, however small the rate or suspect the pool."""

SUSPECT_SLOWDOWN = 10
"""A suspect pool's refill is a tenth."""


class Standing(msgspec.Struct):
    """The pool's sums: those members that count in fractions (in, kept, out). Capacities are in micro-capacity.

    count, capacity: all of them.   in_count, in_capacity: in service.   out_count, out_capacity: held out.
    families: how many of each address family are in service.
    """

    count: int = 0
    capacity: int = 0
    in_count: int = 0
    in_capacity: int = 0
    out_count: int = 0
    out_capacity: int = 0
    families: dict[Family, int] = msgspec.field(default_factory=dict)

    def remove(self, member: Member) -> None:
        """Account for a removal."""
        size = member.capacity * MICRO
        self.in_count -= 1
        self.in_capacity -= size
        self.out_count += 1
        self.out_capacity += size
        self.families[family(member.key)] -= 1


def standing(members: Iterable[Member]) -> Standing:
    """The sums of these members. Pending and drained ones count in nothing (envoy #9246: no panic by draining)."""
    in_count = in_size = out_count = out_size = v6 = 0
    for member in members:
        state = member.state
        if state is State.OUT:
            out_count += 1
            out_size += member.capacity
        elif state in SERVING:
            in_count += 1
            in_size += member.capacity
            v6 += ":" in member.key
    families = {Family.V4: in_count - v6, Family.V6: v6}
    whole = (in_size + out_size) * MICRO
    return Standing(in_count + out_count, whole, in_count, in_size * MICRO, out_count, out_size * MICRO, families)


def targets_allowed(count: int) -> int:
    """How many targets a share always allows: none of one, one of a few, two from six on."""
    return 0 if count <= 1 else 1 if count < 6 else 2


def burst(count: int, capacity: int, settings: SafetySettings) -> int:
    """The full budget in micro-capacity."""
    if not settings.burst_ppm or not count:
        return 0
    return max(max(targets_allowed(count), 1) * capacity // count, capacity * settings.burst_ppm // PPM)


def refill(elapsed_ns: Duration, count: int, capacity: int, suspect: bool, settings: SafetySettings) -> int:
    """What the budget gains in `elapsed_ns`, in micro-capacity, before it is capped at the burst."""
    if not count or elapsed_ns <= 0:
        return 0
    by_rate = capacity * settings.rate_ppm_per_min * elapsed_ns // (PPM * MINUTE)
    return max(by_rate // SUSPECT_SLOWDOWN if suspect else by_rate, capacity * elapsed_ns // (count * LEAST_REFILL_NS))


def refill_time(missing: int, count: int, capacity: int, suspect: bool, settings: SafetySettings) -> Duration:
    """How long the budget takes to gain `missing` micro-capacity."""
    if missing <= 0 or not count:
        return 0
    per_day = refill(24 * 60 * MINUTE, count, capacity, suspect, settings)
    return -(-missing * 24 * 60 * MINUTE // per_day) if per_day else 0


def in_units_of(after: Iterable[Member], before: Iterable[Member], amount: int) -> int:
    """What an `amount` of the capacity that `before` had is in that of `after`; rounded down.

    Only members in both tell the two units apart, by those that count before: who came or left is no change of units.
    """
    was = {member.key: member.capacity for member in before if member.state in COUNTED}
    old = new = 0
    for member in after:
        if member.key in was:
            old, new = old + was[member.key], new + member.capacity
    return amount if old == new else amount * new // old


def cost(member: Member, count: int, capacity: int, full: int) -> int:
    """What removing it takes from a budget whose burst is `full`: its capacity, or all there can be.

    Never less than the mean target of the `count` that make up `capacity` (micro-capacity): so a full budget pays for
    no more targets than it would if they were all alike.
    """
    return min(max(member.capacity * MICRO, capacity // max(count, 1)), full)


def most_out(count: int, settings: SafetySettings) -> int:
    """How many of `count` targets automation may hold out, by number."""
    if not settings.max_out_ppm:
        return 0
    return max(targets_allowed(count), count * settings.max_out_ppm // PPM) if count > 1 else 0


def least_in(count: int, settings: SafetySettings) -> int:
    """How many of `count` targets must stay in service, by number."""
    return max(settings.min_count, -(-settings.min_in_ppm * count // PPM))


def within_max_out(out_count: int, out_capacity: int, pool: Standing, settings: SafetySettings) -> bool:
    """Whether automation may hold out this much of the pool: by number, and beyond the first one or two by weight."""
    if out_count > most_out(pool.count, settings):
        return False
    return out_count <= targets_allowed(pool.count) or out_capacity * PPM <= settings.max_out_ppm * pool.capacity


def above_min_in(
    in_count: int, in_capacity: int, capacity: int, settings: SafetySettings, count: int | None = None
) -> bool:
    """Whether this much in service, of a pool of `capacity`, is enough.

    count: of how many targets. None judges the share by weight alone: for an owner's act on the weights in the file,
    which are nobody's word but the owner's.
    """
    if in_count < (settings.min_count if count is None else least_in(count, settings)):
        return False
    return in_capacity * PPM >= settings.min_in_ppm * capacity


def objection(
    member: Member, pool: Standing, tokens: int, panic: bool, frozen: bool, settings: SafetySettings
) -> Rule | None:
    """The first rule that forbids taking this dead member out, or None.

    The operator's word is asked before this. Zone failover has its place after the hard floors.
    tokens: budget left; pass the full burst for a removal that is free.
    """
    size = member.capacity * MICRO
    if not above_min_in(pool.in_count - 1, pool.in_capacity - size, pool.capacity, settings, pool.count):
        return Rule.MIN_IN
    if pool.families.get(family(member.key), 0) <= 1:
        return Rule.LAST_OF_FAMILY
    if panic:
        return Rule.FAIL_OPEN
    if frozen:
        return Rule.FREEZE
    if not within_max_out(pool.out_count + 1, pool.out_capacity + size, pool, settings):
        return Rule.MAX_OUT
    full = burst(pool.count, pool.capacity, settings)
    return Rule.BUCKET if not full or tokens < cost(member, pool.count, pool.capacity, full) else None
