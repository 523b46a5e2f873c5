"""What ``up`` offers to try: lines that stay while they are copied, and say what will come of them."""

from pathlib import Path

import pytest
from msgspec import structs

from fencepost.cli.up_tries import QUIET_S, Tries
from fencepost.roles.status.compose import compose
from fencepost.roles.status.document import PoolStatus, Status
from fencepost.roles.status.facts import Facts
from fencepost.settings import load

REGION = load(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
TARGETS = [target.address for target in REGION.pools[0].targets]
PIDS: dict[str, int | None] = {
    **{f"enactor/{zone}": 10 + place for place, zone in enumerate("abc")},
    **{f"target/{address}": 20 + place for place, address in enumerate(TARGETS)},
}
FIRST, ONE, OTHER, ENACTOR = "target/127.0.2.1", "target/127.0.3.1", "target/127.0.1.1", "enactor/b"


def standing(budget: float = 2.0, out: int = 0, next_s: float | None = None) -> Status:
    """The sample with so much budget left and so many out."""
    pool = PoolStatus("web", 6, 6 - out, out, 0, out, 0, None, False, 2, 3, budget, next_s, max_out_targets=2)
    return structs.replace(compose(Facts(REGION, 1, "api")), pools=(pool,))


def said(lines: list[str]) -> list[str]:
    """The two lines that kill targets."""
    return [" ".join(line.split()) for line in lines if " kill " in line and "-9" not in line]


def commands(lines: list[str]) -> list[str]:
    """What is to be pasted."""
    return [line.partition("  ")[0] for line in lines[1:]]


def test_the_lines_stay_while_targets_die_and_come_back() -> None:
    """They were once made anew each second, so the one just copied killed another target than it had said."""
    tries = Tries(REGION)
    start = commands(tries.lines(standing(), PIDS, 0))
    assert said(tries.lines(standing(), PIDS, 1)) == [
        "kill 22 127.0.2.1 leaves within 3.5 s",
        "kill 24; sleep 5; kill 20 one more leaves, one is kept: the limit",
    ]
    killed = {**PIDS, FIRST: None}
    assert commands(tries.lines(standing(1.0, 1), killed, 5)) == start
    back = {**PIDS, FIRST: 99}
    assert commands(tries.lines(standing(1.2), back, 65)) == start, "back in, not for a minute yet"
    assert commands(tries.lines(standing(1.3), back, 65 + QUIET_S - 1)) == start
    assert "kill 99" in commands(tries.lines(standing(1.4), back, 65 + QUIET_S))[1]


def test_new_lines_come_once_all_were_tried() -> None:
    """Every process that they name is gone: nothing is left to copy."""
    tries = Tries(REGION)
    start = commands(tries.lines(standing(), PIDS, 0))
    dead = {**PIDS, FIRST: None, ONE: None, OTHER: None}
    assert commands(tries.lines(standing(0.0, 2), dead, 30)) == start
    anew = {**PIDS, FIRST: 91, ONE: 92, OTHER: 93, ENACTOR: 94}
    assert "kill 91" in commands(tries.lines(standing(0.5), anew, 90))[1]


@pytest.mark.parametrize(
    ("budget", "next_s", "first", "pair"),
    [
        (2.0, None, "127.0.2.1 leaves within 3.5 s", "one more leaves, one is kept: the limit"),
        (1.0, None, "127.0.2.1 leaves within 3.5 s", "both are kept: the budget pays for one"),
        (0.3, 140.0, "it is kept: the budget is spent, the next in 2 min 20 s", "both are kept: the budget is spent"),
    ],
)
def test_what_a_kill_does_is_said_as_the_budget_stands(
    budget: float, next_s: float | None, first: str, pair: str
) -> None:
    """A second run of the sample begins with what the first left of the budget."""
    one, two = said(Tries(REGION).lines(standing(budget, next_s=next_s), PIDS, 0))
    assert first in one
    assert pair in two
