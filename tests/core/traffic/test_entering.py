"""Coming into service: readiness of new targets, slow start, and settings that make no sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_world import DEAD, PoolWorld, kill, member, warm

from fencepost.core.instant import MINUTE, SECOND
from fencepost.core.traffic.limits import SafetySettings
from fencepost.core.traffic.membership import Override, OverrideKind, State
from fencepost.core.traffic.readiness import missing
from fencepost.core.traffic.slow_start import Entrant, starting, weights

SAFETY = SafetySettings()
NOW = 1_000 * MINUTE


@pytest.mark.parametrize(
    ("passed", "voting", "age", "ready"),
    [
        ("abc", "abc", 30, True),
        ("abc", "abc", 29, False),
        ("ab", "abc", 60, False),
        ("ab", "abc", 90, True),
        ("ab", "ab", 30, True),
        ("a", "a", 600, False),
        ("", "", 600, False),
    ],
)
def test_every_voting_zone_then_two(passed: str, voting: str, age: int, ready: bool) -> None:
    """Every zone with a fresh checker, at least two; after 90 s two suffice; never under 30 s of age."""
    lacks = missing(tuple(passed), tuple(voting), age * SECOND, True, SAFETY)
    assert (lacks == "") is ready


def test_network_state_comes_first() -> None:
    """October 2025, step 9: no pass is believed before the network state has arrived."""
    assert "network state" in missing(("a", "b", "c"), ("a", "b", "c"), MINUTE, False, SAFETY)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.sampled_from([0, 1, 5, 30, 59, 60, 600])), max_size=20))
def test_a_weight_in_service_never_rounds_to_nothing(pool: list[tuple[int, int]]) -> None:
    """envoy #29259: scaled first, ramped after; 1 to 255 whatever the capacities and ages are."""
    entrants = [Entrant(capacity, NOW - age * SECOND if age else 0) for capacity, age in pool]
    given_out = weights(entrants, NOW, SAFETY)
    assert all(1 <= weight <= 255 for weight in given_out)
    ramping = sum(starting(each.joined, NOW, SAFETY) for each in entrants)
    if ramping * 2 > len(entrants):
        assert max(given_out) == 255, "with most of them starting, nobody ramps"


def test_slow_start_goes_by_tenths() -> None:
    """10 % at once, 100 % after a minute, ten changes of the row between."""
    old = [Entrant(1, 0)] * 3
    seen = [weights([*old, Entrant(1, NOW)], NOW + at * SECOND, SAFETY)[-1] for at in range(61)]
    assert seen[0] == 25
    assert seen[30] == 127
    assert seen[60] == 255
    assert len(set(seen)) == 10
    assert seen == sorted(seen)


def test_capacity_is_scaled_to_the_largest() -> None:
    """Route 53 takes weights up to 255."""
    assert weights([Entrant(200, 0), Entrant(100, 0), Entrant(1, 0)], NOW, SAFETY) == [255, 128, 1]
    assert weights([], NOW, SAFETY) == []


def test_a_dead_target_whose_drain_ends_does_not_come_back_in() -> None:
    """Its last verdict will do, even without a quorum; it costs no budget, since it wasn't serving."""
    world = warm(6)
    kill(world, DEAD)
    world.run(40)
    tokens = world.rows[-1][1].tokens
    world.overrides = (Override(OverrideKind.DRAIN, DEAD),)
    world.run(5)
    assert member(world).state is State.DRAINED
    world.beats.clear()
    world.overrides = ()
    assert world.balance(0)
    assert member(world).state is State.OUT
    assert world.rows[-1][1].tokens >= tokens


def test_a_new_target_that_was_drained_is_pending_again() -> None:
    """Ending a drain is no way round readiness."""
    world = PoolWorld(6).run(2)
    newcomer = "10.0.0.7"
    listing = PoolWorld(7).listing
    world.listing = type(listing)(listing.targets, 2)
    world.overrides = (Override(OverrideKind.DRAIN, newcomer),)
    world.run(2)
    assert member(world, newcomer).state is State.DRAINED
    world.overrides = ()
    world.run(2)
    assert member(world, newcomer).state is State.PENDING


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_out_ppm": 600_000},
        {"burst_ppm": 300_000},
        {"min_in_ppm": 1_000_001},
        {"exit_ppm": 500_000},
        {"ready_wait_ns": SECOND},
    ],
)
def test_settings_that_clash_are_refused(wrong: dict[str, int]) -> None:
    """max_out and min_in over 100 %, a burst over max_out, an alarm that ends where it begins."""
    with pytest.raises(ValueError, match=r"max_out|share|flaps|enough"):
        SafetySettings(**wrong)
