"""The phases of an incident, as reported and as they came out, and which of it was no finding but the script's.

A phase that ends with what a person did at an hour on the clock is as long as reported because the scenario says so.
That is said wherever its length is shown; the others emerged.
"""

from collections.abc import Sequence

from msgspec import Struct

from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Act, Event, Phase, Scenario, Tick
from fencepost.incident.replay.show.naming import GIVEN, moments

Span = tuple[Tick, Tick | None]
"""From when to when; None: it isn't over when the scenario ends."""


class Stretch(Struct, frozen=True, gc=False):
    """One phase. ``reported`` and ``simulated`` are None where there was none; ``by_script``: its end was given."""

    name: str
    words: str
    reported: tuple[Tick, Tick] | None
    simulated: Span | None
    by_script: bool

    @property
    def equal(self) -> bool:
        """Whether it is as long as reported by script: its given end is the reported one, where there is one."""
        if not self.by_script or self.simulated is None:
            return False
        return self.reported is None or self.simulated[1] == self.reported[1]


def stretches(outcome: Outcome) -> tuple[Stretch, ...]:
    """All phases in the scenario's order."""
    scenario, happened = outcome.scenario, outcome.happened
    hours = {each.name: each.reported for each in moments(scenario)}
    found = []
    for index, phase in enumerate(scenario.phases):
        begins, ends = hours[phase.begins], hours[phase.ends]
        reported = None if begins is None or ends is None else (begins, ends)
        later = [name for each in scenario.phases[index + 1 :] for name in (each.begins, each.ends)]
        begun = None if none_of(outcome, phase) and not phase.otherwise else happened.get(phase.begins)
        simulated, last = None, phase.ends
        if begun is not None:
            if last not in happened:
                after = [name for name in later if happened.get(name, -1) >= begun]
                last = min(after, key=lambda name: happened[name], default=last)
            ended = happened.get(last)
            if ended is None or ended >= begun:
                simulated = (begun, ended)
        found.append(Stretch(phase.name, phase.words, reported, simulated, by_script(outcome, last)))
    return tuple(found)


def none_of(outcome: Outcome, phase: Phase) -> bool:
    """Whether what a phase is about never happened."""
    return bool(phase.trouble) and phase.trouble not in outcome.happened


def by_script(outcome: Outcome, name: str) -> bool:
    """Whether the hour of what ended a phase was given: a person's act on the clock, or the outage's own end."""
    acts = {act.name: act for act in outcome.scenario.acts}
    act = acts.get(name)
    return act is not None and name in outcome.happened and (act.does == GIVEN or act.when.at is not None)


def emergent(scenario: Scenario, each: Act | Event) -> bool:
    """Whether nothing in the scenario sets its hour: it was seen, or follows what was seen."""
    by_name = {other.name: other for other in moments(scenario)}
    chain = {each.name}
    while each.when.follows and each.when.follows not in chain:
        each = by_name[each.when.follows]
        chain.add(each.name)
    return each.when.seen is not None


def by_hand(outcome: Outcome, name: str) -> bool:
    """Whether every interval that a dependent can be down is ended by a person at an hour, and one was."""
    rules = next(each.down for each in outcome.scenario.dependents if each.name == name)
    ends = [ended for _, ended in outcome.down.get(name, ())]
    return bool(ends) and None not in ends and all(down.by_hand for down in rules)


def axis(outcomes: Sequence[Outcome]) -> tuple[Tick, Tick]:
    """From when to when the phases last in all of them, and what was down and came back; the whole scenario if there
    are none.
    """
    ends: list[Tick] = []
    for outcome in outcomes:
        for stretch in stretches(outcome):
            ends += stretch.reported or ()
            if stretch.simulated is not None:
                begun, ended = stretch.simulated
                ends += (begun, outcome.scenario.lasts_s if ended is None else ended)
        if ends:
            ends += [ended for spans in outcome.down.values() for _, ended in spans if ended is not None]
    lasts = outcomes[0].scenario.lasts_s
    return (min(ends), max(ends)) if ends and min(ends) < max(ends) else (0, lasts)


def length_s(span: Span | None, lasts_s: int) -> int | None:
    """How long it lasted, to the scenario's end if it isn't over then."""
    if span is None:
        return None
    begun, ended = span
    return (lasts_s if ended is None else ended) - begun
