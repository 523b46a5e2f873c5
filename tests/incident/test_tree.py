"""The transactions of plan trees: what each guard requires, and that a refused one leaves everything as it was."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.incident import tree
from fencepost.incident.tree import NO_LOCK, Guard, Lock, Outcome, Tree

PLANS = 4
ALL = frozenset(Guard)
NONE: frozenset[Guard] = frozenset()


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any two endpoints among some plans, some of them cleaned up."""
    written = draw(st.integers(0, PLANS))
    numbers = st.integers(0, written)
    deleted = tuple(plan for plan in range(1, written + 1) if draw(st.booleans()))
    pairs = st.tuples(numbers, numbers)
    return Tree(draw(pairs), draw(pairs), (NO_LOCK, NO_LOCK), written, deleted)


GUARD_SETS = st.frozensets(st.sampled_from(Guard))
ENDPOINTS = st.integers(0, 1)
PLAN = st.integers(1, PLANS)


@given(trees(), ENDPOINTS, PLAN, GUARD_SETS)
def test_a_turn_is_applied_whole_or_not_at_all(
    before: Tree, endpoint: int, plan: int, guards: frozenset[Guard]
) -> None:
    """Incident, "a batch of changes: all or nothing": alias, rollback record and lock change together."""
    after, outcome = tree.turn(before, endpoint, plan, NO_LOCK, Lock("a", 5), guards)
    other = 1 - endpoint
    assert (after.live[other], after.before[other], after.lock[other]) == (
        before.live[other],
        before.before[other],
        before.lock[other],
    )
    if outcome is Outcome.DONE:
        assert after.live[endpoint] == plan
        assert after.lock[endpoint] == Lock("a", 5)
        was = before.live[endpoint]
        assert after.before[endpoint] == (0 if before.gone(was) else was)
    else:
        assert after == before


@given(trees(), ENDPOINTS, PLAN, GUARD_SETS)
def test_each_guard_of_a_turn_holds_what_it_says(
    before: Tree, endpoint: int, plan: int, guards: frozenset[Guard]
) -> None:
    """conditional-write, target-exists and rollback-tolerates, in any set of guards."""
    _, outcome = tree.turn(before, endpoint, plan, NO_LOCK, NO_LOCK, guards)
    was = before.live[endpoint]
    older, there, saved = was < plan, not before.gone(plan), not before.gone(was)
    may = (
        (older or Guard.CONDITIONAL_WRITE not in guards)
        and (there or Guard.TARGET_EXISTS not in guards)
        and (saved or Guard.ROLLBACK_TOLERATES in guards)
    )
    assert (outcome is Outcome.DONE) == may


@given(trees(), PLAN, GUARD_SETS)
def test_clean_up_spares_what_is_referred_to_only_under_its_guard(
    before: Tree, plan: int, guards: frozenset[Guard]
) -> None:
    """Incident, step 4: by age alone, a deletion takes the addresses of whatever still points there."""
    after, outcome = tree.delete(before, plan, guards)
    referred = plan in before.live or plan in before.before
    if referred and Guard.CLEANUP_SPARES in guards:
        assert (after, outcome) == (before, Outcome.SPARED)
    else:
        assert outcome is Outcome.DONE
        assert after.gone(plan)
        assert all(after.empty(at) for at, live in enumerate(before.live) if live == plan)


@given(trees(), ENDPOINTS)
def test_an_operators_rollback_goes_where_the_record_says(before: Tree, endpoint: int) -> None:
    """It needs no conditional write, and under target-exists it refuses to empty the endpoint."""
    after, outcome = tree.roll_back(before, endpoint, NONE)
    assert outcome is Outcome.DONE
    assert after.live[endpoint] == before.before[endpoint]
    after, outcome = tree.roll_back(before, endpoint, ALL)
    assert (outcome is Outcome.DONE) == (not before.gone(before.before[endpoint]))
    assert outcome is not Outcome.DONE or not after.empty(endpoint)


def test_the_lock_says_who_writes_and_not_how_new() -> None:
    """Incident, "it fenced who writes": the loser backs off, reads the lock again, and writes its old plan over."""
    start = tree.write(tree.write(tree.new(1)))
    seen = start.lock[0]
    by_b, outcome = tree.turn(start, 0, 2, seen, Lock("b", 1), NONE)
    assert outcome is Outcome.DONE
    refused, outcome = tree.turn(by_b, 0, 1, seen, Lock("a", 2), NONE)
    assert (refused, outcome) == (by_b, Outcome.LOCK_LOST)
    by_a, outcome = tree.turn(by_b, 0, 1, by_b.lock[0], Lock("a", 3), NONE)
    assert outcome is Outcome.DONE
    assert by_a.live == (1,)
