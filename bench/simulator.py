"""How fast simulated hours go by: moves and region seconds a CPU second, beside SimPy on one equal job.

    python -m bench.simulator

Floors we hold ourselves to, in the default scenario: 50,000 moves/s and 2,000 region seconds a CPU second. SimPy (4.1)
does what is common to any simulation: waking. Its processes do nothing but sleep and wake; so do ours in that job.
"""

import time
from collections.abc import Generator
from typing import Any

import simpy

from bench.figures import tell
from fencepost.core.instant import MILLISECOND
from fencepost.simulator.command import simulate
from fencepost.simulator.walk import EPOCH, Walk

SEEDS = range(8)
SLEEPERS = 100
WAKEUPS = 500_000


def hours(scenario: str, seeds: range) -> None:
    """Walk some seeds of an hour each."""
    result = simulate(seeds, scenario)
    assert result.holds
    words = f"{len(result.seeds)} seeds, {result.moves:,} moves"
    tell(f"{scenario}: moves a second", result.moves / result.cpu_s, "/CPU s", words)
    tell(f"{scenario}: region seconds a CPU second", result.region_s / result.cpu_s, "s/CPU s")


def sleeper(environment: simpy.Environment, every: int, woken: list[int]) -> Generator[Any, Any, None]:
    """Sleeps, wakes and counts, sleeps."""
    while True:
        yield environment.timeout(every)
        woken[0] += 1


def simpy_wakeups() -> float:
    """Wake-ups a CPU second of SimPy: 100 processes that sleep for 1 to 100."""
    environment, woken = simpy.Environment(), [0]
    for number in range(SLEEPERS):
        environment.process(sleeper(environment, number + 1, woken))
    until = WAKEUPS / sum(1 / (number + 1) for number in range(SLEEPERS))
    began = time.process_time()
    environment.run(until=int(until))
    return woken[0] / (time.process_time() - began)


def our_wakeups() -> float:
    """The same by our heap."""
    walk = Walk(0, ())
    woken = 0

    def wake(every: int) -> None:
        nonlocal woken
        woken += 1
        walk.push(walk.now + every * MILLISECOND, wake, every)

    for number in range(SLEEPERS):
        walk.push(EPOCH + (number + 1) * MILLISECOND, wake, number + 1)
    until = int(WAKEUPS / sum(1 / (number + 1) for number in range(SLEEPERS)))
    began = time.process_time()
    walk.run(EPOCH + until * MILLISECOND)
    return woken / (time.process_time() - began)


def main() -> None:
    """Hours of the default, a quiet hour, and wake-ups beside SimPy's."""
    hours("swarm", SEEDS)
    hours("quiet", range(2))
    ours, theirs = our_wakeups(), simpy_wakeups()
    tell("wake-ups a second", ours, "/CPU s")
    tell("wake-ups a second, SimPy", theirs, "/CPU s")
    tell("wake-ups, ours ÷ SimPy's", ours / theirs, "×")


if __name__ == "__main__":
    main()
