"""Mistakes in a file: collected, given their lines, and said all at once.

A tool that stops at the first mistake makes its user run it once for each. So reading goes on past a mistake with a
default in its place, and what depends on the broken value is not judged.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from fencepost.settings.lines import Path

MOST = 1000
"""Mistakes after which reading stops. Finding the nearest name costs a millisecond, and nobody reads on."""

_SHOWN = 60  # characters of a value that a message repeats


class Mistake(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong: the file as it was named, the line, and the text with what to write instead.

    Lines count from 1; 0 is the file itself.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        """Write it as compilers do, so that editors can jump there."""
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class Caution(Mistake, frozen=True, gc=False):
    """One thing that is allowed and surprises people."""

    def __str__(self) -> str:
        """Write it as compilers do."""
        return f"{self.file}:{self.line}: warning: {self.text}"


class SettingsError(Exception):
    """A file that can't be used. It is the kind Misconfigured (exit 2): tell a person, change nothing, keep what
    runs."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        """Take all the mistakes of one file, in the order of their lines."""
        self.mistakes = mistakes
        self.what = "\n".join(map(str, mistakes))
        self.where = mistakes[0].file if mistakes else ""
        self.hint = closing(mistakes)
        super().__init__(f"{self.what}\n{self.hint}")


def closing(mistakes: tuple[Mistake, ...], loaded_at: str = "") -> str:
    """Say what the mistakes did, which is nothing. `loaded_at` is when a running region last loaded its file, if one
    runs."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    running = f"; a running region keeps what it loaded at {loaded_at}" if loaded_at else ""
    return f"{count}. Nothing was started{running}."


class DeniedError(ValueError):
    """What the machine doesn't let this user read; it may be right all the same."""


class TooManyError(Exception):
    """So much is wrong that reading on would tell nobody more; the notes hold what was found."""


class Notes:
    """Mistakes and cautions by path, while a file is being read."""

    def __init__(self) -> None:
        """Start with none."""
        self.mistakes: list[tuple[Path | int, str]] = []
        self.cautions: list[tuple[Path | int, str]] = []
        self.denied = False

    def wrong(self, path: Path | int, text: str, *, denied: bool = False) -> None:
        """Note a mistake at a path, or at a line already known; `denied`: this user may not read what is there.

        Raises TooManyError past a thousand.
        """
        self.denied = self.denied or denied
        if len(self.mistakes) >= MOST:
            raise TooManyError
        self.mistakes.append((path, text))

    def odd(self, path: Path | int, text: str) -> None:
        """Note a caution at a path, or at a line already known."""
        self.cautions.append((path, text))


def nearest(word: str, known: Iterable[str]) -> str:
    """Give the known word that was probably meant, or an empty string."""
    close = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6) if len(word) <= _SHOWN else []
    return close[0] if close else ""


def advice(word: str, known: Iterable[str]) -> str:
    """Say which of the known words was probably meant, or list them."""
    names = list(known)
    near = nearest(word, names)
    if near:
        return f'did you mean "{near}"?'
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known here: {listed}" if names else "there are none here"


_PASSWORD = re.compile("(?<=//).*@", re.DOTALL)
HIDDEN = "…@"
"""Stands for the user and password of a URL, which are repeated nowhere."""


def shown(value: Any) -> str:
    """Repeat a value of the file in a message: short, on one line, without control characters."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if abs(value) < 10**18 else "a number of many digits"
        case str():
            return f'"{clean(_PASSWORD.sub(HIDDEN, value))}"'
        case list():
            return "a list"
        case dict():
            return "a table"
    return clean(str(value))


def clean(text: str, most: int = _SHOWN) -> str:
    """Cut a text to message length and replace what could disturb a terminal."""
    cut = text if len(text) <= most else text[:most] + "…"
    return "".join(c if c.isprintable() else "�" for c in cut)
