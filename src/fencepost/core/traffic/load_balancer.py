"""The load balancer: from the checkers' reports to the membership row.

Each pass reads everything anew (reports, overrides, listing, the row with its version) and answers with at most one
compare-and-set of the row. The order is fixed: the owner's list, what is seen, the operator's word, who comes back,
the alarms, and last who goes out, oldest death first. What is seen never depends on what is forced.

What it remembers between passes only makes it more careful: when it last saw each checker's beat change, how long a
lone dissenter has stood, how sick the pool was seconds ago, and how much time it has itself seen pass since the row was
written. Losing that memory delays removals; it never adds one. So any number may run, and be killed at any point.

In observe mode, and where an override pauses a pool, zone or target, decisions are made and shown (`Member.would`) and
not carried out; the budget isn't spent on them. A person's drain or keep works there too.

Awkward truth: `now` is the process's own clock. The 60-second and 15-minute windows whose start stands in the row were
stamped by whoever wrote it, so they are as exact as the machines' clocks agree. The budget isn't counted by stamps.
"""

from collections.abc import Mapping
from copy import copy

import msgspec
from msgspec.structs import replace

from fencepost.core.effects import Effect, Wake
from fencepost.core.events import Event
from fencepost.core.instant import MINUTE, SECOND, Duration, Instant
from fencepost.core.traffic import decision
from fencepost.core.traffic.alarms import Memory
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.limits import SafetySettings, burst, in_units_of, refill, standing
from fencepost.core.traffic.membership import (
    SERVING,
    Listing,
    Member,
    Membership,
    Mode,
    Move,
    Override,
    Rule,
    Target,
)
from fencepost.core.traffic.observed import Counted, observe
from fencepost.core.traffic.operator_word import heard
from fencepost.core.traffic.quorum import NO_VOTES, Ear, Tally
from fencepost.core.traffic.roster import Roster, first_row, roster
from fencepost.core.traffic.verdict import Beat, CheckerReport

SETTLE_NS: Duration = MINUTE
"""A refilling budget is written this often, so that a restart forgets no more of the refill than that."""

MOVES_KEPT = 256
"""Moves a row carries; `history` collects them from row to row."""


class PoolSettings(msgspec.Struct, frozen=True, gc=False):
    """What the file says of one pool.

    mode: the file's; an override may be stricter.   gather_ns: the planner's window for capacity shifts, 30 s.
    """

    name: str
    health: HealthSettings = HealthSettings()
    safety: SafetySettings = SafetySettings()
    mode: Mode = Mode.ENABLED
    gather_ns: Duration = 30 * SECOND


class ReportsRead(Event, frozen=True, gc=False):
    """Everything one pass needs, read in one go.

    settings, listing: the pool as configured.   reports, beats: the newest of each zone's checker.
    overrides: those of this pool (or of the region, spelled out for it); expired ones may be among them.
    row, version: the membership row and the store's version of it; None and 0 when there is none.
    published: addresses in DNS now, needed only when `row` is None; None if DNS couldn't be read, and then a pool
    without a row waits.
    """

    settings: PoolSettings
    listing: Listing
    reports: tuple[CheckerReport, ...] = ()
    beats: tuple[Beat, ...] = ()
    overrides: tuple[Override, ...] = ()
    row: Membership | None = None
    version: int = 0
    published: frozenset[str] | None = frozenset()


class WriteMembership(Effect, frozen=True, gc=False):
    """Replace the row if its version is still `expected_version` (0: if there is none).

    Not answered: a refused or lost write is found by the next pass, which reads the row again.
    """

    pool: str
    expected_version: int
    row: Membership


class Credit(msgspec.Struct, frozen=True, gc=False):
    """From when this process may credit the budget of the row it knows.

    known: (row version, refilled_at, tokens) of that row; versions alone come again after a lost store.
    since: when this process wrote it, or else first saw it.
    wrote, wrote_at: the same three of the newest row it asked to write, and when.
    """

    known: tuple[int, int, int] = (-1, 0, 0)
    since: Instant = 0
    wrote: tuple[int, int, int] = (-1, 0, 0)
    wrote_at: Instant = 0


class LoadBalancer(msgspec.Struct):
    """The decider of one pool. Its event is `ReportsRead`; it answers with a write when the row should differ."""

    ear: Ear = msgspec.field(default_factory=Ear)
    counted: Counted = msgspec.field(default_factory=Counted)
    memory: Memory = msgspec.field(default_factory=Memory)
    credit: Credit = Credit()

    def on(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """See `fencepost.core.decider.Decider`. A pass over 1,000 targets costs a few milliseconds at most."""
        if not isinstance(event, ReportsRead):
            return (Wake(0),)
        wake = Wake(min(event.settings.health.interval_ns // 2, SECOND))
        row = self._first(event, now) if event.row is None else self._next(event, event.row, now)
        return (wake,) if row is None else (self._write(event, row, now), wake)

    def __copy__(self) -> "LoadBalancer":
        return LoadBalancer(copy(self.ear), copy(self.counted), copy(self.memory), self.credit)

    def _first(self, event: ReportsRead, now: Instant) -> Membership | None:
        settings = event.settings
        if event.published is None:
            return None
        self.ear.listen(event.beats, event.reports, now, settings.health)
        row = first_row(settings.name, event.listing, event.published, now, settings.safety)
        return row and replace(row, version=1, members=decision.weigh(row.members, now, settings.safety))

    def _next(self, event: ReportsRead, row: Membership, now: Instant) -> Membership | None:
        settings, safety = event.settings, event.settings.safety
        voters, reports = self.ear.listen(event.beats, event.reports, now, settings.health)
        known = {member.key: member.votes.outvoted for member in row.members if member.votes.outvoted}
        tallies = self.counted.count(reports, self.ear, known, now, settings.health)
        # An older list than the one applied tells nothing, its weights neither.
        current = event.listing.revision >= row.revision
        targets = {target.key: target for target in event.listing.targets if current}
        tallies = forsaking(tallies, targets)
        listed = roster(row, event.listing, now, safety)
        words, mode = heard(event.overrides, settings.mode, now)
        members = {
            member.key: observe(member, tallies.get(member.key, NO_VOTES), targets.get(member.key), now)
            for member in listed.members
        }
        work = decision.Pass(
            row=row,
            members=members,
            targets=targets,
            tallies=tallies,
            voters=voters,
            numbers={beat.zone: beat.number for beat in event.beats},
            words=words,
            mode=mode,
            tokens=in_units_of(members.values(), row.members, self._credited(row, safety, now)),
            safety=safety,
            now=now,
        )
        decision.obey(work)
        decision.bring_in(work)
        decision.take_out(work, decision.ring(work, self.memory))
        decision.label(work)
        fresh = compose(row, listed, work, settings.gather_ns)
        if not standing(row.members).count:
            # A pool that nobody was served from yet begins with a full budget: there was nothing to take out of it.
            served = standing(fresh.members)
            fresh = replace(fresh, tokens=burst(served.count, served.capacity, safety))
        refilled = work.tokens > row.tokens and now - self.credit.since >= SETTLE_NS
        if not refilled and fresh == replace(
            row, tokens=fresh.tokens, refilled_at=fresh.refilled_at, sick=fresh.sick, version=fresh.version
        ):
            return None
        return fresh

    def _credited(self, row: Membership, safety: SafetySettings, now: Instant) -> int:
        """The budget now. Only time that this process has seen pass since the row was written counts."""
        credit, mark = self.credit, (row.version, row.refilled_at, row.tokens)
        if mark != credit.known:
            self.credit = credit = replace(credit, known=mark, since=credit.wrote_at if mark == credit.wrote else now)
        elif now < credit.since:
            self.credit = credit = replace(credit, since=now)
        pool = standing(row.members)
        gained = refill(now - credit.since, pool.count, pool.capacity, bool(row.suspect), safety)
        return min(row.tokens + gained, burst(pool.count, pool.capacity, safety))

    def _write(self, event: ReportsRead, row: Membership, now: Instant) -> WriteMembership:
        self.credit = replace(self.credit, wrote=(row.version, row.refilled_at, row.tokens), wrote_at=now)
        return WriteMembership(event.settings.name, event.version, row)


def forsaking(tallies: dict[str, Tally], targets: Mapping[str, Target]) -> dict[str, Tally]:
    """The votes, where those that must not serve are dead by all of them: so every limit binds as for any dead one."""
    gone = {
        key: Tally(False, tallies.get(key, NO_VOTES).votes, failing=True, cause=target.why, fate=target.fate)
        for key, target in targets.items()
        if target.gone
    }
    return {**tallies, **gone} if gone else tallies


def compose(row: Membership, listed: Roster, work: decision.Pass, gather_ns: Duration) -> Membership:
    """The row as this pass leaves it."""
    now = work.now
    members = decision.weigh(work.members.values(), now, work.safety)
    was = {member.key: member for member in row.members}
    moves = tuple(_moves(was, members, work))
    shifted = _weights(row.members) != _weights(members)
    urgent = shifted and _weights(row.members).keys() != _weights(members).keys()
    changed = any(each.key in was and was[each.key].healthy is not each.healthy for each in members)
    return Membership(
        pool=row.pool,
        version=row.version + 1,
        urgent=row.urgent + urgent,
        shift_since=0 if urgent else gathering_since(row.shift_since, gather_ns, now) if shifted else row.shift_since,
        members=members,
        tokens=work.tokens,
        refilled_at=now,
        mode=work.mode,
        paused_zones=work.words.paused_zones(),
        suspect=work.suspect,
        suspect_since=(row.suspect_since if row.suspect else now) if work.suspect else 0,
        panic=work.panic,
        panic_since=work.panic_since,
        verdicts_changed_at=now if changed else row.verdicts_changed_at,
        freeze_until=work.freeze_until,
        sick=work.sick,
        voters=work.voters,
        revision=listed.revision,
        source_error=listed.error,
        last_over=listed.last_over,
        moves=(row.moves + moves)[-MOVES_KEPT:] if moves else row.moves,
        moved=row.moved + len(moves),
    )


def gathering_since(was: Instant, gather_ns: Duration, now: Instant) -> Instant:
    """When the gathering that `now` falls into began.

    A gathering that is over stays open for half as long again, so that the planner finds it over before the next one
    begins; else shifts that never stop would never be published.
    """
    return was if was and 0 <= now - was < gather_ns + gather_ns // 2 else now


def _weights(members: tuple[Member, ...]) -> dict[str, int]:
    return {member.key: member.weight for member in members if member.state in SERVING}


def _moves(was: dict[str, Member], members: tuple[Member, ...], work: decision.Pass) -> list[Move]:
    number, moves = work.row.moved, []
    stay = {member.key: None for member in members}
    for old in was.values():
        if old.key not in stay:
            number += 1
            moves.append(Move(number, work.now, old.key, old.zone, old.state, None, Rule.LISTING, "", 0, work.tokens))
    spent = {key: place for place, key in enumerate(work.costs)}
    for member in sorted(members, key=lambda each: spent.get(each.key, -1)):
        before = was.get(member.key)
        if before is not None and before.state is member.state:
            continue
        number += 1
        price, tokens = work.costs.get(member.key, (0, work.tokens))
        moves.append(
            Move(
                number,
                work.now,
                member.key,
                member.zone,
                before.state if before else None,
                member.state,
                member.rule if before else Rule.LISTING,
                member.cause,
                price,
                tokens,
                member.fate,
            )
        )
    return moves
