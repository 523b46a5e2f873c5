"""A replay as one JSON document, ``fencepost.replay/1``: what was reported, what came out, and who says each value.

Within version 1 keys are only added. Seconds end in ``_s``; times are RFC 3339 with the scenario's offset; what didn't
happen or isn't known is null, never 0. The same scenario, options and seed give the same document, but for
``figures.cpu_s``.
"""

from typing import Any, Literal

import msgspec

from fencepost.incident.replay.guards import Guard
from fencepost.incident.replay.outcome import Outcome
from fencepost.incident.replay.scenario import Tick
from fencepost.incident.replay.show.hours import Hours
from fencepost.incident.replay.show.judged import judged
from fencepost.incident.replay.show.naming import called, moments
from fencepost.incident.replay.show.phases import Span, emergent, length_s, stretches
from fencepost.incident.replay.show.remarks import remarks

SCHEMA: Literal["fencepost.replay/1"] = "fencepost.replay/1"
KindName = Literal["published", "estimate", "calibrated"]


class OptionsEntry(msgspec.Struct, frozen=True):
    """What differs between replays. ``dns_outage_s`` is null unless an outage was forced."""

    hosts: int
    seed: int
    guards: tuple[str, ...]
    operators: bool
    dns_outage_s: int | None


class PhaseEntry(msgspec.Struct, frozen=True):
    """One phase. ``over``: whether it ended within the scenario; ``by_script``: its end was given, not found."""

    name: str
    words: str
    reported_s: int | None
    simulated_s: int | None
    over: bool
    by_script: bool


class EventEntry(msgspec.Struct, frozen=True):
    """An act of people or something seen. ``emergent``: no hour in the scenario sets when. ``within_s``: how near it is
    required to be to what was reported. ``held``: whether it is; null where nothing says so, and for runs that aren't
    meant to be as it was (guards, nobody at the keyboard, an outage forced)."""

    name: str
    words: str
    act: bool
    reported: str | None
    simulated: str | None
    within_s: int | None
    held: bool | None
    kind: KindName
    source: str
    emergent: bool


class IntervalEntry(msgspec.Struct, frozen=True):
    """From when to when; ``ends`` is null if it wasn't over."""

    begins: str
    ends: str | None


class DependentEntry(msgspec.Struct, frozen=True):
    """A service that depends on others, and when it was down."""

    name: str
    title: str
    depends_on: tuple[str, ...]
    reported: tuple[IntervalEntry, ...]
    simulated: tuple[IntervalEntry, ...]
    kind: KindName
    source: str


class FiguresEntry(msgspec.Struct, frozen=True):
    """What is counted. ``capacity_out_s``: seconds weighed with the share that was out; ``recovery_ratio``: how long
    recovery took to how long it would have taken with no work wasted; ``more``: what else was counted."""

    broken_leases_max: int
    leases_back: str | None
    leases_missing_s: int
    launch_failing_s: int
    capacity_out_s: int
    capacity_out_max: float
    dns_empty_s: int
    recovery_ratio: float | None
    cpu_s: float
    more: dict[str, float | None]


class ValueEntry(msgspec.Struct, frozen=True):
    """One value of the scenario: ``amount`` in seconds, a share of 1, per second, or a count, as ``unit`` says."""

    name: str
    amount: float
    unit: str
    kind: KindName
    source: str


class ReplayDocument(msgspec.Struct, frozen=True, rename={"schema_name": "schema"}):
    """The whole. ``sources`` spells out each source by its name; ``notes``: what else has to be known of this run."""

    schema_name: Literal["fencepost.replay/1"]
    scenario: str
    title: str
    called: str
    begins: str
    lasts_s: int
    options: OptionsEntry
    phases: tuple[PhaseEntry, ...]
    events: tuple[EventEntry, ...]
    figures: FiguresEntry
    dependents: tuple[DependentEntry, ...]
    values: tuple[ValueEntry, ...]
    sources: dict[str, str]
    notes: tuple[str, ...]


def document(outcome: Outcome) -> dict[str, Any]:
    """The document as plain values, ready to be encoded."""
    scenario, options = outcome.scenario, outcome.options
    whole = ReplayDocument(
        SCHEMA,
        scenario.name,
        scenario.title,
        called(options),
        scenario.begins,
        scenario.lasts_s,
        OptionsEntry(
            options.hosts,
            options.seed,
            tuple(guard.value for guard in Guard if guard in options.guards),
            options.operators,
            options.outage_s,
        ),
        _phases(outcome),
        _events(outcome),
        _figures(outcome),
        _dependents(outcome),
        tuple(
            ValueEntry(name, value.amount, value.unit, value.kind.value, value.source)
            for name, value in sorted(scenario.values.items())
        ),
        dict(sorted(scenario.sources.items())),
        remarks(outcome),
    )
    plain: dict[str, Any] = msgspec.to_builtins(whole)
    return plain


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the document."""
    schema = msgspec.json.schema(ReplayDocument)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}


def _phases(outcome: Outcome) -> tuple[PhaseEntry, ...]:
    lasts = outcome.scenario.lasts_s
    return tuple(
        PhaseEntry(
            each.name,
            each.words,
            length_s(each.reported, lasts),
            length_s(each.simulated, lasts),
            each.simulated is not None and each.simulated[1] is not None,
            each.by_script,
        )
        for each in stretches(outcome)
    )


def _events(outcome: Outcome) -> tuple[EventEntry, ...]:
    scenario, hours = outcome.scenario, Hours(outcome.scenario)
    acts = {act.name for act in scenario.acts}
    held = {each.name: each.held for each in judged(outcome)}
    return tuple(
        EventEntry(
            each.name,
            each.words,
            each.name in acts,
            _time(hours, each.reported),
            _time(hours, outcome.happened.get(each.name)),
            each.within_s,
            held.get(each.name),
            each.kind.value,
            each.source,
            emergent(scenario, each),
        )
        for each in sorted(moments(scenario), key=lambda each: each.name)
    )


def _figures(outcome: Outcome) -> FiguresEntry:
    figures, hours = dict(outcome.figures), Hours(outcome.scenario)
    back, ratio = figures.pop("leases_back", None), figures.pop("recovery_ratio", None)
    taken = {name: figures.pop(name, None) or 0.0 for name in _COUNTED}
    return FiguresEntry(
        leases_back=None if back is None else hours.rfc3339(int(back)),
        recovery_ratio=None if ratio is None else round(ratio, 3),
        broken_leases_max=round(taken["broken_leases_max"]),
        leases_missing_s=round(taken["leases_missing_s"]),
        launch_failing_s=round(taken["launch_failing_s"]),
        capacity_out_s=round(taken["capacity_out_s"]),
        capacity_out_max=round(taken["capacity_out_max"], 4),
        dns_empty_s=round(taken["dns_empty_s"]),
        cpu_s=round(taken["cpu_s"], 3),
        more={name: None if number is None else round(number, 3) for name, number in sorted(figures.items())},
    )


_COUNTED = (
    "broken_leases_max", "leases_missing_s", "launch_failing_s", "capacity_out_s", "capacity_out_max", "dns_empty_s",
    "cpu_s",
)  # fmt: skip


def _dependents(outcome: Outcome) -> tuple[DependentEntry, ...]:
    hours = Hours(outcome.scenario)

    def interval(span: Span) -> IntervalEntry:
        return IntervalEntry(hours.rfc3339(span[0]), _time(hours, span[1]))

    return tuple(
        DependentEntry(
            each.name,
            each.title,
            each.depends_on,
            tuple(interval(span) for span in each.reported),
            tuple(interval(span) for span in outcome.down.get(each.name, ())),
            each.kind.value,
            each.source,
        )
        for each in sorted(outcome.scenario.dependents, key=lambda each: each.name)
    )


def _time(hours: Hours, tick: Tick | None) -> str | None:
    return None if tick is None else hours.rfc3339(tick)
