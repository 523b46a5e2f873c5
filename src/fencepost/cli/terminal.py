"""Streams and terminals: the answer on stdout, notes and questions on stderr, colour where it helps and never alone."""

import contextlib
import os
import re
import sys
import time
from typing import TextIO

from fencepost.cli import layout
from fencepost.core.instant import SECOND, Instant
from fencepost.settings.units import spoken

STYLES = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_PLAIN = str.maketrans({"·": "-", "×": "x", "–": "-", "→": "->", "…": "...", "█": "#"})
_LOCAL = "FENCEPOST_LOCAL"
_OURS = rf"(\x1b\[(?:{'|'.join(['0', *STYLES.values()])})m)"
_UNRULY = re.compile(_OURS + "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CLEAR = "\x1b[H\x1b[K\x1b[2;1H\x1b[J\x1b[H"
"""Erases what a terminal shows, in two parts: of a screen that is erased whole, terminals keep a copy to scroll to."""
YEARS_END_S = 253_402_300_800
BEYOND = "beyond year 9999"
"""Shown for a time that no calendar has: whatever lies in a store must not stop who looks at it."""


class Declined(Exception):  # noqa: N818  an answer, not an error
    """The person said no: nothing was done."""


def interactive(stream: TextIO | None = None) -> bool:
    """Whether a person sits at a stream (stdout unless another is given)."""
    stream = stream or sys.stdout
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def coloured(stream: TextIO | None = None) -> bool:
    """Whether to colour: NO_COLOR and FORCE_COLOR as their sites say, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or interactive(stream)


def take_global(words: list[str]) -> list[str]:
    """The words without ``--color`` and ``--local``, which hold everywhere and go into the environment.

    Raises ``ValueError`` if ``--color`` is given another word than auto, always, never.
    """
    left, at = [], 0
    asked = os.environ.get("FENCEPOST_COLOR", "auto")
    while at < len(words):
        word = words[at]
        if word == "--":
            left += words[at:]
            break
        if word == "--local":
            os.environ[_LOCAL] = "1"
        elif word == "--color" or word.startswith("--color="):
            value = word.partition("=")[2]
            if "=" not in word:
                at += 1
                value = words[at] if at < len(words) else ""
            asked = value
        else:
            left.append(word)
        at += 1
    if asked not in ("auto", "always", "never"):
        raise ValueError(f"--color {asked}: write auto, always or never")
    if asked == "always":
        os.environ["FORCE_COLOR"] = "1"
        os.environ.pop("NO_COLOR", None)
    elif asked == "never":
        os.environ["NO_COLOR"] = "1"
    return left


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a style, if the stream shows styles."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text and coloured(stream) else text


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a text: on a terminal wrapped at words, in ASCII where the locale can't do better.

    A document for programs, which begins with a brace, stays in one piece.
    """
    stream = stream or sys.stdout
    if not text.startswith("{"):
        text = harmless(text)
        text = "\n".join(row for line in text.split("\n") for row in layout.fitted(line, layout.width(stream)))
    print(writable(text, stream), file=stream, flush=True)


def harmless(text: str) -> str:
    """The text without what would move a cursor, clear a screen or turn text around, but for our own styles.

    Names and refusals come from files, servers and providers of others: shown as they are, they could forge lines.
    """
    return _UNRULY.sub(lambda found: found[1] or "\ufffd", text)


def writable(text: str, stream: TextIO) -> str:
    """The text as the stream's encoding can show it."""
    encoding = stream.encoding or "ascii"
    if encoding.lower().replace("-", "") == "utf8":
        return text
    return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)


def note(text: str) -> None:
    """Progress or a note, on stderr. One that can't be shown is lost: no command stops half-way for a note."""
    with contextlib.suppress(OSError):
        say(text, sys.stderr)


def clock(at: Instant, *, day: bool = False) -> str:
    """A time of day to the millisecond (UTC, or local with ``--local``); with its day where that isn't today's."""
    seconds, rest = divmod(at, SECOND)
    convert = time.localtime if os.environ.get(_LOCAL) else time.gmtime
    if not 0 <= seconds < YEARS_END_S:
        return BEYOND
    moment, now = convert(seconds), convert(time.time())
    text = time.strftime("%H:%M:%S", moment) + f".{rest // 1_000_000:03d}"
    return time.strftime("%Y-%m-%d ", moment) + text if day and moment[:3] != now[:3] else text


def moment(at: Instant) -> str:
    """A time of day to the second, with its day where that isn't today's, and the zone it is in."""
    convert = time.localtime if os.environ.get(_LOCAL) else time.gmtime
    if not 0 <= at // SECOND < YEARS_END_S:
        return BEYOND
    then, now = convert(at // SECOND), convert(time.time())
    day = time.strftime("%Y-%m-%d ", then) if then[:3] != now[:3] else ""
    return day + time.strftime("%H:%M:%S", then) + ("" if os.environ.get(_LOCAL) else " UTC")


def until_text(until: Instant) -> str:
    """When something ends, in words: its time and how long that is, or that only a person ends it."""
    if not until:
        return "until you resume it"
    if moment(until) == BEYOND:
        return f"until {BEYOND}"
    left = max(0, until - time.time_ns())
    step = 60 * SECOND if left > 600 * SECOND else SECOND
    return f"until {moment(until)} (in {spoken(-(-left // step) * step)})"


def ago(at: Instant) -> str:
    """How long ago a time was."""
    return f"{spoken(max(0, time.time_ns() - at))} ago"
