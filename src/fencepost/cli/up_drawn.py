"""A terminal under ``up``: event lines scroll above a panel that stays at the bottom.

The panel is redrawn in place: up by as many rows as it has, erase, write. That holds only while a row of ours is a row
of the terminal. So every row is made to fit, nothing that is typed is echoed into it, and when the terminal gets
another size, and has perhaps broken our rows anew, all that it shows is erased and drawn again, with the newest events.

Awkward truth: rows that a narrower terminal has pushed into its scroll-back stay there.
"""

import contextlib
import os
import termios
from collections import deque
from typing import Any, TextIO

from fencepost.cli.layout import STANDARD, cropped, fitted
from fencepost.cli.terminal import CLEAR, writable

HIDE, SHOW, ERASE = "\x1b[?25l", "\x1b[?25h", "\x1b[J"
KEPT = 200
"""Event lines that can be drawn again."""


class Drawn:
    """The screen of ``up`` on a terminal. The cursor waits on the row under the panel."""

    def __init__(self, to: TextIO) -> None:
        self.to = to
        self.rows: list[str] = []
        self.shown: list[str] = []
        self.events: deque[str] = deque(maxlen=KEPT)
        self.modes: list[Any] | None = None
        self.quieten()
        self.write(HIDE)

    def measure(self) -> tuple[int, int]:
        """Columns and lines of the terminal."""
        with contextlib.suppress(OSError, ValueError):
            found = os.get_terminal_size(self.to.fileno())
            return found.columns or STANDARD, found.lines or 24
        return STANDARD, 24

    def size(self) -> tuple[int, int]:
        """Columns, and rows that a panel may have: one stays for the cursor and one for the newest event."""
        columns, lines = self.measure()
        return columns, max(1, lines - 2)

    def line(self, text: str) -> None:
        """Print a line above the panel."""
        self.events.append(text)
        self.write(self.erased() + self.event(text) + self.drawn())

    def panel(self, lines: list[str]) -> None:
        """Replace the panel."""
        before, self.rows = self.erased(), lines
        self.write(before + self.drawn())

    def resized(self) -> None:
        """Erase all that is shown, and draw it for the size that the terminal has now."""
        self.quieten()
        self.shown = []
        panel = self.drawn()
        room = self.measure()[1] - 1 - len(self.shown)
        rows = [row for text in self.events for row in self.event(text).splitlines()]
        self.write(HIDE + CLEAR + "".join(f"{row}\n" for row in rows[-room:] if room > 0) + panel)

    def close(self) -> None:
        """Leave the last panel standing, and the terminal as it was."""
        with contextlib.suppress(OSError, ValueError):
            self.write(self.erased() + self.drawn() + SHOW)
        self.restore()

    def event(self, text: str) -> str:
        """An event's rows."""
        columns = self.measure()[0]
        return "".join(f"{row}\n" for line in text.split("\n") for row in fitted(line, columns))

    def erased(self) -> str:
        """What takes the panel away."""
        return "\r" + (f"\x1b[{len(self.shown)}A" if self.shown else "") + ERASE

    def drawn(self) -> str:
        """What draws the panel; rows that don't fit are left out."""
        columns, most = self.size()
        rows = [row for line in self.rows for row in fitted(line, columns)]
        self.shown = [cropped(row, columns) for row in rows[:most]]
        return "".join(f"{row}\n" for row in self.shown)

    def write(self, text: str) -> None:
        """One write, so that nobody sees half of it."""
        self.to.write(writable(text, self.to))
        self.to.flush()

    def quieten(self) -> None:
        """Have the terminal not echo what is typed; only in its foreground: in the background that would stop us."""
        with contextlib.suppress(OSError, ValueError, termios.error):
            fd = self.to.fileno()
            if os.tcgetpgrp(fd) != os.getpgrp():
                return
            modes = termios.tcgetattr(fd)
            self.modes = self.modes or modes
            quiet = [*modes[:3], modes[3] & ~termios.ECHO, *modes[4:]]
            termios.tcsetattr(fd, termios.TCSANOW, quiet)

    def restore(self) -> None:
        """Give the terminal its modes back."""
        if self.modes is not None:
            with contextlib.suppress(OSError, ValueError, termios.error):
                termios.tcsetattr(self.to.fileno(), termios.TCSAFLUSH, self.modes)  # what was typed unseen isn't run
