"""Fleets under drawn faults: every promise after each move, and everything as the rows say at the end."""

import pytest
from msgspec import structs

from fencepost.core.capacity.known import Known
from fencepost.core.instant import MILLISECOND, MINUTE
from fencepost.core.promises import FLEET
from fencepost.simulator.command import simulate
from fencepost.simulator.fleet.schedule import FLEET_KINDS
from fencepost.simulator.result import FLEET_PARTNERS, tell
from fencepost.simulator.scenarios import SCENARIOS, Scenario
from fencepost.simulator.trace import Header, lines_of

SMALL = structs.replace(
    SCENARIOS["fleet"], hosts=3, shards=1, managers=1, mean=2 * MILLISECOND, lasts=8 * MINUTE, quiet=3 * MINUTE
)


def held(seeds: range) -> None:
    """Every promise held, was checked, and was about something that happened."""
    result = simulate(seeds, "fleet")
    assert result.holds, tell(result)
    assert not result.vacuous(), tell(result)
    assert all(result.checked[name] for name in result.judged), tell(result)


def test_three_fleets_keep_every_promise() -> None:
    """Three to eighty hosts, one to three shards, forty minutes each (Groce et al., ISSTA 2012: half of all kinds)."""
    held(range(3))


def test_a_number_that_a_store_put_back_gives_again_is_started_once() -> None:
    """It had been given to a host, never started there and taken for over, all of which the store has forgotten."""
    assert simulate(range(297, 298), "fleet").holds


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(3, 303, 100))
def test_three_hundred_fleets_keep_every_promise(first: int) -> None:
    """The same for longer; some minutes for each hundred."""
    held(range(first, first + 100))


def test_every_promise_of_a_fleet_is_judged_and_has_partners() -> None:
    """A promise without a "sometimes" partner could hold because nothing happened."""
    assert set(SCENARIOS["fleet"].promises) == set(FLEET) == set(FLEET_PARTNERS)


def test_every_kind_of_upset_of_a_fleet_is_drawn() -> None:
    """A kind that nobody draws is no test of anything."""
    drawn = {upset.kind for seed in range(40) for upset in SCENARIOS["fleet"].upsets(seed)}
    assert drawn == set(FLEET_KINDS)


def lines(seed: int, scenario: Scenario) -> list[str]:
    """A walk's trace."""
    found: list[str] = []
    lines_of(Header(seed, scenario, scenario.upsets(seed)), found.append)
    return found


def test_the_same_seed_is_the_same_walk_byte_for_byte() -> None:
    """No set's order, no hash and no clock of ours is in it."""
    assert lines(4, SMALL) == lines(4, SMALL)
    assert lines(4, SMALL) != lines(5, SMALL)


def test_a_broken_promise_is_shrunk_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placement that calls an instance ended without having heard so from its host is found, in one kind of upset."""
    monkeypatch.setattr(Known, "stopped", lambda *_: True)
    result = simulate(range(6), SMALL, tries=60)
    assert result.violation is not None, tell(result)
    assert result.violation.promise == "ended_stays_ended"
    assert "terminate" in {upset.kind for upset in result.violation.upsets}
    assert len(result.violation.upsets) <= 3, tell(result)
    assert "BROKEN" in result.violation.story[-1]
