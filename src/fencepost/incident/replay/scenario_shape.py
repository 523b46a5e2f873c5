"""A scenario file's tables as structs of texts, piece by piece, so that a mistake in one hides none in another.

What is misspelt is told the nearest right word; a piece with a mistake is left out, and reading goes on.
"""

from enum import Enum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from fencepost.incident.replay.scenario import Cause, Kind, Phase
from fencepost.settings.lines import Path
from fencepost.settings.mistakes import Notes, advice, shown

Piece = TypeVar("Piece", bound=Struct)


class RawHead(Struct, frozen=True):
    """``[scenario]``"""

    name: str
    title: str
    summary: str
    cause: Cause
    begins: str
    zone: str
    lasts: str


class RawValue(Struct, frozen=True):
    """One of ``[values.*]``"""

    value: float | str
    kind: Kind
    source: str


class RawRule(Struct, frozen=True):
    """A rule; "" where a key isn't given."""

    at: str = ""
    follows: str = ""
    seen: str = ""
    since: str = ""
    lasting: str = ""
    backdated: bool = False
    after: str = ""
    only_if: str = ""


class RawAct(Struct, frozen=True):
    """``[[act]]``"""

    name: str
    words: str
    when: RawRule
    kind: Kind
    source: str
    does: str = ""
    reported: str = ""
    within: str = ""


class RawEvent(Struct, frozen=True):
    """``[[event]]``"""

    name: str
    words: str
    when: RawRule
    kind: Kind
    source: str
    reported: str = ""
    within: str = ""


class RawDown(Struct, frozen=True):
    """One of a dependent's ``down``"""

    begins: RawRule
    ends: RawRule
    by_hand: bool = False


class RawDependent(Struct, frozen=True):
    """``[[dependent]]``"""

    name: str
    title: str
    kind: Kind
    source: str
    depends_on: tuple[str, ...] = ()
    down: tuple[RawDown, ...] = ()
    reported: tuple[tuple[str, str], ...] = ()


LISTS: dict[str, type[Struct]] = {"act": RawAct, "event": RawEvent, "phase": Phase, "dependent": RawDependent}
"""What a file has several of."""
TOP = ("schema", "scenario", "sources", "values", *LISTS)


def piece(notes: Notes, path: Path, raw: Any, shape: type[Piece]) -> Piece | None:
    """One table as its struct; None if anything in it is wrong, which is then noted."""
    if not isinstance(raw, dict):
        notes.wrong(path, f"{name_of(path)} is {shown(raw)}; it is to be a table")
        return None
    known = {field.name: field for field in fields(shape)}
    before = len(notes.mistakes)
    for key in raw:
        if key not in known:
            notes.wrong((*path, key), f"{shown(key)} is no key of {name_of(path)}; {advice(key, known)}")
    for key, field in known.items():
        if key not in raw and field.default is NODEFAULT:
            notes.wrong(path, f'{name_of(path)} has no "{key}"')
    given = {key: _field(notes, (*path, key), raw[key], field) for key, field in known.items() if key in raw}
    return shape(**given) if len(notes.mistakes) == before else None


def pieces(notes: Notes, path: Path, raw: Any, shape: type[Piece]) -> list[tuple[int, Piece]]:
    """A list of tables: those that are right, and where in the list each stands."""
    if not isinstance(raw, list):
        notes.wrong(path, f"{name_of(path)} is {shown(raw)}; write each as [[{path[-1]}]]")
        return []
    found = ((at, piece(notes, (*path, at), each, shape)) for at, each in enumerate(raw))
    return [(at, each) for at, each in found if each is not None]


def name_of(path: Path) -> str:
    """How a message calls a place: "event 3 (when)"."""
    words = [f"{part + 1}" if isinstance(part, int) else part for part in path]
    match path:
        case ("values", _, *_):
            return f"[values.{words[1]}]" if len(words) == 2 else f"{'.'.join(words[1:])}"
        case (_, int(), *rest):
            return " ".join(words[:2]) + (f" ({'.'.join(words[2:])})" if rest else "")
    return f"[{'.'.join(words)}]"


def _field(notes: Notes, path: Path, raw: Any, field: FieldInfo) -> Any:
    wanted = field.type
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        return piece(notes, path, raw, wanted)
    if get_origin(wanted) is tuple and isinstance(inner := get_args(wanted)[0], type) and issubclass(inner, Struct):
        return tuple(each for _, each in pieces(notes, path, raw, inner))
    try:
        found = msgspec.convert(raw, wanted)
        if isinstance(found, str) and not isinstance(found, Enum) and not found.isprintable():
            notes.wrong(path, f"{path[-1]} is {shown(raw)}; write it on one line, without control characters")
        return found
    except (msgspec.ValidationError, OverflowError):
        notes.wrong(path, f"{path[-1]} is {shown(raw)}; {_wanted(raw, wanted)}")
        return None


def _wanted(raw: Any, wanted: Any) -> str:
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        words = [str(each.value) for each in wanted]
        return advice(raw, words) if isinstance(raw, str) else f"write one of {', '.join(words)}"
    if wanted is bool:
        return "write true or false"
    if isinstance(wanted, UnionType):
        return "write a number, or a text with its unit"
    if get_origin(wanted) is tuple:
        pairs = get_origin(get_args(wanted)[0]) is tuple
        return 'write a list of pairs of hours, like [["23:48", "13:50"]]' if pairs else "write a list of texts"
    return "write a text in quotes"
