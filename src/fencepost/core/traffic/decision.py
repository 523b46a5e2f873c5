"""One pass of the load balancer, step by step. Each step reads members as the steps before it left them.

The order is the meaning: who the operator moves, who comes back, what alarms ring, who goes out. Zone failover will
have its step between the alarms and the ordinary removals, outside `max_out` and the bucket; until then the targets of
a lost zone are removed like any others.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from fencepost.core.instant import Instant
from fencepost.core.traffic import limits, readiness
from fencepost.core.traffic.alarms import LEAST_SICK, Memory, Sickness, sickness, suspicion
from fencepost.core.traffic.limits import SafetySettings, Standing, standing
from fencepost.core.traffic.membership import (
    SERVING,
    TAKEN,
    Fate,
    Member,
    Membership,
    Mode,
    OverrideKind,
    Rule,
    State,
    Target,
    Voter,
    family,
)
from fencepost.core.traffic.operator_word import FREEZING, Words
from fencepost.core.traffic.quorum import LEAST_VOTES, NO_VOTES, Tally
from fencepost.core.traffic.slow_start import Entrant, weights


class Pass(msgspec.Struct):
    """What a pass knows and changes.

    row: as read.   members: as they become.   tokens: the budget, credited up to now; spent as removals are made.
    frozen_pool: the mode forbids carrying out.   ended: members whose drain has just ended.
    costs: (cost, tokens after) of each ordinary removal.   The alarm fields are as in `Membership`.
    """

    row: Membership
    members: dict[str, Member]
    targets: dict[str, Target]
    tallies: dict[str, Tally]
    voters: tuple[Voter, ...]
    numbers: dict[str, int]
    words: Words
    mode: Mode
    tokens: int
    safety: SafetySettings
    now: Instant
    ended: dict[str, None] = msgspec.field(default_factory=dict)
    costs: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    suspect: str = ""
    panic: bool = False
    panic_since: Instant = 0
    freeze_until: Instant = 0
    sick: int = 0

    def tally(self, key: str) -> Tally:
        """The votes on it now."""
        return self.tallies.get(key, NO_VOTES)

    def failing(self, key: str) -> bool:
        """Its newest probes fail at every counted checker."""
        return self.tally(key).failing

    def held(self, member: Member) -> bool:
        """Automation may not change whether it serves."""
        return self.mode is not Mode.ENABLED or member.forced in FREEZING

    def place(
        self,
        member: Member,
        state: State,
        rule: Rule,
        cause: str | None = None,
        joined: Instant = 0,
        fate: Fate | None = None,
    ) -> None:
        """Give it this state; `since` moves only if the state does.

        Without a `cause` it keeps its own, and its fate.
        """
        if cause is None:
            cause, fate = member.cause, member.fate
        if state is member.state:
            if rule is not member.rule or cause != member.cause or fate is not member.fate:
                self.members[member.key] = replace(member, rule=rule, cause=cause, fate=fate)
            return
        serving = state in SERVING
        if serving and member.state in SERVING:
            joined = member.joined
        self.members[member.key] = replace(
            member,
            state=state,
            rule=rule,
            cause=cause,
            fate=fate,
            since=self.now,
            joined=joined if serving else 0,
            served=member.served or serving,
        )

    def wish(self, member: Member, state: State) -> None:
        """Show what automation would do, and don't do it."""
        self.members[member.key] = replace(member, would=state)

    def ready(self, member: Member) -> bool:
        """Its network state is acknowledged. One that served before and isn't listed now had that."""
        target = self.targets.get(member.key)
        return target.network_ready if target else member.state is not State.PENDING

    def each(self) -> Iterable[Member]:
        """The members as they are now; safe to change while going through."""
        return list(self.members.values())


def obey(work: Pass) -> None:
    """Drains and keeps. A drain never takes the last address of a family: it waits until another serves.

    What a person took from a target's host counts as a drain of the target, once that serves elsewhere or is
    terminated. A keep of the target beats it. What is placed there again is pending until it passes, as what is new is:
    in service while it starts, several would look like a sick pool.
    """
    words = work.words
    moved = {key: target for key, target in work.targets.items() if target.moved}
    if (
        not words.forcing
        and not words.freezing
        and not moved
        and not any(member.forced or member.state is State.DRAINED for member in work.members.values())
    ):
        return
    families = standing(work.members.values()).families
    for member in work.each():
        force, was = words.force(member), member.forced
        forced = force or words.freeze(member)
        if forced is not member.forced:
            member = work.members[member.key] = replace(member, forced=forced)
        serving, kind = member.state in SERVING, family(member.key)
        if force is OverrideKind.DRAIN or (force is None and member.key in moved):
            if not serving or families[kind] > 1:
                families[kind] = families.get(kind, 0) - serving
                why, fate = (None, None) if force else (moved[member.key].why, moved[member.key].fate)
                work.place(member, State.DRAINED, Rule.OPERATOR, why, fate=fate)
        elif member.state is State.DRAINED:
            if member.fate is not None and member.fate in TAKEN:
                member = replace(member, cause="", fate=None)  # what took it out is over, heard of or not
            well = was is OverrideKind.DRAIN or member.healthy
            if member.served and work.ready(member) and well:
                work.ended[member.key] = None
                work.place(member, State.IN, Rule.HEALTHY, joined=work.now)
            else:
                work.place(member, State.PENDING, Rule.READINESS)
        elif force is OverrideKind.KEEP and not serving and work.ready(member):
            work.place(member, State.IN, Rule.OPERATOR, joined=work.now)


def bring_in(work: Pass) -> None:
    """Who comes back, and which pending ones are ready. Coming in takes two votes, as going out does.

    One vote of three is enough for a verdict of healthy, and not for a return: if it is the odd one, it would be
    outvoted a minute later, and the target taken out again.
    """
    voting = tuple(voter.zone for voter in work.voters if voter.state == "ok")
    for member in work.each():
        if member.state is State.OUT:
            if len(work.tally(member.key).passed) >= LEAST_VOTES and work.ready(member):
                _admit(work, member)
        elif member.state is State.PENDING:
            age = work.now - member.listed_at
            tally, ready = work.tally(member.key), work.ready(member)
            lacks = readiness.missing(tally.passed, voting, age, ready, work.safety, tally.cause)
            if lacks:
                work.place(member, State.PENDING, Rule.READINESS, lacks)
            else:
                _admit(work, member)


def _admit(work: Pass, member: Member) -> None:
    if work.held(member):
        work.wish(member, State.IN)
    else:
        work.place(member, State.IN, Rule.HEALTHY, "", joined=work.now)


def ring(work: Pass, memory: Memory) -> Standing:
    """The alarms, as of this pass; fail open puts back what was removed shortly before it. The pool's sums then."""
    pool = standing(work.members.values())
    row, now, safety = work.row, work.now, work.safety
    if _turned_on(work):
        _start_over(work, memory, pool)
        row = work.row
    how = sickness(work.members.values(), work.failing, pool, now, safety)
    work.sick = how.sick
    work.suspect = suspicion(how, pool, safety)
    edge = memory.edge(how, row.sick, pool, now, safety)
    # A stamp from a clock that was ahead must not freeze the pool for longer than a freeze lasts.
    work.freeze_until = min(row.freeze_until, now + safety.freeze_ns) if now < row.freeze_until else 0
    if edge and not work.freeze_until:
        work.freeze_until = now + safety.freeze_ns
    _panic(work, memory, pool, how)
    if not work.panic:
        return pool
    _put_back(work)
    return standing(work.members.values())


def _panic(work: Pass, memory: Memory, pool: Standing, how: Sickness) -> None:
    row, now, safety = work.row, work.now, work.safety
    rounds = memory.calm_rounds(row.panic and how.dead < safety.exit_ppm, work.voters, work.numbers)
    work.panic, work.panic_since = row.panic, row.panic_since
    if not row.panic:
        if how.dead >= safety.fail_open_ppm and how.dead_in_count >= LEAST_SICK:
            work.panic, work.panic_since = True, now
        return
    quiet = now - row.verdicts_changed_at >= safety.exit_quiet_ns and not _verdicts_changed(work)
    if rounds >= safety.exit_rounds or (quiet and how.dead < safety.fail_open_ppm):
        _start_over(work, memory, pool)
        work.panic, work.panic_since, work.freeze_until = False, 0, 0


def _put_back(work: Pass) -> None:
    earliest = work.panic_since - work.safety.put_back_ns
    for member in work.each():
        if member.state is State.OUT and member.rule is Rule.FALL and earliest < member.since <= work.panic_since:
            if work.held(member):
                work.wish(member, State.KEPT)
            else:
                work.place(member, State.KEPT, Rule.FAIL_OPEN)


def _turned_on(work: Pass) -> bool:
    """Automation was off (for the pool, a zone or a target) and is on again."""
    if work.mode is not Mode.ENABLED:
        return False
    if work.row.mode is not Mode.ENABLED:
        return True
    return any(
        was.forced in FREEZING and was.key in work.members and work.members[was.key].forced not in FREEZING
        for was in work.row.members
        if was.forced is not None
    )


def _start_over(work: Pass, memory: Memory, pool: Standing) -> None:
    """After fail open or a pause: counters to zero and at most one target's worth of budget.

    Counters left standing are how a quarter of all zones could go at the moment failover is turned on again.
    """
    work.tokens = min(work.tokens, pool.capacity // max(pool.count, 1))
    work.row = replace(work.row, freeze_until=0, panic=False, panic_since=0)
    memory.clear()
    for member in work.each():
        if member.falls:
            work.members[member.key] = replace(member, falls=())


def take_out(work: Pass, pool: Standing) -> None:
    """Ordinary removals, the oldest death first; who must stay is kept, with the rule that says so."""
    dead = [member for member in work.members.values() if member.state in SERVING and member.healthy is False]
    full, frozen = limits.burst(pool.count, pool.capacity, work.safety), work.now < work.freeze_until
    # The weights may just have fallen: what was a burst of them a moment ago would now pay for more targets.
    tokens = min(work.tokens, full)
    for member in sorted(dead, key=lambda each: (each.dead_since, each.key)):
        if member.forced is OverrideKind.KEEP or member.forced in FREEZING:
            work.place(member, State.KEPT, Rule.OPERATOR)
            continue
        count, free = work.tally(member.key), member.key in work.ended
        # One that was drained until now isn't newly removed: it costs nothing and its last verdict will do.
        if not free and (count.healthy is not False or not count.failing):
            # Nothing new can be decided without a quorum, so a limit that was named before still stands.
            undecided = count.healthy is None and member.state is State.KEPT
            work.place(member, State.KEPT, member.rule if undecided else Rule.FAILING_NOW)
            continue
        rule = limits.objection(member, pool, full if free else tokens, work.panic, frozen, work.safety)
        if rule is not None:
            work.place(member, State.KEPT, rule)
            continue
        price = 0 if free else limits.cost(member, pool.count, pool.capacity, full)
        tokens -= price
        pool.remove(member)
        if work.mode is not Mode.ENABLED:
            work.place(member, State.KEPT, Rule.OPERATOR)
            work.wish(work.members[member.key], State.OUT)
        else:
            work.place(member, State.OUT, Rule.FALL)
            work.costs[member.key] = (price, tokens)
    if work.mode is Mode.ENABLED:
        work.tokens = tokens


def label(work: Pass) -> None:
    """Who serves and isn't dead is in, with the reason why."""
    for member in work.members.values():
        if member.state not in SERVING or member.healthy is False:
            continue
        if member.forced is OverrideKind.KEEP:
            rule = Rule.OPERATOR
        elif member.forced is OverrideKind.DRAIN:
            rule = Rule.LAST_OF_FAMILY
        elif member.healthy is None and member.rule in (Rule.START, Rule.LOST_STORE):
            continue
        else:
            rule = Rule.HEALTHY
        if member.state is not State.IN or member.rule is not rule:
            # Kept ones that pass again never left, so they don't ramp.
            work.members[member.key] = replace(
                member, state=State.IN, rule=rule, since=member.since if member.state is State.IN else work.now
            )


def weigh(members: Iterable[Member], now: Instant, safety: SafetySettings) -> tuple[Member, ...]:
    """The members with the weights to publish; 0 for who isn't in service."""
    members = tuple(members)
    serving = [member for member in members if member.state in SERVING]
    published = iter(weights([Entrant(each.capacity, each.joined) for each in serving], now, safety))
    return tuple(_weighing(member, next(published) if member.state in SERVING else 0) for member in members)


def _weighing(member: Member, weight: int) -> Member:
    return member if member.weight == weight else replace(member, weight=weight)


def _verdicts_changed(work: Pass) -> bool:
    return any(was.key in work.members and work.members[was.key].healthy is not was.healthy for was in work.row.members)
