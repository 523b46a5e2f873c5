"""Reading a scenario from TOML: every value with its provenance, hours on the scenario's own clock, rules checked.

Hours ("04:14") are those of the zone in ``begins``, at or after it. Numbers: durations as in region.toml, shares
("20%"), rates ("9/s"), plain numbers for counts. All mistakes of a file are told at once, each with its line
(:mod:`.scenario_shape`, :mod:`.scenario_rules`, :mod:`.scenario_needs`).
"""

import re
import tomllib
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

import msgspec

from fencepost.incident.replay.scenario import Act, Cause, Dependent, Event, Kind, Phase, Scenario, Value
from fencepost.incident.replay.scenario_needs import OWN, disordered, needs, unfit
from fencepost.incident.replay.scenario_rules import Rules
from fencepost.incident.replay.scenario_sense import Listed, senseless
from fencepost.incident.replay.scenario_shape import (
    LISTS,
    TOP,
    RawAct,
    RawDependent,
    RawEvent,
    RawHead,
    RawValue,
    piece,
    pieces,
)
from fencepost.incident.replay.scenario_text import DAY_S, Clock, amount, number, seconds
from fencepost.ports import Misconfigured
from fencepost.settings.lines import Lines, Path
from fencepost.settings.mistakes import Mistake, Notes, SettingsError, TooManyError, advice, clean, shown
from fencepost.settings.nesting import DEPTH_MAX, parser_said, too_deep

SCHEMA = "fencepost.scenario/1"
SHIPPED = ("aws-2025-10-19", "database-away", "bad-probe")
"""Scenarios that come with fencepost, by name."""
SIZE_MAX = 1 << 20
"""Characters that a file may have; the shipped ones have 15,000."""
LEAST_S, MOST_S = 600, 7 * DAY_S
"""How long a scenario may last."""

_AT = re.compile(r" ?\((?:at line (\d+), column (\d+)|at end of document)\)")


def shipped(name: str) -> str:
    """The text of a scenario that comes with fencepost. Raises Misconfigured for another name."""
    if name not in SHIPPED:
        raise Misconfigured(f"no scenario is called {shown(name)}", where="SCENARIO", hint=advice(name, SHIPPED))
    return (files(__package__) / f"{name}.toml").read_text()


def find_scenario(name: str) -> Scenario:
    """A shipped scenario by its name, or one's own by its file.

    Raises Misconfigured where there is none, SettingsError with all of its mistakes for one that is wrong.
    """
    if name in SHIPPED:
        return read_scenario(shipped(name), f"{name}.toml")
    try:
        path = FilePath(name)
        if path.suffix != ".toml" and not path.exists():
            shipped(name)
        with path.open("rb") as file:  # a device's size is 0, and it never ends
            raw = file.read(SIZE_MAX + 1)
        if len(raw) > SIZE_MAX:
            raise Misconfigured(f"it has more than {SIZE_MAX:,} bytes", where=name, hint="name a scenario file")
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Misconfigured(f"it is not UTF-8 (byte {error.start})", where=name, hint="save it as UTF-8") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise Misconfigured(f"can't read it: {said}", where=clean(name), hint="name a scenario file") from None
    return read_scenario(text, name)


def read_scenario(text: str, where: str) -> Scenario:
    """A scenario from its file's text. Raises SettingsError with all mistakes; ``where`` names the file in them."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > SIZE_MAX:
        raise SettingsError((Mistake(where, 1, f"has more than {SIZE_MAX:,} characters"),))
    if deep := too_deep(text):
        raise SettingsError((Mistake(where, deep, f"tables or lists stand more than {DEPTH_MAX} deep in one another"),))
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError((_broken(where, text, parser_said(error)),)) from None
    notes, lines = Notes(), Lines(text)
    try:
        scenario = _File(notes, raw).scenario()
    except TooManyError:
        notes.mistakes[-1] = (lines.last, "and more; mend those above first")
        scenario = None
    if scenario is not None and not notes.mistakes:
        return scenario
    placed = {(lines.of(at) if not isinstance(at, int) else at, said) for at, said in notes.mistakes}
    raise SettingsError(tuple(Mistake(where, line, said) for line, said in sorted(placed)))


def _broken(where: str, text: str, said: str) -> Mistake:
    """Where the syntax breaks."""
    match = _AT.search(said)
    line = int(match[1]) if match is not None and match[1] else text.rstrip("\n").count("\n") + 1
    words = _AT.sub("", said)
    return Mistake(where, line, clean(words[:1].lower() + words[1:], 120) or "it can't be read")


_SOME_CLOCK = Clock("2000-01-01T00:00:00+00:00")
"""Stands in where it isn't known when a scenario begins: reading goes on, and nothing comes of it."""


class _File:
    """One file on its way to a scenario; what is wrong is noted."""

    def __init__(self, notes: Notes, raw: dict[str, Any]) -> None:
        self._notes, self._raw = notes, raw

    def scenario(self) -> Scenario | None:
        raw, notes = self._raw, self._notes
        self._top()
        head = piece(notes, ("scenario",), raw.get("scenario", {}), RawHead) if "scenario" in raw else None
        clock = self._clock()
        sources = self._sources()
        listed = {key: pieces(notes, (key,), raw[key], shape) if key in raw else [] for key, shape in LISTS.items()}
        moments = self._named(("act", "event"))
        rules = Rules(notes, clock or _SOME_CLOCK, moments, list(sources))
        self._named(("phase",))
        names = self._named(("dependent",))
        values = self._values(clock or _SOME_CLOCK, rules)
        acts: dict[Path, Act] = {
            ("act", at): rules.act(("act", at), each) for at, each in listed["act"] if isinstance(each, RawAct)
        }
        events: dict[Path, Event] = {
            ("event", at): rules.event(("event", at), each)
            for at, each in listed["event"]
            if isinstance(each, RawEvent)
        }
        phases: dict[Path, Phase] = {
            ("phase", at): rules.phase(("phase", at), each) for at, each in listed["phase"] if isinstance(each, Phase)
        }
        dependents: dict[Path, Dependent] = {
            ("dependent", at): rules.dependent(("dependent", at), each, names)
            for at, each in listed["dependent"]
            if isinstance(each, RawDependent)
        }
        for key, read in listed.items():
            self._rest(key, {at for at, _ in read}, rules, names)
        lasts = self._lasts()
        if clock is not None:
            self._away(values, acts)
        everything = Listed({**acts, **events}, phases, dependents)
        senseless(notes, head, lasts if clock is not None else None, values, everything)
        if head is None or notes.mistakes:
            return None
        given = (head.name, head.title, head.summary, head.cause, head.begins, head.zone, lasts)
        told = (tuple(acts.values()), tuple(events.values()), tuple(phases.values()), tuple(dependents.values()))
        return Scenario(*given, values, *told, sources)

    def _top(self) -> None:
        for key in self._raw:
            if key not in TOP:
                self._notes.wrong((key,), f"{shown(key)} is nothing that a scenario has; {advice(key, TOP)}")
        for key in ("schema", "scenario", "sources", "values"):
            if key not in self._raw:
                self._notes.wrong(1, f'there is no "{key}"')
        schema = self._raw.get("schema", SCHEMA)
        if schema != SCHEMA:
            self._notes.wrong(("schema",), f'schema is {shown(schema)}; this release reads "{SCHEMA}"')

    def _head(self, key: str) -> str | None:
        """A text of ``[scenario]``, also of one with mistakes elsewhere: it says how the rest is to be read."""
        head = self._raw.get("scenario")
        found = head.get(key) if isinstance(head, dict) else None
        return found if isinstance(found, str) else None

    def _rest(self, key: str, read: set[int], rules: Rules, names: list[str]) -> None:
        """What is wrong in pieces that were left out, besides what they were left out for."""
        raw = self._raw.get(key)
        for at, each in enumerate(raw if isinstance(raw, list) else []):
            if at not in read:
                rules.rest((key, at), each, names)

    def _clock(self) -> Clock | None:
        begins = self._head("begins")
        if begins is not None:
            try:
                return Clock(begins)
            except ValueError as error:
                self._notes.wrong(("scenario", "begins"), str(error))
        return None

    def _lasts(self) -> int:
        said = self._head("lasts")
        if said is None:
            return 0
        try:
            lasts = seconds(said)
        except ValueError as error:
            self._notes.wrong(("scenario", "lasts"), str(error))
            return 0
        if not LEAST_S <= lasts <= MOST_S:
            self._notes.wrong(("scenario", "lasts"), f"lasts is {shown(said)}; ten minutes to seven days")
        return lasts

    def _sources(self) -> dict[str, str]:
        raw = self._raw.get("sources", {})
        if not isinstance(raw, dict):
            self._notes.wrong(("sources",), f"sources is {shown(raw)}; it is to be a table")
            return {}
        for key, said in raw.items():
            if not isinstance(said, str):
                self._notes.wrong(("sources", key), f"{shown(key)} is {shown(said)}; write a text in quotes")
        return {key: str(said) for key, said in raw.items()}

    def _named(self, lists: tuple[str, ...]) -> list[str]:
        """All names in these lists, also of pieces with mistakes, so that one mistake makes no others."""
        names: list[str] = []
        for key in lists:
            raw = self._raw.get(key, [])
            for at, each in enumerate(raw if isinstance(raw, list) else []):
                name = each.get("name") if isinstance(each, dict) else None
                if not isinstance(name, str):
                    continue
                if name in names:
                    self._notes.wrong((key, at, "name"), f"{shown(name)} is the name of another {' or '.join(lists)}")
                names.append(name)
        return names

    def _values(self, clock: Clock, rules: Rules) -> dict[str, Value]:
        sections = self._raw.get("values", {})
        if not isinstance(sections, dict):
            self._notes.wrong(("values",), f"values is {shown(sections)}; write sections like [values.workers]")
            return {}
        said_cause = self._head("cause")
        cause = next((each for each in Cause if each.value == said_cause), None)
        wanted = needs(cause)
        others = {name for own in OWN.values() for name in own} - wanted.keys()
        for name in wanted:
            if name not in sections and "values" in self._raw:
                self._notes.wrong(("values",), f"there is no [values.{name}]; a shipped scenario has one to begin with")
        found: dict[str, Value] = {}
        for name, keys in sections.items():
            if name not in wanted and not (name in others and cause is None):
                of = f"which is of another cause than {cause.value}" if cause and name in others else ""
                said = f"[values.{clean(name)}] is used by nothing; {of or advice(name, wanted)}"
                self._notes.wrong(("values", name), said)
            elif not isinstance(keys, dict):
                self._notes.wrong(("values", name), f"[values.{name}] is {shown(keys)}; it is to be a table")
            else:
                found |= self._section(name, keys, clock, rules)
        self._order(found)
        return found

    def _section(self, name: str, keys: dict[str, Any], clock: Clock, rules: Rules) -> dict[str, Value]:
        wanted = next(each[name] for each in (needs(cause) for cause in Cause) if name in each)
        path: Path = ("values", name)
        for key in wanted:
            if key not in keys:
                self._notes.wrong(path, f'[values.{name}] has no "{key}"')
        found = {}
        for key, raw in keys.items():
            if key not in wanted:
                said = f"{shown(key)} is no value of [values.{name}]; {advice(key, wanted)}"
                self._notes.wrong((*path, key), said)
                continue
            each = piece(self._notes, (*path, key), raw, RawValue)
            if each is None:
                continue
            rules.source((*path, key), each.source)
            try:
                number_, unit = amount(each.value, clock, wanted[key].unit)
            except ValueError as error:
                self._notes.wrong((*path, key, "value"), str(error))
                continue
            wrong = unfit(number_, unit, wanted[key])
            if wrong:
                self._notes.wrong((*path, key, "value"), f"{key} is {shown(each.value)}, which {wrong}")
                continue
            found[f"{name}.{key}"] = Value(number_, unit, each.kind, each.source)
        return found

    def _away(self, values: dict[str, Value], acts: dict[Path, Act]) -> None:
        """The store can't be back before it is away."""
        begins = values.get("outage.begins")
        for path, act in acts.items():
            ends = act.when.at
            if begins is not None and act.does == "restore-store" and ends is not None and ends <= begins.amount:
                self._notes.wrong((*path, "when"), "the store is back before it is away ([values.outage] begins)")

    def _order(self, found: dict[str, Value]) -> None:
        """What has to be later or larger than something else."""
        for key, said in disordered(found):
            self._notes.wrong(("values", *key.split("."), "value"), said)


def set_values(scenario: Scenario, changes: dict[str, str]) -> Scenario:
    """The same with other values ("guards.grace" to "1h"). Raises Misconfigured for a key or a number that can't be."""
    clock = Clock(scenario.begins)
    wanted = needs(scenario.cause)
    values = dict(scenario.values)
    for key, text in changes.items():
        if key not in values:
            raise Misconfigured(f"no value is called {shown(key)}", where="--set", hint=advice(key, values))
        section, _, name = key.partition(".")
        need = wanted.get(section, {}).get(name)
        try:
            found, unit = amount(number(text), clock, need.unit if need is not None else "")
        except ValueError as error:
            raise Misconfigured(str(error), where=f"--set {key}", hint="write it as in the file") from None
        wrong = unfit(found, unit, need) if need is not None else ""
        if wrong:
            raise Misconfigured(f"{shown(text)} {wrong}", where=f"--set {key}", hint="replay --values lists all values")
        values[key] = Value(found, unit, Kind.CALIBRATED, "set by hand")
    for _, said in disordered(values):
        raise Misconfigured(said, where="--set", hint="set both")
    return msgspec.structs.replace(scenario, values=values)
