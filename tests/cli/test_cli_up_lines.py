"""What can't be shown costs the line, never the region; and the supervisor waits for no reader."""

import errno
import json
import os

import pytest

from fencepost.cli.up_lines import Steady, Teller, encoded


class Screen:
    """A screen that fails as it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.lines: list[str] = []
        self.tried = 0

    def line(self, text: str) -> None:
        self.tried += 1
        if self.error is not None:
            raise self.error
        self.lines.append(text)

    def panel(self, lines: list[str]) -> None:
        self.line("\n".join(lines))

    def size(self) -> tuple[int, int]:
        return 80, 24

    def resized(self) -> None:
        self.line("anew")

    def close(self) -> None:
        self.line("closed")


def test_a_full_disk_costs_lines_until_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    """write(2), ENOSPC: what `up` prints to a file on a full disk must not end ten roles. Said once."""
    screen = Screen()
    steady = Steady(screen)
    screen.error = OSError(errno.ENOSPC, "No space left on device")
    for text in ("one", "two", "three"):
        steady.line(text)
    screen.error = None
    steady.line("four")
    assert screen.lines == ["four"]
    assert capsys.readouterr().err.count("No space left on device") == 1


def test_a_reader_who_has_gone_is_not_written_to_again(capsys: pytest.CaptureFixture[str]) -> None:
    """`fencepost up | head -1`: the region goes on without a screen."""
    screen = Screen()
    steady = Steady(screen)
    screen.error = BrokenPipeError(errno.EPIPE, "Broken pipe")
    steady.line("one")
    steady.panel(["two"])
    steady.close()
    assert screen.tried == 1
    assert "going on without a screen" in capsys.readouterr().err


def test_what_makes_no_line_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """A row of the history with text for a time is one line less, not a stop."""
    steady = Steady(Screen())
    with steady.losing("a row of the history"):
        divmod("abc", 10)  # type: ignore[operator]
    steady.line("next")
    assert isinstance(steady.to, Screen)
    assert steady.to.lines == ["next"]
    assert "a row of the history could not be shown: TypeError" in capsys.readouterr().err


def test_the_supervisor_waits_for_no_reader_and_counts_what_was_dropped() -> None:
    """pipe(7): a full pipe takes nothing until it is read; a stopped `up` once kept dead roles dead."""
    reading, writing = os.pipe()
    tell = Teller(writing)
    for number in range(3000):
        tell("dns", f"died, number {number}")
    assert 0 < tell.dropped < 3000
    dropped = tell.dropped
    told = os.read(reading, 1 << 20).splitlines()
    assert len(told) == 3000 - dropped
    assert [json.loads(line)["text"] for line in told[:2]] == ["died, number 0", "died, number 1"]
    tell("dns", "back")
    first, second = (json.loads(line) for line in os.read(reading, 1 << 20).splitlines())
    assert first["text"] == f"{dropped} lines were not shown: nobody was reading"
    assert (second["name"], second["text"], tell.dropped) == ("dns", "back", 0)
    os.close(reading)
    tell("dns", "nobody is there any more")
    assert tell.dropped == 1
    os.close(writing)


@pytest.mark.parametrize("text", ["short", "x" * 100_000, "日" * 5_000, "\x00" * 5_000, "\ud800"])
def test_a_line_goes_through_whole(text: str) -> None:
    """pipe(7): only up to PIPE_BUF (4096 bytes) is a write all or nothing."""
    line = encoded("reload", text)
    assert len(line) <= 4096
    assert json.loads(line)["text"][:1] in (text[:1], "?")
