"""`bounded_removal`: automation takes out at most burst + rate x time, and never below `min_in`.

Whatever checkers say, whoever restarts, whatever two racing load balancers with clocks an hour apart do. The bound is
worked out here in fractions from the settings, not by the code under test.
"""

from collections import Counter
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from fencepost.core.instant import HOUR, MINUTE, SECOND, Instant
from fencepost.core.traffic.bounded_removal import Witness, saw
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import (
    MICRO,
    SERVING,
    Listing,
    Member,
    Membership,
    Mode,
    Move,
    Override,
    OverrideKind,
    Rule,
    State,
    Target,
)
from fencepost.core.traffic.verdict import Beat, CheckerReport, Suspicion, Verdict

EPOCH = 1_700_000_000 * SECOND
SAFETY = SafetySettings()
SEEN: Counter[str] = Counter()
"""What the examples reached, so that the promise can't pass because nothing happened."""


@dataclass
class Rivals:
    """Two load balancers, each with its own clock, on one store; reports are whatever the example says."""

    targets: tuple[Target, ...]
    now: Instant = EPOCH
    row: Membership | None = None
    version: int = 0
    sequence: int = 0
    bodies: dict[str, CheckerReport] = field(default_factory=dict)
    beats: dict[str, Beat] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    rows: list[tuple[Instant, Membership]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rivals = [LoadBalancer(), LoadBalancer()]
        self.skew = [0, 0]
        self.late: list[WriteMembership] = []

    def report(self, dead: int, odd: int, suspect: str) -> None:
        """All three zones report: bit n of `dead` is target n; zone `odd` (0 to 2, 3: nobody) says the opposite."""
        self.sequence += 1
        for place, zone in enumerate("abc"):
            verdicts = tuple(
                Verdict(target.key, not down, True, down, 0, "refused" if down else "")
                for number, target in enumerate(self.targets)
                for down in [bool(dead >> number & 1) != (place == odd)]
            )
            doubt = Suspicion.CANARY if zone == suspect else None
            self.bodies[zone] = CheckerReport(zone, "web", self.sequence, doubt, verdicts)
            self.beats[zone] = Beat(zone, "web", self.sequence, self.sequence, doubt)

    def ask(self, number: int) -> WriteMembership | None:
        """What one of the two asks to write."""
        reading = ReportsRead(
            PoolSettings("web", safety=SAFETY),
            Listing(self.targets, 1),
            tuple(self.bodies.values()),
            tuple(self.beats.values()),
            self.overrides,
            self.row,
            self.version,
        )
        effects = self.rivals[number].on(reading, self.now + self.skew[number])
        return next((each for each in effects if isinstance(each, WriteMembership)), None)

    def write(self, effect: WriteMembership | None) -> None:
        """The store: compare-and-set."""
        if effect is None:
            return
        if effect.expected_version != self.version:
            SEEN["refused"] += 1
            return
        before = self.row
        self.row, self.version = effect.row, self.version + 1
        self.rows.append((self.now, effect.row))
        check_row(before, effect.row)

    def restart(self, number: int, skew: Instant) -> None:
        """The process dies and another starts on a machine whose clock is off by `skew`."""
        self.rivals[number] = LoadBalancer()
        self.skew[number] = skew


def counted(row: Membership) -> list[Member]:
    """Members that count in fractions."""
    return [member for member in row.members if member.state in (State.IN, State.KEPT, State.OUT)]


def weight(members: list[Member]) -> int:
    """Their capacity."""
    return sum(member.capacity for member in members)


def burst_of(row: Membership) -> Fraction:
    """max(1 target; 2 from n >= 6; 10 % W)."""
    pool = counted(row)
    if not pool:
        return Fraction(0)
    return max(Fraction(weight(pool) * (2 if len(pool) >= 6 else 1), len(pool)), Fraction(weight(pool), 10))


def rate_of(row: Membership) -> Fraction:
    """5 % W a minute, never under one target in 5 minutes; in capacity a nanosecond."""
    pool = counted(row)
    if not pool:
        return Fraction(0)
    return max(Fraction(weight(pool), 20 * MINUTE), Fraction(weight(pool), len(pool) * 5 * MINUTE))


def removed(before: Membership, after: Membership) -> list[Member]:
    """Members that served before and are held out after."""
    serving = {member.key for member in before.members if member.state in SERVING}
    return [member for member in after.members if member.state is State.OUT and member.key in serving]


def check_row(before: Membership | None, after: Membership) -> None:
    """Part 2 of the promise, on each transition that removes; and a pool never runs empty."""
    assert any(member.state in SERVING for member in after.members)
    SEEN["panic"] += after.panic
    SEEN["frozen"] += after.freeze_until > 0
    if before is None:
        return
    gone = removed(before, after)
    known = before.moved
    logged = [m.key for m in after.moves if m.number > known and m.before in SERVING and m.after is State.OUT]
    assert sorted(logged) == sorted(member.key for member in gone)
    if not gone:
        return
    SEEN["removed"] += len(gone)
    pool = counted(after)
    serving = [member for member in pool if member.state in SERVING]
    out = [member for member in pool if member.state is State.OUT]
    assert len(pool) > 1
    assert not after.panic
    assert after.freeze_until == 0
    assert after.mode is Mode.ENABLED
    assert weight(serving) * 2 >= weight(pool)
    assert len(out) <= (2 if len(pool) >= 6 else 1) or weight(out) * 5 <= weight(pool)


def check_bound(rows: list[tuple[Instant, Membership]]) -> None:
    """Part 1: over every window, what was removed is at most burst + rate x time, both at their largest in it."""
    spent: list[tuple[int, Instant, Fraction]] = []
    for number in range(1, len(rows)):
        at, row = rows[number]
        gone = removed(rows[number - 1][1], row)
        spent += [(number, at, min(Fraction(member.capacity), burst_of(row))) for member in gone]
    for first, (start_row, start, _) in enumerate(spent):
        total, most_burst, most_rate = Fraction(0), Fraction(0), Fraction(0)
        last_row = max(start_row - 1, 0)
        for number, at, price in spent[first:]:
            total += price
            for _, row in rows[last_row : number + 1]:
                most_burst = max(most_burst, burst_of(row))
                most_rate = max(most_rate, rate_of(row))
            last_row = number
            assert total <= most_burst + most_rate * (at - start + SECOND)


targets = st.lists(st.integers(1, 4), min_size=1, max_size=13).map(
    lambda weights: tuple(Target(f"192.0.2.{n + 1}", "abc"[n % 3], w) for n, w in enumerate(weights))
)
alike = st.integers(1, 13).map(lambda count: tuple(Target(f"192.0.2.{n + 1}", "abc"[n % 3]) for n in range(count)))
waits = st.sampled_from([0, SECOND // 4, SECOND, 5 * SECOND, 20 * SECOND, MINUTE, 5 * MINUTE, 20 * MINUTE])
mostly_few = st.one_of(
    st.integers(0, 12).map(lambda n: 1 << n), st.sampled_from([0, 0b11, 0b111, 0b1011]), st.integers(0, 0x1FFF)
)
words = st.builds(
    lambda kind, number, zone: Override(kind, "" if zone else f"192.0.2.{number}", zone),
    st.sampled_from(list(OverrideKind)),
    st.integers(1, 13),
    st.sampled_from(["", "", "a", "b"]),
)
acts = st.one_of(
    st.tuples(st.just("report"), mostly_few, st.sampled_from([3, 3, 3, 3, 0, 2]), st.sampled_from(["", "", "", "a"])),
    st.tuples(st.just("report"), mostly_few, st.just(3), st.just("")),
    st.tuples(st.just("pass"), st.integers(0, 1)),
    st.tuples(st.just("race"), st.integers(0, 1)),
    st.tuples(st.just("decide, write later"), st.integers(0, 1)),
    st.tuples(st.just("restart"), st.integers(0, 1), st.sampled_from([0, HOUR, -HOUR])),
    st.tuples(st.just("override"), st.lists(words, max_size=2)),
    st.tuples(st.just("wait"), waits),
)


def perform(world: Rivals, act: tuple[object, ...]) -> None:
    """One act; after a report, both look at it, so that it is seen to be fresh."""
    match act:
        case "report", int(dead), int(odd), str(suspect):
            world.report(dead, odd, suspect)
            world.now += SECOND
            for number in (0, 1):
                world.write(world.ask(number))
        case "pass", int(number):
            world.write(world.ask(number))
        case "race", int(first):
            both = [world.ask(0), world.ask(1)]
            world.write(both[first])
            world.write(both[1 - first])
        case "decide, write later", int(number):
            world.late.append(effect) if (effect := world.ask(number)) else None
        case "restart", int(number), int(skew):
            world.restart(number, skew)
        case "override", list(said):
            world.overrides = tuple(said)
        case "wait", int(length):
            world.now += length
            while world.late:
                world.write(world.late.pop())


@settings(max_examples=400, deadline=None)
@given(st.one_of(alike, targets), st.lists(acts, min_size=4, max_size=40))
def test_bounded_removal_holds_for_any_verdicts_restarts_and_races(
    pool: tuple[Target, ...], doings: list[tuple[object, ...]]
) -> None:
    """Promise `bounded_removal`, parts 1 and 2, with two load balancers and their compare-and-set."""
    world = Rivals(pool)
    world.report(0, 3, "")
    for number in (0, 1):
        world.write(world.ask(number))
    for act in doings:
        perform(world, act)
    check_bound(world.rows)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(4, 13),
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, SECOND, 30 * SECOND, MINUTE])), min_size=4, max_size=30),
)
def test_bounded_removal_holds_while_targets_die_and_come_back(count: int, doings: list[tuple[int, Instant]]) -> None:
    """Promise `bounded_removal`, part 1: coming back refunds nothing, so churn can't outrun the refill."""
    world = Rivals(tuple(Target(f"192.0.2.{n + 1}", "abc"[n % 3]) for n in range(count)))
    world.report(0, 3, "")
    for number in (0, 1):
        world.write(world.ask(number))
    for number, wait in doings:
        for dead in (1 << number % count, 0):
            perform(world, ("report", dead, 3, ""))
            world.now += wait
    check_bound(world.rows)


def test_the_examples_removed_and_alarmed() -> None:
    """The 'sometimes' partner of `bounded_removal`: removals, refusals, panic and freeze all happened above."""
    for what in ("removed", "refused", "panic", "frozen"):
        assert SEEN[what] > 20, SEEN


def test_a_copy_decides_the_same_and_leaves_the_original_alone() -> None:
    """A driver may copy a decider, try a move on the copy, and go on with the original."""
    world = Rivals(tuple(Target(f"192.0.2.{n}", "abc"[n % 3]) for n in range(1, 7)))
    world.report(0, 3, "")
    world.write(world.ask(0))
    world.report(1, 3, "")
    world.now += SECOND
    twin = copy(world.rivals[0])
    first = world.ask(0)
    world.rivals[0] = twin
    assert world.ask(0) == first


def going(count: int, gone: int, at: Instant, **fields: object) -> Membership:
    """A row of `count` targets of which the first `gone` have been taken out, each in its own move, at `at`."""
    members = tuple(Member(f"192.0.2.{n}", "a", State.OUT if n < gone else State.IN) for n in range(count))
    moves = tuple(Move(n + 1, at, f"192.0.2.{n}", "a", State.IN, State.OUT, Rule.FALL, cost=MICRO) for n in range(gone))
    return Membership("web", version=gone, members=members, moves=moves, moved=gone, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        (going(6, 0, 0), going(6, 1, 0), None),
        (going(6, 1, 0), going(6, 2, 0), None),
        (going(12, 0, 0), going(12, 3, 0), "outran"),
        (going(12, 2, 0), going(12, 3, HOUR), "above max_out"),
        (going(5, 1, 0), going(5, 2, HOUR), "above max_out"),
        (going(1, 0, 0), going(1, 1, 0), "only target"),
        (going(2, 1, 0), going(2, 2, HOUR), "below min_in"),
        (going(6, 0, 0), going(6, 1, 0, panic=True), "fail open"),
        (going(6, 0, 0), going(6, 1, 0, freeze_until=1), "freeze"),
        (going(6, 0, 0), going(6, 1, 0, mode=Mode.OBSERVE), "observe"),
    ],
)
def test_a_witness_sees_each_way_to_break_the_promise(before: Membership, after: Membership, wrong: str | None) -> None:
    """Promise `bounded_removal`, judged from the rows alone."""
    _, breach = saw(Witness(), before, after, SAFETY)
    assert (breach is None) if wrong is None else (breach is not None and wrong in breach)


def test_a_witness_lets_the_vessel_drain() -> None:
    """Two at once are a burst; a third needs the time of one refill."""
    rows = [going(300, gone, 0) for gone in (0, 30)]
    witness, breach = saw(Witness(), rows[0], rows[1], SAFETY)
    assert breach is None
    assert saw(witness, rows[1], going(300, 32, SECOND), SAFETY)[1] is not None
    assert saw(witness, rows[1], going(300, 31, 4 * SECOND), SAFETY)[1] is None


@pytest.mark.parametrize("each", [1, 100])
def test_a_witness_counts_in_the_units_of_the_moment(each: int) -> None:
    """A burst is spent, then every target says what it carries: that makes no room for another burst of theirs."""
    spent, later = going(300, 30, 0), going(300, 30, 0)
    said = structs.replace(later, members=tuple(structs.replace(one, capacity=each) for one in later.members))
    more = going(300, 40, SECOND)
    more = structs.replace(more, members=tuple(structs.replace(one, capacity=each) for one in more.members))
    witness, _ = saw(Witness(), going(300, 0, 0), spent, SAFETY)
    witness, breach = saw(witness, spent, said, SAFETY)
    assert breach is None
    assert saw(witness, said, more, SAFETY)[1] is not None
