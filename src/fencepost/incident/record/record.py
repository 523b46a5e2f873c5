"""The form of an incident record, ``fencepost.incident/1``, and the JSON Schema that is published of it.

Every part says by its ``kind`` where it comes from and by its ``source`` which of the record's ``sources`` says so.
What isn't known is null, never guessed, and ``not_known`` says why. Times are RFC 3339 with an offset, so that a record
keeps the hours of those who were there. Keys may be added within version 1; none goes or changes its type.

The awkward part: a record is written by people too, and a mistyped key would be lost silently. So keys that this
release doesn't know are refused, a newer release's among them.
"""

from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

SCHEMA: Literal["fencepost.incident/1"] = "fencepost.incident/1"

_DATE_TIME = {"format": "date-time"}
Time: TypeAlias = Annotated[str, Meta(description="RFC 3339, with its offset", extra_json_schema=_DATE_TIME)]
Slug: TypeAlias = Annotated[str, Meta(description="small letters, digits, hyphens, dots")]


class Kind(Enum):
    """Where a part comes from."""

    PUBLISHED = "published"
    """Those it happened to said so."""
    ESTIMATE = "estimate"
    """Somebody from outside says so, measured or guessed."""
    REPLAY = "replay"
    """It came out of a run of ``fencepost replay``."""
    JOURNAL = "journal"
    """A region's own history says so."""
    JUDGEMENT = "judgement"
    """What whoever wrote the record makes of it: lessons, and causes that somebody found afterwards."""


class Category(Enum):
    """What kind of cause. One word for each, so that incidents can be compared."""

    STALE_WRITE = "stale-write"
    """Something older was written over something newer."""
    CLEAN_UP = "clean-up"
    """What was deleted as old was in use."""
    BAD_CHANGE = "bad-change"
    """A command, a configuration or a release did what it wasn't meant to."""
    BAD_HEALTH_CHECK = "bad-health-check"
    """What was well was taken for sick."""
    REMOVAL = "removal"
    """Automation took away what served."""
    LIMIT_REACHED = "limit-reached"
    """A limit that nobody watched was reached."""
    OVERLOAD = "overload"
    """Work that nobody waits for any more kept the useful work from being done: retries, queues, a collapse."""
    DEPENDENCY_LOST = "dependency-lost"
    """Something that everything rests on was away."""
    NO_WAY_BACK = "no-way-back"
    """Repair needed the broken part, or a tool that rested on it."""
    SIGHT_LOST = "sight-lost"
    """Those who were to repair it couldn't see what was wrong: monitoring shared the failure."""


class Source(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Who says something: a title one can search for, and where it is."""

    title: str
    url: str | None = None


class Moment(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A time, and who says it."""

    at: Time
    kind: Kind
    source: str


class Symptom(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What could be seen. ``name`` is what ``incident list --symptom`` takes."""

    name: Slug
    words: str
    kind: Kind
    source: str


class RootCause(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Why it happened: the kind of cause, how it works, and what set it off that day."""

    category: Category
    mechanism: str | None
    trigger: str | None
    kind: Kind
    source: str


class Contributing(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What made it worse or longer. ``category`` is null where no word fits."""

    category: Category | None
    words: str
    kind: Kind
    source: str


class Interval(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """From when to when; null where it isn't known, or not over."""

    begins: Time | None
    ends: Time | None


class Impact(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A service that suffered, what it depends on, when it was down; where ``down`` is empty, ``words`` say how."""

    service: str
    depends_on: tuple[str, ...]
    down: tuple[Interval, ...]
    words: str | None
    kind: Kind
    source: str


class Detection(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What was found, when and how."""

    at: Time | None
    what: str
    how: str | None
    kind: Kind
    source: str


class Phase(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A stretch of the incident as a reader would draw it; ``ends`` is null if it isn't over."""

    name: Slug
    words: str
    begins: Time
    ends: Time | None
    kind: Kind
    source: str


class Happening(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One thing that happened; ``phase`` names the phase it falls into, if one does."""

    at: Time
    words: str
    phase: Slug | None
    kind: Kind
    source: str


class Timeline(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The phases, and what happened, each in order of time."""

    phases: tuple[Phase, ...]
    events: tuple[Happening, ...]


class Mitigation(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What people did about it, when (null: nobody says), and who they were where a history names them."""

    at: Time | None
    words: str
    by: str | None
    kind: Kind
    source: str


class Lesson(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What is to be done otherwise."""

    words: str
    kind: Kind
    source: str


Because = Literal["named", "cause", "component"]
"""Why two incidents are related: one names the other, they have a kind of cause in common, or a component."""


class Related(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Another incident, and why. ``incident show`` adds those it finds to those a record names."""

    id: Slug
    because: Because
    words: str


class NotKnown(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A part that is null or empty since nobody could know it, and why."""

    part: str
    why: str


class Record(Struct, frozen=True, forbid_unknown_fields=True, rename={"schema_name": "schema"}):
    """The whole. ``components`` are what failed or was needed to recover: by them records are found to be related."""

    schema_name: Literal["fencepost.incident/1"]
    id: Slug
    title: str
    summary: str
    start: Moment | None
    end: Moment | None
    root_cause_fixed: Moment | None
    symptoms: tuple[Symptom, ...]
    root_cause: RootCause | None
    contributing: tuple[Contributing, ...]
    components: tuple[Slug, ...]
    impact: tuple[Impact, ...]
    detection: tuple[Detection, ...]
    timeline: Timeline
    mitigations: tuple[Mitigation, ...]
    lessons: tuple[Lesson, ...]
    related: tuple[Related, ...]
    not_known: tuple[NotKnown, ...]
    sources: dict[str, Source]
    tags: tuple[Slug, ...]


def document(record: Record) -> dict[str, Any]:
    """The record as plain values, in the order of its keys."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain


def text(record: Record) -> str:
    """The record as the text of a file: indented, one final line end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of a record."""
    schema = msgspec.json.schema(Record)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
