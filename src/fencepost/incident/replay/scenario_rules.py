"""A scenario's acts, events, phases and dependents from their texts: hours and durations read, every name looked up."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

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
        if raw.does and raw.does not in DEEDS:
            said = f"{shown(raw.does)} is nothing that can be done; {advice(raw.does, DEEDS)}"
            self._notes.wrong((*path, "does"), said)
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
            if name not in names and name not in PARTS:
                said = f"{shown(name)} is nothing to depend on; {advice(name, (*PARTS, *names))}"
                self._notes.wrong((*path, "depends_on", at), said)
        down = tuple(
            Down(
                self.rule((*path, "down", at, "begins"), each.begins),
                self.rule((*path, "down", at, "ends"), each.ends),
                each.by_hand,
            )
            for at, each in enumerate(raw.down)
        )
        reported = tuple(
            (self._hour((*path, "reported", at), begins) or 0, self._hour((*path, "reported", at), ends) or 0)
            for at, (begins, ends) in enumerate(raw.reported)
        )
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
        for key in ("since", "lasting", "backdated"):
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
        return self._read(path, lambda: self._clock.tick(text), 0) if text else None

    def _seconds(self, path: Path, text: str) -> int:
        return self._read(path, lambda: seconds(text), 0) if text else 0

    def _read(self, path: Path, reads: Callable[[], Read], instead: Read) -> Read:
        try:
            return reads()
        except ValueError as error:
            self._notes.wrong(path, str(error))
            return instead
