"""What is seen: members brought up to date with the votes, before anything is decided.

Only observed fields change here (`healthy`, `votes`, `cause`, `fate`, `capacity`...). Without a quorum the last verdict
holds. A capacity is the owner's weight or the median of the zones' readings; it is kept when nobody gives one, is at
least 1, moves only by a twentieth or more, so that noise in readings doesn't rewrite the row at each pass. What a dead
target says of itself never raises it.
"""

from collections.abc import Mapping

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.membership import Member, Target
from fencepost.core.traffic.quorum import NO_VOTES, Ballot, Ear, Tally, ballot, lone_dissenter, tally
from fencepost.core.traffic.verdict import CheckerReport

SHIFT = 20
"""A reading must differ by this fraction (one in twenty) to be taken up."""


class Counted(msgspec.Struct):
    """The tallies of one pool, kept between passes: unchanged bodies are not counted again.

    bodies: (zone, sequence) counted last.   votes: for each zone its body's sequence and its ballots by key.
    tallies: by key.
    """

    bodies: tuple[tuple[str, int], ...] = ()
    votes: dict[str, tuple[int, dict[str, Ballot]]] = msgspec.field(default_factory=dict)
    tallies: dict[str, Tally] = msgspec.field(default_factory=dict)

    def count(
        self,
        reports: tuple[CheckerReport, ...],
        ear: Ear,
        known: Mapping[str, str],
        now: Instant,
        settings: HealthSettings,
    ) -> dict[str, Tally]:
        """The tally of each key that any of these reports has a counted vote on.

        known: the zone that the row says is outvoted, by key.
        """
        bodies = tuple((report.zone, report.sequence) for report in reports)
        if bodies == self.bodies and not ear.settling():
            return self.tallies
        self.bodies = bodies
        self.votes = {report.zone: self._votes(report) for report in reports}
        together: dict[str, tuple[Ballot, ...]] = {}
        for _, by_key in self.votes.values():
            for key, vote in by_key.items():
                together[key] = (*together.get(key, ()), vote)
        # Most targets get the very same votes, so each kind of outcome is counted once.
        outcomes: dict[tuple[Ballot, ...], tuple[str, Tally]] = {}
        self.tallies = {}
        for key, cast in together.items():
            outcome = outcomes.get(cast)
            if outcome is None:
                outcome = outcomes[cast] = (lone_dissenter(cast), tally(cast, "", settings.quorum_ppm))
            dissenter, plain = outcome
            outvoted = ear.outvoted(key, dissenter, known.get(key, ""), now, settings.dissent_ns)
            self.tallies[key] = tally(cast, outvoted, settings.quorum_ppm) if outvoted else plain
        ear.forget_but(together)
        return self.tallies

    def _votes(self, report: CheckerReport) -> tuple[int, dict[str, Ballot]]:
        had = self.votes.get(report.zone)
        if had is not None and had[0] == report.sequence:
            return had
        return report.sequence, {vote.key: ballot(report.zone, vote) for vote in report.verdicts if vote.counts}

    def __copy__(self) -> "Counted":
        return Counted(self.bodies, dict(self.votes), dict(self.tallies))


def observe(member: Member, count: Tally, target: Target | None, now: Instant) -> Member:
    """The member with its observed fields as of now; the same object when nothing changed."""
    votes = count.votes if count is not NO_VOTES else NO_VOTES.votes
    healthy = member.healthy if count.healthy is None else count.healthy
    capacity = _capacity(member, count, target, dead=healthy is False)
    cause, fate = member.cause, member.fate
    if count.healthy is not None:
        cause, fate = ("", None) if count.healthy else (count.cause, count.fate)
    flips = count.flips if count.votes.fresh else member.flips
    if (
        healthy is member.healthy
        and votes == member.votes
        and cause == member.cause
        and fate is member.fate
        and flips == member.flips
        and capacity == member.capacity
        and member.would is None
    ):
        return member
    dead_since, falls = member.dead_since, member.falls
    if healthy is not member.healthy:
        dead_since = 0 if healthy else now
        if member.healthy and not healthy:
            falls = (now, *falls[:1])
    return msgspec.structs.replace(
        member,
        healthy=healthy,
        votes=votes,
        cause=cause,
        fate=fate,
        flips=flips,
        capacity=capacity,
        dead_since=dead_since,
        falls=falls,
        would=None,
    )


def _capacity(member: Member, count: Tally, target: Target | None, *, dead: bool) -> int:
    """What the member counts for. A dead one's own word can lower that, never raise it.

    It may still be served, because a limit keeps it, and by a higher weight it would draw callers to itself and make
    itself too heavy to be removed.
    """
    if target is not None and target.weight is not None:
        return max(1, target.weight)
    reading = count.capacity
    if reading is None or abs(reading - member.capacity) * SHIFT < member.capacity:
        return member.capacity
    return max(1, min(reading, member.capacity) if dead else reading)
