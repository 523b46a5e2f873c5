"""Small parts of the command line: times, tables, durations, event lines."""

import io
import time

import pytest

from fencepost.cli import flags, history, terminal, up_screen
from fencepost.ports import HistoryRow, Misconfigured
from fencepost.roles.supervisor import Ended, how

AT = 1_795_991_045_123_456_789


def row(kind: str, on: str, by: str, text: str) -> HistoryRow:
    """A line of history at one time."""
    return HistoryRow(kind, on, by, text, AT)


def test_times_are_utc_to_the_millisecond_with_their_day_where_it_is_another() -> None:
    """Logs of several machines are laid side by side."""
    assert terminal.clock(AT) == "22:24:05.123"
    assert terminal.clock(0, day=True) == "1970-01-01 00:00:00.000"
    assert terminal.until_text(0) == "until you resume it"


def test_a_locale_without_utf8_gets_ascii() -> None:
    """A serial console must be able to show it."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.say("a · b × c – d → e", stream)
    stream.seek(0)
    assert stream.read() == "a - b x c - d -> e\n"


def test_no_colour_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """no-color.org; FORCE_COLOR for those who pipe into less -R."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert terminal.styled("x", "red", io.StringIO()) == "x"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert terminal.styled("x", "red", io.StringIO()) != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.styled("x", "red", io.StringIO()) == "x"


@pytest.mark.parametrize(
    ("given", "default", "ends"),
    [("ever", "1h", False), (None, "ever", False), (None, "1h", True), ("30m", "ever", True)],
)
def test_for_says_how_long_and_ever_that_only_a_person_ends_it(given: str | None, default: str, ends: bool) -> None:
    """Every override has an end, unless its author said ever."""
    assert bool(flags.until(given, default) > time.time_ns()) is ends


@pytest.mark.parametrize("text", ["5", "soon", "0s", "-1h"])
def test_for_without_a_unit_or_sense_is_refused(text: str) -> None:
    """An interval of 10 has been ten seconds to one reader and ten milliseconds to another."""
    with pytest.raises(Misconfigured):
        flags.until(text, "1h")


def test_a_change_without_a_terminal_needs_its_reason_and_its_yes_as_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that forgot one is refused, and told which."""
    monkeypatch.setattr(flags, "asking", lambda: False)
    with pytest.raises(Misconfigured) as refused:
        flags.reason(None, "drain 192.0.2.1")
    assert "--reason" in refused.value.hint
    with pytest.raises(Misconfigured) as refused:
        flags.agree("Do it?", yes=False)
    assert "--yes" in refused.value.hint
    with pytest.raises(Misconfigured):
        flags.confirm("Really?", "web", "wbe")
    flags.confirm("Really?", "web", "web")
    flags.confirm("Really?", "www.example.test", "WWW.example.test.")


@pytest.mark.parametrize("text", ["\x1b[2Jboo", "\x07", "a\u202eb", "x" * 501])
def test_a_reason_that_would_disturb_a_terminal_is_refused(text: str) -> None:
    """It stands in a line of everybody's status and history: an escape sequence could forge what is above it."""
    with pytest.raises(Misconfigured, match="--reason"):
        flags.reason(text, "drain 192.0.2.1")
    assert flags.reason(" disk\n is  full ", "drain 192.0.2.1") == "disk is full"


def test_on_a_terminal_a_no_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter alone is no."""
    monkeypatch.setattr(flags, "asking", lambda: True)
    monkeypatch.setattr(flags, "ask", lambda _: "")
    with pytest.raises(terminal.Declined):
        flags.agree("Do it?", yes=False)


def test_the_author_is_who_became_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """sudo keeps who it was."""
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("SUDO_USER", "ada")
    assert flags.author() == "ada"


def test_writes_that_were_made_together_share_a_line() -> None:
    """Two endpoints of one plan are one event to a reader."""
    rows = [row("enacted", name, "enactor/b", "7 -> 8 in 24 ms") for name in ("api.x", "www.x")]
    rows.append(row("enacted", "api.x", "enactor/c", "8 -> 9 in 2 ms"))
    lines = up_screen.history_lines(rows)
    assert [" ".join(line.split()) for line in lines] == [
        "22:24:05.123 enactor b api.x 7 -> 8 in 24 ms; www.x 7 -> 8 in 24 ms",
        "22:24:05.123 enactor c api.x 8 -> 9 in 2 ms",
    ]


def test_what_the_supervisor_says_of_a_target_names_its_address() -> None:
    """A sample's target that was killed comes back after a minute, and the line says so."""
    for code, said in ((-15, "exited (signal 15)"), (0, "exited"), (3, "exited (code 3)")):
        line = up_screen.told(AT, "target/127.0.2.1", "whatever it says", (), Ended(code, again=True))
        assert " ".join(line.split()[1:]) == f"target 127.0.2.1 {said}; the sample starts it again in 60 s"
        line = up_screen.told(AT, "target/127.0.2.1", "whatever it says", (), Ended(code, again=False))
        assert " ".join(line.split()[1:]) == f"target 127.0.2.1 {said}; the sample starts it again in about 60 s"
    line = up_screen.told(AT, "target/127.0.2.1", "died, back in 2 s, is what its name says")
    assert line.endswith("died, back in 2 s, is what its name says"), "no end, whatever it says"
    assert how(9, 4105) == "died (signal 9, pid 4105)"


@pytest.mark.parametrize(
    ("name", "there"),
    [
        (None, True),
        ("api.example.test", True),
        ("API.example.test.", True),
        ("www.example.test", False),
        ("planner", True),
        ("xx", False),
    ],
)
def test_history_of_a_name_has_the_plans_that_changed_it(name: str | None, there: bool) -> None:
    """A plan's line names endpoints by their first label."""
    assert history.about(row("plan", "api, old", "planner", "plan 8: takes out 127.0.2.1 (api, old)"), name) is there


def test_a_fenced_write_is_said_loudly_and_wrapped_under_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line to look for after an incident."""
    monkeypatch.setattr("time.time", lambda: AT / 1e9)  # on another day a line shows its day
    monkeypatch.setattr(history, "width", lambda _: 80)
    text = "plan 20, live is 21. Nothing was written; it had last read 126 s before."
    lines = history.line(row("fenced", "api.example.test", "enactor/a", text), "api.example.test").splitlines()
    assert lines[0].startswith("22:24:05.123  enactor a  FENCED: plan 20, live is 21.")
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith(" " * len("22:24:05.123  enactor a  ") + "had")


def test_global_flags_may_stand_anywhere_and_stop_at_two_dashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """--color and --local hold for every command."""
    monkeypatch.setenv("FORCE_COLOR", "")
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("FENCEPOST_LOCAL", "")
    assert terminal.take_global(["status", "--color", "never", "-v"]) == ["status", "-v"]
    assert terminal.take_global(["x", "--local", "--", "--color"]) == ["x", "--", "--color"]
    with pytest.raises(ValueError, match="mauve"):
        terminal.take_global(["x", "--color=mauve"])


@pytest.mark.parametrize("odd", [10**30, 2**63 * 10**9, -1])
def test_a_time_that_no_calendar_has_is_said_and_stops_nobody(odd: int) -> None:
    """gmtime(3) fails past its range (EOVERFLOW); who looks must see the rest all the same."""
    assert terminal.clock(odd, day=True) == terminal.moment(odd) == terminal.BEYOND
    assert odd < 0 or terminal.until_text(odd) == "until beyond year 9999"


def test_what_lies_in_the_history_moves_no_cursor() -> None:
    """A store written by an older version, or by hand, may hold an escape sequence; it stays text."""
    assert "\x1b" not in history.line(row("operator", "web", "ops\x1b[2J", "drain; reason: \x1b]0;x\x07"))
