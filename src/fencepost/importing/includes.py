"""What a master file's $INCLUDE leads to (RFC 1035, section 5.1), looked at before the parser opens any of it.

The parser opens whatever is named: a device without end, a pipe that nobody fills, a file that includes itself. So each
is looked at first, as often as it is included: regular files only, not in a circle, and within bounds all together.
"""

import os
import re
import stat
from pathlib import Path

import dns.exception
import dns.tokenizer

from fencepost.importing.endless import refuse_endless
from fencepost.ports import Misconfigured

BYTES_MOST = 256 * 1024 * 1024
INCLUDES_MOST = 1_000
"""Two lines that include the same file, thirty files deep, are a thousand million, without a single record."""
_INCLUDE = re.compile(r"^\$INCLUDE[ \t](?P<rest>.*)$", re.IGNORECASE | re.MULTILINE)


class Includes:
    """One import's $INCLUDE lines, followed as the parser will."""

    def __init__(self) -> None:
        """Nothing was followed yet."""
        self.count = 0
        self.bytes = 0

    def refuse_unreadable(self, text: str, at: str, within: tuple[str, ...]) -> None:
        """Follow the lines of a file's text; ``within`` are the real paths it stands in, its own the last.

        Raises ``Misconfigured`` with file and line. What isn't there, or isn't text, is left for the parser to say.
        """
        for found in _INCLUDE.finditer(text):
            name = named(found["rest"])
            if name is not None and os.path.lexists(name):
                where = f"{at}:{text.count(chr(10), 0, found.start()) + 1}"
                self._follow(name, where, within)

    def _follow(self, name: str, where: str, within: tuple[str, ...]) -> None:
        real, size = os.path.realpath(name), 0
        if os.path.exists(name):
            found = os.stat(name)
            if not stat.S_ISREG(found.st_mode):
                raise Misconfigured(f"$INCLUDE {name} is no regular file", where=where, hint="include files only")
            size = found.st_size
        if real in within:
            raise Misconfigured(f"$INCLUDE {name} goes round in circles", where=where, hint="take that line out")
        self.count, self.bytes = self.count + 1, self.bytes + size
        if self.count > INCLUDES_MOST:
            raise Misconfigured(f"more than {INCLUDES_MOST} files are included in all", where=where)
        if self.bytes > BYTES_MOST:
            raise Misconfigured(f"more than {BYTES_MOST} bytes are included in all", where=where)
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return
        self.refuse_unreadable(text, name, (*within, real))


def named(rest: str) -> str | None:
    """The file that a line names after ``$INCLUDE``, read by the parser's own rules; None if none."""
    try:
        token = dns.tokenizer.Tokenizer(rest).get()
    except dns.exception.DNSException:
        return None
    return token.value if token.is_identifier() or token.is_quoted_string() else None


def whole_text(path: Path) -> str:
    """A master file's text, once what it includes was looked at. Raises ``Misconfigured``, ``OSError``."""
    refuse_endless(path, BYTES_MOST)
    with path.open("rb") as file:
        body = file.read(BYTES_MOST + 1)  # a pipe has no size to look at
    if len(body) > BYTES_MOST:
        raise Misconfigured(f"is too large: at most {BYTES_MOST} bytes are read", where=str(path))
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Misconfigured(f"is not UTF-8 (byte {error.start})", where=str(path)) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as files opened for text are read
    Includes().refuse_unreadable(text, str(path), (os.path.realpath(path),))
    return text
