"""Parts that never come to rest are told, by explorer and simulator; those that ship are never taken for such."""

import pytest
from mutation import patched
from seeded import MISTAKES

from fencepost.explorer.explore import ENDLESS, Explorer
from fencepost.explorer.region_model import RegionModel
from fencepost.explorer.result import Result, tell
from fencepost.explorer.runaway import PERIODS, figure, runaway
from fencepost.simulator import pace
from fencepost.simulator.command import simulate
from fencepost.simulator.result import tell as tell_walks
from fencepost.simulator.walk import EPOCH, Walk
from fencepost.simulator.watch import Broken
from fencepost.world.faults import Fault
from fencepost.world.region import Shape


def explored(name: str, shape: Shape, most: int = 200_000) -> Result:
    """What the explorer says of a mistake in a region."""
    mistake = next(each for each in MISTAKES if each.name == name)
    with patched(((mistake.owner, mistake.function, mistake.made()),)):
        return Explorer(RegionModel(shape)).run(most)


def test_an_enactor_that_writes_the_same_for_ever_never_comes_to_rest() -> None:
    """`<=` for `<`: each write raises the marker's count of writes, so no state comes twice, and all promises hold."""
    result = explored("the equal is stale too", Shape(1, 1))
    assert (result.verdict, result.promise, result.why) == ("violated", "converges", ENDLESS)
    assert [step.what for step in result.story].count("writes api.example.test 1") >= 2
    assert "never come to rest" in tell(result)


def test_a_planner_that_carries_an_order_out_for_ever_never_comes_to_rest() -> None:
    """Plan after plan, and the bound is reached; it was called unfinished, as a region too big to explore is."""
    result = explored("an order is never spent", Shape(1, 1, budget=((Fault.WITHDRAW, 1),)))
    assert (result.verdict, result.promise, result.why) == ("violated", "converges", ENDLESS)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(2, 2, 1, endpoints=2, budget=((Fault.INPUT, 3), (Fault.WITHDRAW, 2), (Fault.REPAIR, 1))),
        Shape(1, 1, stores=2, budget=((Fault.INPUT, 2), (Fault.WITHDRAW, 1))),
        Shape(1, 1, budget=((Fault.UNKNOWN, 3), (Fault.STORE_AWAY, 2), (Fault.INPUT, 3))),
    ],
    ids=["two-of-each", "two-stores", "away"],
)
@pytest.mark.parametrize("most", [2_000, 30_000])
def test_a_region_that_is_too_big_is_unfinished_and_not_endless(shape: Shape, most: int) -> None:
    """Two stores that replace each other do so three times; retries count up to sixteen: neither is for ever."""
    assert Explorer(RegionModel(shape)).run(most).verdict in ("unfinished", "holds")


def test_a_round_must_repeat_eight_times_and_raise_something_all_can_see() -> None:
    """Fewer may be a few tries that end; a part's own counter alone, a retry that waits longer each time."""
    rounds = [figure((), ("plan", at // 2), ("reads", at % 2)) for at in range(2 * PERIODS + 2)]
    assert runaway(rounds) == 3
    assert runaway(rounds[: 2 * PERIODS - 1]) is None
    assert runaway([figure((), "still", ("failed", at)) for at in range(40)]) is None
    assert runaway([figure((), ("plan", 40 - at), ()) for at in range(40)]) is None
    assert runaway([figure((), ("plan", at * at), ()) for at in range(40)]) is None
    assert runaway([figure(("crash", 40 - at), ("plan", at), ()) for at in range(40)]) is None


@pytest.mark.parametrize("name", ["two-repairs", "swarm", "operators"])
def test_a_walk_with_no_end_in_sight_ends_and_names_the_last_moves(name: str) -> None:
    """An order that is never spent makes plans for ever; the tables grew, and each move took longer than the last."""
    mistake = next(each for each in MISTAKES if each.name == "an order is never spent")
    with patched(((mistake.owner, mistake.function, mistake.made()),)):
        result = simulate([0], name, shrinks=False)
    assert result.violation is not None
    assert result.violation.promise == "converges"
    end = result.violation.story[-1]
    assert "no end in sight: 600 changes of DNS or store in the same minute" in end
    assert "publishes plan" in end.partition("the last changes were: ")[2]
    assert result.violation.story[-1] in tell_walks(result)


def test_moves_without_time_end_a_walk() -> None:
    """Two parts that wake each other at once would never let the clock go on."""
    walk = Walk(0, ("e00.example.test",))

    def again(_: object) -> None:
        walk.push(walk.now, again)

    walk.push(EPOCH, again)
    with pytest.raises(Broken) as broken:
        walk.run(EPOCH + 10)
    assert broken.value.promise == "converges"
    assert broken.value.words == "no end in sight: 20,000 moves in the same second"
    assert walk.watch.moves == pace.MOVES_MOST + 1
