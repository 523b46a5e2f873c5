"""A scenario: what is known of an incident, each value with where it comes from, and what the people did.

Nothing here runs; :mod:`.scenario_file` reads one from TOML.
"""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

Tick: TypeAlias = int
"""Whole seconds since the scenario begins."""


class Kind(Enum):
    """Where a value comes from."""

    PUBLISHED = "published"
    ESTIMATE = "estimate"
    CALIBRATED = "calibrated"


class Cause(Enum):
    """What begins it."""

    DNS_RACE = "dns-race"
    """Two DNS writers and a clean-up (October 2025): whether the endpoint is emptied is found, not given."""
    STORE_AWAY = "store-away"
    """The database behind everything can't be reached."""
    BAD_PROBE = "bad-probe"
    """A health check that fails for what is well is rolled out to one zone."""


class Value(Struct, frozen=True, gc=False):
    """One number: seconds for durations, 1 for 100 %, else as its unit says ("" for counts), and who says so."""

    amount: float
    unit: str
    kind: Kind
    source: str


class Watched(Struct, frozen=True, gc=False):
    """As in "leases_missing > 1%": a quantity of the region (:mod:`.quantities`) above or below a number."""

    quantity: str
    above: bool
    amount: float


class Rule(Struct, frozen=True, gc=False):
    """When something is so: at an hour, or after something else, or once something is seen.

    One of ``at``, ``follows`` (an event's or act's name) and ``seen`` is given. It counts only once ``since`` has
    happened. ``seen`` has to last ``lasting_s``; it then counts from its end, or from its beginning if ``backdated``.
    ``after_s`` later it is so, unless ``only_if`` doesn't hold then: in that case it waits until it does.
    """

    at: Tick | None = None
    follows: str = ""
    seen: Watched | None = None
    since: str = ""
    lasting_s: int = 0
    backdated: bool = False
    after_s: int = 0
    only_if: Watched | None = None


class Act(Struct, frozen=True, gc=False):
    """What people did. ``does`` is one of :data:`.operators.DEEDS`, "" for what changes nothing (a cause found).

    ``within_s``: how near the simulated moment is to be to the reported one, where what they saw decides when.
    """

    name: str
    words: str
    does: str
    when: Rule
    reported: Tick | None
    kind: Kind
    source: str
    within_s: int | None = None


class Event(Struct, frozen=True, gc=False):
    """Something that can be seen, and when it was reported. ``within_s``: how near the simulated moment is to be."""

    name: str
    words: str
    when: Rule
    reported: Tick | None
    within_s: int | None
    kind: Kind
    source: str


class Down(Struct, frozen=True, gc=False):
    """One interval that a dependent is down, by rules; ``by_hand`` if a person's act at an hour ends it."""

    begins: Rule
    ends: Rule
    by_hand: bool


class Dependent(Struct, frozen=True, gc=False):
    """A service that depends on others, its intervals by rule and as reported (pairs of ticks)."""

    name: str
    title: str
    depends_on: tuple[str, ...]
    down: tuple[Down, ...]
    reported: tuple[tuple[Tick, Tick], ...]
    kind: Kind
    source: str


class Phase(Struct, frozen=True, gc=False):
    """A stretch between two events or acts, as a reader would draw it.

    ``trouble``: what it is about, an event or act. Where that never happened there was no such phase or, if
    ``otherwise`` is given, these words say what there was instead.
    """

    name: str
    words: str
    begins: str
    ends: str
    trouble: str = ""
    otherwise: str = ""


class Scenario(Struct, frozen=True):
    """All of it. ``values`` by "section.key"; ``begins`` is RFC 3339 with its offset, ``zone`` its short name."""

    name: str
    title: str
    summary: str
    cause: Cause
    begins: str
    zone: str
    lasts_s: int
    values: dict[str, Value]
    acts: tuple[Act, ...]
    events: tuple[Event, ...]
    phases: tuple[Phase, ...]
    dependents: tuple[Dependent, ...]
    sources: dict[str, str]

    def amount(self, key: str) -> float:
        """A value's number. Raises ``KeyError`` for one that the file doesn't give."""
        return self.values[key].amount

    def section(self, name: str) -> dict[str, float]:
        """The numbers of one section by their keys."""
        return {key.partition(".")[2]: value.amount for key, value in self.values.items() if key.startswith(f"{name}.")}
