"""What a record must be besides of the right form: times that are times, names that exist, an order that can be.

The form is msgspec's to check. These are the rules that a form can't say; each mistake names its place as a JSONPath,
as msgspec does ("$.timeline.events[3].at").
"""

import re
from collections.abc import Iterator
from datetime import datetime

import msgspec

from fencepost.incident.record.record import Interval, Moment, Phase, Record
from fencepost.settings.mistakes import advice

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_LONE = re.compile("[\ud800-\udfff]")

Mistake = tuple[str, str]
"""What is wrong, and where."""


def moment(text: str) -> datetime:
    """A time of a record. Raises ``ValueError`` for what is none."""
    if _TIME.fullmatch(text) is None:
        raise ValueError(f"{shown(text)} is no time like 2025-10-19T23:48:00-07:00")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is no time: {error}") from None


def shown(text: str) -> str:
    """A text of the file in a message: quoted, short, without control characters."""
    cut = text if len(text) <= 60 else f"{text[:57]}..."
    return f'"{cut.encode("ascii", "backslashreplace").decode()}"' if not cut.isprintable() else f'"{cut}"'


def mistakes(record: Record) -> list[Mistake]:
    """All that is wrong with a record of the right form; none if it is right."""
    return [*_unsayable(record), *_names(record), *_sources(record), *_times(record)]


def _unsayable(record: Record) -> Iterator[Mistake]:
    for where, value in leaves(msgspec.to_builtins(record)):
        if isinstance(value, str) and _LONE.search(value):
            yield f"{shown(value)} holds half a character (a lone surrogate)", where


def _names(record: Record) -> Iterator[Mistake]:
    places = [("$.id", record.id)]
    places += [(f"$.tags[{at}]", each) for at, each in enumerate(record.tags)]
    places += [(f"$.components[{at}]", each) for at, each in enumerate(record.components)]
    places += [(f"$.symptoms[{at}].name", each.name) for at, each in enumerate(record.symptoms)]
    places += [(f"$.related[{at}].id", each.id) for at, each in enumerate(record.related)]
    places += [(f"$.timeline.phases[{at}].name", each.name) for at, each in enumerate(record.timeline.phases)]
    for where, name in places:
        if _SLUG.fullmatch(name) is None:
            yield f"{shown(name)} is no name: small letters, digits, hyphens and dots, at most 100", where
    phases = [each.name for each in record.timeline.phases]
    for at, name in enumerate(phases):
        if name in phases[:at]:
            yield f"{shown(name)} is the name of two phases", f"$.timeline.phases[{at}].name"
    for at, event in enumerate(record.timeline.events):
        if event.phase is not None and event.phase not in phases:
            yield f"{shown(event.phase)} is no phase; {advice(event.phase, phases)}", f"$.timeline.events[{at}].phase"
    if not record.title.strip():
        yield "the title is empty", "$.title"


def _sources(record: Record) -> Iterator[Mistake]:
    for where, value in leaves(msgspec.to_builtins(record)):
        if where.endswith(".source") and isinstance(value, str) and value not in record.sources:
            yield f"{shown(value)} is no source in $.sources; {advice(value, record.sources)}", where


def _times(record: Record) -> Iterator[Mistake]:
    read: dict[str, datetime] = {}
    for where, value in leaves(msgspec.to_builtins(record)):
        if where.rpartition(".")[2] in ("at", "begins", "ends") and isinstance(value, str):
            try:
                read[where] = moment(value)
            except ValueError as error:
                yield str(error), where
    for begins, ends in _pairs(record):
        if begins in read and ends in read and read[ends] < read[begins]:
            yield "it ends before it begins", ends


def _pairs(record: Record) -> Iterator[tuple[str, str]]:
    """Where two times stand of which the second can't be the earlier one."""
    yield "$.start.at", "$.end.at"
    yield "$.start.at", "$.root_cause_fixed.at"
    for at, _ in enumerate(record.timeline.phases):
        yield f"$.timeline.phases[{at}].begins", f"$.timeline.phases[{at}].ends"
    for at, each in enumerate(record.impact):
        spans = [f"$.impact[{at}].down[{n}]" for n, _ in enumerate(each.down)]
        yield from ((f"{span}.begins", f"{span}.ends") for span in spans)


def leaves(value: object, where: str = "$") -> Iterator[tuple[str, object]]:
    """Every value of a document that holds no others, with its place."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from leaves(each, f"{where}[{at}]")
    else:
        yield where, value


def lasted_s(span: Interval | Phase) -> float | None:
    """How long it was in seconds; None where that isn't known."""
    if span.begins is None or span.ends is None:
        return None
    return (moment(span.ends) - moment(span.begins)).total_seconds()


def between_s(begins: Moment | None, ends: Moment | None) -> float | None:
    """From one to the other in seconds; None where one isn't known."""
    if begins is None or ends is None:
        return None
    return (moment(ends.at) - moment(begins.at)).total_seconds()
