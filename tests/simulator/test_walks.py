"""Hours of region time under drawn faults: every promise after each move, and convergence at the end."""

import pytest

import fencepost.explorer.region_model as explored
import fencepost.simulator.dns_parts as simulated
from fencepost.core.promises import ALWAYS, EVENTUALLY
from fencepost.simulator.command import simulate
from fencepost.simulator.result import PARTNERS, SimulationResult, tell
from fencepost.simulator.scenarios import SCENARIOS
from fencepost.simulator.schedule import APART, KINDS, TAKES_MARKER, Upset, spaced
from fencepost.simulator.simulate import Simulation
from fencepost.simulator.walked import Walked

SEEDS = 50
AT_ONCE = 10
SOAKED = 1_000
SOAKED_AT_ONCE = 100


def held(result: SimulationResult) -> None:
    """Every promise held, was checked, and was about something that happened."""
    assert result.holds, tell(result)
    assert not result.vacuous(), tell(result)
    assert all(result.checked[name] for name in result.judged), tell(result)


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_fifty_seeds_of_an_hour_hold_every_promise(first: int) -> None:
    """Swarm testing (Groce et al., ISSTA 2012): each seed has its own kinds of upset, and how often."""
    held(simulate(range(first, first + AT_ONCE)))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(SEEDS, SOAKED, SOAKED_AT_ONCE))
def test_a_thousand_seeds_of_an_hour_hold_every_promise(first: int) -> None:
    """The same for longer; about five minutes for each hundred seeds."""
    held(simulate(range(first, min(first + SOAKED_AT_ONCE, SOAKED))))


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "swarm"])
def test_every_scenario_holds(name: str) -> None:
    """Two seeds of each named scenario."""
    result = simulate(range(2), name)
    assert result.holds, tell(result)


def test_nothing_happens_where_nothing_goes_wrong() -> None:
    """One plan, one write of each endpoint, no removal: a quiet hour is quiet, so what others count isn't noise."""
    result = simulate([0], "quiet")
    assert result.holds, tell(result)
    assert result.checked["never_empty"] == 30
    assert result.seen["published"] == 1
    assert {"removal", "kept", "fenced", "healed", "adopted"}.isdisjoint(result.seen)


def told(simulation: Simulation) -> tuple[list[tuple[int, str, str]], Walked]:
    """A walk's moves, but for reads, which the short way doesn't make."""
    moves: list[tuple[int, str, str]] = []

    def listen(at: int, who: str, what: str, outcome: object) -> None:
        if "nothing new" not in what and not what.startswith(("reads ", "lists ")):
            moves.append((at, who, what))

    return moves, simulation.run(listen)


@pytest.mark.parametrize(("name", "seed"), [("hold", 0), ("race", 1), ("swarm", 3)])
def test_a_mirror_that_is_as_of_now_answers_like_the_call(name: str, seed: int) -> None:
    """Idle passes are nearly free because reads that would bring nothing are answered by the mirror: same walk."""
    short, walked = told(Simulation(seed, SCENARIOS[name]))
    long, walked_too = told(Simulation(seed, SCENARIOS[name], shortcuts=False))
    assert short == long
    assert (walked.checked, walked.seen, walked.promise) == (walked_too.checked, walked_too.seen, walked_too.promise)


def test_listening_changes_nothing() -> None:
    """Stories and traces are told by a walk that is the same without them."""
    _, listened = told(Simulation(5, SCENARIOS["swarm"]))
    silent = Simulation(5, SCENARIOS["swarm"]).run()
    assert (silent.moves, silent.checked, silent.seen) == (listened.moves, listened.checked, listened.seen)


def test_explorer_and_simulator_walk_one_graph() -> None:
    """Two drivers, one graph: both take the parts' moves from the very same functions, and none has its own."""
    assert vars(simulated)["calls"] is vars(explored)["calls"]


def test_every_promise_about_dns_is_judged_and_has_partners() -> None:
    """A promise without a "sometimes" partner could hold because nothing happened."""
    assert set(SCENARIOS["swarm"].promises) == {*ALWAYS, *EVENTUALLY} == set(PARTNERS)


def test_the_default_draws_from_every_kind() -> None:
    """A kind that no scenario draws is no test of anything."""
    assert SCENARIOS["swarm"].kinds == tuple(KINDS)
    drawn = {upset.kind for seed in range(40) for upset in SCENARIOS["swarm"].upsets(seed)}
    assert drawn == set(KINDS)


def test_no_endpoint_loses_its_marker_twice_within_the_life_of_a_late_write() -> None:
    """The documented limit (a marker deleted twice around a change there and back) is left out of what is drawn."""
    kind = min(TAKES_MARKER)
    upsets = (Upset(0, kind, 1), Upset(APART - 1, kind, 31), Upset(APART - 1, kind, 2), Upset(APART, kind, 1))
    assert [upset.where for upset in spaced(upsets, 30)] == [1, 2, 1]
