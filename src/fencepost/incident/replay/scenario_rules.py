"""A scenario's acts, events, phases and dependents from their texts: hours and durations read, every name looked up."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from fencepost.incident.replay.operators import DEEDS
from fencepost.incident.replay.quantities import QUANTITIES
from fencepost.incident.replay.scenario import Act, Dependent, Down, Event, Phase, Rule, Tick, Watched
from fencepost.incident.replay.scenario_shape import RawAct, RawDependent, RawEvent, RawRule, name_of
from fencepost.incident.replay.scenario_text import Clock, amount, number, seconds
from fencepost.settings.lines import Path
from fencepost.settings.mistakes import Notes, advice, shown

PARTS = ("store", "leases", "network", "balancers")
"""What a dependent may depend on, besides other dependents."""

_SEEN = re.compile(r"([A-Za-z_0-9-]+) *([<>]) *(\S.*)")
Read = TypeVar("Read")


class Rules:
    """Reads them one after the other; what is wrong is noted, and stands in for nothing."""

    def __init__(self, notes: Notes, clock: Clock, moments: Sequence[str], sources: Sequence[str]) -> None:
        """``moments``: the names of all acts and events."""
        self._notes, self._clock, self._moments, self._sources = notes, clock, moments, sources

    def act(self, path: Path, raw: RawAct) -> Act:
        """An act."""
        self._deed((*path, "does"), raw.does)
        self.source(path, raw.source)
        when, reported = self.rule((*path, "when"), raw.when), self._hour((*path, "reported"), raw.reported)
        within = self._within(path, raw)
        return Act(raw.name, raw.words, raw.does, when, reported, raw.kind, raw.source, within)

    def event(self, path: Path, raw: RawEvent) -> Event:
        """An event."""
        self.source(path, raw.source)
        when, reported = self.rule((*path, "when"), raw.when), self._hour((*path, "reported"), raw.reported)
        within = self._within(path, raw)
        return Event(raw.name, raw.words, when, reported, within, raw.kind, raw.source)

    def phase(self, path: Path, raw: Phase) -> Phase:
        """A phase, between moments that there are."""
        for key, name in (("begins", raw.begins), ("ends", raw.ends)):
            self._moment((*path, key), name)
        if raw.trouble:
            self._moment((*path, "trouble"), raw.trouble)
        return raw

    def dependent(self, path: Path, raw: RawDependent, names: Sequence[str]) -> Dependent:
        """A dependent; ``names`` of all of them."""
        self.source(path, raw.source)
        for at, name in enumerate(raw.depends_on):
            self._depends((*path, "depends_on", at), name, names)
        down = tuple(
            Down(
                self.rule((*path, "down", at, "begins"), each.begins),
                self.rule((*path, "down", at, "ends"), each.ends),
                each.by_hand,
            )
            for at, each in enumerate(raw.down)
        )
        reported = tuple(self._between((*path, "reported", at), *each) for at, each in enumerate(raw.reported))
        return Dependent(raw.name, raw.title, raw.depends_on, down, reported, raw.kind, raw.source)

    def source(self, path: Path, name: str) -> None:
        """It is to be one of the file's."""
        if name not in self._sources:
            said = f"{shown(name)} is no source in [sources]; {advice(name, self._sources)}"
            self._notes.wrong((*path, "source"), said)

    def rule(self, path: Path, raw: RawRule) -> Rule:
        """One of at, follows and seen; what belongs to "seen" only with it."""
        given = [key for key in ("at", "follows", "seen") if getattr(raw, key)]
        if len(given) != 1:
            said = f"{name_of(path)} gives {' and '.join(given) or 'none of at, follows and seen'}; give one of them"
            self._notes.wrong(path, said)
        for key in ("lasting", "backdated"):
            if getattr(raw, key) and "seen" not in given:
                self._notes.wrong((*path, key), f'{key} says something of "seen" only, which isn\'t given')
        for key in ("follows", "since"):
            if getattr(raw, key):
                self._moment((*path, key), getattr(raw, key))
        return Rule(
            at=self._hour((*path, "at"), raw.at),
            follows=raw.follows,
            seen=self._watched((*path, "seen"), raw.seen),
            since=raw.since,
            lasting_s=self._seconds((*path, "lasting"), raw.lasting),
            backdated=raw.backdated,
            after_s=self._seconds((*path, "after"), raw.after),
            only_if=self._watched((*path, "only_if"), raw.only_if),
        )

    def rest(self, path: Path, raw: Any, names: Sequence[str]) -> None:
        """What is wrong in a piece that was left out for a mistake, so that its hours and names are told with it.

        Each text is read as its key says; what is no text, or under no known key, is what it was left out for.
        """
        reads: dict[str, Callable[[Path, str], Any]] = {
            "at": self._hour, "reported": self._hour, "after": self._seconds, "lasting": self._seconds,
            "within": self._seconds, "seen": self._watched, "only_if": self._watched, "does": self._deed,
            "follows": self._moment, "since": self._moment, "begins": self._moment, "ends": self._moment,
            "trouble": self._moment, "depends_on": lambda at, name: self._depends(at, name, names),
            "source": lambda _, name: self.source(path, name),
        }  # fmt: skip
        for key, value in raw.items() if isinstance(raw, dict) else ():
            for place, text in texts((*path, key), value) if key in reads else ():
                reads[key](place, text)
            for at, each in enumerate(value if isinstance(value, list) else ()):
                self.rest((*path, key, at), each, names)
            self.rest((*path, key), value, names)

    def _deed(self, path: Path, name: str) -> None:
        if name and name not in DEEDS:
            self._notes.wrong(path, f"{shown(name)} is nothing that can be done; {advice(name, DEEDS)}")

    def _depends(self, path: Path, name: str, names: Sequence[str]) -> None:
        if name not in names and name not in PARTS:
            self._notes.wrong(path, f"{shown(name)} is nothing to depend on; {advice(name, (*PARTS, *names))}")

    def _watched(self, path: Path, text: str) -> Watched | None:
        if not text:
            return None
        match = _SEEN.fullmatch(text)
        if match is None:
            self._notes.wrong(path, f'{shown(text)} isn\'t like "leases_missing > 1%"')
            return None
        if match[1] not in QUANTITIES:
            self._notes.wrong(path, f"{shown(match[1])} is nothing that can be seen; {advice(match[1], QUANTITIES)}")
            return None
        bound = self._read(path, lambda: amount(number(match[3]), self._clock), (0.0, ""))
        return Watched(match[1], match[2] == ">", bound[0])

    def _within(self, path: Path, raw: RawAct | RawEvent) -> int | None:
        """How near to the reported hour; there has to be one."""
        if not raw.within:
            return None
        if not raw.reported:
            self._notes.wrong((*path, "within"), 'within says how near to "reported" it is to be, which isn\'t given')
        return self._seconds((*path, "within"), raw.within)

    def _moment(self, path: Path, name: str) -> None:
        if name not in self._moments:
            self._notes.wrong(path, f"{shown(name)} is no act or event; {advice(name, self._moments)}")

    def _hour(self, path: Path, text: str) -> Tick | None:
        try:
            return self._clock.tick(text) if text else None
        except ValueError as error:
            self._notes.wrong(path, str(error))
            return None  # nothing is earlier or later than an hour that isn't known

    def _between(self, path: Path, begins: str, ends: str) -> tuple[Tick, Tick]:
        """An interval; one second where an hour of it is wrong, so that nothing more is said of it."""
        first, last = self._hour(path, begins), self._hour(path, ends)
        return (0, 1) if (begins and first is None) or (ends and last is None) else (first or 0, last or 0)

    def _seconds(self, path: Path, text: str) -> int:
        return self._read(path, lambda: seconds(text), 0) if text else 0

    def _read(self, path: Path, reads: Callable[[], Read], instead: Read) -> Read:
        try:
            return reads()
        except ValueError as error:
            self._notes.wrong(path, str(error))
            return instead


def texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    """A text, those of a list, or those of a list of pairs, where each is told to stand."""
    if isinstance(value, str):
        yield path, value
    for at, each in enumerate(value if isinstance(value, list) else ()):
        for part in each if isinstance(each, list) else (each,):
            if isinstance(part, str):
                yield (*path, at), part
