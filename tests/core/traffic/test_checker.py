"""A checker: what it publishes, and when it doubts itself."""

from copy import copy

from fencepost.core.effects import Effect
from fencepost.core.events import Event, Woke
from fencepost.core.instant import SECOND, Duration
from fencepost.core.traffic.health import (
    CanaryProbed,
    Checker,
    FilesExhausted,
    LoopLag,
    Probed,
    PublishBeat,
    PublishReport,
    Rejudged,
    Restarted,
    TargetsListed,
)
from fencepost.core.traffic.hysteresis import HealthSettings
from fencepost.core.traffic.verdict import CheckerReport, ProbeResult, Suspicion, Verdict

SETTINGS = HealthSettings()
KEYS = ("192.0.2.1", "192.0.2.2")


class Bench:
    """One checker driven by hand; keeps what it published."""

    def __init__(self, keys: tuple[str, ...] = KEYS, last: CheckerReport | None = None, beat: int = 0) -> None:
        self.now = 1_700_000_000 * SECOND
        self.checker = Checker("a", "web", SETTINGS)
        self.keys = keys
        self.bodies: list[CheckerReport] = []
        self.beats: list[PublishBeat] = []
        self.on(Restarted(last, beat))
        self.on(TargetsListed(keys))

    def on(self, event: Event) -> tuple[Effect, ...]:
        """Hand it an event now."""
        effects = self.checker.on(event, self.now)
        self.bodies += [each.report for each in effects if isinstance(each, PublishReport)]
        self.beats += [each for each in effects if isinstance(each, PublishBeat)]
        return effects

    def wait(self, length: Duration) -> None:
        """Let time pass with ticks, as a role does."""
        until = self.now + length
        while self.now < until:
            self.now = min(self.now + SETTINGS.tick_ns, until)
            self.on(Woke())

    def round(self, dead: tuple[str, ...] = (), cause: str = "connection refused") -> None:
        """One probe of each target, one interval later."""
        self.wait(SETTINGS.interval_ns)
        self.on(Probed(tuple(ProbeResult(k, k not in dead, cause if k in dead else "") for k in self.keys)))
        self.wait(SECOND)

    def rounds(self, count: int, dead: tuple[str, ...] = ()) -> None:
        """Several."""
        for _ in range(count):
            self.round(dead)

    def verdict(self, key: str = KEYS[0]) -> Verdict:
        """What the newest body says of it."""
        return next(each for each in self.bodies[-1].verdicts if each.key == key)


def warm() -> Bench:
    """A checker whose votes count and say healthy."""
    bench = Bench()
    bench.rounds(6)
    assert bench.verdict().healthy
    assert bench.verdict().counts
    assert bench.bodies[-1].suspect is None
    return bench


def test_a_fall_is_published_in_the_same_step() -> None:
    """A dead target leaves DNS after fall x interval, so nothing may be added by gathering."""
    bench = warm()
    bench.rounds(2, KEYS[:1])
    sequence = bench.bodies[-1].sequence
    bench.wait(SETTINGS.interval_ns)
    bench.on(Probed((ProbeResult(KEYS[0], False, "connection refused"),)))
    assert bench.bodies[-1].sequence > sequence
    assert bench.verdict().healthy is False
    assert bench.verdict().failing_now
    assert bench.verdict().cause == "connection refused"
    assert bench.verdict().since == bench.now


def test_a_quiet_pool_costs_one_beat_an_interval() -> None:
    """10,000 quiet targets must not be written again and again."""
    bench = warm()
    bodies, beats = len(bench.bodies), len(bench.beats)
    bench.rounds(10)
    assert len(bench.bodies) == bodies
    assert 10 <= len(bench.beats) - beats <= 13
    assert bench.beats[-1].beat.sequence == bench.bodies[-1].sequence


def test_bodies_of_a_big_pool_are_spaced_by_their_cost() -> None:
    """When everything falls at once, a body isn't written for each batch of probes."""
    keys = tuple(f"10.0.{n // 250}.{n % 250}" for n in range(10_000))
    bench = Bench(keys)
    bench.rounds(6)
    bodies = len(bench.bodies)
    bench.rounds(2, keys)
    bench.wait(SETTINGS.interval_ns)
    for start in range(0, 10_000, 100):
        bench.now += SECOND // 100
        bench.on(Probed(tuple(ProbeResult(key, False, "timeout") for key in keys[start : start + 100])))
    bench.wait(SECOND)
    assert len(bench.bodies) - bodies <= 10
    assert all(each.healthy is False for each in bench.bodies[-1].verdicts)


def test_a_loop_that_was_blocked_takes_nobody_down() -> None:
    """envoy #36295: the loop stood still for 5 s and every probe under way timed out."""
    bench = warm()
    bench.rounds(2, KEYS)
    bench.now += 5 * SECOND
    bench.on(Probed(tuple(ProbeResult(key, False, "timeout") for key in KEYS)))
    assert bench.bodies[-1].suspect is Suspicion.LAG
    bench.wait(SECOND)
    bench.on(Probed(tuple(ProbeResult(key, False, "timeout") for key in KEYS)))
    bench.rounds(6)
    assert all(bench.verdict(key).healthy for key in KEYS)
    assert bench.bodies[-1].suspect is None


def test_measured_lag_over_a_quarter_of_the_timeout_is_doubt() -> None:
    """A starved loop once gave 2,238 false failures in 20 s."""
    bench = warm()
    bench.on(LoopLag(SETTINGS.timeout_ns // 4))
    assert bench.checker.suspect is None
    bench.on(LoopLag(SETTINGS.timeout_ns // 4 + 1))
    assert bench.bodies[-1].suspect is Suspicion.LAG
    assert bench.beats[-1].beat.suspect is Suspicion.LAG
    assert not bench.verdict().counts


def test_out_of_files_is_unknown_and_recovers_by_itself() -> None:
    """consul #3886: no file descriptor left is no verdict on anybody."""
    bench = warm()
    bench.on(FilesExhausted(True))
    bench.rounds(4, KEYS)
    assert bench.bodies[-1].suspect is Suspicion.FILES
    assert bench.verdict().healthy
    assert not bench.verdict().counts
    bench.on(FilesExhausted(False))
    bench.rounds(6)
    assert bench.bodies[-1].suspect is None
    assert bench.verdict().counts


def test_a_cut_off_checker_doubts_itself_before_it_calls_anybody_dead() -> None:
    """mlab-ns #243 with a canary: the first canary failure comes before the third failed probe."""
    bench = warm()
    bench.rounds(2, KEYS)
    bench.on(CanaryProbed(False))
    bench.rounds(20, KEYS)
    assert bench.verdict().healthy
    assert bench.bodies[-1].suspect is Suspicion.CANARY
    bench.on(CanaryProbed(True))
    bench.rounds(4)
    assert not bench.verdict().counts
    bench.rounds(2)
    assert bench.verdict().counts


def test_a_checker_that_has_stopped_probing_says_so() -> None:
    """A process that looks well and has stopped seeing: it beats, but no probe has finished for three intervals."""
    bench = warm()
    bench.wait(3 * SETTINGS.interval_ns + 2 * SECOND)
    assert bench.beats[-1].beat.suspect is Suspicion.BLIND
    bench.rounds(6)
    assert bench.beats[-1].beat.suspect is None


def test_a_restarted_checker_keeps_verdicts_and_numbers() -> None:
    """haproxy #918; and its numbers go on rising, so that readers see a change."""
    bench = warm()
    bench.rounds(3, KEYS[:1])
    assert bench.verdict().healthy is False
    again = Bench(KEYS, bench.bodies[-1], bench.beats[-1].beat.number)
    assert again.verdict().healthy is False
    assert again.verdict().since == bench.verdict().since
    assert not again.verdict().counts
    assert again.bodies[0].suspect is Suspicion.WARMING
    assert again.bodies[0].sequence == bench.bodies[-1].sequence + 1
    assert again.beats[0].beat.number == bench.beats[-1].beat.number + 1


def test_other_numbers_for_the_same_probes_cost_no_vote() -> None:
    """A reload of `fall` and `rise` is no gap (RULES, self-suspect: what makes a vote wait is a gap): verdicts, counts
    and votes go on, in either direction. Seen by hand: all zones lost their votes at once, for six intervals.
    """
    for fall, rise in ((5, 8), (2, 3)):
        bench = warm()
        bench.on(Probed((ProbeResult(KEYS[1], False, "status 503"),)))
        bench.wait(SECOND)
        seen, failures = len(bench.beats), bench.checker.targets[KEYS[1]].failures
        bench.on(Rejudged(HealthSettings(fall=fall, rise=rise)))
        bench.wait(SETTINGS.interval_ns)
        assert all(each.counts for each in bench.bodies[-1].verdicts)
        assert {each.beat.suspect for each in bench.beats[seen - 1 :]} == {None}
        assert bench.checker.targets[KEYS[1]].failures == failures
        for _ in range(fall - failures):
            assert bench.verdict(KEYS[1]).healthy
            bench.on(Probed((ProbeResult(KEYS[1], False, "status 503"),)))
        assert bench.verdict(KEYS[1]).healthy is False, "by the new number, counting what failed before"
        assert bench.verdict(KEYS[1]).counts


def test_a_vote_that_didnt_count_yet_is_not_made_one_by_other_numbers() -> None:
    """Fewer probes than either number asks for are no vote (RULES: from the fifth probe on)."""
    bench = Bench()
    bench.rounds(2)
    bench.on(Rejudged(HealthSettings(fall=3, rise=8)))
    bench.rounds(5)
    assert not bench.verdict().counts
    bench.rounds(1)
    assert bench.verdict().counts


def test_a_first_list_cut_short_loses_no_memory() -> None:
    """external-dns #2858: the source errs halfway at a start; the second half is remembered when it comes."""
    bench = warm()
    bench.rounds(3, KEYS[1:])
    again = Bench(KEYS[:1], bench.bodies[-1])
    again.on(TargetsListed(KEYS))
    again.wait(SECOND)
    assert again.verdict(KEYS[1]).healthy is False


def test_a_deregistered_target_is_gone_at_once() -> None:
    """envoy #11527: deregistered while passing; a late result of it is nobody's."""
    bench = warm()
    bench.on(TargetsListed(KEYS[1:]))
    bench.on(Probed((ProbeResult(KEYS[0], True),)))
    assert [each.key for each in bench.bodies[-1].verdicts] == [KEYS[1]]


def test_a_copy_is_independent() -> None:
    """A simulator may copy a checker and go on with both."""
    bench = warm()
    twin = copy(bench.checker)
    bench.rounds(3, KEYS)
    assert twin.targets != bench.checker.targets
    assert twin.sequence < bench.checker.sequence
