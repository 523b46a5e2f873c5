"""What is well written in a scenario and still makes no sense: circles, hours that never come, names nobody can read.

A rule that waits for itself never comes true, and a run would say "never" as if it had been found. So would an hour
after the scenario's end.
"""

import re
from collections.abc import Iterator, Mapping

from fencepost.incident.replay.scenario import Act, Dependent, Event, Phase, Rule, Value
from fencepost.incident.replay.scenario_shape import RawHead, name_of
from fencepost.settings.lines import Path
from fencepost.settings.mistakes import Notes, shown

DAYBREAK_S = 600
"""A usual day that a scenario begins with: what is wrong is told from it."""
TEXT_MOST = {"name": 60, "zone": 20, "title": 120, "summary": 400, "words": 200}
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_ZERO = frozenset({"UTC", "GMT", "Z", "UCT"})


class Listed:
    """All acts, events, phases and dependents with where they stand in the file."""

    def __init__(
        self,
        moments: Mapping[Path, Act | Event],
        phases: Mapping[Path, Phase],
        dependents: Mapping[Path, Dependent],
    ) -> None:
        """As they were read; those with mistakes are left out."""
        self.moments, self.phases, self.dependents = moments, phases, dependents

    def rules(self) -> Iterator[tuple[Path, Rule]]:
        """Every rule and where it stands."""
        for path, each in self.moments.items():
            yield (*path, "when"), each.when
        for path, service in self.dependents.items():
            for at, down in enumerate(service.down):
                yield (*path, "down", at, "begins"), down.begins
                yield (*path, "down", at, "ends"), down.ends


def senseless(
    notes: Notes, head: RawHead | None, lasts_s: int | None, values: Mapping[str, Value], listed: Listed
) -> None:
    """Note all of it. ``head``: None if it has a mistake. ``lasts_s``: 0 if that isn't known, None if it isn't known
    when the scenario begins: then nothing can be said of any hour.
    """
    if head is not None:
        _head(notes, head)
    _texts(notes, listed)
    _circles(notes, listed)
    if lasts_s is None:
        return
    for path, rule in listed.rules():
        if rule.at is not None and lasts_s and rule.at > lasts_s:
            notes.wrong((*path, "at"), f"{name_of(path)} comes after the scenario's end: make [scenario] lasts longer")
    for path, phase in listed.phases.items():
        if phase.begins == phase.ends:
            notes.wrong((*path, "ends"), f"{name_of(path)} ends with what it begins with, {shown(phase.ends)}")
    for path, service in listed.dependents.items():
        for at, (begins, ends) in enumerate(service.reported):
            if ends <= begins:
                said = 'ends before it begins: an hour of the next day is written "+1d 04:05"'
                notes.wrong((*path, "reported", at), f"{name_of((*path, 'reported'))} {said}")
    _begins(notes, lasts_s, values)


def _begins(notes: Notes, lasts_s: int, values: Mapping[str, Value]) -> None:
    for section in ("outage", "probe"):
        value = values.get(f"{section}.begins")
        if value is None:
            continue
        path: Path = ("values", section, "begins", "value")
        if value.amount < DAYBREAK_S:
            notes.wrong(
                path, f"{section}.begins is within ten minutes of [scenario] begins: let a usual day come first"
            )
        elif lasts_s and value.amount >= lasts_s:
            notes.wrong(path, f"{section}.begins is after the scenario's end: make [scenario] lasts longer")


def _head(notes: Notes, head: RawHead) -> None:
    for key in ("name", "title", "summary", "zone"):
        _text(notes, ("scenario", key), key, getattr(head, key))
    offset = head.begins[-6:]
    if head.zone.upper() in _ZERO and offset not in ("+00:00", "-00:00") and not head.begins.endswith(("Z", "z")):
        said = f"zone is {shown(head.zone)}, but begins has the offset {shown(offset)}: change one of them"
        notes.wrong(("scenario", "zone"), said)


def _texts(notes: Notes, listed: Listed) -> None:
    for path, each in (*listed.moments.items(), *listed.phases.items()):
        _text(notes, (*path, "name"), "name", each.name)
        _text(notes, (*path, "words"), "words", each.words)
    for path, service in listed.dependents.items():
        _text(notes, (*path, "name"), "name", service.name)
        _text(notes, (*path, "title"), "title", service.title)


def _text(notes: Notes, path: Path, key: str, text: str) -> None:
    most = TEXT_MOST[key]
    if not text.strip():
        notes.wrong(path, f"{key} is empty; outputs need one")
    elif len(text) > most:
        notes.wrong(path, f"{key} has {len(text):,} characters; outputs have room for {most}")
    elif key == "name" and not _NAME.fullmatch(text):
        notes.wrong(path, f"{key} is {shown(text)}; write it in letters, digits and hyphens")
    elif key == "zone" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9/_+-]*|[+-][0-9]{2}(?::?[0-9]{2})?", text):
        notes.wrong(path, f'zone is {shown(text)}; write what the offset of begins is called, like "UTC" or "PDT"')


def _circles(notes: Notes, listed: Listed) -> None:
    """Acts and events that wait for each other, and services that depend on themselves in the end."""
    waits = {each.name: (path, _waits_for(each.when)) for path, each in listed.moments.items()}
    for path, circle in _found(waits):
        said = f"these wait for each other, so none ever happens: {circle}; give one of them an hour or what is seen"
        notes.wrong((*path, "when"), said)
    depends = {each.name: (path, each.depends_on) for path, each in listed.dependents.items()}
    for path, circle in _found(depends):
        notes.wrong((*path, "depends_on"), f"these depend on each other in a circle: {circle}; leave one of them out")


def _waits_for(rule: Rule) -> tuple[str, ...]:
    return tuple(name for name in (rule.follows, rule.since) if name)


def _found(graph: Mapping[str, tuple[Path, tuple[str, ...]]]) -> Iterator[tuple[Path, str]]:
    """Each circle once, told where its first name stands."""
    told: set[str] = set()
    for name in graph:
        trail = _back_to(name, graph)
        if trail and not told & set(trail):
            told |= set(trail)
            yield graph[name][0], " → ".join((*trail, name))


def _back_to(name: str, graph: Mapping[str, tuple[Path, tuple[str, ...]]]) -> tuple[str, ...]:
    """The shortest way from a name to itself; empty if there is none."""
    reached: dict[str, tuple[str, ...]] = {name: (name,)}
    line = [name]
    for each in line:
        for other in graph[each][1] if each in graph else ():
            if other == name:
                return reached[each]
            if other not in reached:
                reached[other] = (*reached[each], other)
                line.append(other)
    return ()
