"""What a run is called after its options, and what is known of a scenario, with who says so."""

from collections import Counter

from msgspec import Struct

from fencepost.incident.replay.guards import PRODUCTION, Guard
from fencepost.incident.replay.options import Options
from fencepost.incident.replay.scenario import Act, Cause, Dependent, Event, Kind, Scenario, Value
from fencepost.incident.replay.show.hours import Hours, amount, option

GIVEN = "restore-store"
"""The deed that ends the outage."""
BRIEF = 32
"""Letters that fit beside a bar."""
FEW = 3
"""So many guards are named one by one."""


class Known(Struct, frozen=True, gc=False):
    """One thing that the scenario says: a value, or the hour of an act or event.

    ``source`` is spelt out; ``source_key`` is its short name in the scenario.
    """

    name: str
    shown: str
    kind: Kind
    source: str
    source_key: str


def called(options: Options) -> str:
    """As in "as it was", "with every guard, an outage of 2h37m forced"."""
    parts = [_guards(options)]
    if not options.operators:
        parts.append("nobody at the keyboard")
    if options.outage_s is not None:
        parts.append(f"an outage of {option(options.outage_s)} forced")
    return ", ".join(parts)


def brief(options: Options) -> str:
    """The same in so few letters that it fits beside a bar; the letter of the run says the rest."""
    chosen = [guard.value for guard in Guard if guard in options.guards]
    missing = [guard.value for guard in Guard if guard not in options.guards]
    if not chosen:
        return "as it was" if options.operators else "as it was, nobody acts"
    if not missing:
        return "every guard"
    name = " + ".join(chosen) if len(chosen) <= FEW else f"all but {' and '.join(missing)}"
    return name if len(name) <= BRIEF else f"{len(chosen)} guards"


def _guards(options: Options) -> str:
    if not options.guards:
        return "as it was"
    if options.guards == PRODUCTION:
        return "with every guard"
    chosen = [guard.value for guard in Guard if guard in options.guards]
    if len(chosen) <= FEW:
        return f"with {' and '.join(chosen)}"
    missing = [guard.value for guard in Guard if guard not in options.guards]
    return f"with every guard but {' and '.join(missing)}"


def known(scenario: Scenario) -> tuple[Known, ...]:
    """All values in the file's order, then the reported hours of acts, events and dependents."""
    hours = Hours(scenario)
    spelt = scenario.sources

    def one(name: str, shown: str, each: Value | Act | Event | Dependent) -> Known:
        return Known(name, shown, each.kind, spelt.get(each.source, each.source), each.source)

    found = [one(name, amount(value, hours), value) for name, value in scenario.values.items()]
    for each in moments(scenario):
        shown = "a rule" if each.reported is None else hours.at(each.reported)
        found.append(one(each.name, shown, each))
    for service in scenario.dependents:
        spans = ", ".join(f"{hours.at(begins)}–{hours.later(ends)}" for begins, ends in service.reported)
        found.append(one(service.name, spans or "a rule", service))
    return tuple(found)


def moments(scenario: Scenario) -> list[Act | Event]:
    """What people did and what was seen, in the file's order."""
    return [*scenario.acts, *scenario.events]


def counted(scenario: Scenario) -> dict[Kind, int]:
    """How much of it is published, estimated, calibrated."""
    numbers = Counter(each.kind for each in known(scenario))
    return {kind: numbers[kind] for kind in Kind}


def outage_s(scenario: Scenario) -> int | None:
    """How long the outage was as reported: from the first event that has an hour to the act that ended it.

    Where the scenario itself says when it begins, from then to the hour at which the act is due.
    """
    begins = scenario.values.get("outage.begins")
    due = [act.when.at for act in scenario.acts if act.does == GIVEN and act.when.at is not None]
    if begins is not None and due:
        return due[0] - int(begins.amount)
    given = [act.reported for act in scenario.acts if act.does == GIVEN and act.reported is not None]
    began = [event.reported for event in scenario.events if event.reported is not None]
    return given[0] - min(began) if given and began else None


def is_told(scenario: Scenario) -> bool:
    """Whether any hour of it was reported; of a made-up scenario none was, and nothing is said of reports."""
    return any(each.reported for each in (*moments(scenario), *scenario.dependents))


def gone(scenario: Scenario) -> str:
    """What "dns_empty" is in this scenario: only in October 2025 an endpoint was emptied."""
    return "endpoint without an address" if scenario.cause is Cause.DNS_RACE else "store out of reach"


def whose(scenario: Scenario) -> str:
    """That calibrated values are not those of whom it happened to, or that it happened to nobody."""
    if not counted(scenario)[Kind.PUBLISHED]:
        return "it happened to nobody: hours and numbers are made up"
    theirs = "AWS’s" if any("AWS" in text for text in scenario.sources.values()) else "anybody’s who was there"
    return f"calibrated values are ours, not {theirs}"
