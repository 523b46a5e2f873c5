"""What people are told about limits is what the rules decide by."""

from msgspec.structs import replace
from pool_world import DEFAULT, WARM, PoolWorld

from fencepost.core.instant import SECOND
from fencepost.core.traffic.allowance import allowance, why_kept
from fencepost.core.traffic.limits import SafetySettings, burst, cost, objection, refill, refill_time, standing
from fencepost.core.traffic.membership import MICRO, Member, Membership, Rule, State, Votes

SAFETY = SafetySettings()


def pool(count: int, out: int = 0, tokens: int = 0, **fields: object) -> Membership:
    """A row of `count` like targets, the first `out` of them held out."""
    members = tuple(
        Member(f"192.0.2.{n + 1}", "abc"[n % 3], State.OUT if n < out else State.IN, healthy=n >= out)
        for n in range(count)
    )
    return Membership("web", members=members, tokens=tokens, **fields)  # type: ignore[arg-type]


def uneven(*weights: int, out: int = 0) -> Membership:
    """A row of targets of these weights, the first `out` of them held out."""
    row = pool(len(weights), out)
    return replace(row, members=tuple(replace(m, capacity=w) for m, w in zip(row.members, weights, strict=True)))


def test_a_pool_of_six_says_its_two_numbers() -> None:
    """max_out 2 of 6, min_in 3, a budget of 2 and a new one every 3 min 20 s (5 %/min of 6)."""
    said = allowance(pool(6, out=1, tokens=0), SAFETY, 0)
    assert (said.max_out_count, said.min_in_count, said.burst) == (2, 3, 2 * MICRO)
    assert (said.in_count, said.out_count) == (5, 1)
    assert said.next_ns == 200 * SECOND


def test_a_budget_grows_for_readers_between_writes() -> None:
    """The row is written seldom; what is shown is as of now."""
    assert allowance(pool(6, tokens=0), SAFETY, 100 * SECOND).budget == MICRO // 2
    assert allowance(pool(6, tokens=0), SAFETY, 10_000 * SECOND).budget == 2 * MICRO
    assert allowance(pool(6, tokens=MICRO), SAFETY, 0).next_ns is None
    assert allowance(pool(6, panic=True), SAFETY, 0).next_ns is None


def test_a_suspect_pool_waits_longer_but_never_more_than_five_minutes_a_target() -> None:
    """The refill is a tenth, never under one average target in five minutes."""
    assert allowance(pool(6, suspect="many dead"), SAFETY, 0).next_ns == 300 * SECOND
    assert allowance(pool(300, suspect="many dead"), SAFETY, 0).next_ns == 40 * SECOND


def test_refill_time_is_the_inverse_of_refill() -> None:
    """Whoever waits that long finds the budget there."""
    for count in (2, 3, 5, 6, 7, 40, 300):
        whole = count * MICRO
        for suspect in (False, True):
            wait = refill_time(MICRO, count, whole, suspect, SAFETY)
            assert refill(wait, count, whole, suspect, SAFETY) >= MICRO
            assert refill(wait - SECOND, count, whole, suspect, SAFETY) < MICRO


def test_small_pools_have_whole_numbers_of_targets() -> None:
    """A share of few targets is at least one target; two from six on; none of one."""
    for count, most in ((1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (9, 2), (15, 3), (300, 60)):
        assert allowance(pool(count), SAFETY, 0).max_out_count == most


def test_every_rule_that_keeps_has_its_words() -> None:
    """Kept is shown everywhere, with the limit, what would be and what is allowed."""
    for rule in (Rule.OPERATOR, Rule.FAILING_NOW, Rule.MIN_IN, Rule.LAST_OF_FAMILY, Rule.FAIL_OPEN, Rule.FREEZE):
        assert why_kept(Member("192.0.2.1", "a", State.KEPT, rule=rule), pool(6), SAFETY, 0)
    kept = Member("192.0.2.3", "c", State.KEPT, rule=Rule.MAX_OUT)
    assert why_kept(kept, pool(6, out=2), SAFETY, 0) == "max_out: 3 of 6 would be out, allowed 2"
    kept = Member("192.0.2.3", "c", State.KEPT, rule=Rule.BUCKET)
    assert why_kept(kept, pool(6, tokens=MICRO // 4), SAFETY, 0) == "budget: 0.2 left, it takes 1.0"
    kept = Member("192.0.2.3", "c", State.KEPT, rule=Rule.MIN_IN)
    assert why_kept(kept, pool(6, out=3), SAFETY, 0) == "min_in: 2 of 6 would be in, at least 3 must"
    assert why_kept(Member("192.0.2.1", "a", State.IN), pool(6), SAFETY, 0) == ""


def test_who_is_not_removed_yet_says_which_of_two_reasons_it_is() -> None:
    """What was said, newest probe passed or no quorum, stood above "votes 0 of 3; connection refused"."""
    kept = Member("192.0.2.1", "a", State.KEPT, rule=Rule.FAILING_NOW, votes=Votes(0, 3))
    assert why_kept(kept, pool(6), SAFETY, 0).startswith("a checker's newest probe of it passed")
    assert "too few checkers vote" in why_kept(replace(kept, votes=Votes(0, 1)), pool(6), SAFETY, 0)


def test_the_first_objection_decides() -> None:
    """Order: min_in, last of a family, fail open, freeze, max_out, bucket."""
    row = pool(6, out=2)
    member, sums = row.members[5], standing(row.members)
    assert objection(member, sums, 0, True, True, SAFETY) is Rule.FAIL_OPEN
    assert objection(member, sums, 0, False, True, SAFETY) is Rule.FREEZE
    assert objection(member, sums, 0, False, False, SAFETY) is Rule.MAX_OUT
    sums = standing(pool(6, out=3).members)
    assert objection(member, sums, 0, True, True, SAFETY) is Rule.MIN_IN
    sums = standing(pool(6, out=1).members)
    assert objection(member, sums, MICRO - 1, False, False, SAFETY) is Rule.BUCKET
    assert objection(member, sums, MICRO, False, False, SAFETY) is None


def test_a_target_heavier_than_the_burst_costs_the_whole_burst() -> None:
    """Else it could never be taken out."""
    heavy = Member("192.0.2.1", "a", State.IN, capacity=3)
    row = Membership("web", members=(heavy, *pool(9).members[1:]))
    sums = standing(row.members)
    full = burst(sums.count, sums.capacity, SAFETY)
    assert full < heavy.capacity * MICRO
    assert objection(heavy, sums, full - 1, False, False, SAFETY) is Rule.BUCKET
    assert objection(heavy, sums, full, False, False, SAFETY) is None


def test_one_targets_big_number_allows_no_more_targets() -> None:
    """One of six says 255, the others 1: two may be out and three must serve, as if nobody had said anything."""
    row = uneven(255, 1, 1, 1, 1, 1)
    said = allowance(row, SAFETY, 0)
    assert (said.max_out_count, said.min_in_count) == (2, 3)
    sums, full = standing(row.members), burst(6, 260 * MICRO, SAFETY)
    tokens, gone = full, 0
    for light in row.members[1:]:
        if objection(light, sums, tokens, False, False, SAFETY) is None:
            tokens -= cost(light, 6, sums.capacity, full)
            sums.remove(light)
            gone += 1
    assert gone == 2
    assert objection(row.members[3], sums, full, False, False, SAFETY) is Rule.MAX_OUT


def test_a_light_target_costs_as_much_as_the_mean_one() -> None:
    """Else a budget of two targets would pay for eighty-six that say they are small."""
    light, heavy = Member("192.0.2.1", "a", State.IN), Member("192.0.2.2", "a", State.IN, capacity=60)
    assert cost(light, 6, 260 * MICRO, 86 * MICRO) == 260 * MICRO // 6
    assert cost(heavy, 6, 260 * MICRO, 86 * MICRO) == 60 * MICRO
    assert cost(heavy, 6, 260 * MICRO, 50 * MICRO) == 50 * MICRO


def test_where_only_weights_object_the_words_are_in_weight() -> None:
    """Five of six would stay, yet not half of the weight; three of sixteen would be out, yet over a fifth of it."""
    row = uneven(255, 1, 1, 1, 1, 1)
    kept = replace(row.members[0], state=State.KEPT, rule=Rule.MIN_IN)
    assert why_kept(kept, row, SAFETY, 0) == "min_in: 5 of 260 in weight would be in, at least 130 must"
    row = uneven(*[4, 4, 4], *[1] * 13, out=2)
    kept = replace(row.members[2], state=State.KEPT, rule=Rule.MAX_OUT)
    assert objection(row.members[2], standing(row.members), MICRO * 25, False, False, SAFETY) is Rule.MAX_OUT
    assert why_kept(kept, row, SAFETY, 0) == "max_out: 12 of 25 in weight would be out, allowed 5"
    kept = replace(uneven(255, 1, 1, 1, 1, 1).members[1], state=State.KEPT, rule=Rule.BUCKET)
    assert why_kept(kept, uneven(255, 1, 1, 1, 1, 1), SAFETY, 0) == "budget: 0.0 left, it takes 43.3"


def test_the_least_in_service_is_said_as_it_is_decided() -> None:
    """Half of 7 in weight, in three targets, is two of them: rounding a mean target down once made it more."""
    for weights in ((3, 2, 2), (2, 1, 1, 1, 1, 1), (255, 1), (7, 7, 7, 1, 1)):
        row = uneven(*weights)
        assert allowance(row, SAFETY, 0).min_in_count == (len(weights) + 1) // 2


def test_flapping_makes_a_pool_suspect() -> None:
    """October 2025, step 9: a fifth of the targets, and at least two, fall twice within five minutes."""
    world = PoolWorld(10, settings=DEFAULT).run(WARM)
    start = world.since_start
    flapping = {"10.0.0.1", "10.0.0.2"}
    world.alive = lambda key, at: key not in flapping or (at - start) // (120 * SECOND) % 2 == 1
    seen = []
    for _ in range(330):
        world.run(1)
        assert world.row is not None
        seen.append(world.row.suspect)
    assert "flapping" in seen
