"""Quorum: from the verdicts of several checkers to one verdict on a target.

A target is unhealthy iff at least two counted votes exist and at most 18 % of them say healthy (Route 53's figure: with
three checkers, all must agree); healthy iff at least two exist and more say so; else unknown, and the last verdict
holds. One lone checker that says healthy against at least two others would so block every removal for ever: after 60 s
it is outvoted on that target, and that is a finding.

Whose vote counts: the checker's beat changed within three intervals *on the reader's own clock*, it doesn't suspect
itself, and the vote itself counts (five probes since the checker's last gap). No two machines' clocks are compared.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fencepost.core.instant import Instant
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.membership import Fate, Voter, Votes
from fencepost.core.traffic.verdict import Beat, CheckerReport, Verdict

PPM = 1_000_000
LEAST_VOTES = 2
"""A verdict takes two: one checker alone may be the sick one."""


class Tally(msgspec.Struct, frozen=True, gc=False):
    """What the votes on one target say together.

    healthy: the quorum's verdict now, or None without a quorum.   votes: see `Votes`.
    failing: the newest probe failed at every counted checker (the outvoted one aside), of which there are two.
    cause: the commonest one given.   flips: the highest any of them counts.
    fate: what makes it dead whatever the votes say, which `cause` then tells; None where they say it.
    passed: zones that call it healthy.   capacity: median reading, or None if none was given.
    """

    healthy: bool | None = None
    votes: Votes = Votes()
    failing: bool = False
    cause: str = ""
    flips: int = 0
    passed: tuple[str, ...] = ()
    capacity: int | None = None
    fate: Fate | None = None


NO_VOTES = Tally()


class Ballot(NamedTuple):
    """One counted vote: the parts of a `Verdict` that a quorum looks at, and the zone that cast it."""

    zone: str
    healthy: bool
    failing_now: bool
    cause: str
    flips: int
    capacity: int | None


def ballot(zone: str, vote: Verdict) -> Ballot:
    """The vote of that zone's checker."""
    return Ballot(zone, bool(vote.healthy), vote.failing_now, vote.cause, vote.flips, vote.capacity)


def lone_dissenter(ballots: Sequence[Ballot]) -> str:
    """The zone of the only checker that says healthy against at least two that don't; else empty."""
    if len(ballots) <= LEAST_VOTES:
        return ""
    healthy = [each.zone for each in ballots if each.healthy]
    return healthy[0] if len(healthy) == 1 else ""


def tally(ballots: Sequence[Ballot], outvoted: str, quorum_ppm: int) -> Tally:
    """Count the votes, leaving out the zone `outvoted` (empty: nobody)."""
    counted = [each for each in ballots if each.zone != outvoted]
    fresh = len(counted)
    if not fresh:
        return NO_VOTES
    passed = tuple(each.zone for each in counted if each.healthy)
    healthy = None if fresh < LEAST_VOTES else len(passed) * PPM > quorum_ppm * fresh
    causes = sorted(each.cause for each in counted if each.cause)
    return Tally(
        healthy,
        Votes(len(passed), fresh, outvoted),
        fresh >= LEAST_VOTES and all(each.failing_now for each in counted),
        max(causes, key=causes.count) if causes else "",
        max(each.flips for each in counted),
        passed,
        median([each.capacity for each in counted if each.capacity is not None]),
    )


def median(readings: list[int]) -> int | None:
    """The lower median, so that one high reading of two doesn't win; None of none."""
    return sorted(readings)[(len(readings) - 1) // 2] if readings else None


class Sign(msgspec.Struct, frozen=True, gc=False):
    """The last sign of life from one checker: its beat's number, and when this reader first saw it (None: at start)."""

    number: int
    seen: Instant | None


class Ear(msgspec.Struct):
    """What one reader remembers of the checkers: signs of life, and who has dissented alone since when."""

    signs: dict[str, Sign] = msgspec.field(default_factory=dict)
    dissents: dict[str, tuple[str, Instant]] = msgspec.field(default_factory=dict)

    def listen(
        self, beats: tuple[Beat, ...], reports: tuple[CheckerReport, ...], now: Instant, settings: HealthSettings
    ) -> tuple[tuple[Voter, ...], tuple[CheckerReport, ...]]:
        """Every checker's standing, and the reports that count now. Both sorted by zone."""
        bodies = {report.zone: report for report in reports}
        patience = settings.fresh_intervals * settings.interval_ns
        signs: dict[str, Sign] = {}
        voters: list[Voter] = []
        counted: list[CheckerReport] = []
        for beat in sorted(beats, key=lambda each: each.zone):
            sign = signs[beat.zone] = self._sign(beat, now)
            body = bodies.get(beat.zone)
            if sign.seen is None or now - sign.seen > patience or body is None or body.sequence < beat.sequence:
                voters.append(Voter(beat.zone, "stale"))
            elif beat.suspect or body.suspect:
                voters.append(Voter(beat.zone, str(beat.suspect or body.suspect)))
            else:
                voters.append(Voter(beat.zone, "ok"))
                counted.append(body)
        self.signs = signs
        return tuple(voters), tuple(counted)

    def _sign(self, beat: Beat, now: Instant) -> Sign:
        was = self.signs.get(beat.zone)
        if was is None:
            # Never seen before: it may be a year old. Only a change of it is a sign of life.
            return Sign(beat.number, None)
        if was.number != beat.number:
            return Sign(beat.number, now)
        # A clock set back must not keep an old beat fresh for the difference.
        return Sign(was.number, now) if was.seen is not None and was.seen > now else was

    def outvoted(self, key: str, zone: str, known: str, now: Instant, patience: int) -> str:
        """Whom to leave out on this target: its lone dissenter, once it has stood alone for `patience`; else empty.

        zone: of the lone dissenter now; empty if there is none.   known: whom the row says was left out before; taken
        over, or a load balancer that has just started would undo for a minute what another one has decided.
        """
        if not zone:
            self.dissents.pop(key, None)
            return ""
        if zone == known:
            self.dissents.setdefault(key, (zone, now))
            return zone
        was = self.dissents.get(key)
        if was is None or was[0] != zone or was[1] > now:
            self.dissents[key] = (zone, now)
            return ""
        return zone if now - was[1] >= patience else ""

    def forget_but(self, keys: Mapping[str, object]) -> None:
        """Drop dissents on targets that nobody votes on any more."""
        if any(key not in keys for key in self.dissents):
            self.dissents = {key: what for key, what in self.dissents.items() if key in keys}

    def settling(self) -> bool:
        """Somebody dissents, so time alone may change a verdict."""
        return bool(self.dissents)

    def __copy__(self) -> "Ear":
        return Ear(dict(self.signs), dict(self.dissents))
