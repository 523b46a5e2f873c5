"""Lines laid out for the terminal they stand on: tables that drop what is least needed, and text wrapped at words.

Made for 80 columns. What is wider wraps under where its text began, so that a table still reads as one at 60 and 40.
A line to paste is never broken by us: a terminal gives it back whole when it broke it itself. Elsewhere than on a
terminal nothing is wrapped or dropped: there one line is one thing, for grep.
"""

import os
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import TextIO

STANDARD = 80
"""Columns of a terminal that doesn't say."""
ENDLESS = 1 << 20
"""Columns where no terminal is."""
LEAST = 24
"""Columns that wrapped text keeps at least, before it moves to the left."""

DEEP = 4
"""A line that begins so far in goes on under a column already."""

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_WORD = re.compile(r"( *)([^ ]+(?: \((?:pid )?(?:\d+|down)\))?)")
"""A word and the spaces before it; a process's number stays with whose it is."""
_PASTE = re.compile(r"(?:try|back|To do it:) +(?:\S*fencepost|kill|dig|cat|ls|tail|df|journalctl|systemctl) ")
"""What is there to be pasted."""
_ASIDE = re.compile(r"(?<=\S) {4,}(?=\S)")
"""Between what is to be pasted and what it does."""
_COMMAND = re.compile(r":  +(\S*fencepost [a-z].*)$")
"""What is there to be pasted, after its own introduction."""


def width(stream: TextIO) -> int:
    """Columns of a stream; COLUMNS in the environment wins, as elsewhere."""
    if not stream.isatty():
        return ENDLESS
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or STANDARD
    except (OSError, ValueError):
        return STANDARD


def cells(text: str) -> int:
    """Columns that a text takes: styles none, wide characters two."""
    plain = _STYLE.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in plain
    )


def fitted(line: str, columns: int, hang: int | None = None) -> list[str]:
    """A line as rows of at most so many columns, broken at words; the rest hangs where the text began.

    ``hang``: where that is, for a line that doesn't show it by a gap of two spaces. A single word that is longer stays
    in one piece.
    """
    if cells(line) <= columns:
        return [line]
    if paste := _PASTE.match(_STYLE.sub("", line).lstrip()):
        return pasted(line, paste[0], columns)
    if command := _COMMAND.search(line):
        rows = fitted(line[: command.start(1)].rstrip(), columns, hang)
        whole = f"{rows[-1]}  {command[1]}"
        return [*rows[:-1], whole] if cells(whole) <= columns else [*rows, f"  {command[1]}"]
    hang = hanging(line, columns) if hang is None or columns - hang < LEAST else hang
    rows, at = [""], 0
    for gap, word in _WORD.findall(line):
        taken = cells(gap + word)
        if at + taken > columns and rows[-1].strip():
            rows.append(" " * hang + word)
            at = hang + cells(word)
        else:
            rows[-1] += gap + word
            at += taken
    return rows


def pasted(line: str, opening: str, columns: int) -> list[str]:
    """A line to paste in one piece, whatever its length; what it does, if that follows after a gap, beneath it."""
    found = line.find(opening)  # not there: styled, and left as it is
    begins = found + len(opening)
    aside = _ASIDE.search(line, begins) if found >= 0 else None
    if aside is None:
        return [line]
    under = begins - len(f"{opening.split()[-1]} ")
    under = under if columns - under >= LEAST else 2
    return [line[: aside.start()], *fitted(" " * under + line[aside.end() :], columns, under)]


def hanging(line: str, columns: int) -> int:
    """Where the rest of a line hangs: under its last column that leaves room, else a little in."""
    plain = _STYLE.sub("", line)
    indent = len(plain) - len(plain.lstrip())
    prose = indent if indent >= DEEP else indent + 2
    starts = [cells(plain[: found.end()]) for found in re.finditer(r"(?<=\S) {2,}(?=\S)", plain)]
    return max([at for at in starts if columns - at >= LEAST], default=min(prose, max(0, columns - LEAST)))


def beside(head: str, text: str, columns: int) -> list[str]:
    """A text that hangs under its own beginning, after a head that stands before its first row only."""
    return fitted(head + text, columns, cells(head))


def table(
    rows: Sequence[Sequence[str]],
    indent: str = " ",
    *,
    columns: int = ENDLESS,
    drop: Sequence[int] = (),
    right: Collection[int] = (),
    last: int | None = None,
) -> list[str]:
    """Rows as aligned columns, two spaces apart; the last is as wide as it comes, and wraps when it is printed.

    ``drop``: columns to leave out, one after the other, while the table is wider than ``columns``. ``right``: columns
    of numbers. ``last``: columns that the last one can do with, if it may be wrapped.
    """
    shown = list(range(max(map(len, rows), default=0)))
    widths = [max(cells(row[at]) for row in rows if at < len(row)) for at in shown]

    def taken() -> int:
        wide = [widths[at] for at in shown]
        if last is not None and shown[-1] == len(widths) - 1:
            wide[-1] = min(wide[-1], last)
        return len(indent) + sum(wide) + 2 * (len(shown) - 1)

    for at in drop:
        if taken() > columns and len(shown) > 1:
            shown.remove(at)
    lines = []
    for row in rows:
        parts = []
        for at in shown:
            if at < len(row):
                space = " " * (widths[at] - cells(row[at]))
                parts.append(space + row[at] if at in right else row[at] + space)
        lines.append(indent + "  ".join(parts).rstrip())
    return lines


def cropped(line: str, columns: int) -> str:
    """What of a line fits into so many columns; styles stay whole."""
    if cells(line) <= columns:
        return line
    out, at = "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            out += part
            continue
        for each in part:
            at += cells(each)
            if at > columns:
                break
            out += each
    return out
