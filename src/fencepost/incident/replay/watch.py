"""Everyone who looks at the region: people who act, monitoring that notes, dependents that go down and come back."""

from fencepost.incident.replay.operators import perform
from fencepost.incident.replay.region import Region
from fencepost.incident.replay.rules import Waiting
from fencepost.incident.replay.scenario import Act, Down, Scenario, Tick

GIVEN = "restore-store"
"""The outage itself is given: it ends when it ended, whoever is at the keyboard."""
ELSEWHERE = ("mitigate-inside", "restart-pollers")
"""What people of the dependents did for themselves; without the region's operators they do it too."""


class Spell:
    """One kind of interval of one dependent: waiting to begin, then to end."""

    __slots__ = ("_begins", "_ends", "begun", "ended")

    def __init__(self, down: Down) -> None:
        """Not begun."""
        self._begins, self._ends = Waiting(down.begins), Waiting(down.ends)
        self.begun: Tick | None = None
        self.ended: Tick | None = None

    def look(self, now: Tick, quantities: dict[str, float], happened: dict[str, Tick]) -> None:
        """In each step."""
        if self.begun is None:
            self.begun = self._begins.look(now, quantities, happened)
        if self.begun is not None and self.ended is None:
            ended = self._ends.look(now, quantities, happened)
            if ended is not None:
                self.ended = max(ended, self.begun)


class Watch:
    """``happened`` has acts and events by name, and when."""

    def __init__(self, scenario: Scenario, operators: bool, outage_ends: Tick | None) -> None:
        """Nothing has happened. With ``outage_ends`` the outage ends then, and nobody ends it."""
        self.happened: dict[str, Tick] = {}
        self._outage_ends = outage_ends
        self._acts: list[tuple[Act, Waiting]] = [
            (act, Waiting(act.when))
            for act in scenario.acts
            if (act.does == GIVEN and outage_ends is None)
            or (act.does != GIVEN and (operators or act.does in ELSEWHERE))
        ]
        self._given = [act for act in scenario.acts if act.does == GIVEN]
        self._events = [(event.name, Waiting(event.when)) for event in scenario.events]
        self.spells = {each.name: [Spell(down) for down in each.down] for each in scenario.dependents}

    def act(self, region: Region, now: Tick) -> None:
        """What people do at the beginning of this step, by what was seen at the end of the last."""
        if not region.quantities:
            return
        if self._outage_ends is not None and now >= self._outage_ends:
            region.restore(now)
            self.happened |= {act.name: self._outage_ends for act in self._given}
            self._outage_ends = None
        left = []
        for act, waiting in self._acts:
            at = waiting.look(now, region.quantities, self.happened)
            if at is None:
                left.append((act, waiting))
                continue
            self.happened[act.name] = at
            perform(act.does, region, now)
        self._acts = left

    def look(self, region: Region, now: Tick) -> None:
        """What is seen at the end of this step."""
        left = []
        for name, waiting in self._events:
            at = waiting.look(now, region.quantities, self.happened)
            if at is None:
                left.append((name, waiting))
            else:
                self.happened[name] = at
        self._events = left
        for spells in self.spells.values():
            for spell in spells:
                spell.look(now, region.quantities, self.happened)
