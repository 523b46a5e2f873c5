"""Reading a scenario from TOML: every value with its provenance, hours on the scenario's own clock, rules checked.

Hours ("04:14") are those of the zone in ``begins``, at or after it. Numbers: durations as in region.toml, shares
("20%"), rates ("9/s"), plain numbers for counts.
"""

import re
import tomllib
from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fencepost.incident.replay.operators import DEEDS
from fencepost.incident.replay.quantities import QUANTITIES
from fencepost.incident.replay.scenario import (
    Act,
    Cause,
    Dependent,
    Down,
    Event,
    Kind,
    Phase,
    Rule,
    Scenario,
    Tick,
    Value,
    Watched,
)
from fencepost.ports import Misconfigured
from fencepost.settings.mistakes import advice
from fencepost.settings.units import NS, WHOLE, duration_ns, share_ppm

SCHEMA = "fencepost.scenario/1"
SHIPPED = ("aws-2025-10-19", "database-away", "bad-probe")
"""Scenarios that come with fencepost, by name."""
DAY_S = 86_400

_HOUR = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,4})?) ?/s")
_SEEN = re.compile(r"([a-z_0-9]+) *([<>]) *(\S.*)")


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    summary: str
    cause: Cause
    begins: str
    zone: str
    lasts: str


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: float | str
    kind: Kind
    source: str


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: str = ""
    follows: str = ""
    seen: str = ""
    since: str = ""
    lasting: str = ""
    backdated: bool = False
    after: str = ""
    only_if: str = ""


class _Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    words: str
    when: _Rule
    kind: Kind
    source: str
    does: str = ""
    reported: str = ""


class _Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    words: str
    when: _Rule
    kind: Kind
    source: str
    reported: str = ""
    within: str = ""


class _Down(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    begins: _Rule
    ends: _Rule
    by_hand: bool = False


class _Dependent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    kind: Kind
    source: str
    depends_on: tuple[str, ...] = ()
    down: tuple[_Down, ...] = ()
    reported: tuple[tuple[str, str], ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    scenario: _Head
    sources: dict[str, str]
    values: dict[str, dict[str, _Value]]
    act: tuple[_Act, ...] = ()
    event: tuple[_Event, ...] = ()
    phase: tuple[Phase, ...] = ()
    dependent: tuple[_Dependent, ...] = ()


class _Clock:
    """Hours of the scenario's own day."""

    def __init__(self, begins: str) -> None:
        try:
            self.begins = datetime.fromisoformat(begins)
        except ValueError:
            raise ValueError(f'"{begins}" is no time like "2025-10-19T23:30:00-07:00"') from None
        if self.begins.tzinfo is None:
            raise ValueError(f'"{begins}" has no offset like "-07:00"')

    def tick(self, hour: str) -> Tick:
        """Seconds from the beginning to the next time that the clock shows this; "+1d 04:05" is a day later."""
        later, _, rest = hour.rpartition("+1d ")
        match = _HOUR.fullmatch(rest)
        if match is None or later:
            raise ValueError(f'"{hour}" is no hour like "04:14" or "+1d 04:05"')
        begins = self.begins.hour * 3600 + self.begins.minute * 60 + self.begins.second
        seconds = (int(match[1]) * 3600 + int(match[2]) * 60 - begins) % DAY_S
        return seconds + DAY_S * hour.startswith("+1d ")


def shipped(name: str) -> str:
    """The text of a scenario that comes with fencepost. Raises Misconfigured for another name."""
    if name not in SHIPPED:
        raise Misconfigured(f'no scenario is called "{name}"', where="SCENARIO", hint=advice(name, SHIPPED))
    return (files(__package__) / f"{name}.toml").read_text()


def find_scenario(name: str) -> Scenario:
    """A shipped scenario by its name, or one's own by its file. Raises Misconfigured, saying what is wrong where."""
    if name in SHIPPED:
        return read_scenario(shipped(name), f"{name}.toml")
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        shipped(name)
    try:
        return read_scenario(path.read_text(), name)
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"can't read it: {error}", where=name, hint="name a scenario file") from None


def read_scenario(text: str, where: str) -> Scenario:
    """A scenario from its file's text. Raises Misconfigured, saying what is wrong where."""
    try:
        raw = msgspec.convert(tomllib.loads(text), _File)
        return _scenario(raw)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError) as error:
        raise Misconfigured(str(error), where=where, hint="docs/operating/replay.md has the format") from None


def amount(value: float | str, clock: _Clock) -> tuple[float, str]:
    """A number and its unit from its text. Raises ValueError."""
    if isinstance(value, float | int):
        return float(value), ""
    if _HOUR.fullmatch(value):
        return float(clock.tick(value)), "hour"
    if value.endswith("%"):
        return share_ppm(value) / WHOLE, "share"
    rate = _RATE.fullmatch(value)
    if rate is not None:
        return float(rate[1]), "per second"
    try:
        return duration_ns(value) / NS["s"], "seconds"
    except ValueError:
        raise ValueError(f'"{value}" is no number, duration ("45m"), share ("12%") or rate ("9/s")') from None


def _scenario(raw: _File) -> Scenario:
    if raw.schema != SCHEMA:
        raise ValueError(f'schema is "{raw.schema}"; this release reads "{SCHEMA}"')
    clock = _Clock(raw.scenario.begins)
    head = raw.scenario
    named = [*(each.name for each in raw.act), *(each.name for each in raw.event)]
    for name in named:
        if named.count(name) > 1:
            raise ValueError(f'"{name}" is the name of two acts or events')
    for source in _sources(raw):
        if source not in raw.sources:
            raise ValueError(f'"{source}" is no source in [sources]; {advice(source, raw.sources)}')
    rules = _Rules(clock, named)
    return Scenario(
        head.name,
        head.title,
        head.summary,
        head.cause,
        head.begins,
        head.zone,
        int(duration_ns(head.lasts) / NS["s"]),
        {
            f"{section}.{key}": Value(*amount(value.value, clock), value.kind, value.source)
            for section, keys in raw.values.items()
            for key, value in keys.items()
        },
        tuple(rules.act(each) for each in raw.act),
        tuple(rules.event(each) for each in raw.event),
        tuple(rules.phase(each) for each in raw.phase),
        tuple(rules.dependent(each) for each in raw.dependent),
        raw.sources,
    )


def _sources(raw: _File) -> Iterable[str]:
    yield from (value.source for keys in raw.values.values() for value in keys.values())
    for group in (raw.act, raw.event, raw.dependent):
        yield from (each.source for each in group)


class _Rules:
    """Raw rules to rules, names checked."""

    def __init__(self, clock: _Clock, named: list[str]) -> None:
        self.clock, self.named = clock, named

    def act(self, raw: _Act) -> Act:
        if raw.does and raw.does not in DEEDS:
            raise ValueError(f'act "{raw.name}": "{raw.does}" is nothing that can be done; {advice(raw.does, DEEDS)}')
        when = self.rule(raw.when, f'act "{raw.name}"')
        return Act(raw.name, raw.words, raw.does, when, self._hour(raw.reported), raw.kind, raw.source)

    def event(self, raw: _Event) -> Event:
        when = self.rule(raw.when, f'event "{raw.name}"')
        within = int(duration_ns(raw.within) / NS["s"]) if raw.within else None
        return Event(raw.name, raw.words, when, self._hour(raw.reported), within, raw.kind, raw.source)

    def phase(self, raw: Phase) -> Phase:
        for name in (raw.begins, raw.ends):
            self._known(name, f'phase "{raw.name}"')
        return raw

    def dependent(self, raw: _Dependent) -> Dependent:
        what = f'dependent "{raw.name}"'
        down = tuple(Down(self.rule(each.begins, what), self.rule(each.ends, what), each.by_hand) for each in raw.down)
        reported = tuple((self.clock.tick(begins), self.clock.tick(ends)) for begins, ends in raw.reported)
        return Dependent(raw.name, raw.title, raw.depends_on, down, reported, raw.kind, raw.source)

    def rule(self, raw: _Rule, what: str) -> Rule:
        given = [key for key in ("at", "follows", "seen") if getattr(raw, key)]
        if len(given) != 1:
            raise ValueError(f"{what}: give one of at, follows and seen, not {' and '.join(given) or 'none'}")
        for name in filter(None, (raw.follows, raw.since)):
            self._known(name, what)
        return Rule(
            at=self._hour(raw.at),
            follows=raw.follows,
            seen=self.watched(raw.seen, what),
            since=raw.since,
            lasting_s=self._seconds(raw.lasting),
            backdated=raw.backdated,
            after_s=self._seconds(raw.after),
            only_if=self.watched(raw.only_if, what),
        )

    def watched(self, text: str, what: str) -> Watched | None:
        if not text:
            return None
        match = _SEEN.fullmatch(text)
        if match is None:
            raise ValueError(f'{what}: "{text}" isn\'t like "leases_missing > 1%"')
        if match[1] not in QUANTITIES:
            raise ValueError(f'{what}: "{match[1]}" is no quantity; {advice(match[1], QUANTITIES)}')
        bound = match[3]
        number: float | str = float(bound) if re.fullmatch(r"[0-9.]+", bound) else bound
        return Watched(match[1], match[2] == ">", amount(number, self.clock)[0])

    def _known(self, name: str, what: str) -> None:
        if name not in self.named:
            raise ValueError(f'{what}: "{name}" is no act or event; {advice(name, self.named)}')

    def _hour(self, text: str) -> Tick | None:
        return self.clock.tick(text) if text else None

    def _seconds(self, text: str) -> int:
        return int(duration_ns(text) / NS["s"]) if text else 0


def set_values(scenario: Scenario, changes: dict[str, str]) -> Scenario:
    """The same with other values ("leases.grace" to "1h"). Raises Misconfigured for a key or a number that can't be."""
    clock = _Clock(scenario.begins)
    values: dict[str, Any] = dict(scenario.values)
    for key, text in changes.items():
        if key not in values:
            raise Misconfigured(f'no value is called "{key}"', where="--set", hint=advice(key, values))
        try:
            number: float | str = float(text) if re.fullmatch(r"[0-9.]+", text) else text
            found, unit = amount(number, clock)
        except ValueError as error:
            raise Misconfigured(str(error), where=f"--set {key}", hint="write it as in the file") from None
        if unit != values[key].unit:
            raise Misconfigured(
                f'"{text}" is in {unit or "plain numbers"}', where=f"--set {key}",
                hint=f"it is in {values[key].unit or 'plain numbers'}",
            )  # fmt: skip
        values[key] = Value(found, unit, Kind.CALIBRATED, "set by hand")
    return msgspec.structs.replace(scenario, values=values)
