"""Capacities that targets report of themselves, however false, never let automation take out more targets.

`capacity` readings steer shares of traffic. The limits are worked out here by number of targets alone, from the
settings and not by the code under test: whatever anybody says of itself, they hold as in a pool of equals.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from test_bounded_removal import check_bound

from fencepost.core.instant import MINUTE, SECOND, Instant
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.load_balancer import LoadBalancer, PoolSettings, ReportsRead, WriteMembership
from fencepost.core.traffic.membership import MICRO, SERVING, Listing, Member, Membership, Move, Rule, State, Target
from fencepost.core.traffic.verdict import Beat, CheckerReport, Verdict

EPOCH = 1_700_000_000 * SECOND
SAFETY = SafetySettings()
SEEN: Counter[str] = Counter()
"""What the examples reached, so that nothing passes because nothing happened."""


@dataclass
class Boasting:
    """A pool whose targets say what they like of themselves; three checkers that agree on everything."""

    readings: list[int | None]
    safety: SafetySettings = SAFETY
    now: Instant = EPOCH
    version: int = 0
    row: Membership | None = None
    balancer: LoadBalancer = field(default_factory=LoadBalancer)
    rows: list[tuple[Instant, Membership]] = field(default_factory=list)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.targets = tuple(Target(f"192.0.2.{n + 1}", "abc"[n % 3]) for n in range(len(self.readings)))
        self.look(0)
        self.look(0)

    def look(self, dead: int, wait: Instant = SECOND) -> Membership:
        """Bit n of `dead` is target n; the reports are in and a pass is made of them."""
        self.numbers += 1
        self.now += wait
        verdicts = tuple(
            Verdict(target.key, not down, True, down, 0, "refused" if down else "", capacity=self.readings[n])
            for n, target in enumerate(self.targets)
            for down in [bool(dead >> n & 1)]
        )
        reading = ReportsRead(
            PoolSettings("web", safety=self.safety),
            Listing(self.targets, 1),
            tuple(CheckerReport(zone, "web", self.numbers, None, verdicts) for zone in "abc"),
            tuple(Beat(zone, "web", self.numbers, self.numbers) for zone in "abc"),
            (),
            self.row,
            self.version,
        )
        for effect in self.balancer.on(reading, self.now):
            if isinstance(effect, WriteMembership):
                self.written(effect.row)
        assert self.row is not None
        return self.row

    def written(self, after: Membership) -> None:
        """Every row keeps the limits by number."""
        self.rows.append((self.now, after))
        before, self.row, self.version = self.row, after, self.version + 1
        count, serving, out = len(after.members), among(after, *SERVING), among(after, State.OUT)
        assert len(out) <= most_out(count)
        assert len(serving) >= least_in(count, self.safety)
        if before is not None:
            gone = {each.key for each in out} & {each.key for each in among(before, *SERVING)}
            assert len(gone) <= most_at_once(count)
            SEEN["removed"] += len(gone)
        dead = [each for each in after.members if each.healthy is False]
        if 2 * len(dead) >= count and sum(each.state in SERVING for each in dead) >= 2:
            assert after.panic
            SEEN["panic"] += 1
        if len({each.capacity for each in after.members}) > 1:
            SEEN["uneven"] += 1


def among(row: Membership, *states: State) -> list[Member]:
    """Members in one of these states."""
    return [each for each in row.members if each.state in states]


def most_out(count: int) -> int:
    """max(1 target; 2 from n >= 6; 20 % n)."""
    return max(2 if count >= 6 else 1, count // 5)


def most_at_once(count: int) -> int:
    """max(1 target; 2 from n >= 6; 10 % n)."""
    return max(2 if count >= 6 else 1, count // 10)


def least_in(count: int, safety: SafetySettings) -> int:
    """max(min_count, 50 % n), whole targets."""
    return min(count, max(safety.min_count, (count + 1) // 2))


def as_equals(row: Membership) -> Membership:
    """The row, each target counting for one."""
    return structs.replace(row, members=tuple(structs.replace(each, capacity=1) for each in row.members))


def told(move: Move) -> tuple[object, ...]:
    """What a move does, but for what it cost."""
    return (move.at, move.key, move.before, move.after, move.rule)


said = st.one_of(st.sampled_from([None, 0, 1, 1, 255]), st.integers(0, 255))
pools = st.one_of(st.integers(2, 9), st.integers(10, 32)).flatmap(
    lambda count: st.lists(said, min_size=count, max_size=count)
)
deaths = st.one_of(
    st.integers(0, 31).map(lambda n: 1 << n),
    st.integers(1, 32).map(lambda n: (1 << n) - 1),
    st.sampled_from([0, 0b110, 0xF0, 0xFFFFFFFE]),
    st.integers(0, 0xFFFFFFFF),
)
acts = st.tuples(deaths, st.sampled_from([SECOND, SECOND, 20 * SECOND, 5 * MINUTE, 20 * MINUTE]), st.none() | pools)


@settings(max_examples=400, deadline=None)
@given(pools, st.lists(acts, min_size=2, max_size=20), st.integers(1, 4))
def test_no_readings_let_automation_take_out_more_targets(
    readings: list[int | None], doings: list[tuple[int, Instant, list[int | None] | None]], min_count: int
) -> None:
    """Any numbers from any targets, changing as they like: out, in and at once stay within the limits by number.

    And when half of the targets or more are dead, two of them still served, fail open is on. Nor does counting both
    ways outrun the budget: `bounded_removal`, part 1, holds by weight as ever, and by number over every window.
    """
    world = Boasting(readings, SafetySettings(min_count=min_count))
    for dead, wait, others in doings:
        if others:
            world.readings = [others[n % len(others)] for n in range(len(readings))]
        world.look(dead & ((1 << len(readings)) - 1), wait)
        world.look(dead & ((1 << len(readings)) - 1))
    check_bound(world.rows)
    check_bound([(at, as_equals(row)) for at, row in world.rows])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 13), st.integers(1, 10_000), st.lists(st.tuples(deaths, acts.map(lambda act: act[1])), max_size=16)
)
def test_the_unit_of_readings_makes_no_difference(count: int, each: int, doings: list[tuple[int, Instant]]) -> None:
    """Targets that all say 100 are a pool of equals: the same moves at the same moments as if none said anything.

    The first row is written before any reading is in, so its budget was counted in ones; the first death of such a
    pool was then kept for minutes, "budget: 2.0 left, it takes 100.0".
    """
    saying, silent = Boasting([each] * count), Boasting([None] * count)
    for dead, wait in doings:
        for world in (saying, silent):
            world.look(dead & ((1 << count) - 1), wait)
            world.look(dead & ((1 << count) - 1))
    assert [told(move) for _, row in saying.rows for move in row.moves] == [
        told(move) for _, row in silent.rows for move in row.moves
    ]


def test_the_first_death_in_a_pool_that_says_what_it_carries_goes_at_once() -> None:
    """The budget starts full, whatever it is counted in."""
    row = Boasting([100] * 6).look(0b1)
    assert row.members[0].state is State.OUT
    assert row.tokens == 100 * MICRO


def test_the_examples_removed_and_failed_open_in_uneven_pools() -> None:
    """The 'sometimes' partner: a property about removals that never saw one would mean nothing."""
    for what in ("removed", "panic", "uneven"):
        assert SEEN[what] > 50, SEEN


@pytest.mark.parametrize("others", [1, None])
def test_five_of_six_die_and_the_sixth_says_it_is_the_whole_pool(others: int | None) -> None:
    """Found by trying: one said 255, the others 1 or nothing; all five were taken out, without a word of alarm."""
    world = Boasting([255, *[others] * 5])
    row = world.look(0b111110)
    assert row.panic
    assert len(among(row, *SERVING)) == 6
    assert {each.rule for each in row.members[1:]} <= {Rule.FAIL_OPEN, Rule.MIN_IN}


def test_deaths_one_after_the_other_end_at_two_of_six() -> None:
    """Hours apart, so that neither freeze nor budget stops it: the third is kept by max_out, not taken for 0.4 %."""
    world = Boasting([255, 1, 1, 1, 1, 1])
    for dead in (0b10, 0b110):
        world.look(dead, 60 * MINUTE)
        row = world.look(dead)
    assert len(among(row, State.OUT)) == 2
    world.safety = SafetySettings(fail_open_ppm=600_000)
    world.look(0b1110, 60 * MINUTE)
    row = world.look(0b1110)
    assert row.members[3].rule is Rule.MAX_OUT
    assert len(among(row, State.OUT)) == 2


def test_a_fifth_dead_by_number_makes_the_pool_suspect() -> None:
    """Three of fifteen, 1 % of the weight that is claimed: the refill slows all the same."""
    world = Boasting([255, *[1] * 14])
    row = world.look(0b11110)
    assert row.suspect == "many dead"
    assert row.sick >= 4 * 1_000_000 // 15


def test_many_dead_by_number_at_once_freeze_removal() -> None:
    """A third of the targets within a second, 2 % of the weight that is claimed: nothing goes for a minute."""
    world = Boasting([255, *[1] * 14])
    row = world.look(0b111110)
    assert row.freeze_until > world.now
    assert not among(row, State.OUT)


def test_a_dead_target_that_claims_half_of_the_weight_is_kept() -> None:
    """The price of asking the weights too: its number can hold back its own removal, and the row says which limit."""
    world = Boasting([255, 1, 1, 1, 1, 1])
    row = world.look(0b1)
    assert row.members[0].state is State.KEPT
    assert row.members[0].rule is Rule.MIN_IN


def test_a_dead_target_kept_by_a_limit_cannot_draw_callers_by_raising_its_own_number() -> None:
    """It said 5, died, was kept, and then said 255: most answers came to hold its address alone, and it never left."""
    world = Boasting([5] * 6, safety=SafetySettings(burst_ppm=1, rate_ppm_per_min=1))
    world.look(0b110)
    world.look(0b110)
    kept = next(each for each in world.look(0b1110).members if each.state is State.KEPT)
    at = int(kept.key.rpartition(".")[2]) - 1
    world.readings[at] = 255
    row = world.look(0b1110)
    assert row.members[at].state is State.KEPT
    assert (row.members[at].capacity, row.members[at].weight) == (5, kept.weight)
    world.readings[at] = 2
    assert world.look(0b1110).members[at].capacity == 2, "its word may lower what it counts for"
    world.readings[at] = 255
    assert world.look(0b1110).members[at].capacity == 2
    for _ in range(3):
        row = world.look(0)
    assert row.members[at].capacity == 255, "well again, it is believed again"
