"""How far a long search is: a note after a second, then now and then; off a terminal each ten seconds."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fencepost.cli.terminal import interactive, note

if TYPE_CHECKING:  # the simulator is loaded when it is wanted
    from fencepost.simulator.walked import Walked

FIRST_S = 1.0
ON_TERMINAL_S = 2.0
ELSEWHERE_S = 10.0


class Progress:
    """One search's notes; each of its callbacks may be called as often as one likes."""

    def __init__(self, wanted: int = 0) -> None:
        self.wanted = wanted
        self.due = time.monotonic() + FIRST_S

    def say(self, text: Callable[[], str]) -> None:
        """Say it, if the last was long enough ago."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + (ON_TERMINAL_S if interactive() else ELSEWHERE_S)
            note(f"… {text()}")

    def exploring(self, states: int, depth: int) -> None:
        """See :class:`~fencepost.explorer.explore.Explorer`."""
        self.say(lambda: f"{states:,} state{'' if states == 1 else 's'} so far, {depth} steps deep")

    def walking(self, done: int, walked: "Walked") -> None:
        """See :func:`~fencepost.simulator.command.simulate`. The last one needs no note."""
        if done < self.wanted:
            self.say(lambda: f"{done} of {self.wanted} walks, seed {walked.seed} just now")

    def shrinking(self, tried: int, upsets: int) -> None:
        """See :data:`~fencepost.simulator.shrink.Shrinking`."""
        broke = "a promise broke; "
        self.say(lambda: f"{broke}{tried} smaller schedules tried, {upsets} upsets in the last (Ctrl-C: tell it now)")
