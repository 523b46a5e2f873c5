"""What the supervisor tells ``up``, line by line, and a screen that loses lines rather than the region.

A region must not depend on who looks at it. `up` may be stopped, its terminal too, its output may lie on a full disk or
go to a `head` that has had enough. So the supervisor never waits for a reader: the pipe takes what fits, and the rest
is counted. And what can't be shown is dropped, said once on stderr, and the roles go on.

Awkward truth: a terminal that is halted (Ctrl-S) holds `up` itself in a write until it goes on; the roles don't notice.
"""

import contextlib
import errno
import json
import os
import select
import sys
import time
from collections.abc import Iterator

from fencepost.cli.terminal import note
from fencepost.cli.up_screen import Plain, Screen
from fencepost.roles.supervisor import Ended

GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""What a write says when nobody will ever read: the other end is closed, the terminal hung up."""


class Teller:
    """The supervisor's end of the pipe: never blocks. A line that doesn't fit now is dropped and counted."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.dropped = 0

    def __call__(self, name: str, text: str, ended: Ended | None = None, /) -> None:
        """Tell a line; before it, how many were dropped since the last that was taken."""
        if self.dropped and self._put("supervisor", f"{self.dropped} lines were not shown: nobody was reading"):
            self.dropped = 0
        if self.dropped or not self._put(name, text, ended):
            self.dropped += 1

    def _put(self, name: str, text: str, ended: Ended | None = None) -> bool:
        line = encoded(name, text, ended)
        try:
            return os.write(self.fd, line) == len(line)
        except OSError:
            return False


def encoded(name: str, text: str, ended: Ended | None = None) -> bytes:
    """A line as it goes through the pipe, short enough to go whole or not at all (pipe(7): PIPE_BUF)."""
    while True:
        said = {"name": name, "text": text, "at": time.time_ns(), "ended": ended}
        line = json.dumps(said, ensure_ascii=False).encode(errors="replace") + b"\n"
        if len(line) <= select.PIPE_BUF:
            return line
        text = text[: len(text) // 2] + "…"


class Steady:
    """A screen whose failures end nothing: they cost the line. One that is gone for good isn't tried again."""

    def __init__(self, to: Screen) -> None:
        self.to = to
        self.gone = False
        self.said: set[str] = set()

    def line(self, text: str) -> None:
        """Print a line, if that can be done."""
        with self.losing("a line"):
            if not self.gone:
                self.to.line(text)

    def panel(self, lines: list[str]) -> None:
        """Replace the panel, if that can be done."""
        with self.losing("the panel"):
            if not self.gone:
                self.to.panel(lines)

    @property
    def drawn(self) -> bool:
        """Whether anybody sees a panel."""
        return not self.gone and not isinstance(self.to, Plain)

    def size(self) -> tuple[int, int]:
        """Columns and rows of a panel."""
        return self.to.size()

    def resized(self) -> None:
        """Draw anew, if that can be done."""
        with self.losing("the screen"):
            if not self.gone:
                self.to.resized()

    def close(self) -> None:
        """Leave the terminal as it was, as far as there is one."""
        with self.losing("the screen"):
            if not self.gone:
                self.to.close()

    @contextlib.contextmanager
    def losing(self, what: str) -> Iterator[None]:
        """Lose what can't be shown, and say so once for each ``what``."""
        try:
            yield
        except Exception as error:
            self.gone = self.gone or (isinstance(error, OSError) and error.errno in GONE)
            if what not in self.said:
                self.said.add(what)
                more = "; going on without a screen" if self.gone else "; the region goes on"
                with contextlib.suppress(Exception):
                    note(f"{what} could not be shown: {type(error).__name__}: {error}{more}")


def end_quietly() -> None:
    """Have the interpreter's last flush fail on nothing: what stdout didn't take is given up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
