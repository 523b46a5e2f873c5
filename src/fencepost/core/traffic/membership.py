"""Who is in service, and why: the one row that the load balancer writes and every output reads.

Membership, removal budget, mode and alarm state are one row changed by one compare-and-set. So a crash at any point
loses nothing and doubles nothing: either a removal and the tokens it cost are both written, or neither is. Any number
of load balancers may run; the slower one of two is refused, reads again and finds the work done. DNS, balancers and
status all read this row, so every output shares one limiter.

What was observed (`healthy`, `votes`, `cause`) and what was forced (`forced`) stand in separate fields: an
operator's word never overwrites health, and the reverse.

Awkward truth: stamps in the row are the writer's clock. Another load balancer whose clock is off by a minute misjudges
the 60-second and 15-minute windows by that minute. The budget doesn't rest on them: tokens are credited only for time
that the crediting process has itself seen pass (see `limits`).
"""

from enum import StrEnum

import msgspec

MICRO = 1_000_000
"""Capacity is counted in millionths of a weight of one, so that shares of few targets stay exact in integers."""


class State(StrEnum):
    """Where a target stands. `IN` and `KEPT` are published; the others are not."""

    IN = "in"
    KEPT = "kept"
    """Looks dead and is still served because a limit (the member's `rule`) says so."""
    OUT = "out"
    """Taken out by automation; comes back by itself."""
    PENDING = "pending"
    """New and not ready yet: counts in no fraction."""
    DRAINED = "drained"
    """Taken out by a person's override, or moved away by a drain of its host, however well: counts in no fraction."""


SERVING = (State.IN, State.KEPT)


class Mode(StrEnum):
    """What automation may do to a pool."""

    ENABLED = "enabled"
    OBSERVE = "observe"
    """Decide and show (`Member.would`), change nothing."""
    DISABLED = "disabled"
    """The output is frozen."""


class Rule(StrEnum):
    """Which rule decided a member's state. Removal asks them in this order; the first that objects decides."""

    OPERATOR = "operator"
    """An override: drain, keep, or a pause that froze the member as it was."""
    FAILING_NOW = "failing_now"
    """Dead by quorum, but its newest probe passed at some checker: not removed yet."""
    MIN_IN = "min_in"
    """In service would fall below the hard floor."""
    LAST_OF_FAMILY = "last_of_family"
    """It is the last address of its family (IPv4 or IPv6) in service."""
    ZONE_FAILOVER = "zone_failover"
    """Taken out with its zone, outside `max_out` and the bucket."""
    FAIL_OPEN = "fail_open"
    """Too much looks dead at once: nothing is removed, the newest removals are put back."""
    FREEZE = "freeze"
    """Too much turned sick within 20 s: no removal for 60 s from that edge."""
    MAX_OUT = "max_out"
    """Automation already holds out as much as it may."""
    BUCKET = "bucket"
    """The removal budget is spent; it refills with time."""
    FALL = "fall"
    """No rule objected: dead by quorum and taken out."""
    HEALTHY = "healthy"
    """In service and passing, or no verdict against it."""
    READINESS = "readiness"
    """Pending: `cause` says what is missing."""
    START = "start"
    """In service since the pool's first pass, before any verdict."""
    LOST_STORE = "lost_store"
    """The store was lost and DNS didn't hold this address, so it counts as held out."""
    LISTING = "listing"
    """The owner's list added it or took it off."""


class Fate(StrEnum):
    """What became of what runs at an address, where that decides and not its checks; `cause` says it in words."""

    LAPSED = "lapsed"
    """Its host's lease has lapsed: it must not serve, whatever its checks say, and counts as dead."""
    GONE = "gone"
    """A person said that its host is gone: as lapsed."""
    OVER = "over"
    """The attempt there is over, or another has its place: as lapsed."""
    MOVED = "moved"
    """A person drains its host, or nothing is placed there since: out as by a drain of its address."""
    TERMINATED = "terminated"
    """A person terminated the instance there: as moved."""


FORSAKEN = (Fate.LAPSED, Fate.GONE, Fate.OVER)
"""Those that count as dead, under the same limits as any dead target."""
TAKEN = (Fate.MOVED, Fate.TERMINATED)
"""Those that are a person's act, and free."""


class Family(StrEnum):
    """Address family; each published one must keep an address."""

    V4 = "v4"
    V6 = "v6"


def family(address: str) -> Family:
    """The family of a literal address."""
    return Family.V6 if ":" in address else Family.V4


class Target(msgspec.Struct, frozen=True, gc=False):
    """A target as its owner lists it.

    key: its address, unique in the pool.   zone: its failure zone.
    weight: from the file, 1 to 255; None: by the readings of `capacity`, or all alike.
    network_ready: its network state was acknowledged, or nobody requires that. A pending target waits for it.
    source: the attempt it is, for an instance that was launched; "" for a target of the file.
    port: where it is probed and reached, for such an instance; 0 is the pool's.
    fate: what makes its probes of no account, or None: it must not serve (`gone`), or a person's drain of its host
    takes it out (`moved`).   why: that in words; "" without a fate.
    """

    key: str
    zone: str
    weight: int | None = None
    network_ready: bool = True
    source: str = ""
    port: int = 0
    fate: Fate | None = None
    why: str = ""

    @property
    def gone(self) -> bool:
        """Whether it must not serve, whatever its probes say; it then counts as dead, and limits bind."""
        return self.fate is not None and self.fate in FORSAKEN

    @property
    def moved(self) -> bool:
        """Whether a person's drain of its host, or his ending it, takes it out, as a drain of its address would."""
        return self.fate is not None and self.fate in TAKEN


class Listing(msgspec.Struct, frozen=True, gc=False):
    """What the source of targets said on this pass.

    targets: as listed now; empty means "it said nothing", never "there are none".
    revision: number of the owner's list; the row keeps the newest applied, and an older one changes nothing.
    complete: the whole list was read and checked (of a pool that launches, the fleet's rows too). Only then is absence
        from a *newer* revision the owner's act.
    deregistered: keys that were taken off by name.
    confirmed: the owner said yes to taking off the last target or more than half the pool at once.
    error: what went wrong while listing, empty when nothing did.
    unheard: hosts may yet tell of instances that no row knows: the store is a new one, and not all have spoken.
    """

    targets: tuple[Target, ...] = ()
    revision: int = 0
    complete: bool = True
    deregistered: frozenset[str] = frozenset()
    confirmed: bool = False
    error: str = ""
    unheard: bool = False


class OverrideKind(StrEnum):
    """What a person may force."""

    DRAIN = "drain"
    KEEP = "keep"
    PAUSE = "pause"
    OBSERVE = "observe"


class Override(msgspec.Struct, frozen=True, gc=False):
    """A person's word, checked before every rule.

    kind: drain (out, however well), keep (in, however sick), pause (frozen as it is), observe (decide, don't do).
    target, zone: what it is about; with both empty, the whole pool.
    author, reason: who and why, for people.   until: when it ends by itself (ns); 0 is never.
    """

    kind: OverrideKind
    target: str = ""
    zone: str = ""
    author: str = ""
    reason: str = ""
    until: int = 0


class Votes(msgspec.Struct, frozen=True, gc=False):
    """The votes behind a verdict: `healthy` of `fresh` counted; `outvoted` is the zone of a dissenter set aside."""

    healthy: int = 0
    fresh: int = 0
    outvoted: str = ""


class Member(msgspec.Struct, frozen=True, gc=False):
    """One target's place in the pool.

    key, zone: as listed.
    state: see `State`.   weight: 1 to 255 for publishing, slow start included; 0 unless in service.
    rule: which rule decided the state.   since: when the state last changed (ns).
    cause: why it fails, or what a pending one waits for.
    healthy: the quorum's verdict, the last one held while there is no quorum; None before the first.
    dead_since: when the quorum found it dead (ns); 0 while it isn't. The oldest death is removed first.
    votes: see `Votes`.
    capacity: what it counts for in shares and in the budget, in units of its weight; at least 1.
    joined: when it came (back) into service, for slow start (ns); 0: it doesn't ramp.
    listed_at: when the pool first listed it (ns), for readiness.
    falls: the last two times the quorum found it dead (ns), newest first; two within 300 s are flapping.
    flips: the highest count any counted checker gives, for people.
    forced: the override in force on it, or None.
    listed: False when the source left it out without taking it off.
    served: it has been in service (or held out of it) since it was listed; a pending one hasn't.
    would: while automation is off, the state it would have given; None when that is `state`.
    source, port: as listed; the attempt is that which was let in at this address last.
    fate: what `cause` tells, where that is no check's finding; None where it is one, and in rows of older versions.
    """

    key: str
    zone: str
    state: State
    weight: int = 0
    rule: Rule = Rule.HEALTHY
    since: int = 0
    cause: str = ""
    healthy: bool | None = None
    dead_since: int = 0
    votes: Votes = Votes()
    capacity: int = 1
    joined: int = 0
    listed_at: int = 0
    falls: tuple[int, ...] = ()
    flips: int = 0
    forced: OverrideKind | None = None
    listed: bool = True
    served: bool = False
    would: State | None = None
    source: str = ""
    port: int = 0
    fate: Fate | None = None


class Move(msgspec.Struct, frozen=True, gc=False):
    """One change of one member's state, as `history` shows it and as `bounded_removal` is judged by.

    number: raised by one at each move of the pool, never reused.   at: ns.
    key, zone: whose.   before, after: the two states; before is None for a new member, after for one that left.
    rule, cause, fate: why; the last two as the member had them then.
    cost: what it took from the budget, in micro-capacity; only ordinary removals cost.
    tokens: the budget after it, in micro-capacity.
    """

    number: int
    at: int
    key: str
    zone: str
    before: State | None
    after: State | None
    rule: Rule
    cause: str = ""
    cost: int = 0
    tokens: int = 0
    fate: Fate | None = None


class Voter(msgspec.Struct, frozen=True, gc=False):
    """One checker as the load balancer sees it: `state` is "ok", "stale" (no beat for 3 intervals), or a suspicion."""

    zone: str
    state: str


class Membership(msgspec.Struct, frozen=True, gc=False):
    """The row of one pool.

    pool: its name.
    version: raised by one at each write.
    urgent: raised when the set in service changed; the planner acts on it at once.
    shift_since: when weights alone began to differ (ns), 0 if they don't; the planner gathers these for 30 s.
    members: in the order listed.
    tokens: removal budget left, in micro-capacity.   refilled_at: when it was last credited (ns), for people.
    mode: as applied.   paused_zones: zones whose members an override froze.
    suspect: why removal is slowed ("many dead", "flapping"), empty if it isn't.   suspect_since: ns.
    panic: fail open is on.   panic_since: ns.   verdicts_changed_at: when any quorum verdict last changed (ns).
    freeze_until: no removal before then (ns); 0 when not frozen.
    sick: share of the pool's capacity dead or failing, in millionths, when the row was written.
    voters: the checkers.   revision: the newest list applied.   source_error: why the list can't be trusted now.
    last_over: `source_error` tells that the last instance of a family is over and stays, which no list is at fault for.
    moves: the newest moves, oldest first, at most 256; who wants all of them collects them from row to row.
    moved: number of the newest move ever made.
    """

    pool: str
    version: int = 0
    urgent: int = 0
    shift_since: int = 0
    members: tuple[Member, ...] = ()
    tokens: int = 0
    refilled_at: int = 0
    mode: Mode = Mode.ENABLED
    paused_zones: tuple[str, ...] = ()
    suspect: str = ""
    suspect_since: int = 0
    panic: bool = False
    panic_since: int = 0
    verdicts_changed_at: int = 0
    freeze_until: int = 0
    sick: int = 0
    voters: tuple[Voter, ...] = ()
    revision: int = 0
    source_error: str = ""
    last_over: bool = False
    moves: tuple[Move, ...] = ()
    moved: int = 0
