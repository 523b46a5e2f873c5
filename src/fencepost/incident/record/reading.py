"""Finding records and reading them: those that come with fencepost, and those in a folder of one's own.

A record that can't be read never hides the others: it is told of with its file, the place in it, and what to write
instead. Nothing is repaired on the way.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fencepost.incident.record.checking import mistakes, moment, shown
from fencepost.incident.record.record import SCHEMA, Record
from fencepost.ports import Misconfigured, Refused
from fencepost.settings.mistakes import advice, nearest
from fencepost.settings.nesting import parser_said

FOLDER = "incidents"
"""Where a region's records lie, beside its region.toml."""
LARGEST = 16 * 1024 * 1024
"""Bytes that a record may have: more is no record."""
FORMAT = "docs/operating/incident-record.md has the form"


class Found(msgspec.Struct, frozen=True):
    """A record and where it was found: a path, or "shipped"."""

    record: Record
    where: str


class Library(msgspec.Struct, frozen=True):
    """Every record that could be read, oldest first, and what was wrong with the others."""

    found: tuple[Found, ...]
    errors: tuple[Misconfigured, ...]

    def get(self, id_: str) -> Found:
        """The record of that id. Raises ``Refused`` naming the nearest."""
        for each in self.found:
            if each.record.id == id_:
                return each
        ids = [each.record.id for each in self.found]
        near = nearest(id_, ids)
        hint = f"fencepost incident show {near}" if near else "fencepost incident list    names them"
        raise Refused(f"no incident is called {shown(id_)}", where="ID", hint=hint)


def read_record(raw: bytes, where: str) -> Record:
    """A record from a file's bytes. Raises ``Misconfigured`` with what is wrong first, its place, and how many more."""
    plain = _plain(raw, where)
    if isinstance(plain, dict) and plain.get("schema", SCHEMA) != SCHEMA:
        raise Misconfigured(
            f'schema is {shown(str(plain["schema"]))}; this release reads "{SCHEMA}"', where=f"{where}: $.schema",
            hint=FORMAT,
        )  # fmt: skip
    try:
        record = msgspec.convert(plain, Record, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, place = str(error).partition(" - at ")
        raise Misconfigured(_unknown(what), where=f"{where}: {place.strip('`') or '$'}", hint=FORMAT) from None
    wrong = mistakes(record)
    if wrong:
        (what, place), more = wrong[0], len(wrong) - 1
        rest = f" ({more} more mistake{'' if more == 1 else 's'} after it)" if more else ""
        raise Misconfigured(what + rest, where=f"{where}: {place}", hint=FORMAT)
    return record


def _plain(raw: bytes, where: str) -> Any:
    """JSON to plain values, a key twice refused. Raises ``Misconfigured``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"{shown(key)} is given twice in one object")
            found[key] = value
        return found

    try:
        return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        place = f"{where}: line {error.lineno}, column {error.colno}"
        raise Misconfigured(f"not JSON: {error.msg}", where=place, hint=FORMAT) from None
    except UnicodeDecodeError as error:
        raise Misconfigured("not UTF-8", where=f"{where}: byte {error.start}", hint="save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Misconfigured(parser_said(error), where=where, hint=FORMAT) from None


def _unknown(what: str) -> str:
    """What msgspec says, with the nearest right key for one that isn't known."""
    _, marked, key = what.partition("unknown field `")
    if not marked:
        return what
    keys: set[str] = set()
    for each in msgspec.json.schema(Record)["$defs"].values():
        keys.update(each.get("properties", ()))
    near = nearest(key.rstrip("`"), sorted(keys))
    return f"unknown key {shown(key.rstrip('`'))}" + (f'; did you mean "{near}"?' if near else "")


def read_file(path: Path) -> Record:
    """The record in a file. Raises ``Misconfigured``."""
    try:
        if not path.is_file():
            raise Misconfigured("no such file" if not path.exists() else "no file", where=str(path), hint=FORMAT)
        if path.stat().st_size > LARGEST:
            raise Misconfigured("larger than 16 MB, so no record", where=str(path), hint=FORMAT)
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise Misconfigured(f"can't be read: {said}", where=str(path), hint="name a record's file") from None
    return read_record(raw, str(path))


def shipped() -> tuple[Found, ...]:
    """The records that come with fencepost."""
    folder = files(__package__) / "shipped"
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".json"))
    return tuple(Found(read_record((folder / name).read_bytes(), name), "shipped") for name in names)


def library(folder: Path | None) -> Library:
    """Those shipped, and those in a folder; None or a folder that isn't there adds none."""
    found, errors = list(shipped()), []
    for path in _records_in(folder):
        try:
            record = read_file(path)
        except Misconfigured as error:
            errors.append(error)
            continue
        first = next((each for each in found if each.record.id == record.id), None)
        if first is None:
            found.append(Found(record, str(path)))
        else:
            what = f"the id {shown(record.id)} is taken by {first.where}"
            errors.append(Misconfigured(what, where=f"{path}: $.id", hint="give it another"))
    return Library(tuple(sorted(found, key=_age)), tuple(errors))


def _records_in(folder: Path | None) -> Sequence[Path]:
    if folder is None:
        return ()
    try:
        return sorted(each for each in folder.iterdir() if each.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        raise Misconfigured(what, where=str(folder), hint="name another --folder") from None


def _age(found: Found) -> tuple[float, str]:
    start = found.record.start
    return (moment(start.at).timestamp() if start else float("inf"), found.record.id)


def chosen(found: Sequence[Found], tag: str | None, symptom: str | None, cause: str | None) -> list[Found]:
    """Those with that tag, that symptom (by name, or words in it), that kind of cause (root or contributing).

    Raises ``Refused`` for a word that no record has, with the nearest that one does.
    """
    left = list(found)
    for flag, word, words in (("--tag", tag, _tags), ("--cause", cause, _causes)):
        if word is not None:
            left = [each for each in left if word.lower() in words(each.record)]
            if not left:
                _refuse(flag, word, sorted({name for each in found for name in words(each.record)}), found)
    if symptom is not None:
        wanted = symptom.lower()
        left = [each for each in left if any(wanted in text.lower() for text in _symptoms(each.record))]
        if not left:
            _refuse("--symptom", symptom, sorted({each.name for one in found for each in one.record.symptoms}), found)
    return left


def _refuse(flag: str, word: str, known: Sequence[str], found: Sequence[Found]) -> None:
    of = f"none of {len(found)} incidents" if found else "there are no incidents, so none"
    raise Refused(f"{of} has it: {shown(word)}", where=flag, hint=advice(word, known))


def _tags(record: Record) -> list[str]:
    return list(record.tags)


def _causes(record: Record) -> list[str]:
    found = [record.root_cause.category.value] if record.root_cause else []
    return found + [each.category.value for each in record.contributing if each.category]


def _symptoms(record: Record) -> list[str]:
    return [text for each in record.symptoms for text in (each.name, each.words)]
