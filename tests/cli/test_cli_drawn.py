"""The panel of ``up`` on a terminal: one of it, wherever lines scroll and whatever size the terminal gets."""

import io
import re

import pytest

from fencepost.cli.up_drawn import Drawn

_CODE = re.compile(r"\x1b\[\?25[lh]|\x1b\[(\d*)(?:;(\d*))?([AHJK])|\x1b\[[0-9;]*m|\n|\r|[^\x1b]")


class Terminal(io.StringIO):
    """A terminal that breaks its rows anew when it gets narrower, as tmux and GNOME's do; ECMA-48 as far as we use it.

    What scrolls off is gone.
    """

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.rows, self.y, self.x = [""], 0, 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        for found in _CODE.finditer(text):
            self.take(found[0], found[1] or "", found[3] or "")
        return len(text)

    def take(self, said: str, number: str, code: str) -> None:
        if code == "A":
            self.y = max(0, self.y - int(number or 1))
        elif code == "H":
            self.y, self.x = int(number or 1) - 1, 0
            self.grow()
        elif code in ("J", "K"):
            self.rows[self.y] = self.rows[self.y][: self.x]
            if code == "J":
                del self.rows[self.y + 1 :]
        elif said == "\n":
            self.y, self.x = self.y + 1, 0
            self.grow()
        elif said == "\r":
            self.x = 0
        elif not said.startswith("\x1b"):
            self.put(said)

    def put(self, letter: str) -> None:
        if self.x == self.columns:
            self.y, self.x = self.y + 1, 0
            self.grow()
        row = self.rows[self.y].ljust(self.x)
        self.rows[self.y] = row[: self.x] + letter + row[self.x + 1 :]
        self.x += 1

    def grow(self) -> None:
        while len(self.rows) <= self.y:
            self.rows.append("")
        while len(self.rows) > self.lines:
            del self.rows[0]
            self.y -= 1

    def resize(self, columns: int, lines: int) -> None:
        """Each row is broken at the new width; the last ones stay on the screen."""
        broken = []
        for row in self.rows:
            broken += [row[at : at + columns] for at in range(0, max(1, len(row)), columns)]
        self.columns, self.lines = columns, lines
        self.rows = broken[-lines:]
        self.y, self.x = len(self.rows) - 1, 0

    def shown(self) -> list[str]:
        return [row.rstrip() for row in self.rows if row.strip()]


PANEL = [f" PANEL {number} {'x' * 60}" for number in range(6)]


def screen(monkeypatch: pytest.MonkeyPatch, columns: int = 80, lines: int = 24) -> tuple[Terminal, Drawn]:
    """A terminal and the screen on it."""
    terminal = Terminal(columns, lines)
    monkeypatch.setattr(Drawn, "measure", lambda _: (terminal.columns, terminal.lines))
    return terminal, Drawn(terminal)


def test_lines_scroll_above_one_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also long after the screen is full."""
    terminal, drawn = screen(monkeypatch)
    drawn.panel(PANEL)
    for number in range(50):
        drawn.line(f"event {number}")
        drawn.panel(PANEL)
    assert terminal.shown() == [f"event {number}" for number in range(33, 50)] + PANEL


@pytest.mark.parametrize(("columns", "lines"), [(40, 24), (60, 24), (40, 12), (120, 40), (80, 6), (20, 3)])
def test_another_size_leaves_one_panel_and_no_ghost(monkeypatch: pytest.MonkeyPatch, columns: int, lines: int) -> None:
    """A narrower terminal breaks the rows that stand, and "up by six" then ends in the middle of the old panel."""
    terminal, drawn = screen(monkeypatch)
    for number in range(30):
        drawn.line(f"event {number}")
    drawn.panel(PANEL)
    terminal.resize(columns, lines)
    drawn.resized()
    drawn.panel(PANEL)
    drawn.line("the last event")
    found = terminal.shown()
    heads = [row for row in found if row.startswith(" PANEL")]
    assert heads == sorted(set(heads), key=heads.index), "each of them once"
    assert len(terminal.rows) <= lines
    assert all(len(row) <= columns for row in found)
    if lines > 12:
        assert [head[:8] for head in heads] == [row[:8] for row in PANEL]
        assert "the last event" in found


def test_a_panel_that_is_too_tall_is_cut_not_smeared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up by more rows than there are ends at the top, and each second another copy would scroll away."""
    terminal, drawn = screen(monkeypatch, lines=5)
    for _ in range(3):
        drawn.panel(PANEL)
    assert [row[:8] for row in terminal.shown()] == [" PANEL 0", " PANEL 1", " PANEL 2"]
