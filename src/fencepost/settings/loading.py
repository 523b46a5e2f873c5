"""Loads a file: bytes, TOML, values, relations, and the lines of what is wrong."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path as FilePath

import msgspec

from fencepost.settings.cautions import note_cautions
from fencepost.settings.fleet import judge_fleet
from fencepost.settings.lines import Lines, Path
from fencepost.settings.meaning import meaning
from fencepost.settings.mistakes import Caution, DeniedError, Mistake, Notes, SettingsError, TooManyError, clean
from fencepost.settings.nesting import DEPTH_MAX, parser_said, too_deep
from fencepost.settings.places import judge_places
from fencepost.settings.reading import Reading
from fencepost.settings.relations import judge_relations
from fencepost.settings.schema import Region

SIZE_MAX = 64 * 2**20
"""Bytes a file may have. A hundred thousand endpoints take about 8 MB."""

_BARE = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*=\s*\[?\s*(?!(?:true|false)\s*[#,\]]?\s*$)[\w.:/*%-]+\s*(?:[#,\]].*)?$")
_TWICE = re.compile(r"Cannot declare \((.*?)\) twice")
_AT = re.compile(r" ?\((?:at line (\d+), column (\d+)|at end of document)\)")


class Report(msgspec.Struct, frozen=True):
    """What `check` found. With mistakes there is nothing else; `meaning` are the lines that say what the file
    means. `denied`: a mistake is that this user may not read something."""

    region: Region | None
    mistakes: tuple[Mistake, ...]
    cautions: tuple[Caution, ...]
    meaning: tuple[str, ...]
    denied: bool = False


def load(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ, *, ipv6: bool | None = None) -> Region:
    """Read a region.toml. `ipv6` says whether the checkers' machine has IPv6; None: as this one.

    Raises SettingsError with all mistakes.
    """
    report = check(path, environ, ipv6=ipv6)
    if report.region is None:
        raise SettingsError(report.mistakes)
    return report.region


def check(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ, *, ipv6: bool | None = None) -> Report:
    """Read a region.toml and say everything about it. Raises nothing for whatever the file holds."""
    shown_path = os.fspath(path)
    try:
        text = _text(FilePath(path))
    except ValueError as error:
        return msgspec.structs.replace(_refused(shown_path, 0, str(error)), denied=isinstance(error, DeniedError))
    return judge(text, shown_path, environ, ipv6=machine_has_ipv6() if ipv6 is None else ipv6)


def machine_has_ipv6() -> bool:
    """Whether this machine has an IPv6 address, its loopback's at least (proc(5), if_inet6)."""
    listed = FilePath("/proc/net/if_inet6")
    try:
        return bool(listed.read_text())
    except OSError:
        return not listed.parent.is_dir()  # without /proc it can't be told, and a probe will tell


def judge(text: str, path: str, environ: Mapping[str, str] = os.environ, *, ipv6: bool = True) -> Report:
    """Do what `check` does for a text that stands at `path`, or would."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.strip():
        return _refused(path, 1, "the file is empty; fencepost init writes one to begin with")
    deep = too_deep(text)
    if deep:
        return _refused(path, deep, f"tables or lists stand more than {DEPTH_MAX} deep in one another")
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return _broken(path, text, error)
    lines = Lines(text)
    notes = Notes()
    try:
        reading = Reading(notes, raw, lines, FilePath(os.path.abspath(path)), environ)
        judge_relations(reading, environ, ipv6=ipv6)
        judge_fleet(reading)
        judge_places(reading)
        if not notes.mistakes:
            return _good(path, reading.region, lines)
    except TooManyError:
        notes.mistakes[-1] = (lines.last, "and more; mend those above first")
    mistakes = tuple(sorted((Mistake(path, _at(lines, at), said) for at, said in notes.mistakes), key=_line))
    return Report(None, mistakes, (), (), notes.denied)


def _good(path: str, region: Region, lines: Lines) -> Report:
    notes = Notes()
    note_cautions(region, notes)
    cautions = tuple(sorted((Caution(path, _at(lines, at), said) for at, said in notes.cautions), key=_line))
    return Report(region, (), cautions, meaning(region))


def _at(lines: Lines, at: Path | int) -> int:
    return at if isinstance(at, int) else lines.of(at)


def _line(mistake: Mistake) -> int:
    return mistake.line


def _refused(path: str, line: int, text: str) -> Report:
    return Report(None, (Mistake(path, line, text),), (), ())


def _text(path: FilePath) -> str:
    """Read the file. Raises ValueError with the reason; only a plain file is opened, so a pipe can't hold us up."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("is not a file")
        if found.st_size > SIZE_MAX:
            raise ValueError(f"has {found.st_size} bytes; at most {SIZE_MAX} are read")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except FileNotFoundError as error:
        raise ValueError("there is no such file; fencepost init writes one to begin with") from error
    except PermissionError as error:
        raise DeniedError(f"can't be read: {error.strerror}") from error
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}") from error


def _broken(path: str, text: str, error: Exception) -> Report:
    """Say what the TOML parser said, with its line."""
    if isinstance(error, RecursionError):
        return _refused(path, 1, "is nested too deep")
    said = parser_said(error)
    at = _AT.search(said)
    if at is None:
        line = 1
    elif at[1]:
        line = int(at[1])
    else:
        line = text.count("\n") + (not text.endswith("\n"))
    twice = _TWICE.match(said)
    if twice:
        names = twice[1].rstrip(",").replace("'", "").replace(", ", ".")
        said = f"[{names}] stands in the file twice" + said[twice.end() :]
    said = said.replace("Cannot overwrite a value", "this key is there twice")
    reason = clean(_AT.sub("", said)) or "can't be read"
    reason += _unquoted(text.split("\n")[line - 1 : line], reason)
    column = f", column {at[2]}" if at and at[2] else ""
    return _refused(path, line, f"broken TOML{column}: {reason[:1].lower()}{reason[1:]}")


def _unquoted(lines: list[str], reason: str) -> str:
    """Say that text stands in quotes, where a word without them may be what the parser stumbled on.

    The value isn't repeated: it may be a secret.
    """
    found = _BARE.match(lines[0]) if lines else None
    if found is None or not reason.startswith(("Invalid value", "Expected newline")):
        return ""
    return f'; text stands in quotes, like {clean(found[1])} = "…"'
