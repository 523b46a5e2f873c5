"""Quorum: whose votes count, and what they say together."""

import pytest

from fencepost.core.instant import HOUR, SECOND
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.membership import Voter, Votes
from fencepost.core.traffic.observed import Counted
from fencepost.core.traffic.quorum import Ballot, Ear, lone_dissenter, median, tally
from fencepost.core.traffic.verdict import Beat, CheckerReport, Suspicion, Verdict

SETTINGS = HealthSettings()
KEY = "192.0.2.1"


def ballots(votes: str, failing: str = "") -> list[Ballot]:
    """One ballot for each sign ("+" healthy), from zones a, b, ...; `failing` likewise with "-" for failing now."""
    failing = failing or votes
    return [
        Ballot("abcdefg"[n], sign == "+", failing[n] == "-", "" if sign == "+" else "refused", 0, None)
        for n, sign in enumerate(votes)
    ]


@pytest.mark.parametrize(
    ("votes", "healthy"),
    [
        ("", None),
        ("+", None),
        ("-", None),
        ("--", False),
        ("+-", True),
        ("---", False),
        ("+--", True),  # a third is over 18 %: with three checkers 0.18 is unanimity
        ("++-", True),
        ("+-----", False),  # a sixth is under it
        ("+----", True),
    ],
)
def test_eighteen_per_cent_of_at_least_two(votes: str, healthy: bool | None) -> None:
    """Route 53: unhealthy iff at most 18 % of checkers say healthy; one vote is no quorum."""
    assert tally(ballots(votes), "", SETTINGS.quorum_ppm).healthy is healthy


@pytest.mark.parametrize(("votes", "zone"), [("+--", "a"), ("-+-", "b"), ("+-", ""), ("++-", ""), ("---", "")])
def test_a_lone_dissenter_says_healthy_against_two_or_more(votes: str, zone: str) -> None:
    """Of two checkers neither is the odd one out."""
    assert lone_dissenter(ballots(votes)) == zone


def test_the_outvoted_vote_is_set_aside_and_named() -> None:
    """A checker stuck at "healthy" would else block every removal; being outvoted is a finding."""
    count = tally(ballots("+--", failing="+--"), "a", SETTINGS.quorum_ppm)
    assert count.healthy is False
    assert count.failing
    assert count.votes == Votes(0, 2, "a")


def test_failing_now_asks_every_counted_checker() -> None:
    """30 % loss: the last probe must have failed everywhere, or a removal waits."""
    assert tally(ballots("---", failing="---"), "", SETTINGS.quorum_ppm).failing
    assert not tally(ballots("---", failing="--+"), "", SETTINGS.quorum_ppm).failing
    assert not tally(ballots("-"), "", SETTINGS.quorum_ppm).failing


@pytest.mark.parametrize(("readings", "middle"), [([], None), ([7], 7), ([1, 100], 1), ([3, 1, 2], 2)])
def test_capacity_is_the_lower_median(readings: list[int], middle: int | None) -> None:
    """One checker that reads a thousandfold moves nothing."""
    assert median(readings) == middle


def report(zone: str, sequence: int, *, healthy: bool = True, suspect: Suspicion | None = None) -> CheckerReport:
    """A body with one verdict."""
    return CheckerReport(zone, "web", sequence, suspect, (Verdict(KEY, healthy, True, not healthy),))


def heard(ear: Ear, number: int, now: int, suspect: Suspicion | None = None, sequence: int = 1) -> str:
    """The state of zone a's checker when this beat is read at `now`."""
    voters, _ = ear.listen((Beat("a", "web", number, sequence, suspect),), (report("a", 1),), now, SETTINGS)
    return voters[0].state


def test_the_first_beat_seen_is_no_sign_of_life() -> None:
    """kubernetes #24200: a controller comes back after 30 minutes and reads reports that may be as old."""
    ear = Ear()
    assert heard(ear, 7, 0) == "stale"
    assert heard(ear, 7, HOUR) == "stale"
    assert heard(ear, 8, HOUR + SECOND) == "ok"


def test_a_beat_is_fresh_for_three_intervals_of_the_readers_clock() -> None:
    """Freshness is judged from when a number last changed here; no two machines' clocks are compared."""
    ear = Ear()
    heard(ear, 1, 0)
    assert heard(ear, 2, 10 * SECOND) == "ok"
    assert heard(ear, 2, 40 * SECOND) == "ok"
    assert heard(ear, 2, 40 * SECOND + 1) == "stale"
    assert heard(ear, 3, 50 * SECOND) == "ok"


def test_a_clock_set_back_keeps_no_beat_fresh() -> None:
    """An hour back on the reader's clock must not make a dead checker's word good for an hour."""
    ear = Ear()
    heard(ear, 1, HOUR)
    heard(ear, 2, HOUR)
    assert heard(ear, 2, 0) == "ok"
    assert heard(ear, 2, 31 * SECOND) == "stale"


def test_doubt_and_an_older_body_do_not_count() -> None:
    """A beat that vouches for a newer body than the one read says that ours is out of date."""
    ear = Ear()
    heard(ear, 1, 0)
    assert heard(ear, 2, SECOND, Suspicion.CANARY) == "canary"
    assert heard(ear, 3, 2 * SECOND, sequence=2) == "stale"
    assert heard(ear, 4, 3 * SECOND) == "ok"


def test_a_dissenter_is_outvoted_only_after_a_minute_alone() -> None:
    """It starts anew when the dissent pauses or another zone dissents."""
    ear, patience = Ear(), SETTINGS.dissent_ns
    assert ear.outvoted(KEY, "a", "", 0, patience) == ""
    assert ear.outvoted(KEY, "a", "", patience - 1, patience) == ""
    assert ear.outvoted(KEY, "a", "", patience, patience) == "a"
    assert ear.outvoted(KEY, "b", "", patience, patience) == ""
    assert ear.outvoted(KEY, "", "", patience, patience) == ""
    assert ear.outvoted(KEY, "b", "", 2 * patience, patience) == ""
    assert ear.outvoted(KEY, "b", "b", 2 * patience, patience) == "b"  # the row says so already
    assert ear.settling()
    ear.forget_but({})
    assert not ear.settling()


def test_unchanged_bodies_are_not_counted_again() -> None:
    """A quiet pass over 1,000 targets must be cheap; but a standing dissent is looked at as time passes."""
    counted, ear = Counted(), Ear()
    same = tuple(report(zone, 1) for zone in "abc")
    first = counted.count(same, ear, {}, 0, SETTINGS)
    assert counted.count(same, ear, {}, SECOND, SETTINGS) is first
    odd = (report("a", 2), report("b", 2, healthy=False), report("c", 2, healthy=False))
    assert counted.count(odd, ear, {}, 2 * SECOND, SETTINGS)[KEY].healthy
    outvoted = counted.count(odd, ear, {}, 2 * SECOND + SETTINGS.dissent_ns, SETTINGS)[KEY]
    assert outvoted.healthy is False
    assert outvoted.votes.outvoted == "a"


def test_voters_are_told_by_name() -> None:
    """status shows which checker is missing and why."""
    ear = Ear()
    beats = (Beat("b", "web", 1, 1), Beat("a", "web", 1, 1))
    ear.listen(beats, (), 0, SETTINGS)
    voters, _ = ear.listen(beats, (), 0, SETTINGS)
    assert voters == (Voter("a", "stale"), Voter("b", "stale"))
